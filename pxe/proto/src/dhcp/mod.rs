//! DHCPv4 (RFC 2131, 2132, 3046, 4578): codec, what a client says, what the server decides and answers.

mod address;
pub mod answer;
mod boot_file;
pub mod client;
mod compose;
pub mod decide;
pub mod leases;
pub mod message;
pub mod options;
mod place;
mod proxy;
pub mod relay;
pub mod request;

#[cfg(test)]
mod capture_tests;
#[cfg(test)]
mod decide_tests;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod peer_tests;
#[cfg(test)]
mod pool_tests;
#[cfg(test)]
mod proxy_tests;

use model::sighting::DhcpKind;

pub use self::{
    answer::Answer,
    client::ClientMessage,
    decide::{Arrival, Decision, Destination, Outcome, Reply, ServerPort, decide, decide_as},
    leases::{Leases, PoolUse, Probed},
    message::{BROADCAST, DecodeError, Message, Op},
    options::{Options, Warning},
    relay::RelayInfo,
    request::Request,
};

/// Option codes volund reads or writes (IANA "BOOTP Vendor Extensions and DHCP Options").
pub mod code {
    /// Subnet mask.
    pub const SUBNET_MASK: u8 = 1;
    /// Routers.
    pub const ROUTER: u8 = 3;
    /// Name servers.
    pub const DNS: u8 = 6;
    /// Host name: bytes, not necessarily UTF-8.
    pub const HOST_NAME: u8 = 12;
    /// Vendor-specific: PXE's sub-options, from and to whoever says `PXEClient`.
    pub const VENDOR: u8 = 43;
    /// Requested address.
    pub const REQUESTED_ADDRESS: u8 = 50;
    /// Lease time in seconds.
    pub const LEASE_TIME: u8 = 51;
    /// Option overload: `file` and `sname` hold options (RFC 2132, 9.3).
    pub const OVERLOAD: u8 = 52;
    /// Message type.
    pub const MESSAGE_TYPE: u8 = 53;
    /// Server identifier.
    pub const SERVER_ID: u8 = 54;
    /// Parameter request list.
    pub const PARAMETERS: u8 = 55;
    /// A sentence for a person, in a NAK.
    pub const TEXT: u8 = 56;
    /// Largest message the sender takes.
    pub const MAX_SIZE: u8 = 57;
    /// Renewal time (T1) in seconds.
    pub const RENEWAL: u8 = 58;
    /// Rebinding time (T2) in seconds.
    pub const REBINDING: u8 = 59;
    /// Vendor class identifier: `PXEClient…`, `HTTPClient…`.
    pub const VENDOR_CLASS: u8 = 60;
    /// Client identifier.
    pub const CLIENT_ID: u8 = 61;
    /// Server name: firmware may take it for the TFTP server.
    pub const TFTP_SERVER: u8 = 66;
    /// Boot file name.
    pub const BOOT_FILE: u8 = 67;
    /// User class (RFC 3004; iPXE sends it without the inner length).
    pub const USER_CLASS: u8 = 77;
    /// Relay agent information (RFC 3046).
    pub const RELAY: u8 = 82;
    /// Client system architecture, a list (RFC 4578, 2.1).
    pub const ARCHITECTURE: u8 = 93;
    /// Client network device interface (RFC 4578, 2.2).
    pub const NETWORK_INTERFACE: u8 = 94;
    /// Client machine identifier: a zero byte and the SMBIOS UUID (RFC 4578, 2.3).
    pub const MACHINE_ID: u8 = 97;
    /// Subnet selection (RFC 3011).
    pub const SUBNET_SELECTION: u8 = 118;
    /// iPXE's own encapsulated options.
    pub const IPXE: u8 = 175;
}

/// The value of option 53 for a message type.
#[must_use]
pub fn kind_code(kind: DhcpKind) -> u8 {
    match kind {
        DhcpKind::Discover => 1,
        DhcpKind::Offer => 2,
        DhcpKind::Request => 3,
        DhcpKind::Decline => 4,
        DhcpKind::Ack => 5,
        DhcpKind::Nak => 6,
        DhcpKind::Release => 7,
        DhcpKind::Inform => 8,
    }
}

/// The message type of a value of option 53; `None` for the types volund does not know.
#[must_use]
pub fn kind_of(code: u8) -> Option<DhcpKind> {
    Some(match code {
        1 => DhcpKind::Discover,
        2 => DhcpKind::Offer,
        3 => DhcpKind::Request,
        4 => DhcpKind::Decline,
        5 => DhcpKind::Ack,
        6 => DhcpKind::Nak,
        7 => DhcpKind::Release,
        8 => DhcpKind::Inform,
        _ => return None,
    })
}
