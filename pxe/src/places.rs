//! Where nodes were seen on networks whose addresses another server gives.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

use model::MacAddr;

/// Addresses remembered at once; the one longest not seen goes first.
const PLACES: usize = 4096;

/// Which node was seen at which address. Bounded, so that nobody can fill it.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Counts what was seen: the age of an entry.
    clock: u64,
    at: BTreeMap<Ipv4Addr, (MacAddr, u64)>,
    /// Where each machine was seen last, as long as nobody else was seen there since.
    of: BTreeMap<MacAddr, Ipv4Addr>,
    /// The same, oldest first.
    by_age: BTreeSet<(u64, Ipv4Addr)>,
}

impl Places {
    /// Remembers that a machine uses an address.
    pub(crate) fn saw(&mut self, address: Ipv4Addr, mac: MacAddr) {
        self.clock += 1;
        self.forget(address);
        self.at.insert(address, (mac, self.clock));
        self.of.insert(mac, address);
        self.by_age.insert((self.clock, address));
        if self.at.len() > PLACES
            && let Some((_, oldest)) = self.by_age.first().copied()
        {
            self.forget(oldest);
        }
    }

    /// Forgets who was seen there.
    fn forget(&mut self, address: Ipv4Addr) {
        let Some((mac, age)) = self.at.remove(&address) else { return };
        self.by_age.remove(&(age, address));
        if self.of.get(&mac) == Some(&address) {
            self.of.remove(&mac);
        }
    }

    /// Who was seen there last.
    pub(crate) fn at(&self, address: Ipv4Addr) -> Option<MacAddr> {
        self.at.get(&address).map(|(mac, _)| *mac)
    }

    /// Where a machine was seen last.
    pub(crate) fn of(&self, mac: MacAddr) -> Option<Ipv4Addr> {
        self.of.get(&mac).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_machine_seen_at_an_address_counts_and_the_oldest_place_is_forgotten() {
        let mut places = Places::default();
        let [one, other] = [1, 2].map(|n| MacAddr([2, 0, 0, 0, 0, n]));
        let address = |n: u32| Ipv4Addr::from(n);
        places.saw(address(0), one);
        places.saw(address(1), one);
        places.saw(address(0), other);
        assert_eq!((places.at(address(0)), places.at(address(1))), (Some(other), Some(one)));
        assert_eq!((places.of(other), places.of(one)), (Some(address(0)), Some(address(1))));
        places.saw(address(1), other);
        assert_eq!((places.of(other), places.of(one)), (Some(address(1)), None), "driven out");
        places.saw(address(0), other);
        for n in 2..=u32::try_from(PLACES).unwrap() {
            places.saw(address(n), one);
        }
        assert_eq!(places.at(address(1)), None, "the oldest");
        assert_eq!(places.at(address(0)), Some(other), "seen again since");
        assert_eq!((places.at.len(), places.by_age.len()), (PLACES, PLACES));
        assert_eq!(places.of(other), Some(address(0)));
        assert_eq!(places.of.len(), 2, "as many as machines");
    }
}
