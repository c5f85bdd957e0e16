//! Relay agent information, option 82 (RFC 3046), and the relay's own source port (RFC 8357).

use std::net::Ipv4Addr;

use super::{
    code,
    message::Message,
    options::{sub_options, write_one},
};

/// Sub-option: the circuit the client hangs on, bytes of the relay's own making.
const CIRCUIT_ID: u8 = 1;
/// Sub-option: an address of the client's subnet, where that is not the relay's own (RFC 3527).
const LINK_SELECTION: u8 = 5;
/// Sub-option of no length: "answer to the port I asked from, not to 67".
const SOURCE_PORT: u8 = 19;

/// What a relay says about the client's place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RelayInfo {
    /// Sub-option 1, such as a bay or a switch port.
    pub circuit_id: Option<Vec<u8>>,
    /// Whether sub-option 19 is there: replies go to the port the relay sent from.
    pub source_port: bool,
}

impl RelayInfo {
    /// Reads option 82; sub-options volund does not use are passed over.
    #[must_use]
    pub fn decode(value: &[u8]) -> Self {
        let mut info = Self::default();
        for (code, value) in sub_options(value) {
            match code {
                CIRCUIT_ID => info.circuit_id = Some(value.to_vec()),
                SOURCE_PORT => info.source_port = true,
                _ => (),
            }
        }
        info
    }

    /// Writes option 82. A circuit id of more than 200 bytes is left out: the option would not fit beside it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![];
        if let Some(circuit) = self.circuit_id.as_ref().filter(|circuit| circuit.len() <= 200) {
            write_one(CIRCUIT_ID, circuit, &mut out);
        }
        if self.source_port {
            write_one(SOURCE_PORT, &[], &mut out);
        }
        out
    }

    /// The circuit id for a person: text if it is printable, hexadecimal digits otherwise.
    #[must_use]
    pub fn circuit_text(&self) -> Option<String> {
        let circuit = self.circuit_id.as_ref()?;
        let is_text = !circuit.is_empty() && circuit.iter().all(|b| matches!(b, b' '..=b'~'));
        Some(if is_text {
            String::from_utf8_lossy(circuit).into_owned()
        } else {
            model::hex::encode(circuit)
        })
    }
}

/// The subnet the relay names apart from its own address; `None` when it names none, or not with four bytes.
pub(super) fn link_selection(value: &[u8]) -> Option<Ipv4Addr> {
    let (_, address) = sub_options(value).find(|(code, _)| *code == LINK_SELECTION)?;
    <[u8; 4]>::try_from(address).ok().map(Ipv4Addr::from)
}

impl Message {
    /// The client's message as a relay at `giaddr` passes it on (RFC 1542, 4.1.1; RFC 3046, 2.1). A relay
    /// nearer to the client keeps its `giaddr` and its option 82.
    #[must_use]
    pub fn through_relay(mut self, giaddr: Ipv4Addr, info: &RelayInfo) -> Self {
        self.hops = self.hops.saturating_add(1);
        if self.giaddr.is_unspecified() {
            self.giaddr = giaddr;
            self.options.set(code::RELAY, info.encode());
        }
        self
    }

    /// What the relay says, if the message came through one that says something.
    #[must_use]
    pub fn relay_info(&self) -> Option<RelayInfo> {
        self.options.get(code::RELAY).map(RelayInfo::decode)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bay_and_source_port_survive_the_wire() {
        let info = RelayInfo { circuit_id: Some(b"bay-7".to_vec()), source_port: true };
        assert_eq!(info.encode(), b"\x01\x05bay-7\x13\x00");
        assert_eq!(RelayInfo::decode(&info.encode()), info);
        assert_eq!(info.circuit_text().as_deref(), Some("bay-7"));
        let binary = RelayInfo { circuit_id: Some(vec![0, 4]), source_port: false };
        assert_eq!(binary.circuit_text().as_deref(), Some("0004"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_decode_panic(bytes: Vec<u8>) {
            let _info = RelayInfo::decode(&bytes);
        }
    }
}
