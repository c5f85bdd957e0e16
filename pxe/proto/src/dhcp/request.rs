//! What a client's message says, in the words of the boot logic.

use std::net::Ipv4Addr;

use model::{ClientArch, MacAddr, arch::ClientFamily, sighting::DhcpKind};

use super::{
    code,
    message::{DecodeError, Message, Op},
    options::{Warning, sub_options},
    relay::{RelayInfo, link_selection},
};
use crate::ipxe::Stage;

/// Bytes of IP and UDP header that option 57 counts in.
pub const HEADERS: usize = 28;
/// What every client takes (RFC 2131, 2).
const LEAST_MAX_SIZE: u16 = 576;
/// What fits an Ethernet frame with room to spare; EDK2 asks for 65,280 (a byte-swapped 255).
const MOST_MAX_SIZE: u16 = 1472;

/// A client's DHCP message, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Message type; DISCOVER for BOOTP, which has none.
    pub kind: DhcpKind,
    /// It has no option 53 at all: BOOTP (RFC 951, 1534).
    pub is_bootp: bool,
    /// Transaction id.
    pub xid: u32,
    /// Hardware address: the key of everything we know about the client.
    pub chaddr: MacAddr,
    /// Flags as sent, [`super::BROADCAST`] among them.
    pub flags: u16,
    /// The address the client already uses, or 0.0.0.0.
    pub ciaddr: Ipv4Addr,
    /// The relay's address, or 0.0.0.0.
    pub giaddr: Ipv4Addr,
    /// Option 50.
    pub requested: Option<Ipv4Addr>,
    /// Option 54.
    pub server_id: Option<Ipv4Addr>,
    /// Largest message the client takes, IP and UDP headers included: 576 to 1472.
    pub max_size: u16,
    /// Option 93, or the `Arch:` of option 60 when 93 is missing. Empty for an operating system.
    pub archs: Vec<ClientArch>,
    /// Option 60.
    pub vendor_class: Vec<u8>,
    /// Option 12: bytes, not necessarily UTF-8.
    pub host_name: Option<Vec<u8>>,
    /// Option 61, to be echoed (RFC 6842) and used for nothing else: ROM, iPXE and system send different ones.
    pub client_id: Option<Vec<u8>>,
    /// Option 97, to be echoed when it was sent; never a key, some boards have none or share one.
    pub machine_id: Option<Vec<u8>>,
    /// Option 82 as sent, to be echoed unchanged.
    pub relay: Option<Vec<u8>>,
    /// Option 82, read.
    pub relay_info: Option<RelayInfo>,
    /// The address whose subnet the client wants to be on, when the relay says another than its own (option 82.5,
    /// RFC 3527).
    pub link_selection: Option<Ipv4Addr>,
    /// The same, said by the client (option 118, RFC 3011).
    pub subnet_selection: Option<Ipv4Addr>,
    /// The entry of a PXE boot menu the client chose: option 43, sub-option 71 (PXE 2.1, 2.2).
    pub menu_item: Option<[u8; 4]>,
    /// Who is asking.
    pub stage: Stage,
    /// What was wrong and did not matter.
    pub warnings: Vec<Warning>,
}

