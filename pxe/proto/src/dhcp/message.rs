//! The frame of a DHCP message: fixed fields, magic cookie, options (RFC 2131, 2).

use std::net::Ipv4Addr;

use model::{MacAddr, sighting::DhcpKind};

use super::{
    code, kind_of,
    options::{END, Options, Warning, write_one, written_length},
};

/// Bit of `flags` by which a client says that it can hear broadcasts only (RFC 2131, 2).
pub const BROADCAST: u16 = 0x8000;
/// Begins the options (RFC 2131, 3).
const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// Relays and old ROMs drop what is shorter (RFC 1542, 2.1).
const MIN_LENGTH: usize = 300;
/// Hardware type of Ethernet (RFC 2131, 2).
const ETHERNET: u8 = 1;

/// Direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// From a client, value 1.
    Request,
    /// From a server, value 2.
    Reply,
}

/// Why bytes are no DHCP message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Shorter than the fixed fields and the cookie.
    #[error("DHCP message of {0} bytes is shorter than 240")]
    Short(usize),
    /// The first byte is neither 1 nor 2.
    #[error("DHCP message has op {0}")]
    Op(u8),
    /// A hardware address longer than its field: the byte that makes careless parsers read past it.
    #[error("DHCP message says its hardware address has {0} bytes, the field has 16")]
    HardwareLength(u8),
    /// The options do not begin with 63 82 53 63.
    #[error("DHCP message has the wrong magic cookie")]
    Cookie,
    /// The hardware address is no Ethernet address.
    #[error("DHCP message has hardware type {htype} with {hlen} bytes, only Ethernet is served")]
    Hardware {
        /// Hardware type.
        htype: u8,
        /// Length of the hardware address.
        hlen: u8,
    },
    /// Option 53 is missing or no type volund knows.
    #[error("DHCP message has no known message type")]
    Kind,
    /// A message of the other direction.
    #[error("DHCP message goes the other way")]
    Direction,
}

/// A DHCP message of either direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Direction.
    pub op: Op,
    /// Relays passed.
    pub hops: u8,
    /// Transaction id.
    pub xid: u32,
    /// Seconds since the client began; iPXE puts state here, so nothing depends on it.
    pub secs: u16,
    /// [`BROADCAST`] and reserved bits.
    pub flags: u16,
    /// The client's address, if it already uses one.
    pub ciaddr: Ipv4Addr,
    /// The address given to the client.
    pub yiaddr: Ipv4Addr,
    /// The next server: where the boot file is.
    pub siaddr: Ipv4Addr,
    /// The relay's address on the client's network.
    pub giaddr: Ipv4Addr,
    /// The client's hardware address.
    pub chaddr: MacAddr,
    /// Field `sname` up to its first zero byte; empty when it holds options.
    pub sname: Vec<u8>,
    /// Field `file` up to its first zero byte; empty when it holds options.
    pub file: Vec<u8>,
    /// The options of all areas.
    pub options: Options,
    /// What was wrong and did not matter.
    pub warnings: Vec<Warning>,
}

impl Message {
    /// An empty message of a direction.
    #[must_use]
    pub fn new(op: Op, xid: u32, chaddr: MacAddr) -> Self {
        Self {
            op,
            hops: 0,
            xid,
            secs: 0,
            flags: 0,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            yiaddr: Ipv4Addr::UNSPECIFIED,
            siaddr: Ipv4Addr::UNSPECIFIED,
            giaddr: Ipv4Addr::UNSPECIFIED,
            chaddr,
            sname: vec![],
            file: vec![],
            options: Options::default(),
            warnings: vec![],
        }
    }

