//! Other DHCP servers on a segment.
//!
//! Their answers are heard as frames: broadcasts, and frames to this machine. What a switch carries to another port
//! only, and what goes to a relay elsewhere, is not heard; so a DISCOVER of our own, with a hardware address nobody
//! has, asks them to speak up, at start and every ten minutes. A rival is named, never fought.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddrV4},
    sync::Arc,
    time::{Duration, Instant},
};

use model::{BootTable, MacAddr, Sighted, boot::DhcpMode, sighting::DhcpKind};
use pxe_proto::{
    dhcp::{Answer, BROADCAST, ClientMessage},
    frame::{self, EVERYBODY, Heard},
};

use super::packet_socket::PacketSocket;
use crate::{
    state::{State, now},
    status::Rival,
};

/// How often other servers are asked to speak up.
const PERIOD: Duration = Duration::from_secs(600);
/// How often the same server is told about to the same client's timeline.
const QUIET: Duration = Duration::from_secs(30);
/// Pairs of client and server remembered; beyond, all are forgotten and told about again.
const REMEMBERED: usize = 4096;
/// Servers named at most; the one longest silent goes.
const NAMED: usize = 16;
/// Letters kept of the boot file another server names.
const NAME: usize = 128;
/// Bytes 2 to 6 of the hardware address we ask with: locally administered, and `volun`, for a person who finds it in
/// another server's log.
const OURS: [u8; 6] = [0x02, b'v', b'o', b'l', b'u', b'n'];

/// Which client was told about which server, and when.
#[derive(Debug, Default)]
pub(super) struct Told(BTreeMap<(MacAddr, Ipv4Addr), Instant>);

impl Told {
    /// Whether it is time to tell of this pair; remembers it if so.
    fn may_tell(&mut self, client: MacAddr, server: Ipv4Addr, now: Instant) -> bool {
        let last = self.0.get(&(client, server));
        if last.is_some_and(|last| now.saturating_duration_since(*last) < QUIET) {
            return false;
        }
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        self.0.insert((client, server), now);
        true
    }
}

/// What is known of another server by one answer of it, or by a client that chose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) server: Ipv4Addr,
    pub(super) mac: Option<MacAddr>,
    pub(super) client: MacAddr,
    pub(super) address: Option<Ipv4Addr>,
    pub(super) file: Option<String>,
}

/// Puts another server into the status of a network, and into the timeline of its client.
pub(super) fn tell(state: &State, network: usize, ours: Ipv4Addr, seen: Seen) {
    let Seen { server, mac, client, address, file } = seen;
    if server == ours {
        return;
    }
    let mut is_new = false;
    state.status.change(network, |status| {
        let known = status.rivals.iter().position(|rival| rival.server == server);
        // A flood of invented servers must not fill the log: those named at once are the most that are announced.
        is_new = known.is_none() && status.rivals.len() < NAMED;
        let old = known.map(|place| status.rivals.remove(place));
        // A client that chose it says neither address nor file of it: what was heard stays.
        let mac = mac.or(old.as_ref().and_then(|old| old.mac));
        let file = file.clone().or(old.and_then(|old| old.file));
        status.rivals.insert(0, Rival { server, mac, file, at: now() });
        status.rivals.truncate(NAMED);
    });
    let table = state.table.load();
    if is_new {
        announce(&table, ours, server, file.as_deref());
    }
    if !state.dhcp.told().may_tell(client, server, Instant::now()) {
        return;
    }
    let what = Sighted::Rival { server, address, file };
    match table.by_mac.get(&client) {
        Some(entry) => state.saw(entry, what),
        None => state.saw_stranger(Some(client), None, what),
    }
}

/// A line in the log: a warning where we give the addresses, else what was to be expected.
fn announce(table: &BootTable, ours: Ipv4Addr, server: Ipv4Addr, file: Option<&str>) {
    let network = table.networks.iter().find(|network| network.server == ours);
    if network.is_some_and(|network| network.mode == DhcpMode::Proxy) {
        tracing::info!(%server, ?file, network = %ours, "the DHCP server of this network");
    } else {
        tracing::warn!(
            %server, ?file, network = %ours,
            "another DHCP server is on this network: machines may take its answers instead of ours; switch it off, \
             or set dhcp = \"proxy\" for this network"
        );
    }
}

