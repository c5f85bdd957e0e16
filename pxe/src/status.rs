//! What the boot services know of their networks, for page, API and doctor.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use model::{MacAddr, UnixMillis};
pub use pxe_proto::dhcp::PoolUse;

/// A network as the boot services see it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkStatus {
    /// Our own address there.
    pub server: Ipv4Addr,
    /// DHCP messages counted since the start.
    pub dhcp: DhcpCounters,
    /// Other DHCP servers heard there, the latest first.
    pub rivals: Vec<Rival>,
    /// What is wrong with the ground we stand on, and what to do.
    pub findings: Vec<Finding>,
    /// The pool, where there is one.
    pub pool: Option<PoolUse>,
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DhcpCounters {
    /// Datagrams heard.
    pub heard: u64,
    /// OFFERs sent.
    pub offers: u64,
    /// ACKs sent.
    pub acks: u64,
    /// NAKs sent.
    pub naks: u64,
    /// ACKs that went out before their record was on the disk, because the disk took longer than the bound.
    pub late_acks: u64,
    /// DISCOVERs given up because they were older than the client's patience or the queue was full.
    pub dropped_discovers: u64,
    /// REQUESTs given up; not zero means this machine is too small for its lab.
    pub dropped_requests: u64,
}

/// Another DHCP server on a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rival {
    /// Its identifier (option 54).
    pub server: Ipv4Addr,
    /// Its hardware address, where a frame of it was heard.
    pub mac: Option<MacAddr>,
    /// The boot file it names, if any.
    pub file: Option<String>,
    /// When it was heard last.
    pub at: UnixMillis,
}

/// Something about this machine or network that will hurt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is so.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

/// Where the status stands; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Status(Arc<Mutex<Vec<Network>>>);

/// A network, its findings by what they are about.
#[derive(Debug)]
struct Network {
    status: NetworkStatus,
    findings: BTreeMap<About, Finding>,
}

/// What a finding is about. There is one finding about each at most, and it goes when its reason does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum About {
    /// The lease log cannot be written, or was damaged.
    LeaseLog,
    /// Lines of the lease log that could not be read.
    LeaseLogDamage,
    /// The receive buffer of DHCP.
    ReceiveBuffer,
    /// The kernel's neighbour table.
    NeighbourTable,
    /// Descriptors this process may open.
    OpenFiles,
    /// Frames to clients without an address.
    Unicast,
    /// Answers of other DHCP servers.
    Rivals,
    /// Pings before an address is given.
    Conflicts,
    /// Router advertisements.
    Advertisements,
}

impl Status {
    /// Every network, in the order of the listeners.
    #[must_use]
    pub fn networks(&self) -> Vec<NetworkStatus> {
        self.lock().iter().map(Network::told).collect()
    }

    /// Adds a network; its place is its index.
    pub(crate) fn add(&self, server: Ipv4Addr) {
        let status = NetworkStatus {
            server,
            dhcp: DhcpCounters::default(),
            rivals: vec![],
            findings: vec![],
            pool: None,
        };
        self.lock().push(Network { status, findings: BTreeMap::new() });
    }

    /// Changes what is known of the network of an index.
    pub(crate) fn change(&self, network: usize, change: impl FnOnce(&mut NetworkStatus)) {
        if let Some(network) = self.lock().get_mut(network) {
            change(&mut network.status);
        }
    }

    /// Sets a finding of one network, and says so in the log when it is new.
    pub(crate) fn find(&self, network: usize, about: About, finding: Finding) {
        let known = self.lock().get_mut(network).map(|network| {
            (network.status.server, network.findings.insert(about, finding.clone()))
        });
        // Without the lock: a log may be slow, and DHCP counts in here.
        if let Some((server, before)) = known
            && before.as_ref() != Some(&finding)
        {
            let Finding { what, remedy } = &finding;
            tracing::warn!(network = %server, %what, %remedy, "finding");
        }
    }

    /// Takes a finding of one network back.
    pub(crate) fn clear(&self, network: usize, about: About) {
        let gone = self
            .lock()
            .get_mut(network)
            .and_then(|network| Some((network.status.server, network.findings.remove(&about)?)));
        if let Some((server, Finding { what, .. })) = gone {
            tracing::info!(network = %server, %what, "no longer so");
        }
    }

    /// Sets or takes back a finding about what all networks share.
    pub(crate) fn everywhere(&self, about: About, finding: Option<&Finding>) {
        let count = self.lock().len();
        for network in 0..count {
            match finding {
                Some(finding) => self.find(network, about, finding.clone()),
                None => self.clear(network, about),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Network>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Network {
    fn told(&self) -> NetworkStatus {
        NetworkStatus { findings: self.findings.values().cloned().collect(), ..self.status.clone() }
    }
}

impl Finding {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_stands_once_until_its_reason_is_gone() {
        let status = Status::default();
        status.add([192, 0, 2, 1].into());
        status.add([192, 0, 2, 65].into());
        let full = Finding::new("the lease log cannot be written", "make room");
        for _ in 0..2 {
            status.everywhere(About::LeaseLog, Some(&full));
        }
        status.find(1, About::Rivals, Finding::new("no right", "grant it"));
        let findings = || status.networks().into_iter().map(|network| network.findings.len());
        assert_eq!(findings().collect::<Vec<_>>(), [1, 2]);
        status.everywhere(About::LeaseLog, None);
        assert_eq!(findings().collect::<Vec<_>>(), [0, 1]);
        status.find(7, About::Rivals, full);
        status.change(7, |_| panic!("there is none"));
        status.change(0, |network| network.dhcp.acks += 1);
        assert_eq!(status.networks()[0].dhcp.acks, 1);
    }
}
