//! The handshake's messages: Open Session and RAKP 1 to 4 (sections 13.17 to 13.24), and what is hashed in them.

use super::{
    cipher::{Algorithms, Suite},
    login::{Secret, UserName},
};
pub use super::{privilege::Privilege, status::RakpStatus};
use crate::wire::{DecodeError, Reader};

/// RMCP+ Open Session Request (section 13.17).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenSessionRequest {
    /// Comes back in the response.
    pub tag: u8,
    /// Highest privilege wanted, raw: 0 means "the highest that is possible".
    pub privilege: u8,
    /// Session ID the console chose.
    pub console_id: u32,
    /// What it proposes.
    pub algorithms: Algorithms,
}

/// RMCP+ Open Session Response (section 13.18).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenSessionResponse {
    /// Of the request.
    pub tag: u8,
    /// Whether the BMC agrees; if not, only tag and status mean anything.
    pub status: RakpStatus,
    /// Highest privilege it allows, raw.
    pub privilege: u8,
    /// Session ID the console chose.
    pub console_id: u32,
    /// Session ID the BMC chose.
    pub bmc_id: u32,
    /// What it agrees to.
    pub algorithms: Algorithms,
}

/// The three 8-byte algorithm records: type, two reserved, length 8, algorithm, three reserved.
fn put_algorithms(out: &mut Vec<u8>, algorithms: Algorithms) {
    let Algorithms { authentication, integrity, confidentiality } = algorithms;
    for (kind, algorithm) in [(0, authentication), (1, integrity), (2, confidentiality)] {
        out.extend([kind, 0, 0, 8, algorithm, 0, 0, 0]);
    }
}

fn read_algorithms(reader: &mut Reader<'_>) -> Result<Algorithms, DecodeError> {
    let mut next = |kind: u8| {
        let [found, _, _, _, algorithm, ..] = reader.array::<8>()?;
        if found != kind {
            return Err(reader.value("algorithm record type", found.into()));
        }
        Ok(algorithm & 0x3f)
    };
    Ok(Algorithms { authentication: next(0)?, integrity: next(1)?, confidentiality: next(2)? })
}

impl OpenSessionRequest {
    /// Value in, payload out.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.tag, self.privilege, 0, 0];
        out.extend(self.console_id.to_le_bytes());
        put_algorithms(&mut out, self.algorithms);
        out
    }

    /// Payload in, value out.
    ///
    /// # Errors
    /// When it is cut short or its records are out of order.
    pub fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("Open Session Request", payload);
        let [tag, privilege, ..] = reader.array::<4>()?;
        let console_id = reader.u32()?;
        let algorithms = read_algorithms(&mut reader)?;
        Ok(Self { tag, privilege: privilege & 0x0f, console_id, algorithms })
    }
}

impl OpenSessionResponse {
    /// Value in, payload out: 8 bytes for an error, 36 for consent.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.tag, self.status.number(), self.privilege, 0];
        out.extend(self.console_id.to_le_bytes());
        if self.status == RakpStatus::NoErrors {
            out.extend(self.bmc_id.to_le_bytes());
            put_algorithms(&mut out, self.algorithms);
        }
        out
    }

    /// Payload in, value out. A refusal may be as short as tag and status: what is missing reads as zero.
    ///
    /// # Errors
    /// When a consent is cut short.
    pub fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("Open Session Response", payload);
        let (tag, status) = (reader.u8()?, RakpStatus::from_number(reader.u8()?));
        if status != RakpStatus::NoErrors {
            let console_id = reader.array::<2>().and_then(|_| reader.u32()).unwrap_or(0);
            let algorithms = Algorithms { authentication: 0, integrity: 0, confidentiality: 0 };
            return Ok(Self { tag, status, privilege: 0, console_id, bmc_id: 0, algorithms });
        }
        let [privilege, _] = reader.array()?;
        let (console_id, bmc_id) = (reader.u32()?, reader.u32()?);
        let algorithms = read_algorithms(&mut reader)?;
        Ok(Self { tag, status, privilege, console_id, bmc_id, algorithms })
    }
}

/// RAKP message 1 (section 13.20).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rakp1 {
    /// Comes back in RAKP 2.
    pub tag: u8,
    /// Session ID of the BMC.
    pub bmc_id: u32,
    /// The console's random number.
    pub console_random: [u8; 16],
    /// Privilege and, in bit 4, "look the user up by name alone".
    pub role: u8,
    /// Who wants in.
    pub user: UserName,
}

