//! Switches and the phases they went through. The engine alone writes them.

use model::{NodeName, ProfileName, UnixMillis};
use sqlx::AnyConnection;

use crate::{
    Store, StoreError,
    row::{Row, all},
};

/// A switch of one node to a profile, open or closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchRow {
    /// Its identity.
    pub id: String,
    /// The node.
    pub node: NodeName,
    /// Where it leads.
    pub profile: ProfileName,
    /// What the node was settled in when it began.
    pub from_profile: Option<ProfileName>,
    /// Name of the phase, for people and filters.
    pub phase: String,
    /// The engine's state, as JSON; not read here.
    pub state_json: String,
    /// Whether it is under way. A node has at most one open switch (a unique index).
    pub open: bool,
    /// Who asked for it.
    pub by: String,
    /// One sentence: what it waits for, or why it ended.
    pub reason: String,
    /// One sentence: what a person should do about it.
    pub remedy: Option<String>,
    /// When it was asked for.
    pub created: UnixMillis,
    /// When it entered its phase.
    pub since: UnixMillis,
    /// Until when it waits in its phase.
    pub until: Option<UnixMillis>,
    /// Grows with each write; a write whose version is not greater is refused.
    pub version: i64,
}

/// A phase entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The switch.
    pub switch_id: String,
    /// Its node.
    pub node: NodeName,
    /// When.
    pub at: UnixMillis,
    /// The phase entered.
    pub phase: String,
    /// One sentence: why.
    pub reason: String,
}

/// A phase entered, with what people want to know of its switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRow {
    /// The transition.
    pub transition: Transition,
    /// Where the switch leads.
    pub profile: ProfileName,
    /// Who asked for it.
    pub by: String,
}

const TABLE: &str = "switch";

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select id, node, profile, from_profile, phase, state_json, is_open, asked_by, reason,
                    remedy, created_ms, since_ms, until_ms, version from switch ",
            $rest
        )
    };
}

/// All open switches, oldest first.
///
/// # Errors
/// [`StoreError`] when the database fails or holds what is not understood.
pub async fn open(store: &Store) -> Result<Vec<SwitchRow>, StoreError> {
    const SQL: &str = select!("where is_open = 1 order by created_ms, id");
    let rows = sqlx::query(SQL).fetch_all(&store.readers).await;
    all(TABLE, &rows.map_err(StoreError::query("read the open switches"))?, read)
}

/// The last `limit` switches of all nodes, newest first.
///
/// # Errors
/// As [`open`].
pub async fn latest(store: &Store, limit: u32) -> Result<Vec<SwitchRow>, StoreError> {
    const SQL: &str = select!("order by created_ms desc, id desc limit $1");
    let rows = sqlx::query(SQL).bind(i64::from(limit)).fetch_all(&store.readers).await;
    all(TABLE, &rows.map_err(StoreError::query("read the latest switches"))?, read)
}

/// The open or, without one, the newest switch of each node, by node.
///
/// # Errors
/// As [`open`].
pub async fn last_per_node(store: &Store) -> Result<Vec<SwitchRow>, StoreError> {
    const SQL: &str = select!(
        "where not exists (select 1 from switch as other where other.node = switch.node
             and (other.is_open > switch.is_open or (other.is_open = switch.is_open
                  and (other.created_ms > switch.created_ms
                       or (other.created_ms = switch.created_ms and other.id > switch.id)))))
         order by node"
    );
    let rows = sqlx::query(SQL).fetch_all(&store.readers).await;
    all(TABLE, &rows.map_err(StoreError::query("read the last switch of each node"))?, read)
}

/// The switch of this id.
///
/// # Errors
/// As [`open`].
pub async fn find(store: &Store, id: &str) -> Result<Option<SwitchRow>, StoreError> {
    const SQL: &str = select!("where id = $1");
    let row = sqlx::query(SQL).bind(id).fetch_optional(&store.readers).await;
    let row = row.map_err(StoreError::query("read a switch"))?;
    row.map(|row| read(&Row::new(TABLE, &row))).transpose()
}

