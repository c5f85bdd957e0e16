//! A server's answer: OFFER, ACK, NAK. Encoded by volund, decoded by the twin's modelled firmware.

use std::net::Ipv4Addr;

use model::{MacAddr, boot::DhcpOption, sighting::DhcpKind};

use super::{
    code, kind_code,
    message::{DecodeError, Message, Op},
    options::sub_options,
    request::HEADERS,
};

/// iPXE's encapsulated option "do not wait for proxy offers" (`no-pxedhcp`).
const NO_PXEDHCP: u8 = 176;
/// What the reply says when the client is UEFI HTTP boot; it refuses offers without it.
const HTTP_CLIENT: &[u8] = b"HTTPClient";
/// What a proxy's answer says to PXE firmware and iPXE; they pass over one without it.
const PXE_CLIENT: &[u8] = b"PXEClient";
/// Options that have a field of their own in [`Answer`], or none in an answer.
const FIELDS: [u8; 19] = [
    code::MESSAGE_TYPE,
    code::SERVER_ID,
    code::LEASE_TIME,
    code::RENEWAL,
    code::REBINDING,
    code::SUBNET_MASK,
    code::ROUTER,
    code::DNS,
    code::BOOT_FILE,
    code::VENDOR_CLASS,
    code::IPXE,
    code::HOST_NAME,
    code::TEXT,
    code::CLIENT_ID,
    code::MACHINE_ID,
    code::SUBNET_SELECTION,
    code::RELAY,
    code::OVERLOAD,
    code::MAX_SIZE,
];

/// The boot file of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootFile {
    /// TFTP name or URL.
    pub name: String,
    /// How option 67 ends.
    pub ending: Ending,
}

/// How option 67 ends. Old ROMs read it as a C string and take the END byte behind it for a letter; iPXE needs
/// no such help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With a zero byte: for firmware.
    Zero,
    /// With its last letter.
    Bare,
}

/// The lease part of an OFFER or ACK; an ACK to INFORM has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimes {
    /// Option 51 in seconds; T1 and T2 follow from it (RFC 2131, 4.4.5).
    pub seconds: u32,
}

/// A server's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// OFFER, ACK or NAK.
    pub kind: DhcpKind,
    /// To a BOOTP client: an ACK without option 53 and all else that DHCP brought (RFC 1534, 2).
    pub is_bootp: bool,
    /// Transaction id of the request.
    pub xid: u32,
    /// Hardware address of the client.
    pub chaddr: MacAddr,
    /// Flags of the request: relays look at them too.
    pub flags: u16,
    /// ciaddr of the request (ACK only).
    pub ciaddr: Ipv4Addr,
    /// The address given.
    pub yiaddr: Ipv4Addr,
    /// Next server: always set, iPXE drops answers without it.
    pub siaddr: Ipv4Addr,
    /// The relay of the request.
    pub giaddr: Ipv4Addr,
    /// Option 54.
    pub server_id: Ipv4Addr,
    /// Options 51, 58, 59.
    pub lease: Option<LeaseTimes>,
    /// Option 1.
    pub netmask: Option<Ipv4Addr>,
    /// Option 3.
    pub router: Option<Ipv4Addr>,
    /// Option 6.
    pub dns: Vec<Ipv4Addr>,
    /// Option 12.
    pub host_name: Option<String>,
    /// Field `file` and option 67.
    pub boot_file: Option<BootFile>,
    /// Option 60 = `HTTPClient`.
    pub http_client: bool,
    /// Option 60 = `PXEClient`, with this option 43; empty: without.
    pub pxe_client: Option<Vec<u8>>,
    /// Option 175.176 = 1.
    pub no_pxedhcp: bool,
    /// Option 61 of the request (RFC 6842).
    pub client_id: Option<Vec<u8>>,
    /// Option 97 of the request (RFC 4578, 2.3).
    pub machine_id: Option<Vec<u8>>,
    /// Option 118 of the request (RFC 3011).
    pub subnet_selection: Option<Ipv4Addr>,
    /// Option 82 of the request, unchanged.
    pub relay: Option<Vec<u8>>,
    /// Options of no meaning to volund, of codes it does not set itself.
    pub extra: Vec<DhcpOption>,
    /// Option 56: why, in a NAK.
    pub text: Option<String>,
}

