//! Bounds on how many transfers or connections there are at once, in all and for one address; and on how often
//! strangers are told about.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    sync::{Arc, Mutex, PoisonError},
};

use model::UnixMillis;

/// Free places.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    all: usize,
    each: usize,
    taken: Arc<Mutex<BTreeMap<Ipv4Addr, usize>>>,
}

/// A place taken; free again when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    address: Ipv4Addr,
    taken: Arc<Mutex<BTreeMap<Ipv4Addr, usize>>>,
}

impl Slots {
    /// At most `all` places, at most `each` for one address.
    pub(crate) fn new(all: usize, each: usize) -> Self {
        Self { all, each, taken: Arc::default() }
    }

    /// A place for `address`, if there is one.
    pub(crate) fn take(&self, address: Ipv4Addr) -> Option<Slot> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let total: usize = taken.values().sum();
        let own = taken.get(&address).copied().unwrap_or(0);
        if total >= self.all || own >= self.each {
            return None;
        }
        taken.insert(address, own + 1);
        Some(Slot { address, taken: Arc::clone(&self.taken) })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.get_mut(&self.address) {
            Some(own) if *own > 1 => *own -= 1,
            _ => _ = taken.remove(&self.address),
        }
    }
}

/// Free places of which those who are no nodes have a share only.
#[derive(Debug)]
pub(crate) struct Shared {
    all: Slots,
    strangers: Slots,
}

impl Shared {
    /// At most `all` places, `strangers` of them for others than nodes, at most `each` for one address.
    pub(crate) fn new(all: usize, strangers: usize, each: usize) -> Self {
        Self { all: Slots::new(all, each), strangers: Slots::new(strangers, each) }
    }

    /// A place for `address`, if there is one. Free again when all of it is dropped.
    pub(crate) fn take(&self, address: Ipv4Addr, is_node: bool) -> Option<(Slot, Option<Slot>)> {
        let share = if is_node { None } else { Some(self.strangers.take(address)?) };
        self.all.take(address).map(|slot| (slot, share))
    }
}

/// Strangers remembered at once; the one longest silent goes first.
const STRANGERS: usize = 4096;
/// Milliseconds before a stranger is told about again.
const QUIET_MS: u128 = 1000;

/// Strangers told about in one second, all together.
const TOLD: usize = 64;

/// When each stranger was last told about: once a second at most, and not too many in all, so that a storm of
/// unknown or invented machines can neither fill the sink nor push a node's kernel out of it.
#[derive(Debug, Default)]
pub(crate) struct Strangers {
    /// When this second began, and how many were told about in it.
    second: (UnixMillis, usize),
    last: BTreeMap<Stranger, UnixMillis>,
    /// The same, oldest first.
    by_age: BTreeSet<(UnixMillis, Stranger)>,
}

/// Somebody no table knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stranger {
    /// By hardware address.
    Mac([u8; 6]),
    /// By address.
    Address(Ipv4Addr),
}

impl Strangers {
    /// Whether this one may be told about now; remembers it if so.
    pub(crate) fn may_tell(&mut self, stranger: Stranger, now: UnixMillis) -> bool {
        let known = self.last.get(&stranger).copied();
        if known.is_some_and(|last| now >= last && now.since(last).as_millis() < QUIET_MS) {
            return false;
        }
        match known {
            Some(last) => _ = self.by_age.remove(&(last, stranger)),
            None if self.last.len() >= STRANGERS => {
                let oldest = self.by_age.pop_first();
                oldest.map(|(_, oldest)| self.last.remove(&oldest));
            }
            None => (),
        }
        self.by_age.insert((now, stranger));
        self.last.insert(stranger, now);
        let (begun, told) = self.second;
        if now < begun || now.since(begun).as_millis() >= QUIET_MS {
            self.second = (now, 0);
        } else if told >= TOLD {
            return false;
        }
        self.second.1 += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_in_all_and_for_one_address() {
        let (slots, [a, b, c]) = (Slots::new(3, 2), [1, 2, 3].map(|n| Ipv4Addr::new(192, 0, 2, n)));
        let held = [slots.take(a), slots.take(a)];
        assert!(held.iter().all(Option::is_some) && slots.take(a).is_none(), "two for one");
        let other = slots.take(b);
        assert!(other.is_some() && slots.take(c).is_none(), "three in all");
        drop(held);
        assert!(slots.take(c).is_some());
    }

    #[test]
    fn strangers_leave_places_to_nodes() {
        let (shared, address) = (Shared::new(5, 3, 9), Ipv4Addr::from);
        let held: Vec<_> = (0..9).map_while(|n| shared.take(address(n), false)).collect();
        assert_eq!(held.len(), 3);
        let node = shared.take(address(20), true);
        assert!(node.is_some() && shared.take(address(21), true).is_some());
        drop(held);
        let again: Vec<_> = (0..9).map_while(|n| shared.take(address(n), false)).collect();
        assert_eq!(again.len(), 3);
    }

    #[test]
    fn a_stranger_is_told_about_once_a_second_and_a_flood_is_forgotten() {
        let mut strangers = Strangers::default();
        let one = Stranger::Mac([2, 0, 0, 0, 0, 1]);
        let told = [0, 1, 999, 1000, 1500, 2000].map(|at| strangers.may_tell(one, UnixMillis(at)));
        assert_eq!(told, [true, false, false, true, false, true]);
        for n in 0..10_000_u32 {
            strangers.may_tell(Stranger::Address(n.into()), UnixMillis(3000 + i64::from(n)));
        }
        assert_eq!((strangers.last.len(), strangers.by_age.len()), (STRANGERS, STRANGERS));
        assert!(strangers.may_tell(one, UnixMillis(20_000)), "the oldest was forgotten");
    }

    #[test]
    fn invented_machines_are_told_about_in_bounded_number() {
        let mut strangers = Strangers::default();
        let told = |strangers: &mut Strangers, from: u32, at: i64| {
            let each = (from..from + 5_000).map(|n| Stranger::Address(n.into()));
            each.filter(|one| strangers.may_tell(*one, UnixMillis(at))).count()
        };
        assert_eq!(told(&mut strangers, 0, 10_000), TOLD);
        assert_eq!(told(&mut strangers, 10_000, 10_900), 0, "the same second");
        assert_eq!(told(&mut strangers, 20_000, 11_000), TOLD);
        assert_eq!(told(&mut strangers, 30_000, 5_000), TOLD, "the clock stepped back");
    }
}
