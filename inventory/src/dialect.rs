//! The only place that asks which database it is.

use sqlx::AnyConnection;

use crate::StoreError;

/// Databases volund's SQL text is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// One file, one host.
    Sqlite,
}

/// Whether a connection may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Write,
    Read,
}

/// A place the records are kept: its dialect, and the file if it is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) dialect: Dialect,
    pub(crate) path: String,
}

impl Place {
    /// Reads `sqlite:PATH`, `sqlite://PATH` or a plain path.
    pub(crate) fn parse(text: &str) -> Result<Self, StoreError> {
        let stripped = text.strip_prefix("sqlite:");
        let path = stripped.map_or(text, |rest| rest.strip_prefix("//").unwrap_or(rest));
        if stripped.is_none() && text.contains("://") {
            return Err(StoreError::Unsupported { url: without_login(text) });
        }
        Ok(Self { dialect: Dialect::Sqlite, path: path.to_owned() })
    }

    /// The address as sqlx reads it: it decodes per cent signs and cuts at a question mark.
    pub(crate) fn url(&self) -> String {
        let path = self.path.replace('%', "%25").replace('?', "%3F").replace('#', "%23");
        format!("sqlite://{path}")
    }
}

/// Addresses of databases carry passwords; errors do not.
fn without_login(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    format!("{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_login, host)| host))
}

impl Dialect {
    /// What every new connection is told first.
    pub(crate) async fn prepare(
        self,
        db: &mut AnyConnection,
        access: Access,
    ) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite => {
                for pragma in [
                    "pragma busy_timeout = 5000",
                    "pragma journal_mode = wal",
                    "pragma synchronous = full",
                    "pragma foreign_keys = on",
                ] {
                    sqlx::query(pragma).execute(&mut *db).await?;
                }
                if access == Access::Read {
                    sqlx::query("pragma query_only = on").execute(&mut *db).await?;
                }
                Ok(())
            }
        }
    }

    /// How a writing transaction begins. A deferred one on SQLite that reads first and writes then fails
    /// with "database is locked", whatever the busy time-out.
    pub(crate) fn begin_write(self) -> &'static str {
        match self {
            Self::Sqlite => "begin immediate",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_path_with_or_without_its_scheme() {
        let cases = [
            ("/var/lib/volund/volund.db", "sqlite:///var/lib/volund/volund.db"),
            ("sqlite:///var/lib/v.db", "sqlite:///var/lib/v.db"),
            ("sqlite:state/v.db", "sqlite://state/v.db"),
            ("/tmp/100% mine?.db", "sqlite:///tmp/100%25 mine%3F.db"),
        ];
        for (text, url) in cases {
            assert_eq!(Place::parse(text).unwrap().url(), url, "{text}");
        }
    }

    #[test]
    fn another_database_is_refused_without_showing_its_password() {
        let error = Place::parse("postgres://anna:secret@db.example/volund").unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("postgres://db.example/volund is no SQLite"), "{text}");
    }
}
