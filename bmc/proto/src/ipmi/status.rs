//! How a BMC turns a handshake down, and the words for it. What to do about it is the client's business.

use std::fmt;

/// RMCP+ and RAKP status codes (table 13-15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RakpStatus {
    /// 00h.
    NoErrors,
    /// 01h.
    InsufficientResources,
    /// 02h.
    InvalidSessionId,
    /// 03h.
    InvalidPayloadType,
    /// 04h.
    InvalidAuthentication,
    /// 05h.
    InvalidIntegrity,
    /// 06h.
    NoMatchingAuthentication,
    /// 07h.
    NoMatchingIntegrity,
    /// 08h.
    InactiveSessionId,
    /// 09h.
    InvalidRole,
    /// 0Ah.
    UnauthorizedRole,
    /// 0Bh.
    InsufficientResourcesForRole,
    /// 0Ch.
    InvalidNameLength,
    /// 0Dh.
    UnauthorizedName,
    /// 0Eh.
    UnauthorizedGuid,
    /// 0Fh.
    InvalidIntegrityCheck,
    /// 10h.
    InvalidConfidentiality,
    /// 11h.
    NoCipherSuiteMatch,
    /// 12h.
    IllegalParameter,
    /// Any other number.
    Other(u8),
}

impl RakpStatus {
    const TABLE: [(u8, Self, &'static str); 19] = [
        (0x00, Self::NoErrors, "no errors"),
        (0x01, Self::InsufficientResources, "no session is free"),
        (0x02, Self::InvalidSessionId, "invalid session ID"),
        (0x03, Self::InvalidPayloadType, "invalid payload type"),
        (0x04, Self::InvalidAuthentication, "authentication algorithm not supported"),
        (0x05, Self::InvalidIntegrity, "integrity algorithm not supported"),
        (0x06, Self::NoMatchingAuthentication, "no matching authentication payload"),
        (0x07, Self::NoMatchingIntegrity, "no matching integrity payload"),
        (0x08, Self::InactiveSessionId, "session not active"),
        (0x09, Self::InvalidRole, "invalid role"),
        (0x0a, Self::UnauthorizedRole, "privilege level not allowed to this user"),
        (0x0b, Self::InsufficientResourcesForRole, "no session is free at this privilege level"),
        (0x0c, Self::InvalidNameLength, "invalid name length"),
        (0x0d, Self::UnauthorizedName, "unknown user name"),
        (0x0e, Self::UnauthorizedGuid, "unknown GUID"),
        (0x0f, Self::InvalidIntegrityCheck, "integrity check value does not hold"),
        (0x10, Self::InvalidConfidentiality, "confidentiality algorithm not supported"),
        (0x11, Self::NoCipherSuiteMatch, "no cipher suite matches"),
        (0x12, Self::IllegalParameter, "illegal or unrecognised parameter"),
    ];

    /// By its number.
    #[must_use]
    pub fn from_number(number: u8) -> Self {
        let known = Self::TABLE.iter().find(|(known, ..)| *known == number);
        known.map_or(Self::Other(number), |(_, status, _)| *status)
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u8 {
        if let Self::Other(number) = self {
            return number;
        }
        let known = Self::TABLE.iter().find(|(_, status, _)| *status == self);
        known.map_or(0x12, |(number, ..)| *number)
    }
}

impl fmt::Display for RakpStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = Self::TABLE.iter().find(|(_, status, _)| status == self);
        let words = words.map_or("unknown status", |(.., words)| words);
        write!(f, "status {:#04x}, {words}", self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_number_and_words() {
        for number in 0..=0x13 {
            assert_eq!(RakpStatus::from_number(number).number(), number);
        }
        let text = RakpStatus::NoCipherSuiteMatch.to_string();
        assert_eq!(text, "status 0x11, no cipher suite matches");
    }
}
