//! What the boot services know of their networks, for page, API and doctor.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex, PoisonError},
};

use model::{MacAddr, UnixMillis};

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

/// How full a pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolUse {
    /// Addresses it has for strangers.
    pub size: usize,
    /// Given away now.
    pub bound: usize,
    /// Kept back: declined, or another machine was heard there.
    pub taken: usize,
}

/// Where the status stands; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Status(Arc<Mutex<Vec<NetworkStatus>>>);

impl Status {
    /// Every network, in the order of the listeners.
    #[must_use]
    pub fn networks(&self) -> Vec<NetworkStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a network; its place is its index.
    pub(crate) fn add(&self, server: Ipv4Addr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(NetworkStatus {
            server,
            dhcp: DhcpCounters::default(),
            rivals: vec![],
            findings: vec![],
            pool: None,
        });
    }
}
