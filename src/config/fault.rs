//! What is wrong with a configuration, and where.

use std::{cell::RefCell, fmt, sync::Arc};

/// A place in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// File, relative to the configuration directory.
    pub file: Arc<str>,
    /// Line, counted from 1; 0 when the file as a whole is meant.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
}

/// One thing that is wrong, or only doubtful.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// What, with the offending text in it (never a secret).
    pub text: String,
    /// What to do about it.
    pub hint: String,
}

/// Everything that is wrong with a configuration, in the order of files and lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot<T> {
    /// The value.
    pub(super) value: T,
    /// Where it stands.
    pub(super) place: Place,
}

/// Collects faults and warnings while a configuration is read and checked.
#[derive(Default)]
pub(super) struct Sink {
    faults: RefCell<Vec<Fault>>,
    warnings: RefCell<Vec<Fault>>,
}

impl Place {
    /// A file as a whole.
    pub(super) fn whole(file: &str) -> Self {
        Self { file: Arc::from(file), line: 0, column: 0 }
    }
}

impl<T> Spot<T> {
    pub(super) fn new(value: T, place: Place) -> Self {
        Self { value, place }
    }
}

impl Sink {
    /// Notes something that keeps volund from starting.
    pub(super) fn fault(&self, place: &Place, text: impl Into<String>, hint: impl Into<String>) {
        let fault = Fault { place: place.clone(), text: text.into(), hint: hint.into() };
        self.faults.borrow_mut().push(fault);
    }

    /// Notes something doubtful.
    pub(super) fn warning(&self, place: &Place, text: impl Into<String>, hint: impl Into<String>) {
        let fault = Fault { place: place.clone(), text: text.into(), hint: hint.into() };
        self.warnings.borrow_mut().push(fault);
    }

    /// Whether nothing keeps volund from starting, so far.
    pub(super) fn is_clean(&self) -> bool {
        self.faults.borrow().is_empty()
    }

    /// The warnings, or every fault.
    pub(super) fn outcome(self) -> Result<Vec<Fault>, Faults> {
        let ordered = |mut list: Vec<Fault>| {
            list.sort_by_cached_key(|fault| (reading_order(&fault.place), fault.clone()));
            list.dedup();
            list
        };
        match ordered(self.faults.into_inner()) {
            faults if faults.is_empty() => Ok(ordered(self.warnings.into_inner())),
            faults => Err(Faults(faults)),
        }
    }
}

/// `volund.toml`, the other files beside it, then those in folders.
fn reading_order(place: &Place) -> (bool, bool) {
    (&*place.file != super::source::MAIN, place.file.contains('/'))
}

impl fmt::Display for Place {
    /// `lab.toml:41`, as other messages refer to it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line == 0 { Ok(()) } else { write!(f, ":{}", self.line) }
    }
}

impl fmt::Display for Fault {
    /// `lab.toml:41:7: WHAT; HINT`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)?;
        if self.place.line != 0 {
            write!(f, ":{}", self.place.column)?;
        }
        write!(f, ": {}; {}", self.text, self.hint)
    }
}

impl fmt::Display for Faults {
    /// A line per fault.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}
