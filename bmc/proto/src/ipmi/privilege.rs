//! What a session may do.

use std::fmt;

/// Privilege levels (section 6.8), lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Privilege {
    /// May only be called back.
    Callback,
    /// May read.
    User,
    /// May switch power and boot devices.
    Operator,
    /// May configure.
    Administrator,
}

impl Privilege {
    /// As the wire has it.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Callback => 1,
            Self::User => 2,
            Self::Operator => 3,
            Self::Administrator => 4,
        }
    }

    /// From the low nibble of a privilege field; 0 ("highest possible") and OEM levels give `None`.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number & 0x0f {
            1 => Some(Self::Callback),
            2 => Some(Self::User),
            3 => Some(Self::Operator),
            4 => Some(Self::Administrator),
            _ => None,
        }
    }

    /// One step down, as far as it is of use to volund.
    #[must_use]
    pub const fn lower(self) -> Option<Self> {
        match self {
            Self::Administrator => Some(Self::Operator),
            Self::Operator => Some(Self::User),
            Self::User | Self::Callback => None,
        }
    }
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Callback => "callback",
            Self::User => "user",
            Self::Operator => "operator",
            Self::Administrator => "administrator",
        })
    }
}
