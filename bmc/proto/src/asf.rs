//! ASF presence ping and pong: "is there anything that speaks RMCP?" (ASF 2.0, sections 3.2.4.2 and 3.2.4.3).
//!
//! Never needed before a session: many BMCs do not answer it.

use crate::{
    rmcp::{self, Class},
    wire::{DecodeError, Reader},
};

/// Enterprise number of the ASF messages themselves.
const ASF_IANA: [u8; 4] = [0x00, 0x00, 0x11, 0xbe];
const PING: u8 = 0x80;
const PONG: u8 = 0x40;

/// A presence message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The question.
    Ping {
        /// Comes back in the pong.
        tag: u8,
    },
    /// The answer.
    Pong {
        /// Of the ping it answers.
        tag: u8,
        /// Whether the other side speaks IPMI (supported entities, bit 7).
        ipmi: bool,
    },
}

impl Presence {
    /// The whole datagram.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let mut out = rmcp::header(Class::Asf);
        out.extend(ASF_IANA);
        match self {
            Self::Ping { tag } => out.extend([PING, tag, 0, 0]),
            Self::Pong { tag, ipmi } => {
                out.extend([PONG, tag, 0, 16]);
                out.extend(ASF_IANA);
                out.extend([0; 4]);
                // Low nibble 1: ASF version 1.0, as IPMI 2.0 section 13.2.4 has it.
                out.extend([if ipmi { 0x81 } else { 0x01 }, 0]);
                out.extend([0; 6]);
            }
        }
        out
    }

    /// From a whole datagram.
    ///
    /// # Errors
    /// When it is no presence ping or pong.
    pub fn decode(datagram: &[u8]) -> Result<Self, DecodeError> {
        let (class, body) = rmcp::decode(datagram)?;
        let mut reader = Reader::new("ASF message", body);
        if class != Class::Asf {
            return Err(reader.value("class", 7));
        }
        let iana = reader.array::<4>()?;
        if iana != ASF_IANA {
            return Err(reader.value("enterprise number", u32::from_be_bytes(iana)));
        }
        let (kind, tag) = (reader.u8()?, reader.u8()?);
        let _reserved_and_length = reader.array::<2>()?;
        match kind {
            PING => Ok(Self::Ping { tag }),
            PONG => {
                let _enterprise = reader.array::<8>()?;
                Ok(Self::Pong { tag, ipmi: reader.u8()? & 0x80 != 0 })
            }
            other => Err(reader.value("message type", other.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ping_has_the_bytes_of_the_standard_and_the_pong_carries_its_tag() {
        let ping = Presence::Ping { tag: 0x5a };
        assert_eq!(ping.encode(), [6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x80, 0x5a, 0, 0]);
        let pong = Presence::Pong { tag: 0x5a, ipmi: true };
        assert_eq!(pong.encode().len(), 28);
        assert_eq!(Presence::decode(&ping.encode()), Ok(ping));
        assert_eq!(Presence::decode(&pong.encode()), Ok(pong));
    }
}
