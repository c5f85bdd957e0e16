//! Looks whether an address is really free before it is given to a machine that never had it: a ping, and what the
//! kernel's neighbour table then says. A machine that drops pings still answers ARP.
//!
//! It runs beside the answering: an answer never waits for it.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, UdpSocket},
    time::{Duration, Instant},
};

use model::MacAddr;
use pxe_proto::frame;
use socket2::{Domain, Protocol, Socket, Type};

/// How long an answer is waited for; ARP asks once a second, and a machine on the segment answers in milliseconds.
const ANSWER: Duration = Duration::from_millis(500);
/// How long one read waits within that.
const READ: Duration = Duration::from_millis(50);

/// Pings on one interface.
#[derive(Debug)]
pub(super) struct Prober {
    /// A raw ICMP socket: the standard library's type sends and hears on it as on any other.
    socket: UdpSocket,
    interface: String,
    identifier: u16,
    sequence: u16,
}

impl Prober {
    /// # Errors
    /// Without CAP_NET_RAW.
    pub(super) fn open(interface: &str) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?;
        socket.bind_device(Some(interface.as_bytes()))?;
        socket.set_read_timeout(Some(READ))?;
        // Any number: it only tells our echoes from those of `ping` on this machine.
        let identifier = u16::try_from(std::process::id() & 0xffff).unwrap_or_default();
        let interface = interface.to_owned();
        Ok(Self { socket: socket.into(), interface, identifier, sequence: 0 })
    }

    /// Pings these addresses, all at once; gives those that are in use, and by whom where that is known. `None`: no echo
    /// could be sent, and nothing is known.
    pub(super) fn probe(
        &mut self,
        addresses: &[Ipv4Addr],
    ) -> Option<Vec<(Ipv4Addr, Option<MacAddr>)>> {
        let before = self.neighbours();
        self.sequence = self.sequence.wrapping_add(1);
        let echo = frame::echo_request(self.identifier, self.sequence);
        // One fails for an address nobody can be at; all fail where the interface is down, and that says nothing.
        let sent = addresses.iter().map(|address| self.socket.send_to(&echo, (*address, 0)));
        if sent.filter(Result::is_ok).count() == 0 {
            return None;
        }
        let answered = self.answers(addresses.len());
        let after = self.neighbours();
        let found = addresses.iter().filter_map(|address| {
            let by = mac_of(&after, *address);
            // An entry from before may be of a machine that left.
            let is_new = by.is_some() && mac_of(&before, *address).is_none();
            (answered.contains(address) || is_new).then_some((*address, by))
        });
        Some(found.collect())
    }

    /// Addresses that answered, until all have or the time is up.
    fn answers(&self, all: usize) -> Vec<Ipv4Addr> {
        let (end, mut answered, mut packet) = (Instant::now() + ANSWER, vec![], [0; 128]);
        while answered.len() < all && Instant::now() < end {
            let Ok((length, from)) = self.socket.recv_from(&mut packet) else { continue };
            let reply =
                frame::echo_reply(packet.get(..length).unwrap_or_default(), self.identifier);
            if let Some(address) = reply
                && IpAddr::V4(address) == from.ip()
                && !answered.contains(&address)
            {
                answered.push(address);
            }
        }
        answered
    }

    /// The kernel's neighbour table of our interface.
    fn neighbours(&self) -> Vec<(Ipv4Addr, MacAddr)> {
        let table = fs::read_to_string("/proc/thread-self/net/arp").unwrap_or_default();
        complete(&table, &self.interface)
    }
}

fn mac_of(neighbours: &[(Ipv4Addr, MacAddr)], address: Ipv4Addr) -> Option<MacAddr> {
    neighbours.iter().find(|(known, _)| *known == address).map(|(_, mac)| *mac)
}

/// The complete entries of `/proc/thread-self/net/arp` on an interface.
fn complete(table: &str, interface: &str) -> Vec<(Ipv4Addr, MacAddr)> {
    let rows = table.lines().skip(1).filter_map(|row| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let [address, _kind, flags, mac, _mask, device] = fields[..] else { return None };
        let flags = u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok()?;
        // ATF_COM: an entry without an answer has all zeros for an address.
        (flags & 2 != 0 && device == interface)
            .then(|| Some((address.parse().ok()?, mac.parse().ok()?)))?
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_entries_of_our_interface_count() {
        let table = "\
IP address       HW type     Flags       HW address            Mask     Device
192.0.2.7        0x1         0x2         02:00:00:00:00:07     *        eth1
192.0.2.8        0x1         0x0         00:00:00:00:00:00     *        eth1
192.0.2.9        0x1         0x6         02:00:00:00:00:09     *        eth1
192.0.2.10       0x1         0x2         02:00:00:00:00:0a     *        eth0
spoilt
";
        let known = complete(table, "eth1");
        assert_eq!(mac_of(&known, [192, 0, 2, 7].into()), Some(MacAddr([2, 0, 0, 0, 0, 7])));
        assert_eq!(known.len(), 2);
        assert_eq!(mac_of(&known, [192, 0, 2, 9].into()), Some(MacAddr([2, 0, 0, 0, 0, 9])));
        assert_eq!(complete("", "eth1"), []);
    }
}
