//! The boot interface: found by its hardware address, given its IPv4 address over rtnetlink (rtnetlink(7)).
//!
//! Netlink rather than ioctls: messages are plain bytes, so nothing here is unsafe.

use std::{io, net::Ipv4Addr, os::fd::OwnedFd, path::Path, time::Duration};

use model::MacAddr;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect,
    netlink::SocketAddrNetlink,
    recv, send, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};

use crate::collect::{self, ethernet_names};

/// The interface the machine booted from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BootNic {
    /// Kernel name.
    pub(crate) name: String,
    /// Kernel index.
    pub(crate) index: u32,
    /// Hardware address.
    pub(crate) mac: MacAddr,
}

/// The interface with `mac`, or the first one by name where the boot script named none.
pub(crate) fn find_boot_nic(root: &Path, mac: Option<MacAddr>) -> Option<BootNic> {
    let nics = ethernet_names(root).into_iter().filter_map(|name| {
        let folder = root.join("sys/class/net").join(&name);
        let index = collect::text(&folder.join("ifindex"))?.parse().ok()?;
        let own = collect::text(&folder.join("address"))?.parse().ok()?;
        Some(BootNic { name, index, mac: own })
    });
    let mut wanted = nics.filter(|nic| mac.is_none_or(|mac| mac == nic.mac));
    wanted.next()
}

/// One sentence for the console: which interface is missing and which ones are there.
pub(crate) fn why_no_nic(root: &Path, mac: Option<MacAddr>) -> String {
    let wanted = mac.map_or_else(|| "any interface".to_owned(), |mac| format!("interface {mac}"));
    let found = ethernet_names(root).join(", ");
    let found = if found.is_empty() { "none at all" } else { &found };
    format!(
        "waiting for {wanted}; found: {found}. If this lasts, the image lacks its driver: \
         name it with `volund image build agent --module NAME`"
    )
}

/// Whether the interface is up and has a link.
pub(crate) fn has_carrier(root: &Path, name: &str) -> bool {
    let carrier = root.join("sys/class/net").join(name).join("carrier");
    collect::text(&carrier).as_deref() == Some("1")
}

/// Sets the interface up, gives it its address and, if named, a default route.
///
/// # Errors
/// When the kernel refuses one of the three or does not answer.
pub(crate) fn configure(
    index: u32,
    address: Ipv4Addr,
    prefix: u8,
    gateway: Option<Ipv4Addr>,
) -> io::Result<()> {
    // Protocol 0 is NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(5)))?;
    connect(&socket, &SocketAddrNetlink::new(0, 0))?;
    exchange(&socket, &message::link_up(index))?;
    exchange(&socket, &message::new_address(index, address, prefix))?;
    match gateway {
        Some(gateway) => exchange(&socket, &message::default_route(index, gateway)),
        None => Ok(()),
    }
}

fn exchange(socket: &OwnedFd, request: &[u8]) -> io::Result<()> {
    send(socket, request, SendFlags::empty())?;
    let mut answer = [0; 4096];
    let (length, _) = recv(socket, &mut answer, RecvFlags::empty())?;
    message::read_ack(answer.get(..length).unwrap_or_default())
}

/// Bytes of rtnetlink messages; native byte order throughout.
mod message {
    use std::{io, net::Ipv4Addr};

    const NLMSG_ERROR: u16 = 2;
    const RTM_NEWLINK: u16 = 16;
    const RTM_NEWADDR: u16 = 20;
    const RTM_NEWROUTE: u16 = 24;
    const NLM_F_REQUEST_ACK: u16 = 0x1 | 0x4;
    const NLM_F_CREATE_REPLACE: u16 = 0x400 | 0x100;
    const AF_INET: u8 = 2;
    const IFF_UP: u32 = 1;
    const IFA_ADDRESS: u16 = 1;
    const IFA_LOCAL: u16 = 2;
    const IFA_BROADCAST: u16 = 4;
    const RTA_OIF: u16 = 4;
    const RTA_GATEWAY: u16 = 5;
    const RT_TABLE_MAIN: u8 = 254;
    const RTPROT_STATIC: u8 = 4;
    const RT_SCOPE_UNIVERSE: u8 = 0;
    const RTN_UNICAST: u8 = 1;

    /// RTM_NEWLINK with a `struct ifinfomsg` that sets IFF_UP and touches no other flag.
    pub(super) fn link_up(index: u32) -> Vec<u8> {
        let mut body = vec![0; 4];
        for word in [index, IFF_UP, IFF_UP] {
            body.extend(word.to_ne_bytes());
        }
        whole(RTM_NEWLINK, NLM_F_REQUEST_ACK, &body)
    }

    /// RTM_NEWADDR with a `struct ifaddrmsg`.
    pub(super) fn new_address(index: u32, address: Ipv4Addr, prefix: u8) -> Vec<u8> {
        let mut body = vec![AF_INET, prefix, 0, RT_SCOPE_UNIVERSE];
        body.extend(index.to_ne_bytes());
        let host_bits = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
        let broadcast = Ipv4Addr::from(u32::from(address) | host_bits);
        attribute(&mut body, IFA_LOCAL, address.octets());
        attribute(&mut body, IFA_ADDRESS, address.octets());
        // RFC 3021: a /31 has no broadcast address, and a /32 no net.
        if prefix < 31 {
            attribute(&mut body, IFA_BROADCAST, broadcast.octets());
        }
        whole(RTM_NEWADDR, NLM_F_REQUEST_ACK | NLM_F_CREATE_REPLACE, &body)
    }