impl Answer {
    /// The datagram. `max_size` is what the client takes, IP and UDP headers included (option 57). What does not fit
    /// is dropped from the least needed on; to a client that is named no boot file, fields `file` and `sname` carry
    /// options before more than a name is dropped (RFC 2132, 9.3). Firmware is spared that: it looks for names there.
    #[must_use]
    pub fn encode(&self, max_size: u16) -> Vec<u8> {
        const FIRST_TO_GO: [u8; 2] = [code::HOST_NAME, code::TEXT];
        const LAST_TO_GO: [u8; 5] = [
            code::DNS,
            code::MACHINE_ID,
            code::CLIENT_ID,
            code::SUBNET_SELECTION,
            code::RELAY, // RFC 3046, 2.2: left out whole when it does not fit
        ];
        let budget = usize::from(max_size).saturating_sub(HEADERS);
        let overloads = self.boot_file.is_none() && self.vendor_class().is_none();
        let extra = self.extra.iter().rev().map(|option| option.code);
        let mut to_go = FIRST_TO_GO.into_iter().chain(extra).chain(LAST_TO_GO);
        let mut dropped = 0;
        let mut message = self.message();
        loop {
            let bytes = message.encode();
            if bytes.len() <= budget {
                return bytes;
            }
            if overloads
                && dropped >= FIRST_TO_GO.len()
                && let Some(bytes) = message.encode_overloaded(budget)
            {
                return bytes;
            }
            let Some(code) = to_go.next() else { return bytes };
            message.options.remove(code);
            dropped += 1;
        }
    }

    /// The frame, every option in it.
    #[must_use]
    pub fn message(&self) -> Message {
        let mut message = Message::new(Op::Reply, self.xid, self.chaddr);
        message.flags = self.flags;
        message.ciaddr = self.ciaddr;
        message.yiaddr = self.yiaddr;
        message.siaddr = self.siaddr;
        message.giaddr = self.giaddr;
        if let Some(file) = &self.boot_file {
            message.file = file.name.clone().into_bytes();
        }
        self.put_options(&mut message);
        message
    }

    /// All options in the order they are sent.
    fn put_options(&self, message: &mut Message) {
        let mut put = |code: u8, value: Option<Vec<u8>>| {
            if let Some(value) = value {
                message.options.set(code, value);
            }
        };
        let address = |address: Ipv4Addr| address.octets().to_vec();
        let seconds = |seconds: u32| seconds.to_be_bytes().to_vec();
        let lease = self.lease.map(|lease| lease.seconds);
        let dns: Vec<u8> = self.dns.iter().flat_map(|dns| dns.octets()).collect();
        if !self.is_bootp {
            put(code::MESSAGE_TYPE, Some(vec![kind_code(self.kind)]));
            put(code::SERVER_ID, Some(address(self.server_id)));
        }
        put(code::LEASE_TIME, lease.map(seconds));
        put(code::RENEWAL, lease.map(|lease| seconds(lease / 2)));
        put(code::REBINDING, lease.map(|lease| seconds(lease - lease / 8)));
        put(code::SUBNET_MASK, self.netmask.map(address));
        put(code::ROUTER, self.router.map(address));
        put(code::DNS, (!dns.is_empty()).then_some(dns));
        put(code::BOOT_FILE, self.boot_file.as_ref().map(BootFile::option));
        put(code::VENDOR_CLASS, self.vendor_class().map(<[u8]>::to_vec));
        put(code::VENDOR, self.pxe_client.clone().filter(|vendor| !vendor.is_empty()));
        put(code::IPXE, self.no_pxedhcp.then(|| vec![NO_PXEDHCP, 1, 1]));
        put(code::HOST_NAME, self.host_name.clone().map(String::into_bytes));
        put(code::TEXT, self.text.clone().map(String::into_bytes));
        put(code::CLIENT_ID, self.client_id.clone());
        put(code::MACHINE_ID, self.machine_id.clone());
        put(code::SUBNET_SELECTION, self.subnet_selection.map(address));
        for option in &self.extra {
            put(option.code, Some(option.value.clone()));
        }
        put(code::RELAY, self.relay.clone());
    }

