//! Bays of an enclosure.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A device bay, counted from 1 as it is printed on the metal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct BayNumber(u8);

/// Bays start at 1 and no enclosure has more than 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("bay {0} does not exist: bays are numbered 1 to 64")]
pub struct BayError(u8);

impl BayNumber {
    /// # Errors
    /// When `number` is 0 or above 64.
    pub fn new(number: u8) -> Result<Self, BayError> {
        if (1..=64).contains(&number) { Ok(Self(number)) } else { Err(BayError(number)) }
    }

    /// The number on the metal.
    #[must_use]
    pub fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for BayNumber {
    type Error = BayError;
    fn try_from(number: u8) -> Result<Self, BayError> {
        Self::new(number)
    }
}

impl From<BayNumber> for u8 {
    fn from(bay: BayNumber) -> Self {
        bay.0
    }
}

impl fmt::Display for BayNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
