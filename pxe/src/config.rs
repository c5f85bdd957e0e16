//! What the boot services are told at start.

use std::{net::Ipv4Addr, path::PathBuf, time::Duration};

use pxe_proto::{
    attempt,
    tftp::{Limits, Wrap},
};

/// Settings of the boot services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PxeConfig {
    /// One for each boot network.
    pub listeners: Vec<Listener>,
    /// Longest boot attempt.
    pub attempt_deadline: Duration,
    /// The most a TFTP client is granted.
    pub tftp: Limits,
    /// File leases are written to and synced before they are acknowledged; `None`: kept in memory only.
    pub lease_log: Option<PathBuf>,
}

impl PxeConfig {
    /// Standard settings for these listeners.
    #[must_use]
    pub fn new(listeners: Vec<Listener>) -> Self {
        Self {
            listeners,
            attempt_deadline: attempt::DEADLINE,
            tftp: Limits::default(),
            lease_log: None,
        }
    }
}

/// Where one boot network is served. Port 0 lets the system choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Our own address on the network; the same as [`model::boot::BootNetwork::server`] there.
    pub server: Ipv4Addr,
    /// The interface to hear broadcasts on. Without one, only datagrams to `server` itself are heard: relayed
    /// ones, as on loopback.
    pub interface: Option<String>,
    /// UDP port of DHCP; 67 but in tests and the demo. `None`: another server gives addresses there, and we are
    /// silent.
    pub dhcp_port: Option<u16>,
    /// UDP port clients ask for their boot file alone (PXE 2.1); 4011 but in tests and the demo. `None`: not served.
    pub proxy_port: Option<u16>,
    /// Whether router advertisements without a prefix are sent, so that iPXE does not wait for IPv6.
    pub advertises: bool,
    /// Whether an address of the pool is pinged before it is given to a machine that never had it.
    pub checks_conflicts: bool,
    /// UDP port of TFTP; 69 but in tests and the demo.
    pub tftp_port: u16,
    /// What follows TFTP block 65,535: 0, or 1 for a few odd clients.
    pub tftp_wrap: Wrap,
    /// TCP port of the boot HTTP service; 8067 by default.
    pub http_port: u16,
}
