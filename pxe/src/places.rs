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
    /// The same, oldest first.
    by_age: BTreeSet<(u64, Ipv4Addr)>,
}

impl Places {
    /// Remembers that a machine uses an address.
    pub(crate) fn saw(&mut self, address: Ipv4Addr, mac: MacAddr) {
        self.clock += 1;
        if let Some((_, age)) = self.at.insert(address, (mac, self.clock)) {
            self.by_age.remove(&(age, address));
        }
        self.by_age.insert((self.clock, address));
        if self.at.len() > PLACES {
            let oldest = self.by_age.pop_first();
            oldest.map(|(_, address)| self.at.remove(&address));
        }
    }

    /// Who was seen there last.
    pub(crate) fn at(&self, address: Ipv4Addr) -> Option<MacAddr> {
        self.at.get(&address).map(|(mac, _)| *mac)
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
        for n in 2..=u32::try_from(PLACES).unwrap() {
            places.saw(address(n), one);
        }
        assert_eq!(places.at(address(1)), None, "the oldest");
        assert_eq!(places.at(address(0)), Some(other), "seen again since");
        assert_eq!((places.at.len(), places.by_age.len()), (PLACES, PLACES));
    }
}
