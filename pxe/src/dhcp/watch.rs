//! What is looked after beside the answering: whether addresses are free, how full the pools are, and the ground we
//! stand on.

use std::{
    iter,
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use model::{
    BootTable, Sighted,
    boot::{BootNetwork, DhcpMode},
};
use pxe_proto::dhcp::Probed;

use super::{RAW_REMEDY, ground, prober::Prober};
use crate::{
    config::Listener,
    state::{State, now},
    status::{About, Finding, Status},
};

/// How often it is looked for addresses to probe.
const PROBES: Duration = Duration::from_millis(100);
/// Addresses probed at once.
const AT_ONCE: usize = 16;
/// How often the pools are counted.
const POOLS: Duration = Duration::from_secs(1);
/// How often the system's settings are read: the boot table grows, and an administrator may have helped.
const GROUND: Duration = Duration::from_secs(60);

/// A network that is looked after.
#[derive(Debug)]
pub(crate) struct Watched {
    server: Ipv4Addr,
    network: usize,
    prober: Option<Prober>,
}

impl Watched {
    /// A network without the right to ping is not probed, and says so.
    pub(super) fn new(listener: &Listener, network: usize, status: &Status) -> Self {
        let interface = listener.interface.as_deref().filter(|_| listener.checks_conflicts);
        let prober = interface.and_then(|interface| match Prober::open(interface) {
            Ok(prober) => Some(prober),
            Err(error) => {
                let what = format!("addresses are given on {interface} without a ping: {error}");
                status.find(network, About::Conflicts, Finding::new(what, RAW_REMEDY));
                None
            }
        });
        Self { server: listener.server, network, prober }
    }
}

/// Serves until told to stop.
pub(super) fn run(state: &State, mut watched: Vec<Watched>) {
    let (mut pools, mut ground) = (Instant::now(), Instant::now());
    while !state.stop.is_cancelled() {
        let now = Instant::now();
        watched.iter_mut().for_each(|watched| watched.probe(state));
        if pools <= now {
            watched.iter().for_each(|watched| watched.count_pool(state));
            pools = now + POOLS;
        }
        if ground <= now {
            ground::look(&state.status, &state.table.load());
            ground = now + GROUND;
        }
        std::thread::sleep(PROBES);
    }
}

impl Watched {
    /// Probes what may be given away next. Who is found there is told, and the address kept back.
    fn probe(&mut self, state: &State) {
        let Some(prober) = &mut self.prober else { return };
        let table = state.table.load();
        let Some(network) = network_of(&table, self.server) else { return };
        let next = || state.dhcp.leases().to_probe(network, &table, now());
        let asked: Vec<Ipv4Addr> = iter::from_fn(next).take(AT_ONCE).collect();
        if asked.is_empty() {
            return;
        }
        let Some(found) = prober.probe(&asked) else { return };
        for address in asked {
            let used = found.iter().find(|(used, _)| *used == address);
            let probed = used.map_or(Probed::Free, |(_, by)| Probed::Used { by: *by });
            let lease = state.dhcp.leases().probed(network, address, probed, now());
            if let Some(lease) = lease {
                let by = used.and_then(|(_, by)| *by);
                let what = Sighted::AddressTaken { address, by };
                match by.and_then(|by| table.by_mac.get(&by)) {
                    Some(entry) => state.saw(entry, what),
                    None => state.saw_stranger(by, Some(address), what),
                }
                // Nobody waits for this record.
                state.dhcp.record(state, lease, None);
            }
        }
    }

    /// Puts how full the pool is into the status.
    fn count_pool(&self, state: &State) {
        let table = state.table.load();
        let network = network_of(&table, self.server);
        let network = network.filter(|network| matches!(network.mode, DhcpMode::Full(_)));
        let pool = network.map(|network| state.dhcp.leases().pool_use(network, &table, now()));
        state.status.change(self.network, |status| status.pool = pool);
    }
}

/// The network that has this address of ours.
fn network_of(table: &BootTable, server: Ipv4Addr) -> Option<&BootNetwork> {
    table.networks.iter().find(|network| network.server == server)
}
