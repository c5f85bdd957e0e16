//! The phases of a switch.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a switch stands. Every one is entered durably before its effects start, and is entered again after a
/// crash: what a phase does must bear being done twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Reads power: the BMC must answer, and be the right one, before anything is touched.
    Guarding,
    /// Asks the running system to shut down, then cuts power by permit; waits until the BMC reads off.
    PoweringOff,
    /// Sets the boot device for the next start and reads it back.
    Arming,
    /// Switches on; waits until the BMC reads on.
    PoweringOn,
    /// Waits for DHCP, loader, script and kernel, in this order.
    Booting,
    /// The kernel was fetched whole; waits for the payload to report or call back.
    Installing,
    /// Reads back what must be true before the switch may be called done.
    Verifying,
    /// Ended well; the node has settled in its profile.
    Done,
    /// Stopped safely; waits for a person.
    Held,
    /// A destructive step did not finish, or the switch was given up.
    Failed,
}

impl Phase {
    /// All of them, in the order a switch passes through.
    pub const ALL: [Self; 10] = [
        Self::Guarding,
        Self::PoweringOff,
        Self::Arming,
        Self::PoweringOn,
        Self::Booting,
        Self::Installing,
        Self::Verifying,
        Self::Done,
        Self::Held,
        Self::Failed,
    ];

    /// Whether the engine still has something to do here.
    #[must_use]
    pub fn is_open(self) -> bool {
        match self {
            Self::Guarding
            | Self::PoweringOff
            | Self::Arming
            | Self::PoweringOn
            | Self::Booting
            | Self::Installing
            | Self::Verifying => true,
            Self::Done | Self::Held | Self::Failed => false,
        }
    }

    /// Whether the node may ask for its boot script now: it was started by this switch.
    #[must_use]
    pub fn expects_boot(self) -> bool {
        match self {
            Self::PoweringOn | Self::Booting | Self::Installing | Self::Verifying => true,
            Self::Guarding
            | Self::PoweringOff
            | Self::Arming
            | Self::Done
            | Self::Held
            | Self::Failed => false,
        }
    }

    /// The name in API, database and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Guarding => "guarding",
            Self::PoweringOff => "powering-off",
            Self::Arming => "arming",
            Self::PoweringOn => "powering-on",
            Self::Booting => "booting",
            Self::Installing => "installing",
            Self::Verifying => "verifying",
            Self::Done => "done",
            Self::Held => "held",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_has_one_name_everywhere() {
        for phase in Phase::ALL {
            let json = serde_json::to_string(&phase).unwrap();
            assert_eq!(json, format!("\"{}\"", phase.name()));
        }
    }
}