    /// Bytes in, message out. Total: no input makes it panic. Option overload is followed (RFC 2132, 9.3) in the
    /// order options, `file`, `sname` (RFC 3396, 5); split options are joined.
    ///
    /// # Errors
    /// When the frame itself is unusable; a damaged option is a warning only.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (head, rest) =
            bytes.split_first_chunk::<44>().ok_or(DecodeError::Short(bytes.len()))?;
        let (sname, rest) =
            rest.split_first_chunk::<64>().ok_or(DecodeError::Short(bytes.len()))?;
        let (file, rest) =
            rest.split_first_chunk::<128>().ok_or(DecodeError::Short(bytes.len()))?;
        let (cookie, area) =
            rest.split_first_chunk::<4>().ok_or(DecodeError::Short(bytes.len()))?;
        let mut message = Self::decode_head(head)?;
        if *cookie != COOKIE {
            return Err(DecodeError::Cookie);
        }
        message.decode_options(area, file, sname);
        Ok(message)
    }

    /// The fixed fields before `sname`.
    fn decode_head(head: &[u8; 44]) -> Result<Self, DecodeError> {
        let [op, htype, hlen, hops, x0, x1, x2, x3, s0, s1, f0, f1, rest @ ..] = *head;
        let op = match op {
            1 => Op::Request,
            2 => Op::Reply,
            other => return Err(DecodeError::Op(other)),
        };
        let [c0, c1, c2, c3, y0, y1, y2, y3, n0, n1, n2, n3, g0, g1, g2, g3, hw @ ..] = rest;
        if hlen > 16 {
            return Err(DecodeError::HardwareLength(hlen));
        }
        if htype != ETHERNET || hlen != 6 {
            return Err(DecodeError::Hardware { htype, hlen });
        }
        let [a, b, c, d, e, f, ..] = hw;
        let chaddr = MacAddr([a, b, c, d, e, f]);
        let mut message = Self::new(op, u32::from_be_bytes([x0, x1, x2, x3]), chaddr);
        message.hops = hops;
        message.secs = u16::from_be_bytes([s0, s1]);
        message.flags = u16::from_be_bytes([f0, f1]);
        message.ciaddr = Ipv4Addr::new(c0, c1, c2, c3);
        message.yiaddr = Ipv4Addr::new(y0, y1, y2, y3);
        message.siaddr = Ipv4Addr::new(n0, n1, n2, n3);
        message.giaddr = Ipv4Addr::new(g0, g1, g2, g3);
        Ok(message)
    }

    /// The options, and the two fields that may hold more of them.
    fn decode_options(&mut self, area: &[u8], file: &[u8], sname: &[u8]) {
        self.options.read(area, "options", &mut self.warnings);
        let overload = self.options.remove(code::OVERLOAD);
        let overload = overload.and_then(|value| value.first().copied()).unwrap_or(0);
        if overload & 1 == 1 {
            self.options.read(file, "file", &mut self.warnings);
        } else {
            self.file = until_zero(file);
        }
        if overload & 2 == 2 {
            self.options.read(sname, "sname", &mut self.warnings);
        } else {
            self.sname = until_zero(sname);
        }
        // One inside an overloaded field says nothing, and must not go out again with `file` and `sname` beside it.
        self.options.remove(code::OVERLOAD);
    }

    /// Message out: option 53 first, 82 last (RFC 3046, 2.1), END, zeros up to 300 bytes. A `file` of more than
    /// 127 or an `sname` of more than 63 bytes is left empty rather than cut: a cut name is another name.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.encode_head();
        out.extend(zero_ended::<64>(&self.sname));
        out.extend(zero_ended::<128>(&self.file));
        out.extend(COOKIE);
        self.options.write(code::MESSAGE_TYPE, code::RELAY, &mut out);
        out.resize(out.len().max(MIN_LENGTH), 0);
        out
    }

    /// Message out in at most `budget` bytes, with options in fields `file` and `sname` as well (RFC 2132, 9.3), which
    /// must be empty. Option 53 comes first and 82 last of those in the options field (RFC 3046, 2.1: relays look
    /// nowhere else). `None` when they do not fit, or one is too long for any field.
    pub(super) fn encode_overloaded(&self, budget: usize) -> Option<Vec<u8>> {
        /// Before the options field, and in it: option 52 and END.
        const TAKEN: usize = 240 + 3 + 1;
        if !self.file.is_empty() || !self.sname.is_empty() {
            return None;
        }
        let relay = self.options.get(code::RELAY);
        let room = budget.checked_sub(TAKEN + relay.map_or(0, written_length))?;
        let (mut area, mut file, mut sname) = (vec![], vec![], vec![]);
        let kind = self.options.get(code::MESSAGE_TYPE).map(|kind| (code::MESSAGE_TYPE, kind));
        let is_other =
            |code: u8| ![code::MESSAGE_TYPE, code::RELAY, code::OVERLOAD].contains(&code);
        let others = self.options.iter().filter(|(code, _)| is_other(*code));
        for (code, value) in kind.into_iter().chain(others) {
            let length = written_length(value);
            let mut fields = [(&mut area, room), (&mut file, 127), (&mut sname, 63)];
            let (field, _) = fields.iter_mut().find(|(f, room)| f.len() + length <= *room)?;
            write_one(code, value, field);
        }
        let overload = u8::from(!file.is_empty()) | (u8::from(!sname.is_empty()) << 1);
        write_one(code::OVERLOAD, &[overload], &mut area);
        if let Some(relay) = relay {
            write_one(code::RELAY, relay, &mut area);
        }
        area.push(END);
        let mut out = self.encode_head();
        out.extend(options_field::<64>(&sname));
        out.extend(options_field::<128>(&file));
        out.extend(COOKIE);
        out.extend(area);
        out.resize(out.len().max(MIN_LENGTH), 0);
        Some(out)
    }

    /// The fixed fields before `sname`.
    fn encode_head(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(MIN_LENGTH);
        let op = match self.op {
            Op::Request => 1,
            Op::Reply => 2,
        };
        out.extend([op, ETHERNET, 6, self.hops]);
        out.extend(self.xid.to_be_bytes());
        out.extend(self.secs.to_be_bytes());
        out.extend(self.flags.to_be_bytes());
        for address in [self.ciaddr, self.yiaddr, self.siaddr, self.giaddr] {
            out.extend(address.octets());
        }
        out.extend(self.chaddr.octets());
        out.extend([0; 10]);
        out
    }

    /// The message type of option 53.
    #[must_use]
    pub fn kind(&self) -> Option<DhcpKind> {
        self.options.get(code::MESSAGE_TYPE).and_then(|value| kind_of(*value.first()?))
    }
}