impl Request {
    /// Bytes in, request out. Total: no input makes it panic.
    ///
    /// # Errors
    /// When the bytes are no DHCP message of a client.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(&Message::decode(bytes)?)
    }

    /// Reads a decoded message. An option of a wrong shape counts as absent and leaves a warning.
    ///
    /// # Errors
    /// When it is a server's message or its type is unknown.
    pub fn read(message: &Message) -> Result<Self, DecodeError> {
        if message.op != Op::Request {
            return Err(DecodeError::Direction);
        }
        let options = &message.options;
        let is_bootp = options.get(code::MESSAGE_TYPE).is_none();
        let kind = if is_bootp { Some(DhcpKind::Discover) } else { message.kind() };
        let kind = kind.ok_or(DecodeError::Kind)?;
        let mut warnings = message.warnings.clone();
        let bytes = |code| options.get(code).map(<[u8]>::to_vec);
        let vendor_class = bytes(code::VENDOR_CLASS).unwrap_or_default();
        let max_size = options.fixed(code::MAX_SIZE, &mut warnings).map(u16::from_be_bytes);
        Ok(Self {
            kind,
            is_bootp,
            xid: message.xid,
            chaddr: message.chaddr,
            flags: message.flags,
            ciaddr: message.ciaddr,
            giaddr: message.giaddr,
            requested: options.address(code::REQUESTED_ADDRESS, &mut warnings),
            server_id: options.address(code::SERVER_ID, &mut warnings),
            max_size: max_size.unwrap_or(0).clamp(LEAST_MAX_SIZE, MOST_MAX_SIZE),
            archs: archs(options.get(code::ARCHITECTURE), &vendor_class, &mut warnings),
            stage: Stage::read(
                &vendor_class,
                options.get(code::USER_CLASS),
                options.get(code::IPXE),
            ),
            vendor_class,
            host_name: bytes(code::HOST_NAME),
            client_id: bytes(code::CLIENT_ID),
            machine_id: bytes(code::MACHINE_ID),
            relay: bytes(code::RELAY),
            relay_info: message.relay_info(),
            link_selection: options.get(code::RELAY).and_then(link_selection),
            subnet_selection: options.address(code::SUBNET_SELECTION, &mut warnings),
            menu_item: options.get(code::VENDOR).and_then(menu_item),
            warnings,
        })
    }

    /// The architecture that counts of those named: the first of [`Self::loadable`], else the first of all.
    #[must_use]
    pub fn arch(&self) -> Option<ClientArch> {
        self.loadable().first().or_else(|| self.archs.first()).copied()
    }

    /// The architectures volund has a word for, in the order named, those first that fit what the client calls
    /// itself: firmware that can both names the codes of both, and wants a URL only as `HTTPClient`.
    #[must_use]
    pub fn loadable(&self) -> Vec<ClientArch> {
        let wants_url = self.stage == Stage::HttpBoot;
        let mut known: Vec<_> =
            self.archs.iter().copied().filter(|arch| arch.family().is_some()).collect();
        // Stable: the client's own order stays.
        known.sort_by_key(|arch| takes_url(*arch) != wants_url);
        known
    }

    /// Whether the client is UEFI HTTP boot, by what it says or by its architecture.
    #[must_use]
    pub fn is_http_boot(&self) -> bool {
        match self.stage {
            Stage::HttpBoot => true,
            Stage::Pxe => self.arch().is_some_and(takes_url),
            Stage::Ipxe | Stage::CutDownIpxe | Stage::System => false,
        }
    }

    /// Who is asking, for a timeline: `x86 BIOS (0)`, `iPXE`, empty for an operating system.
    #[must_use]
    pub fn client(&self) -> String {
        match (self.stage, self.arch()) {
            (Stage::System, _) if self.is_bootp => "BOOTP".to_owned(),
            (Stage::System, _) => String::new(),
            (Stage::Ipxe, _) => "iPXE".to_owned(),
            (Stage::CutDownIpxe, _) => "cut-down iPXE".to_owned(),
            (Stage::Pxe | Stage::HttpBoot, Some(arch)) => arch.to_string(),
            (Stage::Pxe | Stage::HttpBoot, None) => "firmware of no named architecture".to_owned(),
        }
    }

    /// What the client calls itself (option 12) for a person: lossy, without control characters, 64 characters at
    /// most; empty when it says nothing.
    #[must_use]
    pub fn host_text(&self) -> String {
        let text = String::from_utf8_lossy(self.host_name.as_deref().unwrap_or_default());
        let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        text.trim_end_matches('\0').chars().take(64).map(visible).collect()
    }

    /// The relay for a timeline: giaddr and circuit id, if the message came through one.
    #[must_use]
    pub fn relay_text(&self) -> Option<String> {
        if self.giaddr.is_unspecified() {
            return None;
        }
        let circuit = self.relay_info.as_ref().and_then(RelayInfo::circuit_text);
        Some(
            circuit
                .map_or_else(|| self.giaddr.to_string(), |text| format!("{} {text}", self.giaddr)),
        )
    }
}

