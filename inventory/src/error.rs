//! What can go wrong between volund and its database.

use std::sync::Arc;

/// An operation on the store failed. Cheap to clone: one failed commit answers many callers.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The address names a database this build cannot use.
    #[error(
        "{url} is no SQLite database; this build keeps its records in SQLite only, name a file"
    )]
    Unsupported {
        /// The address without user and password.
        url: String,
    },
    /// The file could not be made or opened.
    #[error("could not open the database file {path}; its folder must exist and be writable")]
    File {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// The database could not be opened.
    #[error("could not open the database {path}")]
    Open {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: Arc<sqlx::Error>,
    },
    /// A later volund has written this database.
    #[error(
        "the database {path} has schema {version}, which this volund does not know: \
         a newer volund wrote it; start that one, or restore a backup"
    )]
    NewerSchema {
        /// The file.
        path: String,
        /// Number of the unknown migration.
        version: i64,
    },
    /// The schema could not be brought up to date.
    #[error("could not bring the schema of {path} up to date")]
    Migrate {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: Arc<sqlx::migrate::MigrateError>,
    },
    /// A query failed.
    #[error("could not {what}")]
    Query {
        /// The operation, such as `write a switch`.
        what: &'static str,
        /// Why.
        #[source]
        source: Arc<sqlx::Error>,
    },
    /// Somebody else was there first: a second open switch on a node, or an older version of a row.
    #[error("could not {what}: the record has changed, or another one is open; read it again")]
    Conflict {
        /// The operation.
        what: &'static str,
    },
    /// A value in the database cannot be understood.
    #[error("table {table} holds {text:?} in column {column}, which is not understood")]
    Corrupt {
        /// Table.
        table: &'static str,
        /// Column.
        column: &'static str,
        /// The value, shortened.
        text: String,
    },
    /// A value could not be turned into its stored form.
    #[error("could not {what}: a value has no JSON form")]
    Encode {
        /// The operation.
        what: &'static str,
        /// Why.
        #[source]
        source: Arc<serde_json::Error>,
    },
    /// The writer task has ended; volund is stopping.
    #[error("could not write: the writer of the database has ended")]
    Stopped,
}

impl StoreError {
    /// An adapter for `map_err`: names the operation, tells a lost race from other failures.
    pub(crate) fn query(what: &'static str) -> impl Fn(sqlx::Error) -> Self {
        move |error| {
            if error.as_database_error().is_some_and(|cause| cause.is_unique_violation()) {
                Self::Conflict { what }
            } else {
                Self::Query { what, source: Arc::new(error) }
            }
        }
    }

    /// An adapter for `map_err` of serialization.
    pub(crate) fn encode(what: &'static str) -> impl Fn(serde_json::Error) -> Self {
        move |error| Self::Encode { what, source: Arc::new(error) }
    }
}
