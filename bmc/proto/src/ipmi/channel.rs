//! Session and channel commands: privilege, close, cipher suites, authentication capabilities
//! (sections 22.13 to 22.19).

use super::{
    cipher::{Algorithms, Suite},
    message::{Command, NetFn},
    rakp::Privilege,
};
use crate::wire::{DecodeError, Reader};

/// "The channel this request came in on".
pub const THIS_CHANNEL: u8 = 0x0e;

/// Set Session Privilege Level (section 22.18). Sessions start at USER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetSessionPrivilege(pub Privilege);

impl SetSessionPrivilege {
    /// Command number.
    pub const NUMBER: u8 = 0x3b;
}

impl Command for SetSessionPrivilege {
    const NAME: &'static str = "Set Session Privilege Level";
    const NETFN: NetFn = NetFn::APP;
    const CODE: u8 = Self::NUMBER;
    /// The level the session has now, raw.
    type Answer = u8;

    fn data(&self) -> Vec<u8> {
        vec![self.0.number()]
    }

    fn answer(&self, data: &[u8]) -> Result<u8, DecodeError> {
        Reader::new(Self::NAME, data).u8()
    }
}

/// Close Session (section 22.19).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloseSession {
    /// The BMC's session ID.
    pub bmc_id: u32,
}

impl CloseSession {
    /// From request data.
    ///
    /// # Errors
    /// When it is cut short.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self { bmc_id: Reader::new(Self::NAME, data).u32()? })
    }
}

impl Command for CloseSession {
    const NAME: &'static str = "Close Session";
    const NETFN: NetFn = NetFn::APP;
    const CODE: u8 = 0x3c;
    type Answer = ();

    fn data(&self) -> Vec<u8> {
        self.bmc_id.to_le_bytes().to_vec()
    }

    fn answer(&self, _data: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }
}

/// Get Channel Cipher Suites (section 22.15), one block of 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GetCipherSuites {
    /// Which block, counted from 0.
    pub block: u8,
}

impl GetCipherSuites {
    /// Bytes of a full block; the list goes on in the next one (section 22.15).
    pub const BLOCK_LEN: usize = 16;

    /// From request data: the block asked for.
    ///
    /// # Errors
    /// When it is cut short.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let [_channel, _payload, block] = Reader::new(Self::NAME, data).array()?;
        Ok(Self { block: block & 0x3f })
    }

    /// Answers it from the whole record data: channel byte, then at most 16 bytes.
    #[must_use]
    pub fn encode_answer(&self, channel: u8, records: &[u8]) -> Vec<u8> {
        let (skip, take) = (usize::from(self.block) * Self::BLOCK_LEN, Self::BLOCK_LEN);
        [channel].into_iter().chain(records.iter().copied().skip(skip).take(take)).collect()
    }
}

impl Command for GetCipherSuites {
    const NAME: &'static str = "Get Channel Cipher Suites";
    const NETFN: NetFn = NetFn::APP;
    const CODE: u8 = 0x54;
    /// Record data of this block; fewer than 16 bytes end the list.
    type Answer = Vec<u8>;

    fn data(&self) -> Vec<u8> {
        // Payload type IPMI; list by suite (bit 7).
        vec![THIS_CHANNEL, 0x00, 0x80 | self.block & 0x3f]
    }

    fn answer(&self, data: &[u8]) -> Result<Vec<u8>, DecodeError> {
        let mut reader = Reader::new(Self::NAME, data);
        let _channel = reader.u8()?;
        Ok(reader.rest().to_vec())
    }
}

/// One record of a cipher suite list (table 22-19).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuiteRecord {
    /// Suite number.
    pub id: u8,
    /// Its algorithms; those not named are 0 (none).
    pub algorithms: Algorithms,
}

impl SuiteRecord {
    /// The record of a suite we speak.
    #[must_use]
    pub fn of(suite: Suite) -> Self {
        Self { id: suite.id(), algorithms: suite.algorithms() }
    }

    /// Value in, five bytes out.
    #[must_use]
    pub fn encode(&self) -> [u8; 5] {
        let Algorithms { authentication, integrity, confidentiality } = self.algorithms;
        [
            0xc0,
            self.id,
            authentication & 0x3f,
            0x40 | integrity & 0x3f,
            0x80 | confidentiality & 0x3f,
        ]
    }