    /// RTM_NEWROUTE with a `struct rtmsg`.
    pub(super) fn default_route(index: u32, gateway: Ipv4Addr) -> Vec<u8> {
        let mut body = vec![AF_INET, 0, 0, 0, RT_TABLE_MAIN];
        body.extend([RTPROT_STATIC, RT_SCOPE_UNIVERSE, RTN_UNICAST, 0, 0, 0, 0]);
        attribute(&mut body, RTA_GATEWAY, gateway.octets());
        attribute(&mut body, RTA_OIF, index.to_ne_bytes());
        whole(RTM_NEWROUTE, NLM_F_REQUEST_ACK | NLM_F_CREATE_REPLACE, &body)
    }

    /// Reads a `struct nlmsgerr`: code 0 is the acknowledgement.
    pub(super) fn read_ack(answer: &[u8]) -> io::Result<()> {
        let kind = answer.get(4..6).and_then(|two| two.try_into().ok()).map(u16::from_ne_bytes);
        let code = answer.get(16..20).and_then(|four| four.try_into().ok()).map(i32::from_ne_bytes);
        match (kind, code) {
            (Some(NLMSG_ERROR), Some(0)) => Ok(()),
            (Some(NLMSG_ERROR), Some(code)) => {
                Err(io::Error::from_raw_os_error(code.saturating_neg()))
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "no acknowledgement came")),
        }
    }

    /// A `struct rtattr` with four bytes of payload, which need no padding.
    fn attribute(body: &mut Vec<u8>, kind: u16, payload: [u8; 4]) {
        body.extend(8_u16.to_ne_bytes());
        body.extend(kind.to_ne_bytes());
        body.extend(payload);
    }

    /// `struct nlmsghdr` in front of `body`.
    fn whole(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len().saturating_add(16)).expect("tens of bytes");
        let mut message = length.to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend([0; 8]);
        message.extend(body);
        message
    }

    #[cfg(test)]
    mod tests {
        use proptest::prelude::*;

        use super::*;

        #[test]
        #[cfg(target_endian = "little")]
        fn messages_have_the_bytes_of_rtnetlink() {
            let address = Ipv4Addr::new(192, 0, 2, 77);
            let cases = [
                (link_up(2), "2000000010000500000000000000000000000000020000000100000001000000"),
                (
                    new_address(2, address, 24),
                    "300000001400050500000000000000000218000002000000\
                     08000200c000024d08000100c000024d08000400c00002ff",
                ),
                (
                    default_route(2, Ipv4Addr::new(192, 0, 2, 1)),
                    "2c00000018000505000000000000000002000000fe04000100000000\
                     08000500c00002010800040002000000",
                ),
            ];
            for (bytes, want) in cases {
                assert_eq!(model::hex::encode(&bytes), want);
            }
            assert_eq!(new_address(2, address, 31).len(), 40, "no broadcast in a /31");
        }

        #[test]
        fn a_refusal_of_the_kernel_keeps_its_number() {
            let mut answer = [0; 36];
            answer[4] = 2;
            assert!(read_ack(&answer).is_ok());
            answer[16..20].copy_from_slice(&(-1_i32).to_ne_bytes());
            assert_eq!(read_ack(&answer).unwrap_err().raw_os_error(), Some(1));
            assert!(read_ack(&answer[..18]).is_err());
        }

        proptest! {
            #[test]
            fn no_answer_makes_it_panic(answer: Vec<u8>) {
                let _outcome = read_ack(&answer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::fake::Tree;

    #[test]
    fn the_boot_interface_is_found_by_its_address_and_not_by_its_name() {
        let tree = Tree::new();
        tree.nic("eth0", "52:54:00:00:00:01", "2");
        tree.nic("eth1", "52:54:00:00:00:02", "3");
        let second = MacAddr([0x52, 0x54, 0, 0, 0, 2]);
        let found = find_boot_nic(tree.root(), Some(second)).unwrap();
        assert_eq!((found.name.as_str(), found.index), ("eth1", 3));
        assert_eq!(find_boot_nic(tree.root(), None).unwrap().name, "eth0");
        let absent = MacAddr([0x52, 0x54, 0, 0, 0, 9]);
        assert_eq!(find_boot_nic(tree.root(), Some(absent)), None);
        let said = why_no_nic(tree.root(), Some(absent));
        assert!(said.contains("52:54:00:00:00:09") && said.contains("eth0, eth1"), "{said}");
    }

    #[test]
    fn a_link_is_a_carrier_of_one() {
        let tree = Tree::new();
        tree.nic("eth0", "52:54:00:00:00:01", "2");
        assert!(!has_carrier(tree.root(), "eth0"));
        tree.file("sys/class/net/eth0/carrier", "1\n");
        assert!(has_carrier(tree.root(), "eth0"));
    }
}
