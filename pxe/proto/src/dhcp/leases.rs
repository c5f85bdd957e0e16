//! Who has which address of ours. Keyed by network and hardware address; time is an argument.

use std::{collections::BTreeMap, net::Ipv4Addr};

use model::{BootTable, Lease, MacAddr, UnixMillis, boot::BootNetwork};

/// Who was found at an address that was pinged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probed {
    /// Nobody answered.
    Free,
    /// Somebody did.
    Used {
        /// The hardware address, where it is known.
        by: Option<MacAddr>,
    },
}

/// How full a pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolUse {
    /// Addresses it has for strangers: reservations and our own are not counted.
    pub size: usize,
    /// Given away now.
    pub bound: usize,
    /// Kept back: declined, or another machine was heard there.
    pub taken: usize,
}

/// Leases of all networks.
#[derive(Debug, Default)]
pub struct Leases {
    records: BTreeMap<(String, Ipv4Addr), Lease>,
}

impl Leases {
    /// Without any.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a line of the log; the last one of an address counts.
    pub fn replay(&mut self, lease: Lease) {
        self.records.insert((lease.network.clone(), lease.address), lease);
    }

    /// The last record of each address: what a log written anew has to hold. Those that ran out are among them, for
    /// a machine gets the address again that it had.
    pub fn live(&self) -> impl Iterator<Item = &Lease> {
        self.records.values()
    }

    /// How full the pool of a network is; all zero where there is none.
    #[must_use]
    pub fn pool_use(
        &self,
        _network: &BootNetwork,
        _table: &BootTable,
        _now: UnixMillis,
    ) -> PoolUse {
        PoolUse::default()
    }

    /// An address that may be given away next and was not pinged lately; `None`: enough are known to be free. Each
    /// one is told once, and wants an answer by [`Self::probed`].
    pub fn to_probe(
        &mut self,
        _network: &BootNetwork,
        _table: &BootTable,
        _now: UnixMillis,
    ) -> Option<Ipv4Addr> {
        None
    }

    /// What a ping found. An address where a stranger was found is kept back for a while, and whoever was offered it
    /// is refused; the record of that has to go to the log.
    pub fn probed(
        &mut self,
        _network: &BootNetwork,
        _address: Ipv4Addr,
        _found: Probed,
        _now: UnixMillis,
    ) -> Option<Lease> {
        None
    }
}
