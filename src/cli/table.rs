//! Tables for people: aligned columns, readable without colours.

use super::Trouble;
use super::terminal::{Terminal, clean};

/// How a cell looks on a terminal with colours. The text says the same without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing of note.
    Plain,
    /// As it should be.
    Good,
    /// Under way.
    Busy,
    /// Wants a person.
    Bad,
}

/// One cell.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    text: String,
    look: Look,
}

impl Cell {
    /// A cell with a look; control characters of `text` are replaced.
    pub(super) fn new(text: impl AsRef<str>, look: Look) -> Self {
        Self { text: clean(text.as_ref()), look }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }

    /// Padded to `width` columns.
    fn render(&self, width: usize, color: bool) -> String {
        let blanks = " ".repeat(width.saturating_sub(self.width()));
        let code = match self.look {
            Look::Good if color => "32",
            Look::Busy if color => "36",
            Look::Bad if color => "1;31",
            Look::Plain | Look::Good | Look::Busy | Look::Bad => {
                return format!("{}{blanks}", self.text);
            }
        };
        format!("\u{1b}[{code}m{}\u{1b}[0m{blanks}", self.text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::new(text, Look::Plain)
    }
}

/// Prints `rows` under `head`, each column as wide as its widest cell. Columns empty in all rows are left out.
pub(super) fn print(
    terminal: &mut Terminal,
    head: &[&str],
    rows: &[Vec<Cell>],
) -> Result<(), Trouble> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(Cell::width).max().unwrap_or(0)
    };
    let columns: Vec<(usize, usize)> = head
        .iter()
        .enumerate()
        .map(|(column, title)| (column, width(column), title.chars().count()))
        .filter(|(_, widest, _)| *widest > 0)
        .map(|(column, widest, title)| (column, widest.max(title)))
        .collect();
    let titles: Vec<Cell> = head.iter().map(|title| Cell::new(title, Look::Plain)).collect();
    let color = terminal.color;
    for row in std::iter::once(&titles).chain(rows) {
        let cells: Vec<String> = columns
            .iter()
            .filter_map(|(column, width)| Some(row.get(*column)?.render(*width, color)))
            .collect();
        terminal.say(cells.join("  ").trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_do_not_count_as_width() {
        let cell = Cell::new("on", Look::Good);
        assert_eq!(cell.render(4, false), "on  ");
        assert_eq!(cell.render(4, true), "\u{1b}[32mon\u{1b}[0m  ");
    }
}