    /// All standard records in `data`. OEM records and bytes that fit nowhere are passed over: the list is a
    /// hint, never a promise.
    #[must_use]
    pub fn list(data: &[u8]) -> Vec<Self> {
        let mut records: Vec<Self> = Vec::new();
        let mut bytes = data.iter().copied();
        let mut standard = false;
        while let Some(byte) = bytes.next() {
            match (byte, byte >> 6) {
                (0xc0, _) => {
                    let Some(id) = bytes.next() else { break };
                    let none = Algorithms { authentication: 0, integrity: 0, confidentiality: 0 };
                    records.push(Self { id, algorithms: none });
                    standard = true;
                }
                (0xc1, _) => {
                    // OEM suite: number and a three-byte enterprise number.
                    let _ = bytes.by_ref().take(4).count();
                    standard = false;
                }
                (_, tag) if standard => {
                    let Some(last) = records.last_mut() else { continue };
                    match tag {
                        0 => last.algorithms.authentication = byte,
                        1 => last.algorithms.integrity = byte & 0x3f,
                        2 => last.algorithms.confidentiality = byte & 0x3f,
                        _ => (),
                    }
                }
                _ => (),
            }
        }
        records
    }
}

/// In which order to try the suites we speak, each once, by the first block of record data a BMC gave (empty
/// when it gave none): listed ones first, the strongest of them first. Suites without authentication, integrity
/// or confidentiality are never among them, whatever is listed.
///
/// The list is a hint: BMCs list what they refuse and take what they do not list. A full block is the beginning
/// of a longer list, which says nothing about what is missing in it.
#[must_use]
pub fn order_to_try(first_block: &[u8]) -> Vec<Suite> {
    if first_block.len() >= GetCipherSuites::BLOCK_LEN {
        return Suite::ALL.to_vec();
    }
    let listed = SuiteRecord::list(first_block);
    let is_listed = |suite: &Suite| listed.iter().any(|record| record.id == suite.id());
    let (mut order, others): (Vec<_>, Vec<_>) = Suite::ALL.into_iter().partition(is_listed);
    order.extend(others);
    order
}

/// Get Channel Authentication Capabilities (section 22.13): `ipmitool` asks it before a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GetAuthCapabilities {
    /// Asks for the IPMI 2.0 data.
    pub v20: bool,
}

impl GetAuthCapabilities {
    /// Command number.
    pub const NUMBER: u8 = 0x38;

    /// From request data.
    ///
    /// # Errors
    /// When it is cut short.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let [channel, _privilege] =
            Reader::new("Get Channel Authentication Capabilities", data).array()?;
        Ok(Self { v20: channel & 0x80 != 0 })
    }

    /// Answer of a BMC that speaks IPMI 2.0 only, with user names: no IPMI 1.5 authentication type.
    #[must_use]
    pub fn encode_answer(&self, channel: u8) -> [u8; 8] {
        let extended = if self.v20 { 0x80 } else { 0 };
        [channel, extended, 0x04, 0x02, 0, 0, 0, 0]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn suite_lists_of_case_24_are_read() {
        let ids = |hex: &str| -> Vec<u8> {
            let data = model::hex::decode(hex).unwrap();
            SuiteRecord::list(&data).iter().map(|record| record.id).collect()
        };
        assert_eq!(ids("c003014181c011034481"), [3, 17]);
        assert_eq!(ids("c000004080c003014181"), [0, 3]);
        // An OEM suite between two standard ones, and a cut last record.
        assert_eq!(ids("c003014181c180570100c2030481c011034481c0"), [3, 17]);
        let seventeen = SuiteRecord::of(Suite::Seventeen);
        assert_eq!(seventeen.encode(), [0xc0, 0x11, 0x03, 0x44, 0x81]);
        assert_eq!(SuiteRecord::list(&seventeen.encode()), [seventeen]);
    }

    #[test]
    fn listed_suites_come_first_and_a_list_keeps_no_suite_of_ours_out() {
        use Suite::{Seventeen, Three};
        let strongest_first = [Seventeen, Three];
        let cases = [
            ("BMC 1 of case 24", "c003014181c011034481", strongest_first),
            ("the other way round", "c011034481c003014181", strongest_first),
            ("BMC 2 of case 24", "c000004080c003014181", [Three, Seventeen]),
            ("no answer", "", strongest_first),
            ("no authentication only", "c000004080", strongest_first),
            ("weak ones only", "c001014080c002014180", strongest_first),
            ("3 and one of an OEM", "c003014181c180570100c2", [Three, Seventeen]),
            // 1, 2, 3 and the begin of another: 17 may follow in the next block.
            ("a full block", "c001014080c002014180c003014181c0", strongest_first),
        ];
        for (name, hex, want) in cases {
            let data = model::hex::decode(hex).unwrap();
            assert_eq!(order_to_try(&data), want, "{name}");
        }
    }

    #[test]
    fn session_commands_have_the_bytes_of_the_specification() {
        assert_eq!(SetSessionPrivilege(Privilege::Administrator).data(), [4]);
        assert_eq!(CloseSession { bmc_id: 0xa0a1_a2a3 }.data(), [0xa3, 0xa2, 0xa1, 0xa0]);
        assert_eq!(GetCipherSuites { block: 0 }.data(), [0x0e, 0x00, 0x80]);
    }

    proptest! {
        #[test]
        fn no_list_makes_decoding_panic(bytes: Vec<u8>) {
            let _decoded = SuiteRecord::list(&bytes);
        }
    }
}
