//! Users and API tokens. Neither passwords nor tokens are kept, only their hashes.

use model::UnixMillis;
use sqlx::AnyConnection;

use crate::{Store, StoreError, row::all};

/// A person who may log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRow {
    /// Log-in name.
    pub name: String,
    /// Password hash in PHC string form (argon2id).
    pub phc: String,
}

/// An API token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// What it is called.
    pub name: String,
    /// SHA-256 of it, as hex; no two tokens share one.
    pub hash: String,
    /// Who made it.
    pub by: String,
    /// When.
    pub created: UnixMillis,
}

/// All users, by name.
///
/// # Errors
/// [`StoreError`] when the database fails or holds what is not understood.
pub async fn users(store: &Store) -> Result<Vec<UserRow>, StoreError> {
    const SQL: &str = "select name, phc from account order by name";
    let rows = sqlx::query(SQL).fetch_all(&store.readers).await;
    all("account", &rows.map_err(StoreError::query("read the users"))?, |row| {
        Ok(UserRow { name: row.text("name")?, phc: row.text("phc")? })
    })
}

/// The tokens that are not revoked, by name.
///
/// # Errors
/// As [`users`].
pub async fn tokens(store: &Store) -> Result<Vec<TokenRow>, StoreError> {
    const SQL: &str = "select name, hash, made_by, created_ms from token
                       where revoked_ms is null order by name";
    let rows = sqlx::query(SQL).fetch_all(&store.readers).await;
    all("token", &rows.map_err(StoreError::query("read the tokens"))?, |row| {
        Ok(TokenRow {
            name: row.text("name")?,
            hash: row.text("hash")?,
            by: row.text("made_by")?,
            created: row.millis("created_ms")?,
        })
    })
}

pub(crate) async fn upsert_user(db: &mut AnyConnection, row: &UserRow) -> Result<(), StoreError> {
    const SQL: &str = "insert into account (name, phc) values ($1, $2)
        on conflict (name) do update set phc = excluded.phc";
    let query = sqlx::query(SQL).bind(&row.name).bind(&row.phc);
    query.execute(db).await.map_err(StoreError::query("write a user"))?;
    Ok(())
}

pub(crate) async fn upsert_token(db: &mut AnyConnection, row: &TokenRow) -> Result<(), StoreError> {
    const SQL: &str = "insert into token (name, hash, made_by, created_ms) values ($1, $2, $3, $4)
        on conflict (name) do update set hash = excluded.hash, made_by = excluded.made_by,
            created_ms = excluded.created_ms, revoked_ms = null";
    let query = sqlx::query(SQL).bind(&row.name).bind(&row.hash).bind(&row.by).bind(row.created.0);
    query.execute(db).await.map_err(StoreError::query("write a token"))?;
    Ok(())
}

pub(crate) async fn revoke_token(
    db: &mut AnyConnection,
    name: &str,
    at: UnixMillis,
) -> Result<(), StoreError> {
    const SQL: &str = "update token set revoked_ms = $2 where name = $1 and revoked_ms is null";
    let query = sqlx::query(SQL).bind(name).bind(at.0);
    query.execute(db).await.map_err(StoreError::query("revoke a token"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Record, testing::Book};

    #[tokio::test]
    async fn a_new_password_replaces_the_old_one() {
        let book = Book::open().await;
        let user = |phc: &str| UserRow { name: "anna".to_owned(), phc: phc.to_owned() };
        book.write(vec![Record::User(user("old")), Record::User(user("new"))]).await;
        assert_eq!(users(&book.store).await.unwrap(), [user("new")]);
    }

    #[tokio::test]
    async fn a_revoked_token_is_gone_until_made_anew_and_hashes_are_unique() {
        let book = Book::open().await;
        let token = |name: &str, hash: &str| TokenRow {
            name: name.to_owned(),
            hash: hash.to_owned(),
            by: "anna".to_owned(),
            created: UnixMillis(1),
        };
        let revoked = Record::TokenRevoked { name: "ci".to_owned(), at: UnixMillis(2) };
        book.write(vec![Record::Token(token("ci", "h1"))]).await;
        let twin = book.writer.submit(vec![Record::Token(token("other", "h1"))]).await;
        assert!(matches!(twin, Err(StoreError::Conflict { .. })), "{twin:?}");
        book.write(vec![revoked]).await;
        assert_eq!(tokens(&book.store).await.unwrap(), []);
        book.write(vec![Record::Token(token("ci", "h2"))]).await;
        assert_eq!(tokens(&book.store).await.unwrap(), [token("ci", "h2")]);
    }
}
