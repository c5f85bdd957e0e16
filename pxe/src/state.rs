//! What all services share: the table, the attempts, the sink, the way to the engine.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use arc_swap::ArcSwap;
use model::{
    BootAnswer, BootEntry, BootTable, MacAddr, Sighted, Sighting, UnixMillis,
    boot::{AttemptId, BootAsk, BootNetwork, DhcpMode},
};
use pxe_proto::attempt::Attempts;
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
};
use tokio_util::sync::CancellationToken;

use crate::{
    calls::BootCall,
    dhcp::Dhcp,
    digests::Digests,
    loops::BootLoops,
    packets::Packet,
    places::Places,
    server::Sinks,
    sightings::SightingSink,
    slots::{Stranger, Strangers},
    status::Status,
};

/// How often a thread that waits for packets looks whether it is to stop.
pub(crate) const LOOK_UP: Duration = Duration::from_millis(200);
/// How long a machine waits for the engine before it boots its disk.
pub(crate) const BOOT_ANSWER: Duration = Duration::from_secs(2);

/// Bytes of a packet that are kept: every DHCP message whole, the head of a block of a file.
const KEPT: usize = 1_500;

/// Shared by the threads of all services.
pub(crate) struct State {
    pub(crate) table: Arc<ArcSwap<BootTable>>,
    pub(crate) attempts: Mutex<Attempts>,
    /// Our addresses on networks where another server gives addresses.
    pub(crate) silent_dhcp: Vec<Ipv4Addr>,
    pub(crate) sink: SightingSink,
    pub(crate) sinks: Sinks,
    pub(crate) status: Status,
    pub(crate) calls: mpsc::Sender<BootCall>,
    pub(crate) runtime: Handle,
    pub(crate) stop: CancellationToken,
    pub(crate) strangers: Mutex<Strangers>,
    /// Where nodes were seen on networks whose addresses another server gives.
    pub(crate) places: Mutex<Places>,
    /// Leases, and what DHCP's threads share.
    pub(crate) dhcp: Dhcp,
    /// SHA-256 of the files that have one declared.
    pub(crate) digests: Digests,
    /// Who is kept out of a boot loop.
    pub(crate) loops: BootLoops,
}

/// The wall clock.
pub(crate) fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl State {
    pub(crate) fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers that a machine uses an address another server gave it.
    pub(crate) fn saw_place(&self, address: Ipv4Addr, mac: MacAddr) {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).saw(address, mac);
    }

    /// The node that uses an address, and the network it lies in: by its reservation, or, where another server gives
    /// the addresses, by where the node was seen last. An address seen counts more there than one declared.
    pub(crate) fn entry_at(&self, address: Ipv4Addr) -> Option<(Arc<BootEntry>, BootNetwork)> {
        let table = self.table.load();
        let network = table.network_of(address)?;
        let is_ours = matches!(network.mode, DhcpMode::Full(_) | DhcpMode::Reserved);
        let place = || self.places.lock().unwrap_or_else(PoisonError::into_inner).at(address);
        let seen = if is_ours { None } else { place() };
        let entry = seen.and_then(|mac| table.by_mac.get(&mac));
        let entry = entry.or_else(|| table.by_address.get(&address))?;
        Some((Arc::clone(entry), network.clone()))
    }

    /// Asks the engine and waits at most `limit`, for a place in the channel and for the answer.
    pub(crate) fn ask<T>(
        &self,
        limit: Duration,
        call: impl FnOnce(oneshot::Sender<T>) -> BootCall,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        let call = call(reply);
        let exchange = async {
            self.calls.send(call).await.ok()?;
            answer.await.ok()
        };
        // The timer has to be made inside the runtime.
        self.runtime.block_on(async { tokio::time::timeout(limit, exchange).await.ok().flatten() })
    }

    /// Asks the engine what a node is to boot that asks with `mac` at `from`, and remembers the kernel of its answer.
    /// `None` when it is late. A node that is kept out of a boot loop boots locally, and nobody is asked.
    pub(crate) fn ask_boot(
        &self,
        entry: &BootEntry,
        (mac, from): (MacAddr, Ipv4Addr),
        attempt: AttemptId,
        at: UnixMillis,
    ) -> Option<BootAnswer> {
        if let Some(why) = self.loops.held(entry) {
            self.attempts().answered(entry, attempt, None);
            return Some(BootAnswer::Local { why });
        }
        let node = entry.node.clone();
        let ask = BootAsk { node, mac, from, attempt, at };
        let answer = self.ask(BOOT_ANSWER, |reply| BootCall::Boot { ask, reply })?;
        let kernel = match &answer {
            BootAnswer::Kernel(script) => Some(script.kernel.as_str()),
            BootAnswer::Local { .. } | BootAnswer::Wait { .. } => None,
        };
        self.attempts().answered(entry, attempt, kernel);
        Some(answer)
    }

    /// Tells what a node did, with the attempt that is open.
    pub(crate) fn saw(&self, entry: &BootEntry, what: Sighted) {
        let at = now();
        let attempt = self.attempts().current(entry, at);
        self.saw_in(entry, attempt, at, what);
    }

    /// Tells what a node did in this attempt.
    pub(crate) fn saw_in(
        &self,
        entry: &BootEntry,
        attempt: Option<AttemptId>,
        at: UnixMillis,
        what: Sighted,
    ) {
        let looped = self.loops.saw(entry, &what, at);
        for what in [Some(what), looped].into_iter().flatten() {
            self.sink.push(Sighting {
                at,
                node: Some(entry.node.clone()),
                mac: entry.macs.first().copied(),
                peer: Some(entry.address),
                attempt: attempt.map(|attempt| attempt.0),
                what,
            });
        }
    }

    /// Tells what an unknown machine did, once a second at most.
    pub(crate) fn saw_stranger(&self, mac: Option<MacAddr>, peer: Option<Ipv4Addr>, what: Sighted) {
        let (at, node, attempt) = (now(), None, None);
        let stranger = match mac {
            Some(mac) => Stranger::Mac(mac.octets()),
            None => Stranger::Address(peer.unwrap_or(Ipv4Addr::UNSPECIFIED)),
        };
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        if strangers.may_tell(stranger, at) {
            self.sink.push(Sighting { at, node, mac, peer, attempt, what });
        }
    }

    /// Keeps a UDP packet of a node's boot, at most [`KEPT`] bytes of it.
    pub(crate) fn keep_packet(
        &self,
        entry: &BootEntry,
        attempt: Option<AttemptId>,
        from: SocketAddrV4,
        to: SocketAddrV4,
        payload: &[u8],
    ) {
        let Some(mac) = entry.macs.first().copied() else { return };
        self.sinks.packets.push(Packet {
            at: now(),
            node: entry.node.clone(),
            attempt: attempt.map(|attempt| attempt.0),
            mac,
            from,
            to,
            payload: payload.get(..payload.len().min(KEPT)).unwrap_or_default().to_vec(),
            length: payload.len(),
        });
    }

    /// Tells what was seen at an address, of a node or of a stranger.
    pub(crate) fn saw_at(&self, address: Ipv4Addr, what: Sighted) {
        match self.entry_at(address) {
            Some((entry, _)) => self.saw(&entry, what),
            None => self.saw_stranger(None, Some(address), what),
        }
    }
}
