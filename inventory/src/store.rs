//! Opening the database: one writing connection, a pool of readers, the schema brought up to date.

use std::{fs::OpenOptions, os::unix::fs::OpenOptionsExt, sync::Arc, time::Duration};

use sqlx::{
    AnyConnection, AnyPool, Connection as _,
    any::AnyPoolOptions,
    migrate::{MigrateError, Migrator},
};

use crate::{
    StoreError,
    dialect::{Access, Dialect, Place},
};

static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// Connections for reading; SQLite in WAL mode lets them read while the writer writes.
const READERS: u32 = 4;
/// How long anybody waits for a connection before it is an error.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// The open book of record. Clones share it.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) dialect: Dialect,
    pub(crate) readers: AnyPool,
    /// A pool of exactly one: several writers only get "database is locked".
    pub(crate) writer: AnyPool,
}

impl Store {
    /// Opens the database in the file `place` (a path, or `sqlite:PATH`), makes it if it is not there (readable
    /// by its owner only: it holds tickets) and brings its schema up to date.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be made, is no database, or has a newer schema.
    pub async fn open(place: &str) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        let place = Place::parse(place)?;
        make_file(&place)?;
        probe(&place).await?;
        let writer = connect(&place, Access::Write, 1).await?;
        migrate(&place, &writer).await?;
        let readers = connect(&place, Access::Read, READERS).await?;
        Ok(Self { dialect: place.dialect, readers, writer })
    }

    /// Closes all connections. What [`crate::Writer`] answered is durable without this.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

fn make_file(place: &Place) -> Result<(), StoreError> {
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(&place.path);
    opened
        .map(drop)
        .map_err(|source| StoreError::File { path: place.path.clone(), source: Arc::new(source) })
}

/// One connection outside the pools: they try again for seconds and then only say that time ran out, this says
/// at once what is wrong.
async fn probe(place: &Place) -> Result<(), StoreError> {
    let try_it = async {
        let mut db = AnyConnection::connect(&place.url()).await?;
        place.dialect.prepare(&mut db, Access::Write).await?;
        db.close().await
    };
    try_it.await.map_err(|source| open_error(place, source))
}

fn open_error(place: &Place, source: sqlx::Error) -> StoreError {
    StoreError::Open { path: place.path.clone(), source: Arc::new(source) }
}

async fn connect(place: &Place, access: Access, connections: u32) -> Result<AnyPool, StoreError> {
    let dialect = place.dialect;
    AnyPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .max_lifetime(None)
        .idle_timeout(None)
        .after_connect(move |db, _meta| Box::pin(async move { dialect.prepare(db, access).await }))
        .connect(&place.url())
        .await
        .map_err(|source| open_error(place, source))
}

async fn migrate(place: &Place, writer: &AnyPool) -> Result<(), StoreError> {
    let path = || place.path.clone();
    MIGRATIONS.run(writer).await.map_err(|error| match error {
        MigrateError::VersionMissing(version) | MigrateError::VersionTooNew(version, _) => {
            StoreError::NewerSchema { path: path(), version }
        }
        other => StoreError::Migrate { path: path(), source: Arc::new(other) },
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::testing::TempDir;

    #[tokio::test]
    async fn a_new_database_is_its_owners_alone_and_opens_again() {
        let dir = TempDir::new();
        let path = dir.file("100% new?.db");
        for _ in 0..2 {
            let store = Store::open(&path).await.unwrap();
            store.close().await;
        }
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[tokio::test]
    async fn connections_are_durable_and_readers_cannot_write() {
        let dir = TempDir::new();
        let store = Store::open(&dir.file("v.db")).await.unwrap();
        let mode: String =
            sqlx::query_scalar("pragma journal_mode").fetch_one(&store.writer).await.unwrap();
        let sync: i64 =
            sqlx::query_scalar("pragma synchronous").fetch_one(&store.writer).await.unwrap();
        let keys: i64 =
            sqlx::query_scalar("pragma foreign_keys").fetch_one(&store.writer).await.unwrap();
        assert_eq!((mode.as_str(), sync, keys), ("wal", 2, 1));
        let write = sqlx::query("delete from account").execute(&store.readers).await;
        assert!(write.is_err(), "a reader wrote");
    }

    #[tokio::test]
    async fn a_database_of_a_newer_volund_is_refused_by_name() {
        let dir = TempDir::new();
        let path = dir.file("v.db");
        let store = Store::open(&path).await.unwrap();
        let newer = "insert into _sqlx_migrations
                     (version, description, success, checksum, execution_time)
                     values (9999, 'from the future', 1, x'00', 0)";
        sqlx::query(newer).execute(&store.writer).await.unwrap();
        store.close().await;
        let error = Store::open(&path).await.unwrap_err();
        assert!(matches!(error, StoreError::NewerSchema { version: 9999, .. }), "{error:?}");
        assert!(error.to_string().contains("a newer volund wrote it"), "{error}");
    }

    #[tokio::test]
    async fn a_place_that_cannot_be_opened_is_named() {
        let dir = TempDir::new();
        let missing = Store::open(&dir.file("no/such/folder/v.db")).await.unwrap_err();
        assert!(matches!(missing, StoreError::File { .. }), "{missing:?}");
        std::fs::write(
            dir.file("text.db"),
            "this is no database, only a long enough text".repeat(9),
        )
        .unwrap();
        let text = Store::open(&dir.file("text.db")).await.unwrap_err();
        assert!(text.to_string().contains("text.db"), "{text}");
        let cause = std::error::Error::source(&text).unwrap().to_string();
        assert!(cause.contains("file is not a database"), "{cause}");
    }
}
