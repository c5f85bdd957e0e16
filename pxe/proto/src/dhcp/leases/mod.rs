//! Who has which address of ours, and who gets the next one.
//!
//! Keyed by network and hardware address; a client identifier is never looked at. It reads no clock and no file: time
//! is an argument, and the log's records come and go as values. It knows as many addresses as pools and reservations
//! have, and no more machines than that, whoever asks.

mod book;
mod probe;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, net::Ipv4Addr, time::Duration};

use model::{BootTable, Lease, MacAddr, UnixMillis, boot::BootNetwork};

use self::book::Book;
pub(super) use self::book::Holder;
pub use self::probe::Probed;

/// How long an offered address is kept for the machine it was offered to: firmware gathers offers for seconds, and
/// asks again after half a minute.
const OFFER_HOLDS: Duration = Duration::from_secs(60);
/// How old an offer is at least when its address is offered to another machine because there is no other.
const OFFER_GRACE: Duration = Duration::from_secs(10);
/// Offers open at once on a network; the oldest is forgotten first.
const OFFERS: usize = 4_096;
/// How long an address is kept back that was declined, or where a stranger was heard.
const QUARANTINE: Duration = Duration::from_secs(600);
/// When an address of the pool is looked at again that is reserved, or our own.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// A clock that is behind what was recorded by more than this was put back.
const CLOCK_STEP: Duration = Duration::from_secs(60);
/// Addresses of a pool that are given away; what lies behind is not used. The configuration allows no more.
const LARGEST_POOL: u32 = 65_536;

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
    books: BTreeMap<String, Book>,
}

impl Leases {
    /// Without any.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a record of the log, in its order: the last one of an address counts, and so does the last one of a
    /// machine.
    pub fn replay(&mut self, lease: Lease) {
        self.book(&lease.network.clone()).replay(lease);
    }

    /// The last record of each address: what a log written anew has to hold. Those that ran out are among them (see
    /// `until`): a machine gets the address again that it had.
    pub fn live(&self) -> impl Iterator<Item = &Lease> {
        self.books.values().flat_map(Book::records)
    }

    /// How full the pool of a network is; all zero where there is none.
    #[must_use]
    pub fn pool_use(&self, network: &BootNetwork, table: &BootTable, now: UnixMillis) -> PoolUse {
        let Some(pool) = pool_of(network) else { return PoolUse::default() };
        let spare = Spare { network, table };
        let kept_out = table.by_address.range(pool.first..=pool.last).count();
        let ours = spare
            .ours()
            .filter(|address| pool.holds(*address) && !table.by_address.contains_key(address));
        let mut ours: Vec<Ipv4Addr> = ours.collect();
        ours.sort_unstable();
        ours.dedup();
        let size = usize::try_from(pool.size()).unwrap_or(usize::MAX);
        let size = size.saturating_sub(kept_out + ours.len());
        let (bound, taken) = self.books.get(&network.name).map_or((0, 0), |book| {
            book.count(|address| pool.holds(address) && spare.may_give(address), now)
        });
        PoolUse { size, bound, taken }
    }

    /// The address a machine without a reservation is offered; `None`: the pool is exhausted. It is the one it has or
    /// had, else the one it wishes for, else the one that is free the longest, known to be free where that is known.
    pub(super) fn offer(
        &mut self,
        network: &BootNetwork,
        table: &BootTable,
        mac: MacAddr,
        wish: Option<Ipv4Addr>,
        now: UnixMillis,
    ) -> Option<Ipv4Addr> {
        let spare = Spare { network, table };
        let book = self.settled(network, now)?;
        let address = book.pick(&spare, mac, wish, now)?;
        book.offer(address, mac, now);
        Some(address)
    }

    /// Whether a machine without a reservation may have an address: it is of the pool, nobody else has it, and the
    /// machine has no other.
    pub(super) fn may_have(
        &mut self,
        network: &BootNetwork,
        table: &BootTable,
        mac: MacAddr,
        address: Ipv4Addr,
        now: UnixMillis,
    ) -> bool {
        let spare = Spare { network, table };
        self.settled(network, now).is_some_and(|book| book.may_have(&spare, mac, address, now))
    }

    /// Records that a machine has an address until a time; whatever it had before on the network is free. Whether it
    /// may have it was asked before, or it is its reservation.
    pub(super) fn bind(&mut self, lease: Lease) -> Lease {
        self.book(&lease.network.clone()).bind(lease.clone());
        lease
    }

    /// A machine gives an address back: its record, if the address was given to it.
    pub(super) fn release(&mut self, holder: Holder<'_>, now: UnixMillis) -> Option<Lease> {
        self.books.get_mut(holder.network)?.release(holder, now)
    }

    /// A machine found its address in use: the record that keeps it back, if it was offered or given to that machine.
    pub(super) fn decline(&mut self, holder: Holder<'_>, now: UnixMillis) -> Option<Lease> {
        self.books.get_mut(holder.network)?.decline(holder, now)
    }

    /// A machine took another server's offer: ours is free again.
    pub(super) fn forget_offer(&mut self, network: &str, mac: MacAddr, now: UnixMillis) {
        if let Some(book) = self.books.get_mut(network) {
            book.forget_offer(mac, now);
        }
    }

    /// The book of a network that has a pool, laid out for that pool and by this clock.
    fn settled(&mut self, network: &BootNetwork, now: UnixMillis) -> Option<&mut Book> {
        let pool = pool_of(network)?;
        let book = self.book(&network.name);
        book.settle(pool);
        book.keep_time(now);
        Some(book)
    }

    fn book(&mut self, network: &str) -> &mut Book {
        if !self.books.contains_key(network) {
            self.books.insert(network.to_owned(), Book::default());
        }
        self.books.get_mut(network).expect("it was just put there")
    }
}

/// The addresses of a pool that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    first: Ipv4Addr,
    last: Ipv4Addr,
}

impl Range {
    fn holds(self, address: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&address)
    }

    fn size(self) -> u32 {
        u32::from(self.last).saturating_sub(u32::from(self.first)).saturating_add(1)
    }

    fn addresses(self) -> impl Iterator<Item = Ipv4Addr> {
        (u32::from(self.first)..=u32::from(self.last)).map(Ipv4Addr::from)
    }
}

/// The pool of a network, if it has one with any address in it.
fn pool_of(network: &BootNetwork) -> Option<Range> {
    let model::boot::DhcpMode::Full(pool) = network.mode else { return None };
    let furthest = u32::from(pool.first).saturating_add(LARGEST_POOL - 1);
    let last = u32::from(pool.last).min(furthest);
    (pool.first <= pool.last).then_some(Range { first: pool.first, last: last.into() })
}

/// Which addresses of a network are spare: nobody's by configuration.
struct Spare<'t> {
    network: &'t BootNetwork,
    table: &'t BootTable,
}

impl Spare<'_> {
    /// Addresses that are no machine's.
    fn ours(&self) -> impl Iterator<Item = Ipv4Addr> {
        let mask = u32::from(self.network.netmask());
        let subnet = u32::from(self.network.subnet) & mask;
        let servers = self.table.networks.iter().map(|network| network.server);
        let edges = [subnet.into(), (subnet | !mask).into(), self.network.server];
        servers.chain(edges).chain(self.network.router)
    }

    /// Whether an address may go to a machine that has no reservation.
    fn may_give(&self, address: Ipv4Addr) -> bool {
        self.network.contains(address)
            && !self.table.by_address.contains_key(&address)
            && self.ours().all(|ours| ours != address)
    }
}
