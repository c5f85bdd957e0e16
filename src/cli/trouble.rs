//! What went wrong, for a person: what did not work, where, and one remedy.

use std::{fmt, io};

use super::{ExitCode, terminal::clean};

/// A command that did not work.
#[derive(Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What did not work, and where.
    what: String,
    /// Every fault found.
    faults: Vec<String>,
    /// What to do about it.
    remedy: Option<String>,
    /// How the process ends.
    pub exit: ExitCode,
}

impl Trouble {
    /// Trouble without faults of its own.
    pub fn new(exit: ExitCode, what: impl Into<String>) -> Self {
        Self { what: what.into(), faults: Vec::new(), remedy: None, exit }
    }

    /// Wrong use or bad input.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(ExitCode::Usage, what)
    }

    /// With what to do about it.
    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// With every fault found.
    #[must_use]
    pub fn faults(self, faults: Vec<String>) -> Self {
        Self { faults, ..self }
    }
}

impl fmt::Display for Trouble {
    /// What, then a line per fault, then the remedy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "volund: {}", clean(&self.what))?;
        for fault in &self.faults {
            write!(f, "\n  - {}", clean(fault))?;
        }
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "\n  {}", clean(remedy)))
    }
}

impl std::error::Error for Trouble {}

impl From<io::Error> for Trouble {
    /// Only writing to the terminal gives these: every other one is turned where it happens.
    fn from(error: io::Error) -> Self {
        // Whoever closed the pipe (`| head`) has read enough.
        let exit = match error.kind() {
            io::ErrorKind::BrokenPipe => ExitCode::Ok,
            _ => ExitCode::Failed,
        };
        Self::new(exit, format!("cannot write the output: {error}"))
    }
}
