//! Columns of a row as the model's types.

use std::str::FromStr;

use model::UnixMillis;
use serde::de::DeserializeOwned;
use sqlx::{Row as _, any::AnyRow};

use crate::StoreError;

/// A row and the table it came from, for errors that say where.
pub(crate) struct Row<'a> {
    row: &'a AnyRow,
    table: &'static str,
}

type Got<T> = Result<T, StoreError>;

impl<'a> Row<'a> {
    pub(crate) fn new(table: &'static str, row: &'a AnyRow) -> Self {
        Self { row, table }
    }

    pub(crate) fn opt_text(&self, column: &'static str) -> Got<Option<String>> {
        self.row.try_get(column).map_err(StoreError::query("read a column"))
    }

    pub(crate) fn text(&self, column: &'static str) -> Got<String> {
        self.row.try_get(column).map_err(StoreError::query("read a column"))
    }

    pub(crate) fn opt_parsed<T: FromStr>(&self, column: &'static str) -> Got<Option<T>> {
        let parse = |text: String| text.parse().map_err(|_| self.corrupt(column, &text));
        self.opt_text(column)?.map(parse).transpose()
    }

    pub(crate) fn parsed<T: FromStr>(&self, column: &'static str) -> Got<T> {
        let text = self.text(column)?;
        text.parse().map_err(|_| self.corrupt(column, &text))
    }

    pub(crate) fn opt_number<T: TryFrom<i64>>(&self, column: &'static str) -> Got<Option<T>> {
        let number: Option<i64> =
            self.row.try_get(column).map_err(StoreError::query("read a column"))?;
        let narrow = |number: i64| {
            T::try_from(number).map_err(|_| self.corrupt(column, &number.to_string()))
        };
        number.map(narrow).transpose()
    }

    pub(crate) fn number<T: TryFrom<i64>>(&self, column: &'static str) -> Got<T> {
        self.opt_number(column)?.ok_or_else(|| self.corrupt(column, "null"))
    }

    pub(crate) fn opt_millis(&self, column: &'static str) -> Got<Option<UnixMillis>> {
        Ok(self.opt_number(column)?.map(UnixMillis))
    }

    pub(crate) fn millis(&self, column: &'static str) -> Got<UnixMillis> {
        self.number(column).map(UnixMillis)
    }

    pub(crate) fn opt_flag(&self, column: &'static str) -> Got<Option<bool>> {
        Ok(self.opt_number::<i64>(column)?.map(|number| number != 0))
    }

    pub(crate) fn flag(&self, column: &'static str) -> Got<bool> {
        Ok(self.number::<i64>(column)? != 0)
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, column: &'static str) -> Got<T> {
        let text = self.text(column)?;
        serde_json::from_str(&text).map_err(|_| self.corrupt(column, &text))
    }

    pub(crate) fn corrupt(&self, column: &'static str, text: &str) -> StoreError {
        let text = text.chars().take(40).collect();
        StoreError::Corrupt { table: self.table, column, text }
    }
}

/// Every row through `read`.
pub(crate) fn all<T>(
    table: &'static str,
    rows: &[AnyRow],
    read: impl Fn(&Row<'_>) -> Got<T>,
) -> Got<Vec<T>> {
    rows.iter().map(|row| read(&Row::new(table, row))).collect()
}