/// The bytes before the first zero.
fn until_zero(field: &[u8]) -> Vec<u8> {
    field.iter().copied().take_while(|byte| *byte != 0).collect()
}

/// Options and END as a field of `N` bytes that they fit in; an empty one is all zeros.
fn options_field<const N: usize>(options: &[u8]) -> [u8; N] {
    let mut field = [0; N];
    let end: &[u8] = if options.is_empty() { &[] } else { &[END] };
    for (to, from) in field.iter_mut().zip(options.iter().chain(end)) {
        *to = *from;
    }
    field
}

/// A text as a field of `N` bytes with at least one zero behind it, or an empty field when it does not fit.
fn zero_ended<const N: usize>(text: &[u8]) -> [u8; N] {
    let mut field = [0; N];
    if text.len() < N {
        for (to, from) in field.iter_mut().zip(text) {
            *to = *from;
        }
    }
    field
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn discover() -> Message {
        let mut message = Message::new(Op::Request, 0x1000_0003, MacAddr([2, 0x5a, 0x10, 0, 0, 3]));
        message.options.set(code::MESSAGE_TYPE, [1]);
        message
    }

    #[test]
    fn frames_that_trip_careless_parsers_are_refused_by_name() {
        let good = discover().encode();
        let with = |index: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[index] = value;
            bytes
        };
        let cases = [
            ("empty", vec![], DecodeError::Short(0)),
            ("239 bytes", good[..239].to_vec(), DecodeError::Short(239)),
            ("op 3", with(0, 3), DecodeError::Op(3)),
            ("hlen 17", with(2, 17), DecodeError::HardwareLength(17)),
            ("hlen 255", with(2, 255), DecodeError::HardwareLength(255)),
            ("hlen 8", with(2, 8), DecodeError::Hardware { htype: 1, hlen: 8 }),
            ("InfiniBand", with(1, 32), DecodeError::Hardware { htype: 32, hlen: 6 }),
            ("cookie", with(236, 0), DecodeError::Cookie),
        ];
        for (name, bytes, want) in cases {
            assert_eq!(Message::decode(&bytes), Err(want), "{name}");
        }
    }

    #[test]
    fn overloaded_fields_are_options_and_no_names() {
        let mut message = discover();
        message.options.set(code::OVERLOAD, [3]);
        message.options.set(code::CLIENT_ID, [1, 2]);
        let mut bytes = message.encode();
        // `sname` at 44 carries the end of option 61, `file` at 108 its middle and a PXE class.
        bytes[44..48].copy_from_slice(&[61, 1, 4, 255]);
        bytes[108..116].copy_from_slice(&[61, 1, 3, 60, 2, b'P', b'X', 255]);
        let read = Message::decode(&bytes).unwrap();
        assert_eq!(read.options.get(code::CLIENT_ID), Some(&[1, 2, 3, 4][..]));
        assert_eq!(read.options.get(code::VENDOR_CLASS), Some(&b"PX"[..]));
        assert!(read.file.is_empty() && read.sname.is_empty() && read.warnings.is_empty());
        bytes[108..112].copy_from_slice(&[code::OVERLOAD, 1, 3, 255]);
        assert_eq!(Message::decode(&bytes).unwrap().options.get(code::OVERLOAD), None);
    }

    #[test]
    fn a_message_is_padded_begins_with_53_and_ends_with_82() {
        let mut message = Message::new(Op::Reply, 1, MacAddr([2, 0, 0, 0, 0, 1]));
        message.options.set(code::RELAY, [1, 1, 7]);
        message.options.set(code::LEASE_TIME, [0, 0, 2, 88]);
        message.options.set(code::MESSAGE_TYPE, [2]);
        let bytes = message.encode();
        assert_eq!(bytes.len(), 300);
        assert_eq!(bytes[240..255], [53, 1, 2, 51, 4, 0, 0, 2, 88, 82, 3, 1, 1, 7, 255]);
        assert!(bytes[255..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_name_that_does_not_fit_its_field_is_left_out_and_not_cut() {
        let mut message = discover();
        message.file = vec![b'a'; 127];
        message.sname = vec![b'b'; 64];
        let read = Message::decode(&message.encode()).unwrap();
        assert_eq!(read.file.len(), 127);
        assert!(read.sname.is_empty());
    }

    proptest! {
        #[test]
        fn no_bytes_make_decode_panic(bytes: Vec<u8>) {
            let _outcome = Message::decode(&bytes);
        }

        #[test]
        fn no_option_bytes_make_decode_panic(area: Vec<u8>, overload in 0..8_u8, at in 0..300_usize, value: u8) {
            let mut message = discover();
            message.options.set(code::OVERLOAD, [overload]);
            let mut bytes = message.encode();
            bytes[at] = value;
            bytes.extend(area);
            let _outcome = Message::decode(&bytes);
        }

        #[test]
        fn what_was_encoded_decodes(
            xid: u32, secs: u16, flags: u16, hops: u8, addresses: [u32; 4],
            file in "[a-z/.]{0,127}", sname in "[a-z]{0,63}",
            options in prop::collection::btree_map(
                (1..=254_u8).prop_filter("overload is not data", |code| *code != 52),
                prop::collection::vec(any::<u8>(), 0..600), 0..20),
        ) {
            let mut message = Message::new(Op::Reply, xid, MacAddr([2, 0, 0, 0, 0, 1]));
            message.secs = secs;
            message.flags = flags;
            message.hops = hops;
            [message.ciaddr, message.yiaddr, message.siaddr, message.giaddr] =
                addresses.map(Ipv4Addr::from);
            message.file = file.into_bytes();
            message.sname = sname.into_bytes();
            for (code, value) in &options {
                message.options.set(*code, value.clone());
            }
            let read = Message::decode(&message.encode()).unwrap();
            for (code, value) in &options {
                prop_assert_eq!(read.options.get(*code), Some(value.as_slice()));
            }
            prop_assert_eq!(read.options.iter().count(), options.len());
            message.options = read.options.clone();
            prop_assert_eq!(read, message);
        }
    }
}
