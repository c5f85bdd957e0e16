//! What nodes are wanted to be, and what they have settled in.

use std::str::FromStr;

use model::{NodeName, ProfileName, UnixMillis};
use sqlx::AnyConnection;

use crate::{Store, StoreError, row::all};

/// Who owns a node's assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The configuration files name it; page and API are refused.
    File,
    /// Page, API and hooks move it.
    Live,
}

/// The profile a node is wanted to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// The node.
    pub node: NodeName,
    /// Wanted.
    pub profile: ProfileName,
    /// Who wants it.
    pub by: String,
    /// Since when.
    pub at: UnixMillis,
    /// Who may change it.
    pub owner: Owner,
}

/// The profile a node has reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The node.
    pub node: NodeName,
    /// Reached.
    pub profile: ProfileName,
    /// When.
    pub at: UnixMillis,
}

impl Owner {
    fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Live => "live",
        }
    }
}

impl FromStr for Owner {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::File, Self::Live].into_iter().find(|owner| owner.word() == text).ok_or(())
    }
}

/// All wishes, by node.
///
/// # Errors
/// [`StoreError`] when the database fails or holds what is not understood.
pub async fn wishes(store: &Store) -> Result<Vec<Wish>, StoreError> {
    const SQL: &str = "select node, profile, asked_by, at_ms, owner from assignment order by node";
    let rows = sqlx::query(SQL).fetch_all(&store.readers).await;
    all("assignment", &rows.map_err(StoreError::query("read the assignments"))?, |row| {
        Ok(Wish {
            node: row.parsed("node")?,
            profile: row.parsed("profile")?,
            by: row.text("asked_by")?,
            at: row.millis("at_ms")?,
            owner: row.parsed("owner")?,
        })
    })
}

/// What each node has settled in, by node; a node without is not listed.
///
/// # Errors
/// As [`wishes`].
pub async fn settled(store: &Store) -> Result<Vec<Settled>, StoreError> {
    const SQL: &str = "select node, profile, at_ms from settled order by node";
    let rows = sqlx::query(SQL).fetch_all(&store.readers).await;
    all("settled", &rows.map_err(StoreError::query("read the settled profiles"))?, |row| {
        Ok(Settled {
            node: row.parsed("node")?,
            profile: row.parsed("profile")?,
            at: row.millis("at_ms")?,
        })
    })
}

pub(crate) async fn wish(db: &mut AnyConnection, row: &Wish) -> Result<(), StoreError> {
    const SQL: &str = "insert into assignment (node, profile, asked_by, at_ms, owner)
        values ($1, $2, $3, $4, $5)
        on conflict (node) do update set profile = excluded.profile, asked_by = excluded.asked_by,
            at_ms = excluded.at_ms, owner = excluded.owner";
    let query = sqlx::query(SQL)
        .bind(row.node.as_str())
        .bind(row.profile.as_str())
        .bind(&row.by)
        .bind(row.at.0)
        .bind(row.owner.word());
    query.execute(db).await.map_err(StoreError::query("write an assignment"))?;
    Ok(())
}

pub(crate) async fn settle(db: &mut AnyConnection, row: &Settled) -> Result<(), StoreError> {
    const SQL: &str = "insert into settled (node, profile, at_ms) values ($1, $2, $3)
        on conflict (node) do update set profile = excluded.profile, at_ms = excluded.at_ms";
    let query = sqlx::query(SQL).bind(row.node.as_str()).bind(row.profile.as_str()).bind(row.at.0);
    query.execute(db).await.map_err(StoreError::query("write a settled profile"))?;
    Ok(())
}

pub(crate) async fn unsettle(db: &mut AnyConnection, node: &NodeName) -> Result<(), StoreError> {
    const SQL: &str = "delete from settled where node = $1";
    let query = sqlx::query(SQL).bind(node.as_str());
    query.execute(db).await.map_err(StoreError::query("take back a settled profile"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Record,
        testing::{Book, node, profile},
    };

    #[tokio::test]
    async fn the_last_wish_of_a_node_stands() {
        let book = Book::open().await;
        let wish = |to: &str, owner| Wish {
            node: node("bld-003"),
            profile: profile(to),
            by: "anna".to_owned(),
            at: UnixMillis(5),
            owner,
        };
        book.write(vec![Record::Wish(wish("inspect", Owner::File))]).await;
        book.write(vec![Record::Wish(wish("linux", Owner::Live))]).await;
        assert_eq!(wishes(&book.store).await.unwrap(), [wish("linux", Owner::Live)]);
    }

    #[tokio::test]
    async fn a_node_settles_and_unsettles() {
        let book = Book::open().await;
        let row =
            |to: &str| Settled { node: node("bld-003"), profile: profile(to), at: UnixMillis(5) };
        book.write(vec![Record::Settled(row("inspect")), Record::Settled(row("linux"))]).await;
        assert_eq!(settled(&book.store).await.unwrap(), [row("linux")]);
        book.write(vec![Record::Unsettled(node("bld-003"))]).await;
        assert_eq!(settled(&book.store).await.unwrap(), []);
    }
}
