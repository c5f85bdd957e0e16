//! Boot tickets: the bearer secret of one boot attempt.

use std::{fmt, str::FromStr};

/// Permission bound to (node, switch or settled profile, boot attempt): 128 random bits as 32 hex digits.
///
/// It is a secret: `Debug` and `Display` show its first four digits only; [`Ticket::reveal`] gives it whole
/// to the two places that need it, the script and the database.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(String);

/// The text is no ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a ticket has 32 hexadecimal digits")]
pub struct ParseTicketError;

impl Ticket {
    /// A ticket out of 16 bytes of chance.
    #[must_use]
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(crate::hex::encode(&bytes))
    }

    /// The whole secret.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for Ticket {
    type Err = ParseTicketError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = crate::hex::decode(text).map_err(|_| ParseTicketError)?;
        let bytes: [u8; 16] = bytes.try_into().map_err(|_| ParseTicketError)?;
        Ok(Self::from_random(bytes))
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", self.0.get(..4).unwrap_or_default())
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({self})")
    }
}
