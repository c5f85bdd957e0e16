//! RMCP+ packets: session header, encryption, integrity trailer (section 13.6), and the session keys.

use subtle::ConstantTimeEq;

use super::cipher::{self, BLOCK, Suite};
use crate::{
    rmcp::{self, Class},
    wire::{DecodeError, Reader},
};

/// Authentication type byte that marks the 2.0 session header.
const RMCP_PLUS: u8 = 0x06;
const AUTH_NONE: u8 = 0x00;
const NEXT_HEADER: u8 = 0x07;
const ENCRYPTED: u8 = 0x80;
const AUTHENTICATED: u8 = 0x40;

/// What an RMCP+ packet carries (table 13-16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadType {
    /// An IPMI message.
    Ipmi,
    /// RMCP+ Open Session Request.
    OpenSessionRequest,
    /// RMCP+ Open Session Response.
    OpenSessionResponse,
    /// RAKP message 1.
    Rakp1,
    /// RAKP message 2.
    Rakp2,
    /// RAKP message 3.
    Rakp3,
    /// RAKP message 4.
    Rakp4,
    /// Anything else, such as serial over LAN (1).
    Other(u8),
}

impl PayloadType {
    const fn number(self) -> u8 {
        match self {
            Self::Ipmi => 0x00,
            Self::OpenSessionRequest => 0x10,
            Self::OpenSessionResponse => 0x11,
            Self::Rakp1 => 0x12,
            Self::Rakp2 => 0x13,
            Self::Rakp3 => 0x14,
            Self::Rakp4 => 0x15,
            Self::Other(number) => number & 0x3f,
        }
    }

    const fn from_number(number: u8) -> Self {
        match number & 0x3f {
            0x00 => Self::Ipmi,
            0x10 => Self::OpenSessionRequest,
            0x11 => Self::OpenSessionResponse,
            0x12 => Self::Rakp1,
            0x13 => Self::Rakp2,
            0x14 => Self::Rakp3,
            0x15 => Self::Rakp4,
            other => Self::Other(other),
        }
    }
}

/// A datagram of RMCP class IPMI, its session header taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// IPMI 1.5 header without authentication: only for commands before a session.
    V15 {
        /// The IPMI message.
        message: &'a [u8],
    },
    /// RMCP+.
    V20(Packet<'a>),
}

/// An RMCP+ packet as it came, not yet verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// What it carries.
    pub payload_type: PayloadType,
    /// The payload is encrypted.
    pub encrypted: bool,
    /// An integrity trailer follows the payload.
    pub authenticated: bool,
    /// Session ID the receiver chose; 0 outside a session.
    pub session_id: u32,
    /// Session sequence number; 0 outside a session.
    pub sequence: u32,
    /// Payload as it stands on the wire.
    pub payload: &'a [u8],
    /// Everything the integrity code covers, and the code itself.
    covered: &'a [u8],
}

impl<'a> Frame<'a> {
    /// From a whole datagram.
    ///
    /// # Errors
    /// When it is no RMCP, no IPMI, or cut short.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let (class, covered) = rmcp::decode(datagram)?;
        let mut reader = Reader::new("IPMI session header", covered);
        if class != Class::Ipmi {
            return Err(reader.value("class", 6));
        }
        match reader.u8()? {
            RMCP_PLUS => Packet::decode(reader, covered).map(Self::V20),
            AUTH_NONE => {
                let _sequence_and_session = reader.array::<8>()?;
                let length = reader.u8()?;
                Ok(Self::V15 { message: reader.bytes(length.into())? })
            }
            other => Err(reader.value("authentication type", other.into())),
        }
    }
}

impl<'a> Packet<'a> {
    fn decode(mut reader: Reader<'a>, covered: &'a [u8]) -> Result<Self, DecodeError> {
        let kind = reader.u8()?;
        let (session_id, sequence) = (reader.u32()?, reader.u32()?);
        let length = reader.u16()?;
        Ok(Self {
            payload_type: PayloadType::from_number(kind),
            encrypted: kind & ENCRYPTED != 0,
            authenticated: kind & AUTHENTICATED != 0,
            session_id,
            sequence,
            payload: reader.bytes(length.into())?,
            covered,
        })
    }
}

/// A datagram outside a session: handshake messages and commands before log-in.
///
/// # Panics
/// Never for payloads under 64 KiB, which every message of ours is.
#[must_use]
pub fn plain(payload_type: PayloadType, payload: &[u8]) -> Vec<u8> {
    let mut out = rmcp::header(Class::Ipmi);
    put_header(&mut out, payload_type.number(), 0, 0, payload);
    out
}

/// A message before a session in the IPMI 1.5 header, which every BMC understands.
#[must_use]
pub fn plain_v15(message: &[u8]) -> Vec<u8> {
    let mut out = rmcp::header(Class::Ipmi);
    out.push(AUTH_NONE);
    out.extend([0; 8]);
    out.push(u8::try_from(message.len()).unwrap_or(u8::MAX));
    out.extend(message.iter().take(u8::MAX.into()));
    out
}

