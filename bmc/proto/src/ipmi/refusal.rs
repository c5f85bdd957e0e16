//! Why a handshake ended without a session, and what the console does about it.

use std::fmt;

use super::{
    cipher::{Algorithms, Suite},
    status::RakpStatus,
};
use crate::wire::DecodeError;

/// Which message an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeStep {
    /// Open Session Response.
    OpenSession,
    /// RAKP message 2.
    Rakp2,
    /// RAKP message 4.
    Rakp4,
}

impl fmt::Display for HandshakeStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::OpenSession => "Open Session",
            Self::Rakp2 => "RAKP 2",
            Self::Rakp4 => "RAKP 4",
        })
    }
}

/// Why a handshake ended without a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The BMC said no.
    #[error("{step}: {status}")]
    Status {
        /// In which message.
        step: HandshakeStep,
        /// With which status.
        status: RakpStatus,
    },
    /// The BMC answered with algorithms nobody proposed (seen: SHA1 for SHA256).
    #[error("Open Session: suite {} was proposed, the BMC answered with other algorithms", asked.id())]
    OtherAlgorithms {
        /// What was proposed.
        asked: Suite,
        /// What came.
        answered: Algorithms,
    },
    /// RAKP 2 was made with another password.
    #[error("RAKP 2: the BMC holds another password for this user")]
    WrongPassword,
    /// RAKP 4 does not prove that the BMC made the same key.
    #[error("RAKP 4: the BMC did not prove the session key")]
    Unproven,
    /// A message for us that cannot be read.
    #[error("{step} cannot be read")]
    Malformed {
        /// Which.
        step: HandshakeStep,
        /// Why.
        #[source]
        cause: DecodeError,
    },
}

/// What to do about a [`HandshakeError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Propose another suite, once.
    OtherSuite,
    /// Ask for the next lower privilege.
    LowerPrivilege,
    /// Wait: the BMC has no session to give.
    Wait,
    /// Start over, once: a message was lost or doubled on the way.
    StartOver,
    /// Stop: user or password is wrong. Trying again may lock the account.
    BadLogin,
    /// Stop: the BMC does not follow the protocol.
    GiveUp,
}

impl HandshakeError {
    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Status { step, status } => status_remedy(*step, *status),
            Self::OtherAlgorithms { .. } => Remedy::OtherSuite,
            Self::WrongPassword => Remedy::BadLogin,
            Self::Unproven | Self::Malformed { .. } => Remedy::GiveUp,
        }
    }
}

fn status_remedy(step: HandshakeStep, status: RakpStatus) -> Remedy {
    match status {
        RakpStatus::InvalidAuthentication
        | RakpStatus::InvalidIntegrity
        | RakpStatus::NoMatchingAuthentication
        | RakpStatus::NoMatchingIntegrity
        | RakpStatus::InvalidConfidentiality
        | RakpStatus::NoCipherSuiteMatch
        | RakpStatus::IllegalParameter => Remedy::OtherSuite,
        RakpStatus::InsufficientResources | RakpStatus::InsufficientResourcesForRole => {
            Remedy::Wait
        }
        RakpStatus::InvalidRole | RakpStatus::UnauthorizedRole => Remedy::LowerPrivilege,
        RakpStatus::InvalidSessionId | RakpStatus::InactiveSessionId => Remedy::StartOver,
        // RAKP 2 has already shown that both know the password: the BMC then took another RAKP 1 for the
        // valid one.
        RakpStatus::InvalidIntegrityCheck if step == HandshakeStep::Rakp4 => Remedy::StartOver,
        RakpStatus::InvalidNameLength
        | RakpStatus::UnauthorizedName
        | RakpStatus::UnauthorizedGuid
        | RakpStatus::InvalidIntegrityCheck => Remedy::BadLogin,
        RakpStatus::NoErrors | RakpStatus::InvalidPayloadType | RakpStatus::Other(_) => {
            Remedy::GiveUp
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_the_remedy_of_case_24() {
        let cases: [(&[u8], Remedy); 5] = [
            (&[0x04, 0x05, 0x10, 0x11, 0x12], Remedy::OtherSuite),
            (&[0x01, 0x0b], Remedy::Wait),
            (&[0x09, 0x0a], Remedy::LowerPrivilege),
            (&[0x0c, 0x0d, 0x0e, 0x0f], Remedy::BadLogin),
            (&[0x02, 0x08], Remedy::StartOver),
        ];
        for (numbers, want) in cases {
            for number in numbers {
                let status = RakpStatus::from_number(*number);
                let error = HandshakeError::Status { step: HandshakeStep::Rakp2, status };
                assert_eq!(error.remedy(), want, "{error}");
            }
        }
    }
}
