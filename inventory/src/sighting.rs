//! Sightings: the flight recorder. The last 2,000 of each node are kept, and of unknown machines together; an
//! agent that waits and asks for orders every few seconds takes few of these places.

use model::{NodeName, Sighting, UnixMillis};
use sqlx::AnyConnection;

use crate::{
    Store, StoreError,
    row::{Row, all},
};

/// Sightings of a node that survive a pruning.
const KEEP: i64 = 2_000;
/// Sightings behind the newest ones among which those of a waiting agent survive a pruning.
const KEEP_WAITS: i64 = 100;
const TABLE: &str = "sighting";

macro_rules! select {
    ($rest:literal) => {
        concat!("select id, node, at_ms, mac, peer, attempt_ms, what_json from sighting ", $rest)
    };
}

/// The sightings of one boot attempt of a node, oldest first, at most the first `limit`.
///
/// # Errors
/// [`StoreError`] when the database fails or holds what is not understood.
pub async fn of_attempt(
    store: &Store,
    node: &NodeName,
    attempt: UnixMillis,
    limit: u32,
) -> Result<Vec<Sighting>, StoreError> {
    const SQL: &str = select!("where node = $1 and attempt_ms = $2 order by id limit $3");
    let query = sqlx::query(SQL).bind(node.as_str()).bind(attempt.0).bind(i64::from(limit));
    let rows = query.fetch_all(&store.readers).await;
    all(TABLE, &rows.map_err(StoreError::query("read the sightings of an attempt"))?, read)
}

/// The last `limit` sightings of a node at or after `since`, oldest first: with an attempt's first moment,
/// its timeline including what came before the attempt was opened or after it ended.
///
/// # Errors
/// As [`of_attempt`].
pub async fn since(
    store: &Store,
    node: &NodeName,
    since: UnixMillis,
    limit: u32,
) -> Result<Vec<Sighting>, StoreError> {
    const SQL: &str = select!("where node = $1 and at_ms >= $2 order by id desc limit $3");
    let query = sqlx::query(SQL).bind(node.as_str()).bind(since.0).bind(i64::from(limit));
    let rows = query.fetch_all(&store.readers).await;
    oldest_first(&rows.map_err(StoreError::query("read the sightings of a node"))?)
}

/// The last `limit` sightings of a node, or (`None`) of machines nobody knows, oldest first.
///
/// # Errors
/// As [`of_attempt`].
pub async fn latest(
    store: &Store,
    node: Option<&NodeName>,
    limit: u32,
) -> Result<Vec<Sighting>, StoreError> {
    const SQL: &str = select!("where node = $1 order by id desc limit $2");
    let node = node.map_or("", NodeName::as_str);
    let query = sqlx::query(SQL).bind(node).bind(i64::from(limit));
    let rows = query.fetch_all(&store.readers).await;
    oldest_first(&rows.map_err(StoreError::query("read the latest sightings"))?)
}

/// The last sighting of each known node, by node.
///
/// # Errors
/// As [`of_attempt`].
pub async fn last_per_node(store: &Store) -> Result<Vec<Sighting>, StoreError> {
    const SQL: &str = select!(
        "where id in (select max(id) from sighting where node <> '' group by node) order by node"
    );
    let rows = sqlx::query(SQL).fetch_all(&store.readers).await;
    all(TABLE, &rows.map_err(StoreError::query("read each node's last sighting"))?, read)
}

pub(crate) async fn last_id(store: &Store) -> Result<Option<String>, StoreError> {
    const SQL: &str = "select id from sighting order by id desc limit 1";
    let id = sqlx::query_scalar(SQL).fetch_optional(&store.readers).await;
    id.map_err(StoreError::query("read the last key of the sightings"))
}

/// The node of a sighting as the table keeps it: empty for an unknown machine.
pub(crate) fn node_key(seen: &Sighting) -> &str {
    seen.node.as_ref().map_or("", NodeName::as_str)
}

pub(crate) async fn append(
    db: &mut AnyConnection,
    id: &str,
    seen: &Sighting,
) -> Result<(), StoreError> {
    const WHAT: &str = "write a sighting";
    const SQL: &str = "insert into sighting (id, node, at_ms, mac, peer, attempt_ms, what_json)
                       values ($1, $2, $3, $4, $5, $6, $7)";
    let what = serde_json::to_string(&seen.what).map_err(StoreError::encode(WHAT))?;
    let query = sqlx::query(SQL)
        .bind(id)
        .bind(node_key(seen))
        .bind(seen.at.0)
        .bind(seen.mac.map(|mac| mac.to_string()))
        .bind(seen.peer.map(|peer| peer.to_string()))
        .bind(seen.attempt.map(|attempt| attempt.0))
        .bind(what);
    query.execute(db).await.map_err(StoreError::query(WHAT))?;
    Ok(())
}

/// Deletes all but the last 2,000 of `node` (as stored).
pub(crate) async fn prune(db: &mut AnyConnection, node: &str) -> Result<(), StoreError> {
    prune_waits(db, node).await?;
    const SQL: &str = "delete from sighting where node = $1 and id <
        (select id from sighting where node = $1 order by id desc limit 1 offset $2)";
    let query = sqlx::query(SQL).bind(node).bind(KEEP - 1);
    query.execute(db).await.map_err(StoreError::query("delete old sightings"))?;
    Ok(())
}

