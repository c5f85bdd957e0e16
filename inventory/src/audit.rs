//! The audit trail: which destructive act was done on whose word. Never pruned, never changed.

use model::{Verb, permit::AuditLine};
use sqlx::AnyConnection;

use crate::{
    Store, StoreError,
    row::{Row, all},
};

const VERBS: [Verb; 4] = [Verb::PowerOff, Verb::PowerCycle, Verb::Reset, Verb::Install];

/// The last `limit` lines, newest first.
///
/// # Errors
/// [`StoreError`] when the database fails or holds what is not understood.
pub async fn latest(store: &Store, limit: u32) -> Result<Vec<AuditLine>, StoreError> {
    const SQL: &str = "select id, at_ms, node, verb, asked_by, warrant, disks_json, plan_hash
                       from audit order by id desc limit $1";
    let rows = sqlx::query(SQL).bind(i64::from(limit)).fetch_all(&store.readers).await;
    all("audit", &rows.map_err(StoreError::query("read the audit trail"))?, read)
}

pub(crate) async fn last_id(store: &Store) -> Result<Option<String>, StoreError> {
    const SQL: &str = "select id from audit order by id desc limit 1";
    let id = sqlx::query_scalar(SQL).fetch_optional(&store.readers).await;
    id.map_err(StoreError::query("read the last key of the audit trail"))
}

pub(crate) async fn append(
    db: &mut AnyConnection,
    id: &str,
    line: &AuditLine,
) -> Result<(), StoreError> {
    const WHAT: &str = "write an audit line";
    const SQL: &str = "insert into audit (id, at_ms, node, verb, asked_by, warrant, disks_json,
                           plan_hash) values ($1, $2, $3, $4, $5, $6, $7, $8)";
    let disks = serde_json::to_string(&line.disks).map_err(StoreError::encode(WHAT))?;
    let query = sqlx::query(SQL)
        .bind(id)
        .bind(line.at.0)
        .bind(line.node.as_str())
        .bind(word(line.verb))
        .bind(&line.by)
        .bind(&line.warrant)
        .bind(disks)
        .bind(line.plan_hash.as_deref());
    query.execute(db).await.map_err(StoreError::query(WHAT))?;
    Ok(())
}

/// The verb as stored; never changed once written.
fn word(verb: Verb) -> &'static str {
    match verb {
        Verb::PowerOff => "power-off",
        Verb::PowerCycle => "power-cycle",
        Verb::Reset => "reset",
        Verb::Install => "install",
    }
}

fn read(row: &Row<'_>) -> Result<AuditLine, StoreError> {
    let text = row.text("verb")?;
    let verb = VERBS.into_iter().find(|verb| word(*verb) == text);
    Ok(AuditLine {
        at: row.millis("at_ms")?,
        node: row.parsed("node")?,
        verb: verb.ok_or_else(|| row.corrupt("verb", &text))?,
        by: row.text("asked_by")?,
        warrant: row.text("warrant")?,
        disks: row.json("disks_json")?,
        plan_hash: row.opt_text("plan_hash")?,
    })
}

#[cfg(test)]
mod tests {
    use model::{Serial, UnixMillis};

    use super::*;
    use crate::{
        Record,
        testing::{Book, node},
    };

    #[tokio::test]
    async fn every_verb_reads_back_newest_first() {
        let book = Book::open().await;
        let lines: Vec<_> = VERBS
            .into_iter()
            .map(|verb| AuditLine {
                at: UnixMillis(3),
                node: node("bld-003"),
                verb,
                by: "anna".to_owned(),
                warrant: "s1".to_owned(),
                disks: Serial::new("CZ3403YL03").into_iter().collect(),
                plan_hash: Some("ab12".to_owned()),
            })
            .collect();
        book.write(lines.iter().cloned().map(Record::Audit).collect()).await;
        let read: Vec<_> = latest(&book.store, 9).await.unwrap().into_iter().rev().collect();
        assert_eq!(read, lines);
        assert_eq!(latest(&book.store, 1).await.unwrap().len(), 1);
    }
}