impl Rakp1 {
    /// Value in, payload out.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.tag, 0, 0, 0];
        out.extend(self.bmc_id.to_le_bytes());
        out.extend(self.console_random);
        out.extend([self.role, 0, 0, self.user.wire_len()]);
        out.extend(self.user.as_bytes());
        out
    }

    /// Payload in, value out.
    ///
    /// # Errors
    /// When it is cut short or the name is too long.
    pub fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("RAKP 1", payload);
        let [tag, ..] = reader.array::<4>()?;
        let bmc_id = reader.u32()?;
        let console_random = reader.array()?;
        let [role, _, _, length] = reader.array()?;
        let name = reader.bytes(length.into())?;
        let user = UserName::new(name).map_err(|_| reader.value("name length", length.into()))?;
        Ok(Self { tag, bmc_id, console_random, role, user })
    }
}

/// RAKP message 2 (section 13.21).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rakp2 {
    /// Of RAKP 1.
    pub tag: u8,
    /// Whether the BMC goes on; if not, the fields below the console's ID mean nothing.
    pub status: RakpStatus,
    /// Session ID of the console.
    pub console_id: u32,
    /// The BMC's random number.
    pub bmc_random: [u8; 16],
    /// The BMC's GUID.
    pub guid: [u8; 16],
    /// Proves that the BMC knows the password.
    pub code: Vec<u8>,
}

impl Rakp2 {
    /// Value in, payload out: 8 bytes for an error.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.tag, self.status.number(), 0, 0];
        out.extend(self.console_id.to_le_bytes());
        if self.status == RakpStatus::NoErrors {
            out.extend(self.bmc_random);
            out.extend(self.guid);
            out.extend(&self.code);
        }
        out
    }

    /// Payload in, value out.
    ///
    /// # Errors
    /// When a consent is cut short.
    pub fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("RAKP 2", payload);
        let (tag, status) = (reader.u8()?, RakpStatus::from_number(reader.u8()?));
        let mut refused =
            Self { tag, status, console_id: 0, bmc_random: [0; 16], guid: [0; 16], code: vec![] };
        if status != RakpStatus::NoErrors {
            refused.console_id = reader.array::<2>().and_then(|_| reader.u32()).unwrap_or(0);
            return Ok(refused);
        }
        let _reserved = reader.array::<2>()?;
        let console_id = reader.u32()?;
        let (bmc_random, guid) = (reader.array()?, reader.array()?);
        Ok(Self { tag, status, console_id, bmc_random, guid, code: reader.rest().to_vec() })
    }
}

/// RAKP message 3 (section 13.22).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rakp3 {
    /// Comes back in RAKP 4.
    pub tag: u8,
    /// Whether the console goes on.
    pub status: RakpStatus,
    /// Session ID of the BMC.
    pub bmc_id: u32,
    /// Proves that the console knows the password.
    pub code: Vec<u8>,
}

/// RAKP message 4 (section 13.23).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rakp4 {
    /// Of RAKP 3.
    pub tag: u8,
    /// Whether the session stands.
    pub status: RakpStatus,
    /// Session ID of the console.
    pub console_id: u32,
    /// Proves that both made the same session key.
    pub code: Vec<u8>,
}

fn put_closing(tag: u8, status: RakpStatus, id: u32, code: &[u8]) -> Vec<u8> {
    let mut out = vec![tag, status.number(), 0, 0];
    out.extend(id.to_le_bytes());
    if status == RakpStatus::NoErrors {
        out.extend_from_slice(code);
    }
    out
}

/// RAKP 3 and 4 have one layout: tag, status, session ID, code.
fn read_closing(
    what: &'static str,
    payload: &[u8],
) -> Result<(u8, RakpStatus, u32, Vec<u8>), DecodeError> {
    let mut reader = Reader::new(what, payload);
    let (tag, status) = (reader.u8()?, RakpStatus::from_number(reader.u8()?));
    let id = reader.array::<2>().and_then(|_| reader.u32());
    if status != RakpStatus::NoErrors {
        return Ok((tag, status, id.unwrap_or(0), vec![]));
    }
    Ok((tag, status, id?, reader.rest().to_vec()))
}

impl Rakp3 {
    /// Value in, payload out.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        put_closing(self.tag, self.status, self.bmc_id, &self.code)
    }

    /// Payload in, value out.
    ///
    /// # Errors
    /// When it is cut short.
    pub fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let (tag, status, bmc_id, code) = read_closing("RAKP 3", payload)?;
        Ok(Self { tag, status, bmc_id, code })
    }
}

