//! The leases of one network: each address it knows of, who had it last, and when it is free.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

use model::{Lease, MacAddr, UnixMillis, lease::LeaseState};

use super::{
    CLOCK_STEP, LOOK_AGAIN, OFFER_GRACE, OFFER_HOLDS, OFFERS, QUARANTINE, Range, Spare, probe,
};

/// A machine and the address it speaks of.
#[derive(Debug, Clone, Copy)]
pub(in crate::dhcp) struct Holder<'n> {
    /// The network.
    pub(in crate::dhcp) network: &'n str,
    /// The machine.
    pub(in crate::dhcp) mac: MacAddr,
    /// The address.
    pub(in crate::dhcp) address: Ipv4Addr,
}

/// The leases of one network.
///
/// Every address of the pool stands in `queue` exactly once, under the moment it is free for anybody (of one that was
/// never given: the beginning of time), so the first is the one that is free the longest.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) slots: BTreeMap<Ipv4Addr, Slot>,
    /// The address each machine was offered or given last.
    of_mac: BTreeMap<MacAddr, Ipv4Addr>,
    pub(super) queue: BTreeSet<(UnixMillis, Ipv4Addr)>,
    /// Offers nobody took yet, by their age.
    offers: BTreeSet<(UnixMillis, Ipv4Addr)>,
    /// Addresses kept back, by when that ends.
    taken: BTreeSet<(UnixMillis, Ipv4Addr)>,
    /// Offered addresses that nobody has pinged.
    pub(super) to_ping: Vec<Ipv4Addr>,
    pool: Option<Range>,
    /// The latest moment it heard of.
    latest: UnixMillis,
}

/// What is known of an address.
#[derive(Debug)]
pub(super) struct Slot {
    /// Who was offered or given it last.
    pub(super) mac: Option<MacAddr>,
    /// From when on anybody may have it.
    pub(super) free_at: UnixMillis,
    /// When it was offered, if nobody took it yet.
    pub(super) offered_at: Option<UnixMillis>,
    /// Its record in the log.
    pub(super) lease: Option<Lease>,
    pub(super) ping: probe::Ping,
}

/// Before everything: an address nobody ever had.
pub(super) const NEVER: UnixMillis = UnixMillis(i64::MIN);

impl Default for Slot {
    fn default() -> Self {
        Self {
            mac: None,
            free_at: NEVER,
            offered_at: None,
            lease: None,
            ping: probe::Ping::default(),
        }
    }
}

impl Slot {
    fn holds_by(&self, state: LeaseState, now: UnixMillis) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.state == state && lease.until > now)
    }

    /// Nothing of it began after now. What was given for a span is given for that span from now on.
    fn begin_by(&mut self, now: UnixMillis) {
        if let Some(lease) = self.lease.as_mut().filter(|lease| lease.at > now) {
            lease.until = now.plus(lease.until.since(lease.at));
            lease.at = now;
        }
        self.offered_at = self.offered_at.map(|at| at.min(now));
        let kept = self.lease.as_ref().filter(|lease| lease.state != LeaseState::Released);
        let kept = kept.map_or(now, |lease| lease.until);
        let offered = self.offered_at.map_or(now, |at| at.plus(OFFER_HOLDS));
        self.free_at = self.free_at.min(now.max(kept).max(offered));
    }

    /// Whether a machine has it now.
    pub(super) fn is_bound(&self, now: UnixMillis) -> bool {
        self.holds_by(LeaseState::Bound, now)
    }

    /// Whether it is kept back now.
    fn is_taken(&self, now: UnixMillis) -> bool {
        self.holds_by(LeaseState::Taken, now)
    }
}

impl Book {
    /// Every record, in an order in which it may be replayed: what a machine has comes after what it had.
    pub(super) fn records(&self) -> impl Iterator<Item = &Lease> {
        let mut records: Vec<&Lease> =
            self.slots.values().filter_map(|slot| slot.lease.as_ref()).collect();
        records.sort_by_key(|lease| (lease.state == LeaseState::Bound, lease.at));
        records.into_iter()
    }