/// The last `limit` phases of a node's switches, newest first.
///
/// # Errors
/// As [`open`].
pub async fn history(
    store: &Store,
    node: &NodeName,
    limit: u32,
) -> Result<Vec<HistoryRow>, StoreError> {
    const SQL: &str =
        "select t.switch_id, t.node, t.at_ms, t.phase, t.reason, s.profile, s.asked_by
                       from transition as t join switch as s on s.id = t.switch_id
                       where t.node = $1 order by t.id desc limit $2";
    let query = sqlx::query(SQL).bind(node.as_str()).bind(i64::from(limit));
    let rows = query.fetch_all(&store.readers).await;
    all("transition", &rows.map_err(StoreError::query("read a node's history"))?, read_history)
}

pub(crate) async fn last_id(store: &Store) -> Result<Option<String>, StoreError> {
    const SQL: &str = "select id from transition order by id desc limit 1";
    let id = sqlx::query_scalar(SQL).fetch_optional(&store.readers).await;
    id.map_err(StoreError::query("read the last key of the transitions"))
}

pub(crate) async fn upsert(db: &mut AnyConnection, row: &SwitchRow) -> Result<(), StoreError> {
    const WHAT: &str = "write a switch";
    const SQL: &str = "insert into switch (id, node, profile, from_profile, phase, state_json,
            is_open, asked_by, reason, remedy, created_ms, since_ms, until_ms, version)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
        on conflict (id) do update set phase = excluded.phase, state_json = excluded.state_json,
            is_open = excluded.is_open, reason = excluded.reason, remedy = excluded.remedy,
            since_ms = excluded.since_ms, until_ms = excluded.until_ms,
            version = excluded.version
        where switch.version < excluded.version";
    let query = sqlx::query(SQL)
        .bind(&row.id)
        .bind(row.node.as_str())
        .bind(row.profile.as_str())
        .bind(row.from_profile.as_ref().map(ProfileName::as_str))
        .bind(&row.phase)
        .bind(&row.state_json)
        .bind(i64::from(row.open))
        .bind(&row.by)
        .bind(&row.reason)
        .bind(row.remedy.as_deref())
        .bind(row.created.0)
        .bind(row.since.0)
        .bind(row.until.map(|until| until.0))
        .bind(row.version);
    let done = query.execute(db).await.map_err(StoreError::query(WHAT))?;
    if done.rows_affected() == 0 { Err(StoreError::Conflict { what: WHAT }) } else { Ok(()) }
}

