//! DHCP messages as a relay passes them on, put together by hand: as cheap as it gets.

use std::net::Ipv4Addr;

/// What a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// UEFI firmware, x64.
    Firmware,
    /// iPXE.
    Ipxe,
}

/// A message of a client that came through the relay at `relay`.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    /// Transaction id.
    pub xid: u32,
    /// Hardware address.
    pub mac: [u8; 6],
    /// Relay.
    pub relay: Ipv4Addr,
    /// Who asks.
    pub client: Client,
}

impl Message {
    /// A DISCOVER.
    pub fn discover(self, out: &mut Vec<u8>) {
        self.begin(1, out);
        self.end(out);
    }

    /// A REQUEST for what was offered.
    pub fn request(self, offer: &Reply, out: &mut Vec<u8>) {
        self.begin(3, out);
        out.extend([50, 4]);
        out.extend(offer.address.octets());
        out.extend([54, 4]);
        out.extend(offer.server.octets());
        self.end(out);
    }

    fn begin(self, kind: u8, out: &mut Vec<u8>) {
        out.clear();
        out.extend([1, 1, 6, 1]);
        out.extend(self.xid.to_be_bytes());
        out.resize(24, 0);
        out.extend(self.relay.octets());
        out.extend(self.mac);
        out.resize(236, 0);
        out.extend([99, 130, 83, 99, 53, 1, kind]);
    }

    fn end(self, out: &mut Vec<u8>) {
        out.extend([57, 2, 0x05, 0xc0]);
        out.extend([55, 9, 1, 3, 6, 12, 43, 54, 60, 66, 67]);
        out.extend([60, 32]);
        out.extend(b"PXEClient:Arch:00007:UNDI:003016");
        out.extend([93, 2, 0, 7, 94, 3, 1, 3, 16]);
        if self.client == Client::Ipxe {
            out.extend([77, 4]);
            out.extend(b"iPXE");
            // It speaks HTTP (19) and starts EFI programs (36).
            out.extend([175, 6, 19, 1, 1, 36, 1, 1]);
        }
        out.push(255);
        out.resize(out.len().max(300), 0);
    }
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Transaction id.
    pub xid: u32,
    /// Message type: 2 is OFFER, 5 is ACK, 6 is NAK.
    pub kind: u8,
    /// The client's address.
    pub address: Ipv4Addr,
    /// Server identifier (option 54).
    pub server: Ipv4Addr,
    /// Boot file: option 67, or the field.
    pub file: String,
}

impl Reply {
    /// Reads an answer; `with_file` costs a little more.
    pub fn read(bytes: &[u8], with_file: bool) -> Option<Self> {
        let address = |at: usize| Some(Ipv4Addr::from(*bytes.get(at..)?.first_chunk::<4>()?));
        let xid = u32::from_be_bytes(*bytes.get(4..)?.first_chunk()?);
        let (mut kind, mut server, mut file) = (0, Ipv4Addr::UNSPECIFIED, String::new());
        let text = |bytes: &[u8]| {
            let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(bytes).into_owned()
        };
        if with_file {
            file = text(bytes.get(108..236)?);
        }
        let mut rest = bytes.get(240..)?;
        while let [code, tail @ ..] = rest {
            if *code == 0 {
                rest = tail;
                continue;
            }
            if *code == 255 {
                break;
            }
            let (length, tail) = tail.split_first()?;
            let (value, tail) = tail.split_at_checked(usize::from(*length))?;
            rest = tail;
            match code {
                53 => kind = *value.first()?,
                54 => server = Ipv4Addr::from(*value.first_chunk::<4>()?),
                67 if with_file => file = text(value),
                _ => (),
            }
        }
        Some(Self { xid, kind, address: address(16)?, server, file })
    }
}
