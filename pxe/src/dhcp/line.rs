//! A DHCP service on one network, and the answers that leave by it.
//!
//! Every answer passes [`post`], whoever lets it go: at once, after its record is on the disk, or after a delay. What
//! became of it is told from here.

use std::{
    io,
    net::{Ipv4Addr, SocketAddrV4},
    sync::Arc,
    time::{Duration, Instant},
};

use model::{BootEntry, MacAddr, Sighted, boot::AttemptId, sighting::DhcpKind};
use pxe_proto::{
    dhcp::{Destination, ServerPort},
    frame,
};

use super::{packet_socket::PacketSocket, socket::DhcpSocket};
use crate::state::{State, now};

/// Port clients listen on.
const CLIENT_PORT: u16 = 68;

/// A DHCP socket and what belongs to it.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) socket: DhcpSocket,
    /// For frames to clients without an address; `None`: they are sent broadcasts.
    pub(super) packets: Option<Arc<PacketSocket>>,
    /// Our own address and the port clients send to.
    pub(super) ours: SocketAddrV4,
    /// Which service it is.
    pub(super) service: ServerPort,
    /// Index of the network in the status.
    pub(super) network: usize,
}

/// An answer on its way.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) line: Arc<Line>,
    pub(super) to: Destination,
    pub(super) payload: Vec<u8>,
    pub(super) kind: DhcpKind,
    pub(super) whose: Whose,
    /// What is told once it is out.
    pub(super) told: Sighted,
    /// Why it names no boot file although the client wants one.
    pub(super) note: Option<String>,
    /// How long it is held back.
    pub(super) delay: Duration,
}

/// Whom an answer is for.
#[derive(Debug)]
pub(super) enum Whose {
    Node(Arc<BootEntry>, Option<AttemptId>),
    Stranger(MacAddr),
}

/// Sends answers, or holds them back for as long as their clients need.
pub(super) fn post(state: &State, outgoing: Vec<Outgoing>) {
    let mut ready = Vec::with_capacity(outgoing.len());
    for mut out in outgoing {
        let delay = std::mem::take(&mut out.delay);
        if delay.is_zero() {
            ready.push(out);
        } else {
            ready.extend(state.dhcp.delays.hold(Instant::now(), delay, out));
        }
    }
    for same in ready.chunk_by(|one, other| Arc::ptr_eq(&one.line, &other.line)) {
        if let Some(first) = same.first() {
            first.line.send(state, same);
        }
    }
}

/// Sends what was held back, until told to stop.
pub(super) fn run_delays(state: &State) {
    while !state.stop.is_cancelled() {
        post(state, state.dhcp.delays.due(crate::state::LOOK_UP));
    }
}

impl Line {
    /// Sends answers of this line and tells what became of them.
    fn send(&self, state: &State, answers: &[Outgoing]) {
        let (framed, by_socket): (Vec<_>, Vec<_>) =
            answers.iter().partition(|answer| self.send_framed(answer));
        let datagrams: Vec<(SocketAddrV4, &[u8])> =
            by_socket.iter().map(|answer| (receiver(answer.to), &*answer.payload)).collect();
        let results = self.socket.send(&datagrams);
        let sent = by_socket.into_iter().zip(results).filter_map(|(answer, result)| match result {
            Ok(()) => Some(answer),
            Err(error) => {
                failed(state, answer, &error);
                None
            }
        });
        let sent: Vec<_> = framed.into_iter().chain(sent).collect();
        state.status.change(self.network, |network| {
            for answer in &sent {
                match answer.kind {
                    DhcpKind::Offer => network.dhcp.offers += 1,
                    DhcpKind::Ack => network.dhcp.acks += 1,
                    DhcpKind::Nak => network.dhcp.naks += 1,
                    DhcpKind::Discover
                    | DhcpKind::Request
                    | DhcpKind::Decline
                    | DhcpKind::Release
                    | DhcpKind::Inform => (),
                }
            }
        });
        sent.into_iter().for_each(|answer| self.tell(state, answer));
    }

    /// Sends an answer as a frame to its client's hardware address, if it is one of those and that can be done.
    fn send_framed(&self, answer: &Outgoing) -> bool {
        let (Destination::Hardware { address, mac }, Some(packets)) = (answer.to, &self.packets)
        else {
            return false;
        };
        let to = SocketAddrV4::new(address, CLIENT_PORT);
        let frame = frame::udp_frame(packets.mac(), mac, self.ours, to, &answer.payload);
        // The interface may be down just now; the broadcast after it then says so.
        frame.is_some_and(|frame| packets.send(&frame).is_ok())
    }

    fn tell(&self, state: &State, answer: &Outgoing) {
        match &answer.whose {
            Whose::Node(entry, attempt) => {
                state.keep_packet(
                    entry,
                    *attempt,
                    self.ours,
                    receiver_told(answer.to),
                    &answer.payload,
                );
                state.saw_in(entry, *attempt, now(), answer.told.clone());
                if let Some(why) = answer.note.clone() {
                    state.saw_in(entry, *attempt, now(), Sighted::DhcpSilent { why });
                }
            }
            Whose::Stranger(mac) => state.saw_stranger(Some(*mac), None, answer.told.clone()),
        }
    }
}

/// Where the socket sends an answer: a frame it cannot send becomes a broadcast, which all but some builds of
/// udhcpc take.
fn receiver(to: Destination) -> SocketAddrV4 {
    match to {
        Destination::Address(to) => to,
        Destination::Hardware { .. } | Destination::Broadcast => {
            SocketAddrV4::new(Ipv4Addr::BROADCAST, CLIENT_PORT)
        }
    }
}

/// The receiver as the flight recorder keeps it.
fn receiver_told(to: Destination) -> SocketAddrV4 {
    match to {
        Destination::Hardware { address, .. } => SocketAddrV4::new(address, CLIENT_PORT),
        Destination::Address(_) | Destination::Broadcast => receiver(to),
    }
}

fn failed(state: &State, answer: &Outgoing, error: &io::Error) {
    let to = receiver(answer.to);
    tracing::warn!(%to, %error, "could not send a DHCP answer");
    let what =
        Sighted::DhcpSilent { why: format!("the answer could not be sent to {to}: {error}") };
    match &answer.whose {
        Whose::Node(entry, attempt) => state.saw_in(entry, *attempt, now(), what),
        Whose::Stranger(mac) => state.saw_stranger(Some(*mac), None, what),
    }
}
