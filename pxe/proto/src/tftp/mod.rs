//! TFTP (RFC 1350, 2347, 2348, 2349, 7440): codec, options, and one read transfer as a machine without socket
//! or clock. Reading only: write requests are refused.

pub mod options;
pub mod packet;
pub mod read_transfer;
mod timer;

#[cfg(test)]
mod read_transfer_tests;
#[cfg(test)]
mod wire_tests;

pub use self::{
    options::{Granted, Limits},
    packet::{DecodeError, Packet, Request},
    read_transfer::{Ended, ReadTransfer, Transmit, Wrap},
};

/// Error codes (RFC 1350, 5; RFC 2347).
pub mod error {
    /// Not defined, see the text. BIOS ROMs end a size probe with it.
    pub const UNDEFINED: u16 = 0;
    /// File not found.
    pub const NOT_FOUND: u16 = 1;
    /// Access violation.
    pub const ACCESS: u16 = 2;
    /// Illegal operation.
    pub const ILLEGAL: u16 = 4;
    /// Option negotiation ended by the client. EDK2 ends a size probe with it.
    pub const OPTIONS: u16 = 8;
}
