//! Exit codes: the part of the command line that scripts read.

/// How a command ended. One table for all commands; `volund help exit-codes` prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitCode {
    /// Done, and seen to be done.
    Ok,
    /// Tried, and failed.
    Failed,
    /// Wrong use, bad input, or a configuration with faults. Nothing was tried.
    Usage,
    /// Refused or blocked by the server, or not confirmed. Nothing was changed.
    Refused,
    /// A switch stopped safely and waits for a person.
    Held,
    /// Not done within the time given; it may still go on.
    TimedOut,
    /// No server answered.
    Unreachable,
}

impl ExitCode {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Ok,
        Self::Failed,
        Self::Usage,
        Self::Refused,
        Self::Held,
        Self::TimedOut,
        Self::Unreachable,
    ];

    /// The number a shell sees.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Held => 4,
            Self::TimedOut => 5,
            Self::Unreachable => 6,
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "done, and seen to be done",
            Self::Failed => "tried, and failed",
            Self::Usage => {
                "wrong use, bad input, or a configuration with faults; nothing was tried"
            }
            Self::Refused => "refused, blocked or not confirmed; nothing was changed",
            Self::Held => "a switch stopped safely and waits for a person",
            Self::TimedOut => "not done within the time given; it may still go on",
            Self::Unreachable => "no volund server answered",
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.code())
    }
}

/// The table for people.
#[must_use]
pub(super) fn table() -> String {
    let line = |code: &ExitCode| format!("  {}  {}", code.code(), code.meaning());
    let lines: Vec<String> = ExitCode::ALL.iter().map(line).collect();
    format!(
        "Exit codes:\n{}\n\nWhere nodes of one command end differently, failed comes before held, \
         held before not done in time.",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_number() {
        let numbers: Vec<u8> = ExitCode::ALL.iter().map(|code| code.code()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6]);
    }
}
