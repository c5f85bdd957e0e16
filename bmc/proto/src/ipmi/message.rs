//! IPMI messages as LAN carries them: addresses, network function, sequence, two checksums (section 13.8).

use std::fmt;

use crate::wire::{DecodeError, Reader};

/// Slave address of the BMC.
pub const BMC_ADDRESS: u8 = 0x20;
/// Software ID of a remote console.
pub const CONSOLE_ADDRESS: u8 = 0x81;

/// A network function: even for requests, odd for responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NetFn(pub u8);

impl NetFn {
    /// Chassis commands.
    pub const CHASSIS: Self = Self(0x00);
    /// Application commands: device, session, channel.
    pub const APP: Self = Self(0x06);
    /// Group extension: the first data byte names the group (0xDC = DCMI).
    pub const GROUP: Self = Self(0x2c);

    /// The one its responses carry.
    #[must_use]
    pub const fn response(self) -> Self {
        Self(self.0 | 1)
    }
}

/// A completion code (table 5-2). Zero is success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CompletionCode(pub u8);

impl CompletionCode {
    /// Done.
    pub const OK: Self = Self(0x00);
    /// Boot option parameter not supported (table 28-14); other commands give it other meanings.
    pub const PARAMETER_NOT_SUPPORTED: Self = Self(0x80);
    /// Set Session Privilege Level: the user's or channel's limit is lower (table 22-24).
    pub const PRIVILEGE_LIMIT: Self = Self(0x81);
    /// Busy now; nothing was done.
    pub const NODE_BUSY: Self = Self(0xc0);
    /// The BMC does not know the command.
    pub const INVALID_COMMAND: Self = Self(0xc1);
    /// Not known at this LUN.
    pub const INVALID_FOR_LUN: Self = Self(0xc2);
    /// The BMC ran out of time; whether it was done is unknown.
    pub const TIMEOUT: Self = Self(0xc3);
    /// No room for what the request needs, for now.
    pub const OUT_OF_SPACE: Self = Self(0xc4);
    /// Request too short or too long.
    pub const LENGTH: Self = Self(0xc7);
    /// A request field has a value that cannot be.
    pub const INVALID_FIELD: Self = Self(0xcc);
    /// The BMC itself is still starting.
    pub const STARTING: Self = Self(0xd2);
    /// The session's privilege is too low.
    pub const PRIVILEGE: Self = Self(0xd4);
    /// Not possible in the present state.
    pub const NOT_IN_THIS_STATE: Self = Self(0xd5);
    /// The sub-function is switched off.
    pub const DISABLED: Self = Self(0xd6);

    /// The BMC has no such command, now or ever.
    #[must_use]
    pub fn means_unsupported(self) -> bool {
        matches!(self, Self::INVALID_COMMAND | Self::INVALID_FOR_LUN | Self::DISABLED)
    }
}

impl fmt::Display for CompletionCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.0 {
            0x00 => "done",
            0xc0 => "busy",
            0xc1 => "command not supported",
            0xc2 => "command not supported at this LUN",
            0xc3 => "the BMC timed out",
            0xc4 => "out of space",
            0xc7 => "wrong request length",
            0xc9 => "parameter out of range",
            0xcb => "not present",
            0xcc => "invalid field in the request",
            0xce => "no response could be given",
            0xd2 => "the BMC is still starting",
            0xd3 => "destination not available",
            0xd4 => "the account's privilege is too low",
            0xd5 => "not possible in the present state",
            0xd6 => "command disabled",
            0xff => "unspecified error",
            _ => return write!(f, "completion code {:#04x}", self.0),
        };
        write!(f, "completion code {:#04x}, {words}", self.0)
    }
}

/// Two's complement of the sum: with it the covered bytes add up to zero.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte))
}

/// A request or a response. In a response the body starts with the completion code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LanMessage<'a> {
    /// To whom: [`BMC_ADDRESS`] in requests, [`CONSOLE_ADDRESS`] in responses.
    pub to: u8,
    /// Network function.
    pub netfn: NetFn,
    /// LUN of the receiver, two bits.
    pub to_lun: u8,
    /// From whom.
    pub from: u8,
    /// Requester's sequence number, six bits: ties a response to its request.
    pub rq_seq: u8,
    /// LUN of the sender, two bits.
    pub from_lun: u8,
    /// Command.
    pub command: u8,
    /// Data, or completion code and data.
    pub body: &'a [u8],
}

impl<'a> LanMessage<'a> {
    /// Value in, bytes out, both checksums computed.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let head = [self.to, self.netfn.0 << 2 | self.to_lun & 3];
        let mut tail = vec![self.from, self.rq_seq << 2 | self.from_lun & 3, self.command];
        tail.extend_from_slice(self.body);
        let mut out = head.to_vec();
        out.push(checksum(&head));
        out.extend_from_slice(&tail);
        out.push(checksum(&tail));
        out
    }

    /// Bytes in, value out. Both checksums must hold.
    ///
    /// # Errors
    /// When it is too short or a checksum does not hold.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        const WHAT: &str = "IPMI message";
        let (head, tail) =
            bytes.split_at_checked(3).ok_or(DecodeError::Truncated { what: WHAT })?;
        if checksum(head) != 0 || checksum(tail) != 0 {
            return Err(DecodeError::Checksum { what: WHAT });
        }
        let (_, tail) = tail.split_last().ok_or(DecodeError::Truncated { what: WHAT })?;
        let mut head = Reader::new(WHAT, head);
        let mut tail = Reader::new(WHAT, tail);
        let (to, netfn_lun) = (head.u8()?, head.u8()?);
        let (from, seq_lun, command) = (tail.u8()?, tail.u8()?, tail.u8()?);
        Ok(Self {
            to,
            netfn: NetFn(netfn_lun >> 2),
            to_lun: netfn_lun & 3,
            from,
            rq_seq: seq_lun >> 2,
            from_lun: seq_lun & 3,
            command,
            body: tail.rest(),
        })
    }

    /// The response to this request: addresses and LUNs swapped, same sequence.
    #[must_use]
    pub fn response(&self, code: CompletionCode, data: &[u8]) -> Vec<u8> {
        let mut body = vec![code.0];
        body.extend_from_slice(data);
        LanMessage {
            to: self.from,
            netfn: self.netfn.response(),
            to_lun: self.from_lun,
            from: self.to,
            rq_seq: self.rq_seq,
            from_lun: self.to_lun,
            command: self.command,
            body: &body,
        }
        .encode()
    }
}

