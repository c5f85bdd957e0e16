//! Boot networks and leases.

use serde::{Deserialize, Serialize};

/// `GET /api/v1/networks`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkList {
    /// Name of the lab.
    pub lab: String,
    /// When this was put together.
    pub at_ms: i64,
    /// The networks, in the order of the configuration.
    pub networks: Vec<NetworkView>,
}

/// A boot network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkView {
    /// Name.
    pub name: String,
    /// What volund's DHCP does there: `full`, `reserved`, `proxy` or `off`.
    pub mode: String,
    /// Subnet, such as `192.0.2.0/24`.
    pub subnet: String,
    /// volund's own address there.
    pub server: String,
    /// Interface broadcasts are heard on; `null` where only relayed requests come.
    pub interface: Option<String>,
    /// Default router given to nodes.
    pub router: Option<String>,
    /// Where the services are heard.
    pub ports: PortsView,
    /// How many nodes boot there.
    pub nodes: usize,
    /// The addresses for machines nobody declared; `null` where there are none.
    pub pool: Option<PoolView>,
    /// DHCP messages counted since volund started.
    pub dhcp: DhcpCountersView,
    /// Other DHCP servers heard there, the latest first.
    pub rivals: Vec<RivalView>,
    /// What is wrong with the network or this machine, and what to do.
    pub findings: Vec<FindingView>,
}

/// Ports of the boot services; `null` where a service is not offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortsView {
    /// DHCP, 67.
    pub dhcp: Option<u16>,
    /// Requests for the boot file alone, 4011.
    pub proxy: Option<u16>,
    /// TFTP, 69.
    pub tftp: u16,
    /// HTTP boot, 8067.
    pub http: u16,
}

/// A pool and how full it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolView {
    /// The lowest address.
    pub first: String,
    /// The highest address.
    pub last: String,
    /// Addresses it has for strangers.
    pub size: usize,
    /// Given away now.
    pub bound: usize,
    /// Kept back: declined, or another machine was heard there.
    pub taken: usize,
}

/// DHCP messages counted since volund started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DhcpCountersView {
    /// Datagrams heard.
    pub heard: u64,
    /// OFFERs sent.
    pub offers: u64,
    /// ACKs sent.
    pub acks: u64,
    /// NAKs sent.
    pub naks: u64,
    /// ACKs that went out before their record was on the disk.
    pub late_acks: u64,
    /// DISCOVERs given up for lack of time; clients ask again.
    pub dropped_discovers: u64,
    /// REQUESTs given up; not zero means the machine is too small for its lab.
    pub dropped_requests: u64,
}

/// Another DHCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RivalView {
    /// Its identifier.
    pub server: String,
    /// Its hardware address, where a frame of it was heard.
    pub mac: Option<String>,
    /// The boot file it names, if any.
    pub file: Option<String>,
    /// When it was heard last.
    pub at_ms: i64,
}

/// Something that will hurt, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingView {
    /// What is so.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

/// `GET /api/v1/leases[?network=NAME&mac=MAC]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeaseList {
    /// Name of the lab.
    pub lab: String,
    /// When this was put together.
    pub at_ms: i64,
    /// The last state of each address, those that hold longest first; at most 5,000.
    pub leases: Vec<LeaseView>,
    /// Whether there are more than are listed.
    pub more: bool,
}

/// An address and who has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeaseView {
    /// The boot network.
    pub network: String,
    /// The address.
    pub address: String,
    /// The hardware address it was given to; of a `taken` one the machine it was kept from, or that was found there.
    /// Empty where that is not known.
    pub mac: String,
    /// The node with that hardware address, if it is one.
    pub node: Option<String>,
    /// `bound`, `expired`, `released` or `taken`.
    pub state: String,
    /// Since when.
    pub since_ms: i64,
    /// Until when.
    pub until_ms: i64,
    /// What the client calls itself; empty when it says nothing.
    pub host_name: String,
    /// Where it is plugged in, as its relay says, if it came through one.
    pub location: Option<String>,
}