    /// Option 60.
    fn vendor_class(&self) -> Option<&'static [u8]> {
        let pxe = self.pxe_client.is_some().then_some(PXE_CLIENT);
        if self.http_client { Some(HTTP_CLIENT) } else { pxe }
    }

    /// Bytes in, answer out, as a client reads it: option 67 before field `file`.
    ///
    /// # Errors
    /// When the bytes are no DHCP message of a server with a type and a server identifier.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let message = Message::decode(bytes)?;
        if message.op != Op::Reply {
            return Err(DecodeError::Direction);
        }
        let kind = message.kind().ok_or(DecodeError::Kind)?;
        let options = &message.options;
        let mut warnings = vec![];
        let mut address = |code| options.address(code, &mut warnings);
        let text = |code| options.get(code).map(|text| String::from_utf8_lossy(text).into_owned());
        let bytes = |code| options.get(code).map(<[u8]>::to_vec);
        let is_pxe = options.get(code::VENDOR_CLASS).is_some_and(|c| c.starts_with(PXE_CLIENT));
        Ok(Self {
            kind,
            is_bootp: false,
            xid: message.xid,
            chaddr: message.chaddr,
            flags: message.flags,
            ciaddr: message.ciaddr,
            yiaddr: message.yiaddr,
            siaddr: message.siaddr,
            giaddr: message.giaddr,
            server_id: address(code::SERVER_ID).ok_or(DecodeError::Kind)?,
            netmask: address(code::SUBNET_MASK),
            subnet_selection: address(code::SUBNET_SELECTION),
            router: options.get(code::ROUTER).map(addresses).and_then(|list| list.first().copied()),
            dns: options.get(code::DNS).map(addresses).unwrap_or_default(),
            lease: options
                .fixed(code::LEASE_TIME, &mut warnings)
                .map(|seconds| LeaseTimes { seconds: u32::from_be_bytes(seconds) }),
            host_name: text(code::HOST_NAME),
            boot_file: BootFile::read(options.get(code::BOOT_FILE), &message.file),
            http_client: options.get(code::VENDOR_CLASS) == Some(HTTP_CLIENT),
            pxe_client: is_pxe.then(|| bytes(code::VENDOR).unwrap_or_default()),
            no_pxedhcp: options
                .get(code::IPXE)
                .is_some_and(|value| sub_options(value).any(|option| option == (NO_PXEDHCP, &[1]))),
            client_id: bytes(code::CLIENT_ID),
            machine_id: bytes(code::MACHINE_ID),
            relay: bytes(code::RELAY),
            text: text(code::TEXT),
            extra: extra(&message, is_pxe),
        })
    }
}

impl BootFile {
    /// The value of option 67.
    fn option(&self) -> Vec<u8> {
        let mut value = self.name.clone().into_bytes();
        if self.ending == Ending::Zero {
            value.push(0);
        }
        value
    }

    /// Option 67 without its zero (RFC 2132, 2 wants receivers to strip it), else field `file`.
    fn read(option: Option<&[u8]>, file: &[u8]) -> Option<Self> {
        let value = option.unwrap_or(file);
        let name = value.strip_suffix(&[0]).unwrap_or(value);
        let ending = if name.len() < value.len() { Ending::Zero } else { Ending::Bare };
        let name = String::from_utf8_lossy(name).into_owned();
        (!name.is_empty()).then_some(Self { name, ending })
    }
}