    /// Lays the queue out for a pool, unless it is.
    pub(super) fn settle(&mut self, pool: Range) {
        if self.pool == Some(pool) {
            return;
        }
        self.pool = Some(pool);
        self.lay_out(pool);
    }

    fn lay_out(&mut self, pool: Range) {
        let slots = &self.slots;
        let free_at = |address| slots.get(&address).map_or(NEVER, |slot| slot.free_at);
        self.queue = pool.addresses().map(|address| (free_at(address), address)).collect();
    }

    /// Notices that the clock was put back: what was offered and given by the clock that went ahead would else be
    /// nobody's for as long as that was wrong, which may be years.
    pub(super) fn keep_time(&mut self, now: UnixMillis) {
        let latest = std::mem::replace(&mut self.latest, now);
        if latest.since(now) <= CLOCK_STEP {
            self.latest = latest.max(now);
            return;
        }
        self.offers.clear();
        self.taken.clear();
        for (address, slot) in &mut self.slots {
            slot.begin_by(now);
            self.offers.extend(slot.offered_at.map(|at| (at, *address)));
            let taken = slot.lease.as_ref().filter(|lease| lease.state == LeaseState::Taken);
            self.taken.extend(taken.map(|lease| (lease.until, *address)));
        }
        if let Some(pool) = self.pool {
            self.lay_out(pool);
        }
    }

    pub(super) fn replay(&mut self, lease: Lease) {
        match lease.state {
            LeaseState::Bound => self.bind(lease),
            LeaseState::Released => {
                self.own(lease.address, Some(lease.mac));
                self.set_free(lease.address, lease.at);
                self.record(lease);
            }
            LeaseState::Taken => self.keep_back(lease),
        }
    }

    /// Given away now, and kept back, of the addresses that count.
    pub(super) fn count(
        &self,
        counts: impl Fn(Ipv4Addr) -> bool,
        now: UnixMillis,
    ) -> (usize, usize) {
        // Whether an address counts is the dear question, so it is asked last.
        let number = |is: fn(&Slot, UnixMillis) -> bool| {
            let slots = self.slots.iter().filter(|(_, slot)| is(slot, now));
            slots.filter(|(address, _)| counts(**address)).count()
        };
        (number(Slot::is_bound), number(Slot::is_taken))
    }

    /// The address for a machine.
    pub(super) fn pick(
        &mut self,
        spare: &Spare<'_>,
        mac: MacAddr,
        wish: Option<Ipv4Addr>,
        now: UnixMillis,
    ) -> Option<Ipv4Addr> {
        let its_own = self.of_mac.get(&mac).copied();
        let wanted = [its_own, wish].into_iter().flatten();
        let mut wanted = wanted.filter(|address| self.may_have(spare, mac, *address, now));
        if let Some(address) = wanted.next() {
            return Some(address);
        }
        self.longest_free(spare, now).or_else(|| self.oldest_offer(spare, now))
    }

    /// The address that is free the longest; of the first ones, one that was pinged and did not answer.
    fn longest_free(&mut self, spare: &Spare<'_>, now: UnixMillis) -> Option<Ipv4Addr> {
        let free = self.free(spare, now);
        let ping = |address: &Ipv4Addr| self.slots.get(address).map(|slot| slot.ping);
        let known = free.iter().find(|address| ping(address).is_some_and(|ping| ping.is_free(now)));
        let unknown = || free.iter().find(|address| ping(address).is_none_or(|p| !p.is_used(now)));
        known.or_else(unknown).or(free.first()).copied()
    }

    /// The first free addresses, as many as are pinged ahead. What is reserved or our own goes back in the queue.
    pub(super) fn free(&mut self, spare: &Spare<'_>, now: UnixMillis) -> Vec<Ipv4Addr> {
        let (mut free, mut kept) = (vec![], vec![]);
        for (_, address) in self.queue.range(..=(now, Ipv4Addr::BROADCAST)) {
            if spare.may_give(*address) {
                free.push(*address);
                if free.len() == probe::AHEAD {
                    break;
                }
            } else {
                kept.push(*address);
            }
        }
        for address in kept {
            self.set_free(address, now.plus(LOOK_AGAIN));
        }
        free
    }

