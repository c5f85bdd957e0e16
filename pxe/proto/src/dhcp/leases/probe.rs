//! Pings ahead: addresses are looked at before they are given away, and no answer waits for it.

use std::{net::Ipv4Addr, time::Duration};

use model::{BootTable, Lease, MacAddr, UnixMillis, boot::BootNetwork};

use super::{
    Leases, QUARANTINE, Spare,
    book::{Book, Holder},
};

/// How many free addresses are looked at ahead.
pub(super) const AHEAD: usize = 32;
/// How long a ping says something.
const GOOD_FOR: Duration = Duration::from_secs(120);
/// How long after a ping nobody asks for the next one.
const REST: Duration = Duration::from_secs(60);

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

/// The last ping of an address.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ping {
    asked_at: Option<UnixMillis>,
    found: Option<(UnixMillis, bool)>,
}

impl Ping {
    /// Nobody answered lately.
    pub(super) fn is_free(self, now: UnixMillis) -> bool {
        self.found.is_some_and(|(at, is_free)| is_free && now.since(at) < GOOD_FOR)
    }

    /// Somebody answered lately.
    pub(super) fn is_used(self, now: UnixMillis) -> bool {
        self.found.is_some_and(|(at, is_free)| !is_free && now.since(at) < GOOD_FOR)
    }

    fn is_wanted(self, now: UnixMillis) -> bool {
        self.asked_at.is_none_or(|at| now.since(at) >= REST)
    }
}

impl Leases {
    /// An address to be pinged: one that was offered without, else the next free one that was not pinged lately.
    /// `None`: enough are known to be free. Each is told once a minute at most, and wants an answer by
    /// [`Self::probed`].
    pub fn to_probe(
        &mut self,
        network: &BootNetwork,
        table: &BootTable,
        now: UnixMillis,
    ) -> Option<Ipv4Addr> {
        self.settled(network, now)?.next_to_probe(&Spare { network, table }, now)
    }

    /// What a ping found. An address where a stranger was found is kept back for a while, and the machine that was
    /// offered it is refused when it asks for it: that record has to go to the log.
    pub fn probed(
        &mut self,
        network: &BootNetwork,
        address: Ipv4Addr,
        found: Probed,
        now: UnixMillis,
    ) -> Option<Lease> {
        self.settled(network, now)?.probed(&network.name, address, found, now)
    }
}

impl Book {
    fn next_to_probe(&mut self, spare: &Spare<'_>, now: UnixMillis) -> Option<Ipv4Addr> {
        let offered = std::mem::take(&mut self.to_ping);
        let is_open = |address: &Ipv4Addr| {
            self.slots.get(address).is_some_and(|s| s.offered_at.is_some() && s.ping.is_wanted(now))
        };
        let mut offered: Vec<Ipv4Addr> = offered.into_iter().filter(is_open).collect();
        let address = if offered.is_empty() {
            let free = self.free(spare, now);
            let ping = |address: &Ipv4Addr| self.slots.get(address).map(|slot| slot.ping);
            free.into_iter().find(|address| ping(address).is_none_or(|ping| ping.is_wanted(now)))
        } else {
            Some(offered.remove(0))
        };
        self.to_ping = offered;
        let address = address?;
        self.slots.entry(address).or_default().ping.asked_at = Some(now);
        Some(address)
    }

    fn probed(
        &mut self,
        network: &str,
        address: Ipv4Addr,
        found: Probed,
        now: UnixMillis,
    ) -> Option<Lease> {
        let slot = self.slots.get_mut(&address)?;
        slot.ping.found = Some((now, found == Probed::Free));
        let Probed::Used { by } = found else { return None };
        let (mac, is_offered) = (slot.mac, slot.offered_at.is_some());
        if slot.is_bound(now) {
            return None; // That is whose it is, or it finds out by ARP.
        }
        if by.is_some() && by == mac {
            // It had the address, and still uses it: kept for it.
            let free_at = slot.free_at.max(now.plus(QUARANTINE));
            self.set_free(address, free_at);
            return None;
        }
        if by.is_none() && is_offered {
            return None; // It may be the machine itself, which had the ACK meanwhile.
        }
        let kept_from = mac.filter(|_| is_offered).or(by).unwrap_or(MacAddr([0; 6]));
        Some(self.quarantine(Holder { network, mac: kept_from, address }, now))
    }
}