impl Rakp4 {
    /// Value in, payload out.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        put_closing(self.tag, self.status, self.console_id, &self.code)
    }

    /// Payload in, value out.
    ///
    /// # Errors
    /// When it is cut short.
    pub fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let (tag, status, console_id, code) = read_closing("RAKP 4", payload)?;
        Ok(Self { tag, status, console_id, code })
    }
}

/// Everything both sides hash (sections 13.21 to 13.23 and 13.31), with the user's key. It cannot be printed.
pub(crate) struct Transcript {
    pub(crate) suite: Suite,
    pub(crate) console_id: u32,
    pub(crate) bmc_id: u32,
    pub(crate) console_random: [u8; 16],
    pub(crate) bmc_random: [u8; 16],
    pub(crate) guid: [u8; 16],
    pub(crate) role: u8,
    pub(crate) user: UserName,
    pub(crate) password: Secret,
}

impl Transcript {
    fn role_and_name(&self) -> Vec<u8> {
        let mut out = vec![self.role, self.user.wire_len()];
        out.extend(self.user.as_bytes());
        out
    }

    pub(crate) fn rakp2_code(&self) -> Vec<u8> {
        let (console, bmc) = (self.console_id.to_le_bytes(), self.bmc_id.to_le_bytes());
        let parts: [&[u8]; 6] = [
            &console,
            &bmc,
            &self.console_random,
            &self.bmc_random,
            &self.guid,
            &self.role_and_name(),
        ];
        self.suite.hmac(&self.password.key(), &parts)
    }

    pub(crate) fn rakp3_code(&self) -> Vec<u8> {
        let console = self.console_id.to_le_bytes();
        let parts: [&[u8]; 3] = [&self.bmc_random, &console, &self.role_and_name()];
        self.suite.hmac(&self.password.key(), &parts)
    }

    /// The session integrity key. No BMC key (Kg) is set on any machine we manage, so the user's key stands
    /// in for it, as section 13.31 says.
    pub(crate) fn sik(&self) -> Vec<u8> {
        let parts: [&[u8]; 3] = [&self.console_random, &self.bmc_random, &self.role_and_name()];
        self.suite.hmac(&self.password.key(), &parts)
    }

    pub(crate) fn rakp4_code(&self, sik: &[u8]) -> Vec<u8> {
        let bmc = self.bmc_id.to_le_bytes();
        self.suite.code(sik, &[&self.console_random, &bmc, &self.guid])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_refusal_of_case_24_is_read() {
        let payload = [0x00, 0x11, 0x00, 0x00, 0xa4, 0xa3, 0xa2, 0xa0];
        let response = OpenSessionResponse::decode(&payload).unwrap();
        assert_eq!(response.status, RakpStatus::NoCipherSuiteMatch);
        assert_eq!(response.console_id, 0xa0a2_a3a4);
    }

    proptest! {
        #[test]
        fn no_payload_makes_decoding_panic(bytes: Vec<u8>) {
            let _decoded = OpenSessionRequest::decode(&bytes);
            let _decoded = OpenSessionResponse::decode(&bytes);
            let _decoded = Rakp1::decode(&bytes);
            let _decoded = Rakp2::decode(&bytes);
            let _decoded = Rakp3::decode(&bytes);
            let _decoded = Rakp4::decode(&bytes);
        }

        #[test]
        fn messages_come_back_as_they_were(
            tag: u8, id: u32, random: [u8; 16], role: u8, name in proptest::collection::vec(any::<u8>(), 0..=16),
            code: Vec<u8>,
        ) {
            let user = UserName::new(name).unwrap();
            let rakp1 = Rakp1 { tag, bmc_id: id, console_random: random, role, user };
            prop_assert_eq!(Rakp1::decode(&rakp1.encode()), Ok(rakp1));
            let status = RakpStatus::NoErrors;
            let rakp2 = Rakp2 { tag, status, console_id: id, bmc_random: random, guid: random, code };
            prop_assert_eq!(Rakp2::decode(&rakp2.encode()), Ok(rakp2.clone()));
            let rakp4 = Rakp4 { tag, status, console_id: id, code: rakp2.code };
            prop_assert_eq!(Rakp4::decode(&rakp4.encode()), Ok(rakp4));
        }
    }
}
