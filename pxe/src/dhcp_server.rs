//! The DHCP thread of a listener: datagram in, decision, datagram out.
//!
//! It answers from the table alone and asks nobody. Broadcast answers go by an ordinary socket: it has no raw
//! socket yet, so a client without an address is answered by broadcast even when it asked for unicast.

use std::{
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket},
    sync::Arc,
};

use model::{BootEntry, Sighted, UnixMillis, boot::AttemptId, sighting::DhcpKind};
use pxe_proto::dhcp::{Arrival, Destination, Leases, Outcome, Reply, Request, ServerPort, decide};

use crate::state::{State, now};

/// Longest datagram read; a longer one is cut and refused.
const MAX_DATAGRAM: usize = 4096;

/// Serves until told to stop.
pub(crate) fn run(state: &State, socket: &UdpSocket, server: Ipv4Addr) {
    let mut buffer = [0; MAX_DATAGRAM];
    let mut leases = Leases::new();
    while !state.stop.is_cancelled() {
        // A time-out is the moment to look at `stop`; an ICMP error belongs to an earlier answer.
        let Ok((length, SocketAddr::V4(from))) = socket.recv_from(&mut buffer) else { continue };
        let datagram = buffer.get(..length).unwrap_or_default();
        let arrival = Arrival { from, on: server, port: ServerPort::Dhcp };
        handle(state, socket, arrival, &mut leases, datagram);
    }
}

fn handle(
    state: &State,
    socket: &UdpSocket,
    arrival: Arrival,
    leases: &mut Leases,
    datagram: &[u8],
) {
    let request = match Request::decode(datagram) {
        Ok(request) => request,
        Err(error) => {
            tracing::debug!(from = %arrival.from, %error, "dropped a datagram");
            return;
        }
    };
    let decision = decide(&request, arrival, &state.table.load(), leases, now());
    match decision.entry {
        Some(entry) => answer(state, socket, &request, &entry, decision.outcome),
        None => tell_of_stranger(state, &request, decision.outcome),
    }
}

/// Sends what was decided for a known node, and tells both packets.
fn answer(
    state: &State,
    socket: &UdpSocket,
    request: &Request,
    entry: &Arc<BootEntry>,
    outcome: Outcome,
) {
    let at = now();
    let attempt = attempt(state, request, entry, at);
    state.saw_in(entry, attempt, at, seen(request));
    match outcome {
        Outcome::Silent { why } => {
            state.saw_in(entry, attempt, at, Sighted::DhcpSilent { why });
        }
        Outcome::Reply(reply) => {
            let what = send(socket, request, &reply);
            state.saw_in(entry, attempt, now(), what);
            if let Some(why) = reply.note {
                state.saw_in(entry, attempt, now(), Sighted::DhcpSilent { why });
            }
        }
    }
}

/// The attempt the request belongs to: firmware begins or continues one, a system at most belongs to one.
fn attempt(
    state: &State,
    request: &Request,
    entry: &BootEntry,
    at: UnixMillis,
) -> Option<AttemptId> {
    let asks = matches!(request.kind, DhcpKind::Discover | DhcpKind::Request);
    if asks && request.stage.is_firmware() {
        Some(state.attempts().at_firmware(entry, at))
    } else {
        state.attempts().current(entry, at)
    }
}

fn seen(request: &Request) -> Sighted {
    Sighted::DhcpIn {
        kind: request.kind,
        xid: request.xid,
        client: request.client(),
        relay: request.relay_text(),
        proxy: false,
    }
}

/// Sends the answer; gives what happened.
fn send(socket: &UdpSocket, request: &Request, reply: &Reply) -> Sighted {
    let to = match reply.to {
        Destination::Address(to) => to,
        Destination::Hardware { .. } | Destination::Broadcast => {
            SocketAddrV4::new(Ipv4Addr::BROADCAST, 68)
        }
    };
    match socket.send_to(&reply.answer.encode(request.max_size), to) {
        Ok(_) => Sighted::DhcpOut {
            kind: reply.answer.kind,
            xid: request.xid,
            address: reply.answer.yiaddr,
            file: reply.answer.boot_file.as_ref().map(|file| file.name.clone()),
        },
        Err(error) => {
            tracing::warn!(to = %to, %error, "could not send a DHCP answer");
            Sighted::DhcpSilent {
                why: format!("the answer could not be sent to {to}: {error}"),
            }
        }
    }
}

fn tell_of_stranger(state: &State, request: &Request, outcome: Outcome) {
    let Outcome::Silent { why } = outcome else { return };
    let client = match request.client() {
        client if client.is_empty() => "an operating system".to_owned(),
        client => client,
    };
    let relay = request.relay_text().map(|relay| format!(" through {relay}")).unwrap_or_default();
    let why = format!("{why}: no answer to its {} from {client}{relay}", request.kind);
    state.saw_stranger(Some(request.chaddr), None, Sighted::DhcpSilent { why });
}
