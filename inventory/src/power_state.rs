//! Power of nodes as last read back from their BMCs.

use model::{NodeName, UnixMillis};
use sqlx::AnyConnection;

use crate::{Store, StoreError, row::all};

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
    all("power_state", &rows.map_err(StoreError::query("read the power states"))?, |row| {
        Ok(PowerStateRow {
            node: row.parsed("node")?,
            on: row.opt_flag("is_on")?,
            at: row.millis("at_ms")?,
        })
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
    }
}
