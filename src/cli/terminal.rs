//! What the command line says, and whom it asks.

use std::io::{self, BufRead, BufReader, IsTerminal, Write};

use jiff::{Timestamp, tz::TimeZone};

use super::Trouble;

/// Output, input and the ways of the person in front of them.
pub struct Terminal {
    /// Results go here.
    pub out: Box<dyn Write>,
    /// Progress and trouble go here.
    pub err: Box<dyn Write>,
    /// Answers come from here.
    pub input: Box<dyn BufRead>,
    /// Whether somebody can answer a question.
    pub can_ask: bool,
    /// Whether `out` shows colours.
    pub color: bool,
    /// Their time zone.
    pub zone: TimeZone,
}

impl Terminal {
    /// The process's own. Colours only on a terminal, and not with `NO_COLOR`.
    #[must_use]
    pub fn of_process() -> Self {
        Self {
            color: io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
            can_ask: io::stdin().is_terminal(),
            // None is locked: a server's other threads write their log there too.
            out: Box::new(io::stdout()),
            err: Box::new(io::stderr()),
            input: Box::new(BufReader::new(io::stdin())),
            zone: TimeZone::system(),
        }
    }

    /// A line of result.
    pub fn say(&mut self, line: impl AsRef<str>) -> Result<(), Trouble> {
        Ok(writeln!(self.out, "{}", line.as_ref())?)
    }

    /// A line of progress.
    pub fn tell(&mut self, line: impl AsRef<str>) -> Result<(), Trouble> {
        self.out.flush()?;
        Ok(writeln!(self.err, "{}", line.as_ref())?)
    }

    /// Whether the person types `yes`; `question` names what will happen and where.
    ///
    /// # Errors
    /// When nobody can be asked.
    pub fn confirm(&mut self, question: &str) -> Result<bool, Trouble> {
        if !self.can_ask {
            let trouble = Trouble::usage(format!("nobody can be asked here: {question}"));
            return Err(trouble.remedy("add --yes to confirm on the command line"));
        }
        self.out.flush()?;
        write!(self.err, "{question} Type yes: ")?;
        self.err.flush()?;
        let mut answer = String::new();
        self.input.read_line(&mut answer)?;
        Ok(answer.trim() == "yes")
    }

    /// A JSON value, indented.
    pub fn json(&mut self, value: &serde_json::Value) -> Result<(), Trouble> {
        serde_json::to_writer_pretty(&mut self.out, value).map_err(io::Error::from)?;
        Ok(writeln!(self.out)?)
    }

    /// A moment as people read it: `14:32:05`, with the date unless it is the day of `now_ms`.
    #[must_use]
    pub fn time(&self, at_ms: i64, now_ms: i64) -> String {
        let local = |ms| {
            let moment = Timestamp::from_millisecond(ms).ok()?;
            Some(moment.to_zoned_datetime(self.zone.clone()))
        };
        match (local(at_ms), local(now_ms)) {
            (Some(at), Some(now)) if at.date() == now.date() => at.strftime("%H:%M:%S").to_string(),
            (Some(at), _) => at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
            (None, _) => DASH.to_owned(),
        }
    }
}

/// What stands where nothing is known.
pub(super) const DASH: &str = "–";

/// Now, in milliseconds.
#[must_use]
pub(super) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// `text` without control characters: names that machines report must not steer a terminal.
#[must_use]
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A known text, cleaned, or the dash.
#[must_use]
pub(super) fn or_dash(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).map_or_else(|| DASH.to_owned(), clean)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn terminal(input: &'static str, can_ask: bool) -> (Terminal, Shared) {
        let err = Shared::default();
        let terminal = Terminal {
            out: Box::new(io::sink()),
            err: Box::new(err.clone()),
            input: Box::new(input.as_bytes()),
            can_ask,
            color: false,
            zone: TimeZone::UTC,
        };
        (terminal, err)
    }

    #[test]
    fn only_the_word_yes_confirms() {
        for (typed, want) in [("yes\n", true), ("y\n", false), ("YES\n", false), ("", false)] {
            let (mut terminal, err) = terminal(typed, true);
            assert_eq!(terminal.confirm("Switch 3 nodes of lab twin to inspect?"), Ok(want));
            let said = String::from_utf8(err.0.lock().unwrap().clone()).unwrap();
            assert_eq!(said, "Switch 3 nodes of lab twin to inspect? Type yes: ");
        }
    }

    #[test]
    fn where_nobody_can_be_asked_the_remedy_is_named() {
        let (mut terminal, _) = terminal("yes\n", false);
        let trouble = terminal.confirm("Switch?").unwrap_err();
        assert!(trouble.to_string().contains("add --yes"), "{trouble}");
    }

    #[test]
    fn a_moment_shows_its_date_unless_it_is_today() {
        let (terminal, _) = terminal("", false);
        let day = 86_400_000;
        assert_eq!(terminal.time(1_000, 5_000), "00:00:01");
        assert_eq!(terminal.time(1_000, day), "1970-01-01 00:00:01");
        assert_eq!(terminal.time(i64::MAX, day), DASH);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(clean("bld\u{1b}[2J\n"), "bld\u{fffd}[2J\u{fffd}");
    }
}
