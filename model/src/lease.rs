//! Leases: who has which address of ours, and until when.

use std::{fmt, net::Ipv4Addr};

use serde::{Deserialize, Serialize};

use crate::{MacAddr, UnixMillis};

/// One address and who has it. A machine has one lease for each network, keyed by its hardware address: ROM, iPXE
/// and operating system call themselves by different client identifiers and get the same address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The boot network.
    pub network: String,
    /// The address.
    pub address: Ipv4Addr,
    /// The hardware address it was given to. For [`LeaseState::Taken`] the one it was kept from.
    pub mac: MacAddr,
    /// What became of it.
    pub state: LeaseState,
    /// When that was so.
    pub at: UnixMillis,
    /// Until when it holds.
    pub until: UnixMillis,
    /// What the client calls itself (option 12), lossy for display; empty when it says nothing.
    pub host_name: String,
    /// Where it is plugged in, as its relay says (giaddr and option 82), if it came through one.
    pub location: Option<String>,
}

/// What became of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeaseState {
    /// Acknowledged: the client uses it.
    Bound,
    /// Given back (RELEASE).
    Released,
    /// Not to be given away until its time: the client declined it, or another machine was heard there.
    Taken,
}

impl fmt::Display for LeaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bound => "bound",
            Self::Released => "released",
            Self::Taken => "taken",
        })
    }
}