    /// The address of the oldest offer that had its time. Taken only when nothing is free: a flood of DISCOVERs must
    /// not shut out the machines behind it.
    fn oldest_offer(&self, spare: &Spare<'_>, now: UnixMillis) -> Option<Ipv4Addr> {
        let old = self.offers.iter().take_while(|(at, _)| now.since(*at) >= OFFER_GRACE);
        let mut old = old.map(|(_, address)| *address);
        old.find(|address| self.pool.is_some_and(|p| p.holds(*address)) && spare.may_give(*address))
    }

    pub(super) fn may_have(
        &self,
        spare: &Spare<'_>,
        mac: MacAddr,
        address: Ipv4Addr,
        now: UnixMillis,
    ) -> bool {
        let its_own = self.of_mac.get(&mac).copied();
        let has_another = its_own.is_some_and(|own| {
            own != address
                && spare.may_give(own)
                && self.pool.is_some_and(|pool| pool.holds(own))
                && self.slots.get(&own).is_some_and(|slot| slot.is_bound(now))
        });
        let is_free = self.slots.get(&address).is_none_or(|slot| {
            !slot.is_taken(now) && (slot.mac == Some(mac) || slot.free_at <= now)
        });
        let is_spare = self.pool.is_some_and(|p| p.holds(address)) && spare.may_give(address);
        is_spare && is_free && !has_another
    }

    /// Keeps an address for a machine for a while.
    pub(super) fn offer(&mut self, address: Ipv4Addr, mac: MacAddr, now: UnixMillis) {
        // What it had is not to be had any more: out of the pool, reserved, or given to another.
        self.leave(mac, address, now);
        self.own(address, Some(mac));
        let slot = self.slots.entry(address).or_default();
        let is_bound = slot.is_bound(now);
        let free_at = slot.free_at.max(now.plus(OFFER_HOLDS));
        if let Some(at) = slot.offered_at.take() {
            self.offers.remove(&(at, address));
        }
        if !is_bound {
            slot.offered_at = Some(now);
            if !slot.ping.is_free(now) && self.to_ping.len() < probe::AHEAD {
                self.to_ping.push(address);
            }
            self.offers.insert((now, address));
        }
        self.set_free(address, free_at);
        while self.offers.len() > OFFERS {
            self.end_offer(now);
        }
    }

    /// Forgets the oldest offer.
    fn end_offer(&mut self, now: UnixMillis) {
        if let Some((_, address)) = self.offers.pop_first()
            && let Some(slot) = self.slots.get_mut(&address)
        {
            slot.offered_at = None;
            self.set_free(address, now);
        }
    }

    pub(super) fn forget_offer(&mut self, mac: MacAddr, now: UnixMillis) {
        let Some(address) = self.of_mac.get(&mac).copied() else { return };
        let Some(slot) = self.slots.get_mut(&address) else { return };
        if let Some(at) = slot.offered_at.take() {
            self.offers.remove(&(at, address));
            self.set_free(address, now);
        }
    }

    pub(super) fn bind(&mut self, lease: Lease) {
        let (address, until) = (lease.address, lease.until);
        self.leave(lease.mac, address, lease.at);
        self.own(address, Some(lease.mac));
        self.set_free(address, until);
        self.record(lease);
    }

    /// A machine gets another address: the one it had is free.
    fn leave(&mut self, mac: MacAddr, but: Ipv4Addr, now: UnixMillis) {
        let Some(address) = self.of_mac.get(&mac).copied().filter(|address| *address != but) else {
            return;
        };
        let Some(slot) = self.slots.get_mut(&address).filter(|slot| slot.mac == Some(mac)) else {
            return;
        };
        if let Some(lease) = slot.lease.as_mut().filter(|lease| lease.state == LeaseState::Bound) {
            lease.state = LeaseState::Released;
            lease.at = now;
            lease.until = lease.until.min(now);
        }
        if let Some(at) = slot.offered_at.take() {
            self.offers.remove(&(at, address));
        }
        self.set_free(address, now);
    }

