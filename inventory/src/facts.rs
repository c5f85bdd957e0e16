//! Hardware as nodes last reported it.

use model::{NodeName, UnixMillis};
use sqlx::AnyConnection;

use crate::{
    Store, StoreError,
    row::{Row, all},
};

/// A report to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFacts {
    /// The node.
    pub node: NodeName,
    /// When it reported.
    pub at: UnixMillis,
    /// What was understood, as JSON of [`crate::parse::Facts`].
    pub json: String,
    /// What was reported, as JSON of [`model::agent::Report`], to be understood again by a later volund.
    pub raw_json: String,
}

/// A report as kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactsRow {
    /// The report.
    pub facts: NewFacts,
    /// How many reports of this node there have been, this one counted.
    pub generation: u32,
}

macro_rules! select {
    ($rest:literal) => {
        concat!("select node, at_ms, generation, json, raw_json from facts ", $rest)
    };
}

/// The facts of one node.
///
/// # Errors
/// [`StoreError`] when the database fails or holds what is not understood.
pub async fn find(store: &Store, node: &NodeName) -> Result<Option<FactsRow>, StoreError> {
    const SQL: &str = select!("where node = $1");
    let row = sqlx::query(SQL).bind(node.as_str()).fetch_optional(&store.readers).await;
    let row = row.map_err(StoreError::query("read a node's facts"))?;
    row.map(|row| read(&Row::new("facts", &row))).transpose()
}

/// The facts of all nodes, by node. Raw reports are tens of kilobytes each.
///
/// # Errors
/// As [`find`].
pub async fn list(store: &Store) -> Result<Vec<FactsRow>, StoreError> {
    const SQL: &str = select!("order by node");
    let rows = sqlx::query(SQL).fetch_all(&store.readers).await;
    all("facts", &rows.map_err(StoreError::query("read the facts"))?, read)
}

pub(crate) async fn upsert(db: &mut AnyConnection, row: &NewFacts) -> Result<(), StoreError> {
    const SQL: &str = "insert into facts (node, at_ms, generation, json, raw_json)
        values ($1, $2, 1, $3, $4)
        on conflict (node) do update set at_ms = excluded.at_ms, json = excluded.json,
            raw_json = excluded.raw_json, generation = facts.generation + 1";
    let query =
        sqlx::query(SQL).bind(row.node.as_str()).bind(row.at.0).bind(&row.json).bind(&row.raw_json);
    query.execute(db).await.map_err(StoreError::query("write a node's facts"))?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<FactsRow, StoreError> {
    let facts = NewFacts {
        node: row.parsed("node")?,
        at: row.millis("at_ms")?,
        json: row.text("json")?,
        raw_json: row.text("raw_json")?,
    };
    Ok(FactsRow { facts, generation: row.number("generation")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Record,
        testing::{Book, node},
    };

    #[tokio::test]
    async fn each_report_replaces_the_last_and_counts_up() {
        let book = Book::open().await;
        let facts = |of: &str, at| NewFacts {
            node: node(of),
            at: UnixMillis(at),
            json: format!("{{\"at_ms\":{at}}}"),
            raw_json: "{}".to_owned(),
        };
        for at in [1, 2, 3] {
            book.write(vec![Record::Facts(facts("bld-003", at))]).await;
        }
        book.write(vec![Record::Facts(facts("bld-004", 9))]).await;
        let third = FactsRow { facts: facts("bld-003", 3), generation: 3 };
        let other = FactsRow { facts: facts("bld-004", 9), generation: 1 };
        assert_eq!(find(&book.store, &node("bld-003")).await.unwrap(), Some(third.clone()));
        assert_eq!(find(&book.store, &node("bld-005")).await.unwrap(), None);
        assert_eq!(list(&book.store).await.unwrap(), [third, other]);
    }
}