/// The options of an answer that have no field of their own.
fn extra(message: &Message, is_pxe: bool) -> Vec<DhcpOption> {
    let has_field = |code: u8| FIELDS.contains(&code) || (is_pxe && code == code::VENDOR);
    let others = message.options.iter().filter(|(code, _)| !has_field(*code));
    others.map(|(code, value)| DhcpOption { code, value: value.to_vec() }).collect()
}

/// A list of addresses; odd bytes at the end are dropped.
fn addresses(value: &[u8]) -> Vec<Ipv4Addr> {
    value.as_chunks::<4>().0.iter().copied().map(Ipv4Addr::from).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn offer() -> Answer {
        Answer {
            kind: DhcpKind::Offer,
            is_bootp: false,
            xid: 3,
            chaddr: MacAddr([2, 0x5a, 0x10, 0, 0, 3]),
            flags: 0x8000,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            yiaddr: Ipv4Addr::new(192, 0, 2, 77),
            siaddr: Ipv4Addr::new(192, 0, 2, 1),
            giaddr: Ipv4Addr::new(192, 0, 2, 254),
            server_id: Ipv4Addr::new(192, 0, 2, 1),
            lease: Some(LeaseTimes { seconds: 600 }),
            netmask: Some(Ipv4Addr::new(255, 255, 255, 0)),
            router: Some(Ipv4Addr::new(192, 0, 2, 254)),
            dns: vec![Ipv4Addr::new(192, 0, 2, 53), Ipv4Addr::new(192, 0, 2, 54)],
            host_name: Some("bld-003".to_owned()),
            boot_file: Some(BootFile { name: "snponly.efi".to_owned(), ending: Ending::Zero }),
            http_client: false,
            pxe_client: None,
            no_pxedhcp: true,
            client_id: Some(vec![1, 2]),
            machine_id: Some(vec![0; 17]),
            subnet_selection: None,
            relay: Some(vec![1, 1, 7]),
            extra: vec![],
            text: None,
        }
    }

    #[test]
    fn an_answer_reads_back_as_it_was_written() {
        assert_eq!(Answer::decode(&offer().encode(576)), Ok(offer()));
    }

    #[test]
    fn an_offer_has_these_bytes() {
        let options = offer().encode(576)[240..].to_vec();
        let options = model::hex::encode(&options);
        insta::assert_snapshot!(options.trim_end_matches('0'), @"3501023604c00002013304000002583a040000012c3b040000020d0104ffffff000304c00002fe0608c0000235c0000236430c736e706f6e6c792e65666900af03b001010c07626c642d3030333d020102611100000000000000000000000000000000005203010107ff");
    }

    #[test]
    fn what_does_not_fit_is_dropped_from_the_least_needed_on() {
        let mut answer = offer();
        answer.client_id = Some(vec![9; 200]);
        answer.relay = Some(vec![8; 30]);
        let read = Answer::decode(&answer.encode(576)).unwrap();
        assert!(answer.encode(576).len() <= 548);
        assert_eq!((read.host_name, read.dns.len()), (None, 0));
        assert_eq!((read.relay, read.boot_file), (answer.relay.clone(), answer.boot_file.clone()));
        assert_eq!(Answer::decode(&answer.encode(1472)), Ok(answer));
    }

    proptest! {
        #[test]
        fn an_answer_never_exceeds_what_the_client_takes(
            id in 0..256_usize, machine in 0..256_usize, relay in 0..256_usize, dns in 0..60_usize,
        ) {
            let mut answer = offer();
            answer.client_id = Some(vec![1; id]);
            answer.machine_id = Some(vec![2; machine]);
            answer.relay = Some(vec![3; relay]);
            answer.dns = vec![Ipv4Addr::LOCALHOST; dns];
            let bytes = answer.encode(576);
            prop_assert!((300..=548).contains(&bytes.len()));
            prop_assert_eq!(Answer::decode(&bytes).unwrap().boot_file, answer.boot_file);
        }

        #[test]
        fn no_bytes_make_decode_panic(area: Vec<u8>) {
            let mut bytes = offer().encode(576);
            bytes.truncate(240);
            bytes.extend(area);
            let _outcome = Answer::decode(&bytes);
        }
    }
}