    pub(super) fn release(&mut self, holder: Holder<'_>, now: UnixMillis) -> Option<Lease> {
        let slot = self.slots.get_mut(&holder.address)?;
        let lease = slot.lease.as_mut().filter(|_| slot.mac == Some(holder.mac))?;
        if lease.state != LeaseState::Bound {
            return None;
        }
        lease.state = LeaseState::Released;
        (lease.at, lease.until) = (now, lease.until.min(now));
        let lease = lease.clone();
        self.set_free(holder.address, now);
        Some(lease)
    }

    pub(super) fn decline(&mut self, holder: Holder<'_>, now: UnixMillis) -> Option<Lease> {
        let slot = self.slots.get(&holder.address)?;
        let is_its_own =
            slot.mac == Some(holder.mac) && (slot.is_bound(now) || slot.offered_at.is_some());
        is_its_own.then(|| self.quarantine(holder, now))
    }

    /// Keeps an address back. When half the pool is kept back already it is only put at the end of the queue: a
    /// machine that declines whatever it gets must not eat the pool.
    pub(super) fn quarantine(&mut self, holder: Holder<'_>, now: UnixMillis) -> Lease {
        while self.taken.first().is_some_and(|(until, _)| *until <= now) {
            self.taken.pop_first();
        }
        let half = self.pool.map_or(u32::MAX, |pool| pool.size() / 2);
        let has_room = self.taken.len() < usize::try_from(half).unwrap_or(usize::MAX);
        let (state, until) = if has_room {
            (LeaseState::Taken, now.plus(QUARANTINE))
        } else {
            (LeaseState::Released, now)
        };
        let before = self.slots.get(&holder.address).and_then(|slot| slot.lease.clone());
        let (host_name, location) =
            before.map_or((String::new(), None), |lease| (lease.host_name, lease.location));
        let lease = Lease {
            network: holder.network.to_owned(),
            address: holder.address,
            mac: holder.mac,
            state,
            at: now,
            until,
            host_name,
            location,
        };
        self.keep_back(lease.clone());
        lease
    }

    /// Nobody has an address until the end of its record.
    fn keep_back(&mut self, lease: Lease) {
        self.own(lease.address, None);
        self.set_free(lease.address, lease.until);
        self.record(lease);
    }

    /// Sets the record of an address; it is no open offer any more, and no longer kept back unless the record says so.
    fn record(&mut self, lease: Lease) {
        let address = lease.address;
        let slot = self.slots.entry(address).or_default();
        if let Some(at) = slot.offered_at.take() {
            self.offers.remove(&(at, address));
        }
        let (state, until) = (lease.state, lease.until);
        self.latest = self.latest.max(lease.at);
        if let Some(before) = slot.lease.replace(lease) {
            self.taken.remove(&(before.until, address));
        }
        if state == LeaseState::Taken {
            self.taken.insert((until, address));
        }
    }

    /// Sets whose an address is; it is not any other machine's any more.
    fn own(&mut self, address: Ipv4Addr, mac: Option<MacAddr>) {
        let slot = self.slots.entry(address).or_default();
        let before = std::mem::replace(&mut slot.mac, mac);
        if let Some(before) = before.filter(|before| self.of_mac.get(before) == Some(&address)) {
            self.of_mac.remove(&before);
        }
        if let Some(mac) = mac {
            self.of_mac.insert(mac, address);
        }
    }

    /// Sets from when on anybody may have an address.
    pub(super) fn set_free(&mut self, address: Ipv4Addr, free_at: UnixMillis) {
        let slot = self.slots.entry(address).or_default();
        let before = std::mem::replace(&mut slot.free_at, free_at);
        if self.pool.is_some_and(|pool| pool.holds(address)) {
            self.queue.remove(&(before, address));
            self.queue.insert((free_at, address));
        }
    }
}

#[cfg(test)]
impl Book {
    pub(super) fn open_offers(&self) -> usize {
        self.offers.len()
    }

    pub(super) fn pool(&self) -> Option<Range> {
        self.pool
    }
}
