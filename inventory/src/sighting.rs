//! Sightings: the flight recorder. The last 2,000 of each node are kept, and of unknown machines together, of at most
//! 50 boots and 90 days; an agent that waits and asks for orders every few seconds takes few of these places.

use std::collections::BTreeMap;

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
/// Boots of a node that survive a pruning.
const KEEP_BOOTS: i64 = 50;
/// Milliseconds before a node's newest sighting after which one does not survive a pruning.
const KEEP_SPAN_MS: i64 = 90 * 24 * 60 * 60 * 1_000;
/// Sightings read of all boots of a node: those that are kept, and those that wait for the next pruning.
const ALL: i64 = KEEP + 1_000;
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

/// The sightings of every boot of a node that is kept, the oldest boot first, each oldest first.
///
/// # Errors
/// As [`of_attempt`].
pub async fn boots(store: &Store, node: &NodeName) -> Result<Vec<Vec<Sighting>>, StoreError> {
    const SQL: &str =
        select!("where node = $1 and attempt_ms is not null order by id desc limit $2");
    let rows = sqlx::query(SQL).bind(node.as_str()).bind(ALL).fetch_all(&store.readers).await;
    let seen = oldest_first(&rows.map_err(StoreError::query("read the boots of a node"))?)?;
    let mut boots: BTreeMap<Option<UnixMillis>, Vec<Sighting>> = BTreeMap::new();
    for one in seen {
        boots.entry(one.attempt).or_default().push(one);
    }
    Ok(boots.into_values().collect())
}

/// The last boot of a node of which something was seen.
///
/// # Errors
/// As [`of_attempt`].
pub async fn last_boot(store: &Store, node: &NodeName) -> Result<Option<UnixMillis>, StoreError> {
    const SQL: &str = "select attempt_ms from sighting
                       where node = $1 and attempt_ms is not null
                       order by attempt_ms desc limit 1";
    let last = sqlx::query_scalar(SQL).bind(node.as_str()).fetch_optional(&store.readers).await;
    Ok(last.map_err(StoreError::query("read the last boot of a node"))?.map(UnixMillis))
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

/// Deletes all but the last 2,000 of `node` (as stored), and what belongs to too many boots or is too old.
pub(crate) async fn prune(db: &mut AnyConnection, node: &str) -> Result<(), StoreError> {
    prune_waits(db, node).await?;
    prune_boots(db, node).await?;
    const SQL: &str = "delete from sighting where node = $1 and id <
        (select id from sighting where node = $1 order by id desc limit 1 offset $2)";
    let query = sqlx::query(SQL).bind(node).bind(KEEP - 1);
    query.execute(db).await.map_err(StoreError::query("delete old sightings"))?;
    Ok(())
}

/// Deletes boots but the last 50, and what is over 90 days older than the newest.
async fn prune_boots(db: &mut AnyConnection, node: &str) -> Result<(), StoreError> {
    const BOOTS: &str = "delete from sighting where node = $1 and attempt_ms <
        (select attempt_ms from (select distinct attempt_ms from sighting
                                 where node = $1 and attempt_ms is not null) as boots
         order by attempt_ms desc limit 1 offset $2)";
    const OLD: &str = "delete from sighting where node = $1
        and at_ms < (select max(at_ms) from sighting where node = $1) - $2";
    for (sql, most) in [(BOOTS, KEEP_BOOTS - 1), (OLD, KEEP_SPAN_MS)] {
        let query = sqlx::query(sql).bind(node).bind(most);
        query.execute(&mut *db).await.map_err(StoreError::query("delete old boots"))?;
    }
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
    async fn boots_are_read_apart_and_old_ones_go() {
        const DAY: i64 = 86_400_000;
        let book = Book::open().await;
        let boot = |first: i64, count: i64| {
            (0..count).map(move |n| Record::Sighting(seen(Some("bld-003"), first + n, Some(first))))
        };
        let name = node("bld-003");
        assert_eq!(last_boot(&book.store, &name).await.unwrap(), None);
        book.write(vec![Record::Sighting(seen(Some("bld-003"), 5, None))]).await;
        book.write(boot(1_000, 2).chain(boot(2_000, 3)).collect()).await;
        let read = boots(&book.store, &name).await.unwrap();
        let shape: Vec<(usize, i64)> =
            read.iter().map(|one| (one.len(), one[0].attempt.unwrap().0)).collect();
        assert_eq!(shape, [(2, 1_000), (3, 2_000)]);
        assert_eq!(last_boot(&book.store, &name).await.unwrap(), Some(UnixMillis(2_000)));

        // Pruned after 500 sightings: the last 50 of 60 boots, and nothing from a quarter of a year ago.
        let many = (0..60).flat_map(|n| boot(91 * DAY + n * 1_000, 10));
        book.write(many.collect()).await;
        let read = boots(&book.store, &name).await.unwrap();
        assert_eq!((read.len(), read[0].len()), (50, 10));
        assert_eq!(read[0][0].at, UnixMillis(91 * DAY + 10_000));
        let all = latest(&book.store, Some(&name), 9_999).await.unwrap();
        assert_eq!(all.len(), 500, "the one without a boot is too old");
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
