//! The thread of a DHCP socket: datagrams in, decisions, datagrams out.
//!
//! It answers from the boot table and the leases in memory, and asks nobody. OFFERs leave at once; an ACK waits for
//! its lease on the disk, for as long as the bound says and no longer.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use model::{BootEntry, Sighted, UnixMillis, boot::AttemptId, sighting::DhcpKind};
use pxe_proto::dhcp::{Arrival, Decision, Outcome, Reply, Request, ServerPort};

use super::{
    lease_log::late,
    line::{Line, Outgoing, Whose, post},
    queues::Queues,
    rivals::{self, Seen},
    socket::{BATCH, Buffers, Datagram},
};
use crate::state::{LOOK_UP, State, now};

/// Batches read before some are answered: so a REQUEST that just came overtakes the DISCOVERs before it.
const BATCHES: usize = 16;
/// Messages answered before it is looked who came meanwhile.
const ANSWERS: usize = 64;

/// A datagram that was read.
struct Heard {
    datagram: Datagram,
    request: Request,
}

/// Serves until told to stop.
pub(super) fn run(state: &State, line: &Arc<Line>) {
    let (mut buffers, mut queues) = (Buffers::default(), Queues::default());
    while !state.stop.is_cancelled() {
        if queues.is_empty() {
            line.socket.wait(patience(state));
        }
        read(state, line, &mut buffers, &mut queues);
        let mut outgoing = Vec::with_capacity(ANSWERS);
        for _ in 0..ANSWERS {
            let Some(heard) = queues.pop(Instant::now()) else { break };
            outgoing.extend(handle(state, line, &heard));
        }
        post(state, outgoing);
        late(state, state.dhcp.waiting.overdue(Instant::now()));
        count_dropped(state, line, &mut queues);
    }
}

/// How long to wait for a datagram: until it is time to look at `stop`, or until an ACK has waited long enough.
fn patience(state: &State) -> Duration {
    let overdue = state.dhcp.waiting.next_overdue();
    overdue.map_or(LOOK_UP, |due| due.saturating_duration_since(Instant::now()).min(LOOK_UP))
}

/// Reads what has come, as far as it can be decoded, into the queues.
fn read(state: &State, line: &Line, buffers: &mut Buffers, queues: &mut Queues<Heard>) {
    let (mut count, heard_at) = (0, Instant::now());
    for _ in 0..BATCHES {
        let datagrams = line.socket.receive(buffers);
        let is_last = datagrams.len() < BATCH;
        for datagram in datagrams {
            count += 1;
            match Request::decode(&datagram.payload) {
                Ok(request) if request.kind == DhcpKind::Discover => {
                    queues.push_discover(heard_at, Heard { datagram, request });
                }
                Ok(request) => queues.push_request(Heard { datagram, request }),
                Err(error) => tracing::debug!(from = %datagram.from, %error, "dropped a datagram"),
            }
        }
        if is_last {
            break;
        }
    }
    if count > 0 {
        state.status.change(line.network, |network| network.dhcp.heard += count);
    }
}

fn count_dropped(state: &State, line: &Line, queues: &mut Queues<Heard>) {
    let dropped = queues.take_dropped();
    if dropped.discovers + dropped.requests > 0 {
        state.status.change(line.network, |network| {
            network.dhcp.dropped_discovers += dropped.discovers;
            network.dhcp.dropped_requests += dropped.requests;
        });
    }
}

/// Decides, records, tells; gives the answer unless it waits for the disk.
fn handle(state: &State, line: &Arc<Line>, heard: &Heard) -> Option<Outgoing> {
    let Heard { datagram, request } = heard;
    let arrival = Arrival { from: datagram.from, on: *line.ours.ip(), port: line.service };
    let table = state.table.load();
    let entry = table.by_mac.get(&request.chaddr).map(|entry| state.loops.answered_by(entry));
    let decision = state.dhcp.decide(entry, request, arrival, &table, now());
    if let Some(address) = decision.seen_at {
        state.saw_place(address, request.chaddr);
    }
    let whose = match &decision.entry {
        Some(entry) => {
            let at = now();
            let attempt = attempt(state, request, entry, at);
            let to = std::net::SocketAddrV4::new(datagram.to, line.ours.port());
            state.keep_packet(entry, attempt, datagram.from, to, &datagram.payload);
            state.saw_in(entry, attempt, at, seen(request, line));
            Whose::Node(Arc::clone(entry), attempt)
        }
        None => Whose::Stranger(request.chaddr),
    };
    tell_of_rival(state, line, request, &decision);
    let Decision { outcome, lease, .. } = decision;
    let outgoing = match outcome {
        Outcome::Reply(reply) => Some(outgoing(line, request, *reply, whose)),
        Outcome::Silent { why } => {
            silent(state, request, whose, why);
            None
        }
    };
    match lease {
        Some(lease) => state.dhcp.record(state, lease, outgoing),
        None => outgoing,
    }
}

fn outgoing(line: &Arc<Line>, request: &Request, reply: Reply, whose: Whose) -> Outgoing {
    let Reply { answer, to, note, delay_ms } = reply;
    Outgoing {
        line: Arc::clone(line),
        to,
        payload: answer.encode(request.max_size),
        kind: answer.kind,
        whose,
        told: Sighted::DhcpOut {
            kind: answer.kind,
            xid: request.xid,
            address: answer.yiaddr,
            file: answer.boot_file.map(|file| file.name),
        },
        note,
        delay: Duration::from_millis(delay_ms.into()),
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

fn seen(request: &Request, line: &Line) -> Sighted {
    Sighted::DhcpIn {
        kind: request.kind,
        xid: request.xid,
        client: request.client(),
        relay: request.relay_text(),
        proxy: line.service == ServerPort::Proxy,
    }
}

/// The client chose another server.
fn tell_of_rival(state: &State, line: &Line, request: &Request, decision: &Decision) {
    let Some(server) = decision.rival else { return };
    let (address, client) = (request.requested, request.chaddr);
    let seen = Seen { server, mac: None, client, address, file: None };
    rivals::tell(state, line.network, *line.ours.ip(), seen);
}

/// Why there is no answer, for the timeline of a node or, now and then, of a stranger.
fn silent(state: &State, request: &Request, whose: Whose, why: String) {
    match whose {
        Whose::Node(entry, attempt) => {
            state.saw_in(&entry, attempt, now(), Sighted::DhcpSilent { why });
        }
        Whose::Stranger(mac) => {
            let client = match request.client() {
                client if client.is_empty() => "an operating system".to_owned(),
                client => client,
            };
            let relay = request.relay_text().map(|relay| format!(" through {relay}"));
            let (relay, kind) = (relay.unwrap_or_default(), request.kind);
            let why = format!("{why}: no answer to its {kind} from {client}{relay}");
            state.saw_stranger(Some(mac), None, Sighted::DhcpSilent { why });
        }
    }
}
