//! Power of nodes as last read back from their BMCs.

use model::{NodeName, UnixMillis};
use sqlx::AnyConnection;

use crate::{
    Store, StoreError,
    row::{Row, all},
};

/// Power of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerStateRow {
    /// The node.
    pub node: NodeName,
    /// Whether it is on; `None` when nobody could read it.
    pub on: Option<bool>,
    /// When it was read, or tried.
    pub at: UnixMillis,
}

/// Power of all nodes ever read, by node.
///
/// # Errors
/// [`StoreError`] when the database fails or holds what is not understood.
pub async fn list(store: &Store) -> Result<Vec<PowerStateRow>, StoreError> {
    const SQL: &str = "select node, is_on, at_ms from power_state order by node";
    let rows = sqlx::query(SQL).fetch_all(&store.readers).await;
    all("power_state", &rows.map_err(StoreError::query("read the power states"))?, read)
}

/// Power of one node, if it was ever read.
///
/// # Errors
/// As [`list`].
pub async fn find(store: &Store, node: &NodeName) -> Result<Option<PowerStateRow>, StoreError> {
    const SQL: &str = "select node, is_on, at_ms from power_state where node = $1";
    let rows = sqlx::query(SQL).bind(node.as_str()).fetch_all(&store.readers).await;
    let rows = all("power_state", &rows.map_err(StoreError::query("read a power state"))?, read)?;
    Ok(rows.into_iter().next())
}

fn read(row: &Row<'_>) -> Result<PowerStateRow, StoreError> {
    Ok(PowerStateRow {
        node: row.parsed("node")?,
        on: row.opt_flag("is_on")?,
        at: row.millis("at_ms")?,
    })
}

pub(crate) async fn upsert(db: &mut AnyConnection, row: &PowerStateRow) -> Result<(), StoreError> {
    const SQL: &str = "insert into power_state (node, is_on, at_ms) values ($1, $2, $3)
        on conflict (node) do update set is_on = excluded.is_on, at_ms = excluded.at_ms";
    let query = sqlx::query(SQL).bind(row.node.as_str()).bind(row.on.map(i64::from)).bind(row.at.0);
    query.execute(db).await.map_err(StoreError::query("write a power state"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Record,
        testing::{Book, node},
    };

    #[tokio::test]
    async fn the_last_state_stands_and_unknown_is_not_off() {
        let book = Book::open().await;
        let row = |of: &str, on, at| PowerStateRow { node: node(of), on, at: UnixMillis(at) };
        book.write(vec![
            Record::PowerState(row("bld-003", Some(true), 1)),
            Record::PowerState(row("bld-004", Some(false), 1)),
            Record::PowerState(row("bld-003", None, 2)),
        ])
        .await;
        let want = [row("bld-003", None, 2), row("bld-004", Some(false), 1)];
        assert_eq!(list(&book.store).await.unwrap(), want);
        assert_eq!(find(&book.store, &node("bld-004")).await.unwrap().as_ref(), want.last());
        assert_eq!(find(&book.store, &node("bld-005")).await.unwrap(), None);
    }
}
