//! RMCP: the four bytes in front of everything on UDP port 623 (ASF 2.0, section 3.2.2.2).

use crate::wire::{DecodeError, Reader};

/// The UDP port BMCs listen on.
pub const PORT: u16 = 623;

/// What follows the RMCP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// ASF messages: presence ping and pong.
    Asf,
    /// IPMI sessions, 1.5 and 2.0.
    Ipmi,
}

const VERSION: u8 = 0x06;
/// "No RMCP acknowledge wanted": the only sequence number IPMI uses.
const NO_ACK: u8 = 0xff;

/// The header of a datagram of `class`, to which the caller appends.
#[must_use]
pub fn header(class: Class) -> Vec<u8> {
    let class = match class {
        Class::Asf => 0x06,
        Class::Ipmi => 0x07,
    };
    vec![VERSION, 0, NO_ACK, class]
}

/// Splits a datagram into its class and what follows.
///
/// # Errors
/// When it is no RMCP, an RMCP acknowledge, or of another class.
pub fn decode(datagram: &[u8]) -> Result<(Class, &[u8]), DecodeError> {
    let mut reader = Reader::new("RMCP header", datagram);
    reader.expect("version", VERSION)?;
    let _reserved = reader.u8()?;
    let _sequence = reader.u8()?;
    let class = match reader.u8()? {
        0x06 => Class::Asf,
        0x07 => Class::Ipmi,
        other => return Err(reader.value("class", other.into())),
    };
    Ok((class, reader.rest()))
}
