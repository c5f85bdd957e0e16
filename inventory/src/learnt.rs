//! What boots taught of machines and of their models.

use std::{fmt, str::FromStr};

use model::{NodeName, UnixMillis};
use sqlx::AnyConnection;

use crate::{
    Store, StoreError,
    row::{Row, all},
};

/// Whom something was learnt of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// One node.
    Node(NodeName),
    /// All nodes of a model, by its name as nodes report it.
    Model(String),
}

/// What something was learnt about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WayKind {
    /// A loader; the way is its name.
    Loader,
    /// The local disk; the way is one of `local_boot`.
    Local,
}

/// What is known of a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Points against it.
    Doubted,
    /// It does not work.
    Failed,
    /// It works.
    Works,
}

/// One thing learnt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearntRow {
    /// Of whom.
    pub subject: Subject,
    /// About what.
    pub kind: WayKind,
    /// The way.
    pub way: String,
    /// What is known of it.
    pub standing: Standing,
    /// Points against it, where it is doubted.
    pub points: u8,
    /// When it was learnt.
    pub at: UnixMillis,
}

/// A word of the table that is not understood.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no word of the table of what was learnt")]
pub struct UnknownWord(String);

macro_rules! words {
    ($type:ty, $($variant:ident => $word:literal),+) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word),+ })
            }
        }

        impl FromStr for $type {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownWord(text.to_owned())),
                }
            }
        }
    };
}

words!(WayKind, Loader => "loader", Local => "local");
words!(Standing, Doubted => "doubted", Failed => "failed", Works => "works");

impl Subject {
    fn columns(&self) -> (&'static str, &str) {
        match self {
            Self::Node(node) => ("node", node.as_str()),
            Self::Model(model) => ("model", model),
        }
    }
}

/// Everything learnt, by subject and way.
///
/// # Errors
/// [`StoreError`] when the database fails or holds what is not understood.
pub async fn list(store: &Store) -> Result<Vec<LearntRow>, StoreError> {
    const SQL: &str = "select subject_kind, subject, way_kind, way, standing, points, at_ms
        from learnt order by subject_kind, subject, way_kind, way";
    let rows = sqlx::query(SQL).fetch_all(&store.readers).await;
    all("learnt", &rows.map_err(StoreError::query("read what was learnt"))?, read)
}

pub(crate) async fn upsert(db: &mut AnyConnection, row: &LearntRow) -> Result<(), StoreError> {
    const SQL: &str = "insert into learnt
            (subject_kind, subject, way_kind, way, standing, points, at_ms)
        values ($1, $2, $3, $4, $5, $6, $7)
        on conflict (subject_kind, subject, way_kind, way) do update set
            standing = excluded.standing, points = excluded.points, at_ms = excluded.at_ms";
    let (kind, subject) = row.subject.columns();
    let query = sqlx::query(SQL)
        .bind(kind)
        .bind(subject)
        .bind(row.kind.to_string())
        .bind(&row.way)
        .bind(row.standing.to_string())
        .bind(i64::from(row.points))
        .bind(row.at.0);
    query.execute(db).await.map_err(StoreError::query("write what was learnt"))?;
    Ok(())
}

pub(crate) async fn forget(db: &mut AnyConnection, subject: &Subject) -> Result<(), StoreError> {
    const SQL: &str = "delete from learnt where subject_kind = $1 and subject = $2";
    let (kind, subject) = subject.columns();
    let query = sqlx::query(SQL).bind(kind).bind(subject).execute(db).await;
    query.map_err(StoreError::query("forget what was learnt"))?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<LearntRow, StoreError> {
    let subject = if row.text("subject_kind")? == "node" {
        Subject::Node(row.parsed("subject")?)
    } else {
        Subject::Model(row.text("subject")?)
    };
    Ok(LearntRow {
        subject,
        kind: row.parsed("way_kind")?,
        way: row.text("way")?,
        standing: row.parsed("standing")?,
        points: row.number("points")?,
        at: row.millis("at_ms")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Record,
        testing::{Book, node},
    };

    #[tokio::test]
    async fn what_is_learnt_replaces_what_was_known_and_can_be_forgotten() {
        let book = Book::open().await;
        let row = |subject: &Subject, way: &str, standing, points, at| LearntRow {
            subject: subject.clone(),
            kind: if way == "exit" { WayKind::Local } else { WayKind::Loader },
            way: way.to_owned(),
            standing,
            points,
            at: UnixMillis(at),
        };
        let of_node = Subject::Node(node("bld-003"));
        let model = Subject::Model("HP ProLiant BL460c Gen8".to_owned());
        let (doubted, failed, works) = (Standing::Doubted, Standing::Failed, Standing::Works);
        let model_rows = [row(&model, "exit", works, 0, 4)];
        let written = [
            row(&of_node, "snponly.efi", doubted, 1, 1),
            row(&of_node, "snponly.efi", failed, 2, 2),
            row(&of_node, "ipxe.efi", works, 0, 3),
        ];
        for row in written.iter().chain(&model_rows) {
            book.write(vec![Record::Learnt(row.clone())]).await;
        }
        let [_, second, third] = written;
        let [model_row] = model_rows;
        assert_eq!(list(&book.store).await.unwrap(), [model_row.clone(), third, second]);
        book.write(vec![Record::Forgotten(of_node)]).await;
        assert_eq!(list(&book.store).await.unwrap(), [model_row]);
    }
}
