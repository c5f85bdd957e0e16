//! What all services share: the table, the attempts, the sink, the way to the engine.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use arc_swap::ArcSwap;
use model::{
    BootAnswer, BootEntry, BootTable, MacAddr, Sighted, Sighting, UnixMillis,
    boot::{AttemptId, BootAsk, BootNetwork},
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
        self.places().saw(address, mac);
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node that uses an address, and the network it lies in: by its reservation, or, where another server gives
    /// the addresses, by where the node was seen last. An address declared for a node is never another's by being seen
    /// there: everybody on the wire can say that he is.
    pub(crate) fn entry_at(&self, address: Ipv4Addr) -> Option<(Arc<BootEntry>, BootNetwork)> {
        entry_at(&self.table.load(), address, || self.places().at(address))
    }

    /// The address a node uses, the other way round; `None` where another server gives the addresses and the node was
    /// not seen yet.
    fn address_of(&self, entry: &BootEntry) -> Option<Ipv4Addr> {
        let declared = Some(entry.address).filter(|address| !address.is_unspecified());
        let table = self.table.load();
        let network = declared.and_then(|address| table.network_of(address));
        if network.is_some_and(|network| network.mode.gives_addresses()) {
            return declared;
        }
        let places = self.places();
        entry.macs.iter().find_map(|mac| places.of(*mac)).or(declared)
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
        let peer = self.address_of(entry);
        for what in [Some(what), looped].into_iter().flatten() {
            self.sink.push(Sighting {
                at,
                node: Some(entry.node.clone()),
                mac: entry.macs.first().copied(),
                peer,
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

/// The node at an address, by the table and by who was seen there where another server gives the addresses.
fn entry_at(
    table: &BootTable,
    address: Ipv4Addr,
    seen: impl FnOnce() -> Option<MacAddr>,
) -> Option<(Arc<BootEntry>, BootNetwork)> {
    let network = table.network_of(address)?;
    let declared = table.by_address.get(&address);
    let entry = declared.or_else(|| {
        if network.mode.gives_addresses() {
            return None;
        }
        match seen() {
            Some(mac) => table.by_mac.get(&mac),
            None => table.last_at.get(&address).and_then(|node| table.by_node.get(node)),
        }
    })?;
    Some((Arc::clone(entry), network.clone()))
}

#[cfg(test)]
mod tests {
    use model::{
        BootIntent,
        boot::{BootTraits, DhcpMode},
    };

    use super::*;

    #[test]
    fn an_address_declared_for_a_node_is_not_anothers_by_being_seen_there() {
        let [own, other] = [1, 2].map(|n| MacAddr([2, 0, 0, 0, 0, n]));
        let [declared, free] = [23, 99].map(|last| Ipv4Addr::new(192, 0, 2, last));
        let entry = |name: &str, mac, address| {
            Arc::new(BootEntry {
                node: name.parse().unwrap(),
                macs: vec![mac],
                address,
                intent: BootIntent::Ask,
                attempt: None,
                traits: BootTraits::default(),
            })
        };
        let node = entry("bld-001", own, declared);
        let rival = entry("bld-002", other, Ipv4Addr::UNSPECIFIED);
        let recorded = Ipv4Addr::new(192, 0, 2, 50);
        let mut table = BootTable {
            by_mac: [(own, Arc::clone(&node)), (other, Arc::clone(&rival))].into(),
            by_node: [(rival.node.clone(), Arc::clone(&rival))].into(),
            last_at: [(recorded, rival.node.clone())].into(),
            by_address: [(declared, node)].into(),
            ..BootTable::default()
        };
        let network = |mode| BootNetwork {
            name: "boot".to_owned(),
            subnet: [192, 0, 2, 0].into(),
            prefix: 24,
            server: [192, 0, 2, 1].into(),
            mode,
            unknown_lease_s: 120,
            options: vec![],
            router: None,
            dns: vec![],
            lease_s: 600,
            http: "192.0.2.1:8067".parse().unwrap(),
        };
        let cases = [
            (DhcpMode::Proxy, declared, Some(other), Some("bld-001")),
            (DhcpMode::Proxy, declared, None, Some("bld-001")),
            (DhcpMode::Proxy, free, Some(other), Some("bld-002")),
            (DhcpMode::Proxy, free, Some(own), Some("bld-001")),
            (DhcpMode::Off, free, Some(other), Some("bld-002")),
            (DhcpMode::Proxy, recorded, None, Some("bld-002")),
            (DhcpMode::Proxy, recorded, Some(own), Some("bld-001")),
            (DhcpMode::Reserved, recorded, None, None),
            (DhcpMode::Reserved, free, Some(other), None),
            (DhcpMode::Reserved, declared, Some(other), Some("bld-001")),
        ];
        for (mode, address, seen, want) in cases {
            table.networks = vec![network(mode)];
            let entry = entry_at(&table, address, || seen).map(|(entry, _)| entry);
            assert_eq!(
                entry.as_ref().map(|e| e.node.as_str()),
                want,
                "{mode:?} {address} {seen:?}"
            );
        }
    }
}