/// Deletes what a waiting agent asked some time ago: its boot shall stay on record as long as it waits.
async fn prune_waits(db: &mut AnyConnection, node: &str) -> Result<(), StoreError> {
    const SQL: &str = "delete from sighting where node = $1
        and (what_json like '{\"type\":\"agent\",\"verb\":\"next\"%'
             or what_json like '{\"type\":\"http-done\",%\"path\":\"/agent/v1/next\",\"status\":200,%')
        and id < (select id from sighting where node = $1 order by id desc limit 1 offset $2)";
    let query = sqlx::query(SQL).bind(node).bind(KEEP_WAITS - 1);
    query.execute(db).await.map_err(StoreError::query("delete what a waiting agent asked"))?;
    Ok(())
}

fn oldest_first(newest_first: &[sqlx::any::AnyRow]) -> Result<Vec<Sighting>, StoreError> {
    let mut sightings = all(TABLE, newest_first, read)?;
    sightings.reverse();
    Ok(sightings)
}

fn read(row: &Row<'_>) -> Result<Sighting, StoreError> {
    let node = row.text("node")?;
    let node = if node.is_empty() { None } else { Some(row.parsed("node")?) };
    Ok(Sighting {
        at: row.millis("at_ms")?,
        node,
        mac: row.opt_parsed("mac")?,
        peer: row.opt_parsed("peer")?,
        attempt: row.opt_millis("attempt_ms")?,
        what: row.json("what_json")?,
    })
}

#[cfg(test)]
mod tests {
    use model::{Sighted, sighting::DhcpKind};

    use super::*;
    use crate::{
        Record,
        testing::{Book, node},
    };

    fn seen(of: Option<&str>, at: i64, attempt: Option<i64>) -> Sighting {
        Sighting {
            at: UnixMillis(at),
            node: of.map(node),
            mac: Some("9c:8e:99:00:03:01".parse().unwrap()),
            peer: of.map(|_known| "192.0.2.77".parse().unwrap()),
            attempt: attempt.map(UnixMillis),
            what: Sighted::DhcpIn {
                kind: DhcpKind::Discover,
                xid: 0xdead_beef,
                client: "<img src=x>'\"; --\n".to_owned(),
                relay: None,
                proxy: false,
            },
        }
    }

    #[tokio::test]
    async fn sightings_read_back_whole_in_the_order_they_were_written() {
        let book = Book::open().await;
        // The clock stepped back between the first two: order is the order of writing.
        let rows = [
            seen(Some("bld-003"), 20, Some(20)),
            seen(Some("bld-003"), 10, Some(20)),
            seen(Some("bld-003"), 30, None),
            seen(None, 40, None),
        ];
        book.write(rows.iter().cloned().map(Record::Sighting).collect()).await;
        let (store, name) = (&book.store, node("bld-003"));
        let [a, b, c, unknown] = rows;
        assert_eq!(
            of_attempt(store, &name, UnixMillis(20), 9).await.unwrap(),
            [a.clone(), b.clone()]
        );
        assert_eq!(since(store, &name, UnixMillis(15), 9).await.unwrap(), [a, c.clone()]);
        assert_eq!(latest(store, Some(&name), 2).await.unwrap(), [b, c.clone()]);
        assert_eq!(latest(store, None, 9).await.unwrap(), [unknown]);
        assert_eq!(last_per_node(store).await.unwrap(), [c]);
    }

    #[tokio::test]
    async fn only_the_last_two_thousand_of_a_node_are_kept() {
        let book = Book::open().await;
        book.write(vec![Record::Sighting(seen(Some("bld-004"), 1, None))]).await;
        let many = |from: i64| {
            (from..from + 1_250)
                .map(|at| Record::Sighting(seen(Some("bld-003"), at, None)))
                .collect()
        };
        book.write(many(0)).await;
        book.write(many(1_250)).await;
        let kept = latest(&book.store, Some(&node("bld-003")), 9_999).await.unwrap();
        assert_eq!(kept.len(), 2_000);
        assert_eq!(kept.last().unwrap().at, UnixMillis(2_499));
        assert_eq!(latest(&book.store, Some(&node("bld-004")), 9).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn an_agent_that_waits_for_days_does_not_push_its_boot_out() {
        let book = Book::open().await;
        let one = |at: i64, what: Sighted| {
            Record::Sighting(Sighting { what, ..seen(Some("bld-003"), at, Some(1)) })
        };
        let call = |at: i64, verb: &str, status: u16| {
            let path = format!("/agent/v1/{verb}");
            let (method, bytes, millis) = ("POST".to_owned(), 25, 0);
            one(at, Sighted::HttpDone { method, path, status, bytes, millis })
        };
        let boot = vec![
            Record::Sighting(seen(Some("bld-003"), 1, Some(1))),
            one(2, Sighted::Agent { verb: "report".to_owned() }),
            call(3, "report", 200),
            call(4, "next", 409),
        ];
        book.write(boot).await;
        for hour in 1..=6 {
            let asks = (hour * 1_000..hour * 1_000 + 720).flat_map(|at| {
                [one(at, Sighted::Agent { verb: "next".to_owned() }), call(at, "next", 200)]
            });
            book.write(asks.collect()).await;
        }
        let name = node("bld-003");
        let kept = of_attempt(&book.store, &name, UnixMillis(1), 9_999).await.unwrap();
        let times: Vec<i64> = kept.iter().take(4).map(|one| one.at.0).collect();
        assert_eq!(times, [1, 2, 3, 4], "the boot, and the call that was refused");
        assert!(kept.len() < 2_000, "{}", kept.len());
        assert_eq!(kept.last().unwrap().at, UnixMillis(6_719));
    }
}