/// Listens for other servers, and asks them to speak up, until told to stop.
pub(super) fn run(
    state: &State,
    network: usize,
    ours: Ipv4Addr,
    hearing: &PacketSocket,
    sending: &Arc<PacketSocket>,
) {
    let mut next = Instant::now();
    let mut xid = u32::try_from(now().0 & 0x7fff_ffff).unwrap_or(1);
    while !state.stop.is_cancelled() {
        // Until the table is filled, nobody can tell a rival from the server a proxy stands beside.
        let is_known = !state.table.load().networks.is_empty();
        if is_known && next <= Instant::now() {
            xid = xid.wrapping_add(1);
            if let Some(frame) = question(sending.mac(), xid)
                && let Err(error) = sending.send(&frame)
            {
                tracing::debug!(network = %ours, %error, "could not ask for other DHCP servers");
            }
            next = Instant::now() + PERIOD;
        }
        if let Some(seen) = hearing.hear(|heard| answer(&heard)).filter(|_| is_known) {
            tell(state, network, ours, seen);
        }
    }
}

/// A DISCOVER as a frame from our own hardware address; only the client it names is nobody.
fn question(ours: MacAddr, xid: u32) -> Option<Vec<u8>> {
    let mut discover = ClientMessage::system(DhcpKind::Discover, xid, MacAddr(OURS));
    discover.flags = BROADCAST;
    let payload = discover.message().encode();
    let from = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 68);
    let to = SocketAddrV4::new(Ipv4Addr::BROADCAST, 67);
    frame::udp_frame(ours, EVERYBODY, from, to, &payload)
}

/// What an answer of a server says.
fn answer(heard: &Heard<'_>) -> Option<Seen> {
    let answer = Answer::decode(heard.payload).ok()?;
    matches!(answer.kind, DhcpKind::Offer | DhcpKind::Ack).then(|| Seen {
        server: answer.server_id,
        // Through a relay the frame is the relay's.
        mac: (*heard.from.ip() == answer.server_id).then_some(heard.mac),
        client: answer.chaddr,
        address: (!answer.yiaddr.is_unspecified()).then_some(answer.yiaddr),
        file: answer.boot_file.map(|file| shown(&file.name)),
    })
}

/// A name from the wire for log, page and terminal.
fn shown(name: &str) -> String {
    let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    name.chars().take(NAME).map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_told_of_a_server_now_and_then_and_the_memory_is_bounded() {
        let (mut told, begin) = (Told::default(), Instant::now());
        let (client, server) = (MacAddr([2, 0, 0, 0, 0, 1]), [192, 0, 2, 2].into());
        let at = |seconds| begin + Duration::from_secs(seconds);
        let pairs = [0, 1, 29, 30, 31].map(|second| told.may_tell(client, server, at(second)));
        assert_eq!(pairs, [true, false, false, true, false]);
        for n in 0..10_000_u32 {
            told.may_tell(client, n.into(), at(31));
        }
        assert!(told.0.len() <= REMEMBERED);
    }

    #[test]
    fn the_boot_file_of_another_server_is_short_and_without_control_characters() {
        let name = format!("\u{1b}[2J\n{}", "a".repeat(3_000));
        assert_eq!(shown(&name), format!("\u{fffd}[2J\u{fffd}{}", "a".repeat(NAME - 5)));
        assert_eq!(shown("snponly.efi"), "snponly.efi");
    }

    #[test]
    fn our_question_is_a_broadcast_of_a_client_that_is_nobody() {
        let ours = MacAddr([2, 0, 0, 0, 0, 9]);
        let frame = question(ours, 7).unwrap();
        let heard = frame::udp_of_frame(&frame).unwrap();
        let request = pxe_proto::dhcp::Request::decode(heard.payload).unwrap();
        assert_eq!((&frame[..6], heard.mac), (&[0xff; 6][..], ours));
        assert_eq!((request.kind, request.flags), (DhcpKind::Discover, BROADCAST));
        assert_eq!(request.chaddr.to_string(), "02:76:6f:6c:75:6e");
        assert_eq!(heard.to.to_string(), "255.255.255.255:67");
    }
}