/// Sub-option 71 of option 43: type and layer of the entry chosen from a boot menu.
fn menu_item(vendor: &[u8]) -> Option<[u8; 4]> {
    const MENU_ITEM: u8 = 71;
    sub_options(vendor).find(|(code, _)| *code == MENU_ITEM)?.1.try_into().ok()
}

/// Whether an architecture is one of UEFI HTTP boot.
fn takes_url(arch: ClientArch) -> bool {
    arch.family().is_some_and(ClientFamily::takes_url)
}

/// Option 93 as a list; the `Arch:00007` of the vendor class stands in for a missing one (RFC 4578, 2.1 wants it,
/// some ROMs forget it).
fn archs(
    value: Option<&[u8]>,
    vendor_class: &[u8],
    warnings: &mut Vec<Warning>,
) -> Vec<ClientArch> {
    if let Some(value) = value {
        let (pairs, rest) = value.as_chunks::<2>();
        if pairs.is_empty() || !rest.is_empty() {
            let length = value.len();
            warnings.push(Warning::Length { code: code::ARCHITECTURE, length });
        }
        if !pairs.is_empty() {
            return pairs.iter().map(|pair| ClientArch(u16::from_be_bytes(*pair))).collect();
        }
    }
    let text = str::from_utf8(vendor_class).unwrap_or_default();
    let after = text.split_once(":Arch:").map(|(_, after)| after);
    let digits = after.and_then(|after| after.get(..5)?.parse().ok());
    digits.map(ClientArch).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dhcp::client::ClientMessage;

    fn rom() -> Message {
        ClientMessage::pxe(DhcpKind::Discover, 7, MacAddr([2, 0, 0, 0, 0, 7]), ClientArch(7))
            .message()
    }

    #[test]
    fn a_bad_option_is_a_warning_and_hides_nothing() {
        let mut message = rom();
        message.options.set(code::HOST_NAME, [0xff, 0xfe, b'x']);
        message.options.set(code::REQUESTED_ADDRESS, [1, 2, 3]);
        message.options.set(code::NETWORK_INTERFACE, [1, 2]);
        let request = Request::decode(&message.encode()).unwrap();
        assert_eq!(request.host_name.as_deref(), Some(&[0xff, 0xfe, b'x'][..]));
        assert_eq!(request.requested, None);
        assert_eq!(request.warnings, [Warning::Length { code: 50, length: 3 }]);
        assert_eq!((request.stage, request.arch()), (Stage::Pxe, Some(ClientArch(7))));
    }

    #[test]
    fn the_size_a_client_takes_is_held_between_576_and_1472() {
        let cases: [(&[u8], u16); 6] = [
            (&[2, 0x40], 576),
            (&[5, 0xc0], 1472),
            (&[0xff, 0], 1472), // EDK2's REQUEST
            (&[0, 0], 576),
            (&[1], 576),
            (&[], 576),
        ];
        for (value, want) in cases {
            let mut message = rom();
            message.options.set(code::MAX_SIZE, value);
            assert_eq!(Request::read(&message).unwrap().max_size, want, "{value:?}");
        }
    }

    #[test]
    fn the_first_known_architecture_counts() {
        let cases: [(&[u8], Option<u16>); 6] = [
            (&[0, 7, 0, 9], Some(7)),
            (&[0x0f, 0, 0, 9], Some(9)),
            (&[0x0f, 0], Some(0x0f00)),
            (&[0, 11, 0], Some(11)),
            (&[0], Some(7)), // unusable: the vendor class says it
            (&[], Some(7)),
        ];
        for (value, want) in cases {
            let mut message = rom();
            message.options.set(code::ARCHITECTURE, value);
            let request = Request::read(&message).unwrap();
            assert_eq!(request.arch(), want.map(ClientArch), "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_decode_panic(area: Vec<u8>) {
            let mut bytes = rom().encode();
            bytes.truncate(243);
            bytes.extend(area);
            if let Ok(request) = Request::decode(&bytes) {
                let _text = (request.client(), request.relay_text(), request.is_http_boot());
            }
        }
    }
}