/// A typed command: what is asked, and how its answer is read.
pub trait Command {
    /// As the specification calls it; used in errors.
    const NAME: &'static str;
    /// Network function of the request.
    const NETFN: NetFn;
    /// Command number.
    const CODE: u8;
    /// What a successful answer says.
    type Answer;

    /// Request data.
    fn data(&self) -> Vec<u8>;

    /// Reads the data behind a zero completion code.
    ///
    /// # Errors
    /// When they are not what the specification says.
    fn answer(&self, data: &[u8]) -> Result<Self::Answer, DecodeError>;
}

/// A request that waits for its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    netfn: NetFn,
    command: u8,
    rq_seq: u8,
    message: Vec<u8>,
}

/// A response that belongs to an [`Exchange`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Completion code.
    pub code: CompletionCode,
    /// Data behind it.
    pub data: Vec<u8>,
}

impl Exchange {
    /// A request of `command` with the sequence number `rq_seq` (six bits).
    #[must_use]
    pub fn new<C: Command>(command: &C, rq_seq: u8) -> Self {
        let data = command.data();
        let message = LanMessage {
            to: BMC_ADDRESS,
            netfn: C::NETFN,
            to_lun: 0,
            from: CONSOLE_ADDRESS,
            rq_seq: rq_seq & 0x3f,
            from_lun: 0,
            command: C::CODE,
            body: &data,
        };
        Self { netfn: C::NETFN, command: C::CODE, rq_seq: rq_seq & 0x3f, message: message.encode() }
    }

    /// The request's bytes, the same for each transmission.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// The response in `payload`, if it is this request's: network function, command, sequence, LUNs and both
    /// checksums must agree. `None` means "not for us, keep waiting".
    #[must_use]
    pub fn matches(&self, payload: &[u8]) -> Option<Reply> {
        let message = LanMessage::decode(payload).ok()?;
        let ours = message.netfn == self.netfn.response()
            && message.command == self.command
            && message.rq_seq == self.rq_seq
            && message.to_lun == 0
            && message.from_lun == 0;
        let (code, data) = message.body.split_first()?;
        ours.then(|| Reply { code: CompletionCode(*code), data: data.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ipmi::chassis::GetChassisStatus;

    #[test]
    fn a_chassis_status_request_has_the_bytes_worked_out_by_hand() {
        let exchange = Exchange::new(&GetChassisStatus, 2);
        assert_eq!(exchange.message(), [0x20, 0x00, 0xe0, 0x81, 0x08, 0x01, 0x76]);
    }

    #[test]
    fn only_the_response_to_this_very_request_is_taken() {
        let exchange = Exchange::new(&GetChassisStatus, 2);
        let good = LanMessage {
            to: 0x81,
            netfn: NetFn(1),
            to_lun: 0,
            from: 0x20,
            rq_seq: 2,
            from_lun: 0,
            command: 1,
            body: &[0, 0x41, 0, 0x40],
        };
        let want = Reply { code: CompletionCode::OK, data: vec![0x41, 0, 0x40] };
        assert_eq!(exchange.matches(&good.encode()), Some(want));
        let strays = [
            ("other network function", LanMessage { netfn: NetFn(7), ..good }),
            ("a request", LanMessage { netfn: NetFn(0), ..good }),
            ("other command", LanMessage { command: 2, ..good }),
            ("late answer to the one before", LanMessage { rq_seq: 1, ..good }),
            ("other requester LUN", LanMessage { to_lun: 1, ..good }),
            ("other responder LUN", LanMessage { from_lun: 2, ..good }),
            ("no completion code", LanMessage { body: &[], ..good }),
        ];
        for (name, stray) in strays {
            assert_eq!(exchange.matches(&stray.encode()), None, "{name}");
        }
        for broken in 0..good.encode().len() {
            let mut bytes = good.encode();
            bytes[broken] ^= 0x04;
            assert_eq!(exchange.matches(&bytes), None, "byte {broken} flipped");
        }
    }

    proptest! {
        #[test]
        fn decode_never_panics(bytes: Vec<u8>) {
            let _decoded = LanMessage::decode(&bytes);
        }

        #[test]
        fn a_message_comes_back_as_it_was(
            to: u8, netfn in 0_u8..64, to_lun in 0_u8..4, from: u8, rq_seq in 0_u8..64,
            from_lun in 0_u8..4, command: u8, body: Vec<u8>,
        ) {
            let netfn = NetFn(netfn);
            let message =
                LanMessage { to, netfn, to_lun, from, rq_seq, from_lun, command, body: &body };
            let bytes = message.encode();
            prop_assert_eq!(LanMessage::decode(&bytes), Ok(message));
        }
    }
}
