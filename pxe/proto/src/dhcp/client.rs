//! The client's side: what firmware, iPXE and systems send. The twin's modelled blades speak with it.

use std::net::Ipv4Addr;

use model::{ClientArch, MacAddr, sighting::DhcpKind};

use super::{
    code, kind_code,
    message::{Message, Op},
};

/// A message of a client, as a value. [`ClientMessage::message`] gives the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientMessage {
    /// Message type.
    pub kind: DhcpKind,
    /// Transaction id.
    pub xid: u32,
    /// Hardware address.
    pub chaddr: MacAddr,
    /// Seconds since the client began.
    pub secs: u16,
    /// Flags, such as [`super::BROADCAST`].
    pub flags: u16,
    /// The address already in use, or 0.0.0.0.
    pub ciaddr: Ipv4Addr,
    /// Option 50: the address asked for.
    pub requested: Option<Ipv4Addr>,
    /// Option 54: the server chosen.
    pub server_id: Option<Ipv4Addr>,
    /// Option 57.
    pub max_size: Option<u16>,
    /// Option 55.
    pub parameters: Vec<u8>,
    /// Option 60.
    pub vendor_class: Option<Vec<u8>>,
    /// Option 61.
    pub client_id: Option<Vec<u8>>,
    /// Option 77, raw.
    pub user_class: Option<Vec<u8>>,
    /// Option 93.
    pub archs: Vec<ClientArch>,
    /// Option 94: type, major, minor.
    pub network_interface: Option<[u8; 3]>,
    /// Option 97: the zero type byte is put before these 16 bytes.
    pub machine_id: Option<[u8; 16]>,
    /// Option 175, raw.
    pub ipxe: Option<Vec<u8>>,
    /// Option 12.
    pub host_name: Option<Vec<u8>>,
}

impl ClientMessage {
    /// What an operating system without PXE options says: type, id, and a short request list.
    #[must_use]
    pub fn system(kind: DhcpKind, xid: u32, chaddr: MacAddr) -> Self {
        Self {
            kind,
            xid,
            chaddr,
            secs: 0,
            flags: 0,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            requested: None,
            server_id: None,
            max_size: None,
            parameters: vec![1, 3, 6, 12, 15, 28, 42],
            vendor_class: None,
            client_id: None,
            user_class: None,
            archs: vec![],
            network_interface: None,
            machine_id: None,
            ipxe: None,
            host_name: None,
        }
    }

    /// What a PXE ROM of an architecture says (RFC 4578).
    #[must_use]
    pub fn pxe(kind: DhcpKind, xid: u32, chaddr: MacAddr, arch: ClientArch) -> Self {
        let interface = if arch.0 == 0 { [1, 2, 1] } else { [1, 3, 0] };
        Self {
            flags: super::BROADCAST,
            max_size: Some(1472),
            parameters: vec![1, 3, 6, 12, 15, 28, 43, 54, 60, 66, 67, 128, 129],
            vendor_class: Some(class("PXEClient", arch, interface)),
            archs: vec![arch],
            network_interface: Some(interface),
            ..Self::system(kind, xid, chaddr)
        }
    }

    /// What UEFI HTTP boot of an architecture says.
    #[must_use]
    pub fn http_boot(kind: DhcpKind, xid: u32, chaddr: MacAddr, arch: ClientArch) -> Self {
        let vendor_class = Some(class("HTTPClient", arch, [1, 3, 0]));
        Self { vendor_class, ..Self::pxe(kind, xid, chaddr, arch) }
    }

    /// What a full iPXE says: user class without a length byte, option 175 with HTTP, bzImage or EFI.
    #[must_use]
    pub fn ipxe(kind: DhcpKind, xid: u32, chaddr: MacAddr, arch: ClientArch) -> Self {
        let starter = if arch.0 == 0 { 0x18 } else { 0x24 };
        let mut client_id = vec![1];
        client_id.extend(chaddr.octets());
        Self {
            flags: 0,
            parameters: vec![1, 3, 6, 7, 12, 15, 17, 26, 43, 60, 66, 67, 119, 175, 203],
            client_id: Some(client_id),
            user_class: Some(b"iPXE".to_vec()),
            ipxe: Some(vec![0xeb, 3, 1, 0, 0, 0x13, 1, 1, starter, 1, 1]),
            ..Self::pxe(kind, xid, chaddr, arch)
        }
    }

    /// The REQUEST that takes what an OFFER offered (RFC 2131, 4.3.2, SELECTING).
    #[must_use]
    pub fn selecting(self, offered: Ipv4Addr, server: Ipv4Addr) -> Self {
        Self { kind: DhcpKind::Request, requested: Some(offered), server_id: Some(server), ..self }
    }

    /// The frame.
    #[must_use]
    pub fn message(&self) -> Message {
        let mut message = Message::new(Op::Request, self.xid, self.chaddr);
        message.secs = self.secs;
        message.flags = self.flags;
        message.ciaddr = self.ciaddr;
        let options = &mut message.options;
        let mut put = |code: u8, value: Option<Vec<u8>>| {
            if let Some(value) = value {
                options.set(code, value);
            }
        };
        let address = |address: Ipv4Addr| address.octets().to_vec();
        let list = |list: Vec<u8>| (!list.is_empty()).then_some(list);
        put(code::MESSAGE_TYPE, Some(vec![kind_code(self.kind)]));
        put(code::CLIENT_ID, self.client_id.clone());
        put(code::REQUESTED_ADDRESS, self.requested.map(address));
        put(code::SERVER_ID, self.server_id.map(address));
        put(code::MAX_SIZE, self.max_size.map(|size| size.to_be_bytes().to_vec()));
        put(code::PARAMETERS, list(self.parameters.clone()));
        put(code::HOST_NAME, self.host_name.clone());
        put(code::VENDOR_CLASS, self.vendor_class.clone());
        put(code::USER_CLASS, self.user_class.clone());
        put(code::ARCHITECTURE, list(self.archs.iter().flat_map(|a| a.0.to_be_bytes()).collect()));
        put(code::NETWORK_INTERFACE, self.network_interface.map(|value| value.to_vec()));
        put(code::MACHINE_ID, self.machine_id.map(|id| [&[0], id.as_slice()].concat()));
        put(code::IPXE, self.ipxe.clone());
        message
    }

    /// The datagram.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.message().encode()
    }
}

/// Option 60 as PXE 2.1 spells it.
fn class(name: &str, arch: ClientArch, [_, major, minor]: [u8; 3]) -> Vec<u8> {
    format!("{name}:Arch:{:05}:UNDI:{major:03}{minor:03}", arch.0).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rom_spells_its_class_as_the_standard_does() {
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let rom = ClientMessage::pxe(DhcpKind::Discover, 1, mac, ClientArch(0));
        assert_eq!(rom.vendor_class.unwrap(), b"PXEClient:Arch:00000:UNDI:002001");
        let http = ClientMessage::http_boot(DhcpKind::Discover, 1, mac, ClientArch(16));
        assert_eq!(http.vendor_class.unwrap(), b"HTTPClient:Arch:00016:UNDI:003000");
    }
}
