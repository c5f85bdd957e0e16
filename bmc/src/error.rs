//! What can go wrong with a BMC. No text here can hold a password: none of the types inside can.

use std::{io, net::SocketAddr};

use bmc_proto::{
    DecodeError,
    ipmi::{CompletionCode, UserName, chassis::ChassisControl, client::HandshakeError},
};

use crate::PowerState;

/// Why a verb did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum BmcError {
    /// Silence.
    #[error("no answer from BMC {addr} to {attempts} requests")]
    Unreachable {
        /// Which.
        addr: SocketAddr,
        /// Datagrams sent in vain.
        attempts: u32,
    },
    /// Nothing listens there, now. A BMC that restarts looks like this too.
    #[error("BMC {addr} is not listening: it may be restarting, or address or port are wrong")]
    PortClosed {
        /// Which.
        addr: SocketAddr,
    },
    /// Commands before this one took all the time; nothing was sent.
    #[error("BMC {addr} was still busy with earlier commands; nothing was sent")]
    Queued {
        /// Which.
        addr: SocketAddr,
    },
    /// The operating system would not send or receive.
    #[error("could not exchange datagrams with BMC {addr}")]
    Socket {
        /// Which.
        addr: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Name or password is wrong. Not tried again for a while.
    #[error(
        "BMC {addr} refused the log-in of user {user}: check name and password; \
         not tried again for a while, so that the account is not locked"
    )]
    LoginRefused {
        /// Which.
        addr: SocketAddr,
        /// Who.
        user: UserName,
    },
    /// The account has none of the privileges tried.
    #[error("BMC {addr} allows user {user} no privilege level: give the account operator rights")]
    NoPrivilege {
        /// Which.
        addr: SocketAddr,
        /// Who.
        user: UserName,
    },
    /// Every session is taken.
    #[error("BMC {addr} has no free session; close others or wait a minute")]
    NoSessionFree {
        /// Which.
        addr: SocketAddr,
    },
    /// No cipher suite of ours came about.
    #[error(
        "BMC {addr} takes none of the cipher suites tried: switch IPMI over LAN 2.0 suite 3 or 17 on"
    )]
    NoSuite {
        /// Which.
        addr: SocketAddr,
        /// The last answer.
        #[source]
        source: HandshakeError,
    },
    /// The handshake went wrong in another way.
    #[error("could not open a session with BMC {addr}")]
    Handshake {
        /// Which.
        addr: SocketAddr,
        /// How.
        #[source]
        source: HandshakeError,
    },
    /// A clear no.
    #[error("BMC {addr} refused {command}: {code}")]
    Refused {
        /// Which.
        addr: SocketAddr,
        /// What.
        command: &'static str,
        /// With which code.
        code: CompletionCode,
    },
    /// An answer that cannot be read.
    #[error("BMC {addr} answered {command} with something unreadable")]
    Malformed {
        /// Which.
        addr: SocketAddr,
        /// What.
        command: &'static str,
        /// How.
        #[source]
        source: DecodeError,
    },
    /// A verb that must not be sent twice got no answer. It may or may not have been carried out.
    #[error(
        "BMC {addr} did not confirm {verb}; power is now {}: look before doing it again",
        power.map_or("unknown", PowerState::word)
    )]
    OutcomeUnknown {
        /// Which.
        addr: SocketAddr,
        /// What.
        verb: ChassisControl,
        /// Power as read afterwards.
        power: Option<PowerState>,
    },
}

impl BmcError {
    /// Whether the same verb may well succeed a little later without anybody doing anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::PortClosed { .. }
            | Self::Queued { .. }
            | Self::Socket { .. }
            | Self::NoSessionFree { .. } => true,
            // "Not in this state" is what many say to a boot option or a power command while the machine is in POST.
            Self::Refused { code, .. } => matches!(
                *code,
                CompletionCode::NODE_BUSY
                    | CompletionCode::TIMEOUT
                    | CompletionCode::OUT_OF_SPACE
                    | CompletionCode::STARTING
                    | CompletionCode::NOT_IN_THIS_STATE
            ),
            Self::LoginRefused { .. }
            | Self::NoPrivilege { .. }
            | Self::NoSuite { .. }
            | Self::Handshake { .. }
            | Self::Malformed { .. }
            | Self::OutcomeUnknown { .. } => false,
        }
    }
}