fn put_header(out: &mut Vec<u8>, kind: u8, session_id: u32, sequence: u32, payload: &[u8]) {
    let length = u16::try_from(payload.len()).expect("IPMI payloads are a few hundred bytes");
    out.extend([RMCP_PLUS, kind]);
    out.extend(session_id.to_le_bytes());
    out.extend(sequence.to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend_from_slice(payload);
}

/// Whether two codes are equal, in time that does not depend on where they differ.
#[must_use]
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

/// Keys of one session (section 13.32). They cannot be printed.
pub struct Keys {
    suite: Suite,
    k1: Vec<u8>,
    aes: [u8; BLOCK],
}

impl Keys {
    /// K1 and K2 out of the session integrity key.
    pub(crate) fn derive(suite: Suite, sik: &[u8]) -> Self {
        let k2 = suite.hmac(sik, &[&[2; 20]]);
        let aes = *k2.first_chunk().expect("both hashes are longer than an AES key");
        Self { suite, k1: suite.hmac(sik, &[&[1; 20]]), aes }
    }

    /// Encrypts and signs one payload. `iv` must be fresh and unpredictable.
    #[must_use]
    pub fn seal(&self, session_id: u32, sequence: u32, payload: &[u8], iv: [u8; BLOCK]) -> Vec<u8> {
        let kind = PayloadType::Ipmi.number() | ENCRYPTED | AUTHENTICATED;
        let mut covered = Vec::new();
        let payload = cipher::encrypt(self.aes, iv, payload);
        put_header(&mut covered, kind, session_id, sequence, &payload);
        let mut pad = 0_u8;
        while !(covered.len() + 2).is_multiple_of(4) {
            covered.push(0xff);
            pad += 1;
        }
        covered.extend([pad, NEXT_HEADER]);
        let code = self.suite.code(&self.k1, &[&covered]);
        let mut out = rmcp::header(Class::Ipmi);
        out.extend(covered);
        out.extend(code);
        out
    }

    /// Verifies and decrypts. `None`: unsigned, unencrypted, forged or broken.
    #[must_use]
    pub fn open(&self, packet: &Packet<'_>) -> Option<Vec<u8>> {
        if !packet.authenticated || !packet.encrypted {
            return None;
        }
        let at = packet.covered.len().checked_sub(self.suite.code_len())?;
        let (covered, code) = packet.covered.split_at_checked(at)?;
        if !same(&self.suite.code(&self.k1, &[covered]), code) {
            return None;
        }
        cipher::decrypt(self.aes, packet.payload)
    }
}

/// Which session sequence numbers were seen: each is taken once, and not when it is 64 or more behind.
///
/// Wide on purpose: some BMCs count 1, 3, 5, and networks reorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplayWindow {
    highest: u32,
    /// Bit n: `highest - n` was seen.
    seen: u64,
}

impl ReplayWindow {
    /// Notes `sequence`; false when it was seen before, is too old, or is 0 (never valid in a session).
    pub fn take(&mut self, sequence: u32) -> bool {
        if sequence == 0 {
            return false;
        }
        if sequence > self.highest {
            let ahead = sequence - self.highest;
            self.seen = if ahead < 64 { self.seen << ahead | 1 } else { 1 };
            self.highest = sequence;
            return true;
        }
        let behind = self.highest - sequence;
        if behind >= 64 || self.seen & 1 << behind != 0 {
            return false;
        }
        self.seen |= 1 << behind;
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(suite: Suite) -> Keys {
        Keys::derive(suite, &[3; 20])
    }

    fn packet(datagram: &[u8]) -> Packet<'_> {
        match Frame::decode(datagram) {
            Ok(Frame::V20(packet)) => packet,
            other => panic!("no RMCP+ packet: {other:?}"),
        }
    }

    #[test]
    fn what_is_sealed_opens_with_the_same_keys_only() {
        for suite in Suite::ALL {
            for length in 0..40 {
                let payload = vec![0x5a; length];
                let datagram = keys(suite).seal(0xa0a1_a2a3, 7, &payload, [9; 16]);
                let packet = packet(&datagram);
                assert_eq!((packet.session_id, packet.sequence), (0xa0a1_a2a3, 7));
                assert_eq!(keys(suite).open(&packet), Some(payload));
                assert_eq!(Keys::derive(suite, &[4; 20]).open(&packet), None);
                // Section 13.28.4: from the authentication type to the next header a multiple of 4.
                assert!((datagram.len() - 4 - suite.code_len()).is_multiple_of(4));
            }
        }
    }

    #[test]
    fn one_flipped_bit_anywhere_makes_a_packet_not_for_us() {
        let datagram = keys(Suite::Seventeen).seal(1, 1, b"payload", [9; 16]);
        for at in 4..datagram.len() {
            let mut broken = datagram.clone();
            broken[at] ^= 1;
            let opened = match Frame::decode(&broken) {
                Ok(Frame::V20(packet)) => keys(Suite::Seventeen).open(&packet),
                _ => None,
            };
            assert_eq!(opened, None, "byte {at}");
        }
    }

    #[test]
    fn each_sequence_number_is_taken_once() {
        let mut window = ReplayWindow::default();
        let cases = [
            (0, false, "zero is no session's"),
            (1, true, "first"),
            (1, false, "again"),
            (5, true, "a gap"),
            (3, true, "late, from the gap"),
            (3, false, "late, again"),
            (200, true, "far ahead"),
            (136, false, "64 behind"),
            (137, true, "63 behind"),
        ];
        for (sequence, want, name) in cases {
            assert_eq!(window.take(sequence), want, "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_datagram_makes_decoding_or_opening_panic(bytes: Vec<u8>) {
            let mut datagram = vec![6, 0, 0xff, 7, 6];
            datagram.extend(&bytes);
            for datagram in [&bytes, &datagram] {
                if let Ok(Frame::V20(packet)) = Frame::decode(datagram) {
                    prop_assert_eq!(keys(Suite::Three).open(&packet), None);
                }
            }
        }
    }
}