pub(crate) async fn append(
    db: &mut AnyConnection,
    id: &str,
    row: &Transition,
) -> Result<(), StoreError> {
    const SQL: &str = "insert into transition (id, switch_id, node, at_ms, phase, reason)
                       values ($1, $2, $3, $4, $5, $6)";
    let query = sqlx::query(SQL)
        .bind(id)
        .bind(&row.switch_id)
        .bind(row.node.as_str())
        .bind(row.at.0)
        .bind(&row.phase)
        .bind(&row.reason);
    query.execute(db).await.map_err(StoreError::query("write a transition"))?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<SwitchRow, StoreError> {
    Ok(SwitchRow {
        id: row.text("id")?,
        node: row.parsed("node")?,
        profile: row.parsed("profile")?,
        from_profile: row.opt_parsed("from_profile")?,
        phase: row.text("phase")?,
        state_json: row.text("state_json")?,
        open: row.flag("is_open")?,
        by: row.text("asked_by")?,
        reason: row.text("reason")?,
        remedy: row.opt_text("remedy")?,
        created: row.millis("created_ms")?,
        since: row.millis("since_ms")?,
        until: row.opt_millis("until_ms")?,
        version: row.number("version")?,
    })
}

fn read_history(row: &Row<'_>) -> Result<HistoryRow, StoreError> {
    let transition = Transition {
        switch_id: row.text("switch_id")?,
        node: row.parsed("node")?,
        at: row.millis("at_ms")?,
        phase: row.text("phase")?,
        reason: row.text("reason")?,
    };
    Ok(HistoryRow { transition, profile: row.parsed("profile")?, by: row.text("asked_by")? })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        Record,
        testing::{Book, node, profile},
    };

    pub(crate) fn switch(id: &str, of: &str, open: bool, created: i64) -> SwitchRow {
        SwitchRow {
            id: id.to_owned(),
            node: node(of),
            profile: profile("inspect"),
            from_profile: None,
            phase: "planned".to_owned(),
            state_json: "{}".to_owned(),
            open,
            by: "anna".to_owned(),
            reason: "asked for on the page".to_owned(),
            remedy: None,
            created: UnixMillis(created),
            since: UnixMillis(created),
            until: None,
            version: 1,
        }
    }

    fn ids(rows: &[SwitchRow]) -> Vec<&str> {
        rows.iter().map(|row| row.id.as_str()).collect()
    }

    #[tokio::test]
    async fn a_switch_reads_back_as_it_was_last_written() {
        let book = Book::open().await;
        let mut row = switch("s1", "bld-003", true, 10);
        book.write(vec![Record::Switch(row.clone())]).await;
        row = SwitchRow {
            phase: "held".to_owned(),
            state_json: r#"{"try":2}"#.to_owned(),
            open: false,
            reason: "boot loop".to_owned(),
            remedy: Some("look at its console".to_owned()),
            since: UnixMillis(20),
            until: Some(UnixMillis(30)),
            version: 2,
            ..row
        };
        book.write(vec![Record::Switch(row.clone())]).await;
        assert_eq!(find(&book.store, "s1").await.unwrap(), Some(row));
        assert_eq!(find(&book.store, "s2").await.unwrap(), None);
    }

    #[tokio::test]
    async fn an_older_version_is_a_conflict_and_changes_nothing() {
        let book = Book::open().await;
        let row = SwitchRow { version: 3, ..switch("s1", "bld-003", true, 10) };
        book.write(vec![Record::Switch(row.clone())]).await;
        for version in [2, 3] {
            let late = SwitchRow { version, phase: "late".to_owned(), ..row.clone() };
            let answer = book.writer.submit(vec![Record::Switch(late)]).await;
            assert!(matches!(answer, Err(StoreError::Conflict { .. })), "{answer:?}");
        }
        assert_eq!(find(&book.store, "s1").await.unwrap(), Some(row));
    }

    #[tokio::test]
    async fn a_node_has_one_open_switch_and_any_number_of_closed_ones() {
        let book = Book::open().await;
        book.write(vec![
            Record::Switch(switch("s1", "bld-003", false, 1)),
            Record::Switch(switch("s2", "bld-003", false, 2)),
            Record::Switch(switch("s3", "bld-003", true, 3)),
            Record::Switch(switch("s4", "bld-004", true, 4)),
        ])
        .await;
        let second =
            book.writer.submit(vec![Record::Switch(switch("s5", "bld-003", true, 5))]).await;
        assert!(matches!(second, Err(StoreError::Conflict { .. })), "{second:?}");
        assert_eq!(ids(&open(&book.store).await.unwrap()), ["s3", "s4"]);
        assert_eq!(ids(&latest(&book.store, 3).await.unwrap()), ["s4", "s3", "s2"]);
    }

    #[tokio::test]
    async fn the_last_switch_of_a_node_is_the_open_one_else_the_newest() {
        let book = Book::open().await;
        book.write(vec![
            Record::Switch(switch("s1", "bld-003", true, 1)),
            Record::Switch(switch("s2", "bld-003", false, 2)),
            Record::Switch(switch("s3", "bld-004", false, 3)),
            Record::Switch(switch("s4", "bld-004", false, 3)),
        ])
        .await;
        assert_eq!(ids(&last_per_node(&book.store).await.unwrap()), ["s1", "s4"]);
    }

    #[tokio::test]
    async fn history_is_newest_first_and_of_one_node() {
        let book = Book::open().await;
        let entered = |id: &str, of: &str, phase: &str| {
            Record::Transition(Transition {
                switch_id: id.to_owned(),
                node: node(of),
                at: UnixMillis(7),
                phase: phase.to_owned(),
                reason: "why".to_owned(),
            })
        };
        book.write(vec![
            Record::Switch(switch("s1", "bld-003", true, 1)),
            Record::Switch(switch("s2", "bld-004", true, 1)),
            entered("s1", "bld-003", "planned"),
            entered("s2", "bld-004", "planned"),
            entered("s1", "bld-003", "booting"),
            entered("s1", "bld-003", "done"),
        ])
        .await;
        let rows = history(&book.store, &node("bld-003"), 2).await.unwrap();
        let phases: Vec<_> = rows.iter().map(|row| row.transition.phase.as_str()).collect();
        assert_eq!(phases, ["done", "booting"]);
        assert_eq!((rows[0].by.as_str(), rows[0].profile.as_str()), ("anna", "inspect"));
    }
}
