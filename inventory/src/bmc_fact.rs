//! What was learnt of nodes' BMCs.

use model::{NodeName, UnixMillis, Uuid};
use sqlx::AnyConnection;

use crate::{Store, StoreError, row::all};

/// What is known of one node's BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BmcFact {
    /// The node.
    pub node: NodeName,
    /// System GUID it told when it was first spoken to: which machine it belongs to.
    pub guid: Option<Uuid>,
    /// Cipher suite that worked.
    pub suite: Option<u8>,
    /// What is wrong with it, a sentence.
    pub trouble: Option<String>,
    /// When that was learnt.
    pub at: UnixMillis,
}

/// What is known of all BMCs, by node.
///
/// # Errors
/// [`StoreError`] when the database fails or holds what is not understood.
pub async fn list(store: &Store) -> Result<Vec<BmcFact>, StoreError> {
    const SQL: &str = "select node, guid, suite, trouble, at_ms from bmc_fact order by node";
    let rows = sqlx::query(SQL).fetch_all(&store.readers).await;
    all("bmc_fact", &rows.map_err(StoreError::query("read what is known of BMCs"))?, |row| {
        Ok(BmcFact {
            node: row.parsed("node")?,
            guid: row.opt_parsed("guid")?,
            suite: row.opt_number("suite")?,
            trouble: row.opt_text("trouble")?,
            at: row.millis("at_ms")?,
        })
    })
}

pub(crate) async fn upsert(db: &mut AnyConnection, row: &BmcFact) -> Result<(), StoreError> {
    const SQL: &str = "insert into bmc_fact (node, guid, suite, trouble, at_ms)
        values ($1, $2, $3, $4, $5)
        on conflict (node) do update set guid = excluded.guid, suite = excluded.suite,
            trouble = excluded.trouble, at_ms = excluded.at_ms";
    let query = sqlx::query(SQL)
        .bind(row.node.as_str())
        .bind(row.guid.map(|guid| guid.to_string()))
        .bind(row.suite.map(i64::from))
        .bind(row.trouble.as_deref())
        .bind(row.at.0);
    query.execute(db).await.map_err(StoreError::query("write what is known of a BMC"))?;
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
    async fn what_is_known_of_a_bmc_reads_back() {
        let book = Book::open().await;
        let mut fact = BmcFact {
            node: node("bld-003"),
            guid: Some("39343536-3831-435a-3334-303359303033".parse().unwrap()),
            suite: Some(17),
            trouble: None,
            at: UnixMillis(4),
        };
        book.write(vec![Record::BmcFact(fact.clone())]).await;
        fact.trouble = Some("no answer since 12:03".to_owned());
        book.write(vec![Record::BmcFact(fact.clone())]).await;
        assert_eq!(list(&book.store).await.unwrap(), [fact]);
    }
}
