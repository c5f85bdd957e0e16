//! Boot networks and leases as the API shows them, and the book's copy of the leases.

use std::collections::BTreeMap;

use api::{
    DhcpCountersView, FindingView, LeaseList, LeaseView, NetworkList, NetworkView, PoolView,
    PortsView, RivalView,
};
use inventory::{Record, Writer};
use model::{Lease, MacAddr, NodeName, UnixMillis, boot::DhcpMode, lease::LeaseState};
use profiles::world::now;
use pxe::{Bound, LeaseSink, NetworkStatus};
use tokio::sync::broadcast;
use web::lab::{Changed, Fault};

use super::lab::LiveLab;
use crate::config::Network;

/// Leases the API lists.
const MOST: u32 = 5_000;
/// Leases written together.
const BATCH: usize = 256;

/// Copies leases into the book until the sink's owner stops. Pages look again once for each batch. What cannot be
/// written is told and left out: the truth is the log of the boot services.
pub(super) async fn keep_leases(
    sink: LeaseSink,
    writer: Writer,
    changes: broadcast::Sender<Changed>,
) {
    loop {
        let first = sink.recv().await;
        let more = std::iter::from_fn(|| sink.try_recv()).take(BATCH - 1);
        let batch: Vec<Record> = std::iter::once(first).chain(more).map(Record::Lease).collect();
        let leases = batch.len();
        if let Err(error) = writer.submit(batch).await {
            tracing::warn!(%error, leases, "the book's copy of the leases is behind");
        }
        // Nobody listening is no error.
        drop(changes.send(Changed { node: String::new() }));
    }
}

impl LiveLab {
    pub(super) fn network_list(&self) -> NetworkList {
        let known = self.status.networks();
        let networks = self.config.networks.iter().zip(&known);
        let view = |(network, status): (&Network, &NetworkStatus)| {
            let nodes = self.config.nodes.values();
            let nodes = nodes.filter(|node| node.network == network.name).count();
            network_view(network, status, self.bound.get(&network.name), nodes)
        };
        NetworkList {
            lab: self.config.lab.name.clone(),
            at_ms: now().0,
            networks: networks.map(view).collect(),
        }
    }

    pub(super) async fn lease_list(
        &self,
        network: Option<&str>,
        mac: Option<&str>,
    ) -> Result<LeaseList, Fault> {
        let network = network.map(|name| self.known_network(name)).transpose()?;
        let mac = mac.map(read_mac).transpose()?;
        let leases = inventory::lease::list(&self.store, network, mac, MOST + 1).await;
        let mut leases = leases.map_err(super::lab::store)?;
        let more = leases.len() > MOST as usize;
        leases.truncate(MOST as usize);
        let nodes: BTreeMap<MacAddr, &NodeName> = self
            .config
            .nodes
            .values()
            .flat_map(|node| node.macs.iter().map(|mac| (*mac, &node.name)))
            .collect();
        let now = now();
        let view = |lease: &Lease| lease_view(lease, nodes.get(&lease.mac).copied(), now);
        let leases = leases.iter().map(view).collect();
        Ok(LeaseList { lab: self.config.lab.name.clone(), at_ms: now.0, leases, more })
    }

    fn known_network<'a>(&self, name: &'a str) -> Result<&'a str, Fault> {
        let known = || self.config.networks.iter().map(|network| network.name.as_str());
        if known().any(|known| known == name) {
            return Ok(name);
        }
        let known: Vec<&str> = known().collect();
        let text = format!("there is no network {name:?}; there are: {}", known.join(", "));
        Err(Fault::Unknown(text))
    }
}

fn read_mac(text: &str) -> Result<MacAddr, Fault> {
    text.parse().map_err(|error| Fault::Refused {
        error: format!("{text:?} is no MAC"),
        faults: vec![format!("{error}")],
    })
}

fn network_view(
    network: &Network,
    status: &NetworkStatus,
    bound: Option<&Bound>,
    nodes: usize,
) -> NetworkView {
    let port = |of: fn(&Bound) -> Option<std::net::SocketAddrV4>| {
        bound.and_then(of).map(|address| address.port())
    };
    NetworkView {
        name: network.name.clone(),
        mode: mode(network.dhcp).to_owned(),
        subnet: network.subnet.to_string(),
        server: network.server.to_string(),
        interface: network.interface.clone(),
        router: network.router.map(|router| router.to_string()),
        ports: PortsView {
            dhcp: port(|bound| bound.dhcp),
            proxy: port(|bound| bound.proxy),
            tftp: port(|bound| Some(bound.tftp)).unwrap_or(network.tftp_port),
            http: port(|bound| Some(bound.http)).unwrap_or(network.http_port),
        },
        nodes,
        pool: pool(network, status),
        dhcp: counters(status),
        rivals: status.rivals.iter().map(rival).collect(),
        findings: status.findings.iter().map(finding).collect(),
    }
}

fn mode(mode: DhcpMode) -> &'static str {
    match mode {
        DhcpMode::Full(_) => "full",
        DhcpMode::Reserved => "reserved",
        DhcpMode::Proxy => "proxy",
        DhcpMode::Off => "off",
    }
}

fn pool(network: &Network, status: &NetworkStatus) -> Option<PoolView> {
    let DhcpMode::Full(pool) = network.dhcp else { return None };
    let used = status.pool?;
    Some(PoolView {
        first: pool.first.to_string(),
        last: pool.last.to_string(),
        size: used.size,
        bound: used.bound,
        taken: used.taken,
    })
}

fn counters(status: &NetworkStatus) -> DhcpCountersView {
    let dhcp = status.dhcp;
    DhcpCountersView {
        heard: dhcp.heard,
        offers: dhcp.offers,
        acks: dhcp.acks,
        naks: dhcp.naks,
        late_acks: dhcp.late_acks,
        dropped_discovers: dhcp.dropped_discovers,
        dropped_requests: dhcp.dropped_requests,
    }
}

fn rival(rival: &pxe::Rival) -> RivalView {
    RivalView {
        server: rival.server.to_string(),
        mac: rival.mac.map(|mac| mac.to_string()),
        file: rival.file.clone(),
        at_ms: rival.at.0,
    }
}

fn finding(finding: &pxe::Finding) -> FindingView {
    FindingView { what: finding.what.clone(), remedy: finding.remedy.clone() }
}

/// Stands in a record for a machine nobody could name: one that answered a ping from behind a router.
const NOBODY: MacAddr = MacAddr([0; 6]);

fn lease_view(lease: &Lease, node: Option<&NodeName>, now: UnixMillis) -> LeaseView {
    let state = match lease.state {
        LeaseState::Bound if lease.until <= now => "expired".to_owned(),
        state => state.to_string(),
    };
    LeaseView {
        network: lease.network.clone(),
        address: lease.address.to_string(),
        mac: Some(lease.mac)
            .filter(|mac| *mac != NOBODY)
            .map_or_else(String::new, |mac| mac.to_string()),
        node: node.map(ToString::to_string),
        state,
        since_ms: lease.at.0,
        until_ms: lease.until.0,
        host_name: lease.host_name.clone(),
        location: lease.location.clone(),
    }
}
