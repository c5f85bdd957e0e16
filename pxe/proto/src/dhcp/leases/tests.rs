//! The book of a network from inside: whatever happens, it stays a book.

use model::{BootEntry, BootIntent, MacAddr, boot::DhcpMode, lease::LeaseState};
use proptest::prelude::*;

use super::{book::NEVER, *};
use crate::dhcp::decide_tests::{mac, table};

const NOW: UnixMillis = UnixMillis(1_000_000_000);

fn at(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, last)
}

fn later(seconds: u64) -> UnixMillis {
    NOW.plus(Duration::from_secs(seconds))
}

/// The lab of the decision tests with a pool.
fn lab(first: u8, last: u8) -> BootTable {
    let mut table = table();
    table.networks[0].mode = DhcpMode::Full(model::boot::Pool { first: at(first), last: at(last) });
    table
}

fn bound(mac: MacAddr, address: Ipv4Addr, at: UnixMillis, seconds: u64) -> Lease {
    Lease {
        network: "boot".to_owned(),
        address,
        mac,
        state: LeaseState::Bound,
        at,
        until: at.plus(Duration::from_secs(seconds)),
        host_name: String::new(),
        location: None,
    }
}

fn offer(leases: &mut Leases, table: &BootTable, last: u8, now: UnixMillis) -> Option<Ipv4Addr> {
    leases.offer(&table.networks[0], table, mac(last), None, now)
}

#[test]
fn the_pool_leaves_out_what_is_reserved_or_ours_and_then_is_exhausted() {
    // 192.0.2.10 is ours, 73, 75, 77 and 79 are reserved, 254 is the router, 255 the broadcast address.
    let (table, mut leases) = (lab(72, 79), Leases::new());
    let given: Vec<_> = (100..110).map_while(|m| offer(&mut leases, &table, m, NOW)).collect();
    assert_eq!(given, [at(72), at(74), at(76), at(78)]);
    assert_eq!(leases.pool_use(&table.networks[0], &table, NOW).size, 4);
    let (edges, mut leases) = (lab(8, 11), Leases::new());
    let given: Vec<_> = (100..110).map_while(|m| offer(&mut leases, &edges, m, NOW)).collect();
    assert_eq!(given, [at(8), at(9), at(11)]);
    let (edges, mut leases) = (lab(253, 255), Leases::new());
    let given: Vec<_> = (100..110).map_while(|m| offer(&mut leases, &edges, m, NOW)).collect();
    assert_eq!(given, [at(253)]);
}

#[test]
fn an_address_nobody_had_goes_before_one_that_ran_out_and_the_oldest_of_those_first() {
    let (table, mut leases) = (lab(100, 103), Leases::new());
    leases.bind(bound(mac(1), at(101), NOW, 20));
    leases.bind(bound(mac(2), at(100), NOW, 30));
    leases.bind(bound(mac(4), at(103), NOW, 10));
    let given: Vec<_> = (50..54).map(|m| offer(&mut leases, &table, m, later(40))).collect();
    assert_eq!(given, [102, 103, 101, 100].map(|last| Some(at(last))));
}

#[test]
fn a_machine_gets_the_address_it_had_though_it_ran_out_and_was_given_back() {
    let (table, mut leases) = (lab(100, 120), Leases::new());
    leases.bind(bound(mac(1), at(110), NOW, 10));
    assert_eq!(offer(&mut leases, &table, 1, later(5_000)), Some(at(110)));
    leases.bind(bound(mac(1), at(110), later(5_000), 10));
    let holder = Holder { network: "boot", mac: mac(1), address: at(110) };
    assert!(leases.release(Holder { mac: mac(2), ..holder }, later(5_001)).is_none());
    assert!(leases.release(Holder { address: at(111), ..holder }, later(5_001)).is_none());
    let released = leases.release(holder, later(5_001)).unwrap();
    assert_eq!((released.state, released.until), (LeaseState::Released, later(5_001)));
    assert!(leases.release(holder, later(5_002)).is_none(), "once");
    assert_eq!(offer(&mut leases, &table, 1, later(5_003)), Some(at(110)));
}

#[test]
fn a_clock_that_is_put_back_keeps_no_address_longer_than_it_was_given_for() {
    let (table, mut leases) = (lab(100, 102), Leases::new());
    let year = 366 * 24 * 3_600;
    let has = |leases: &mut Leases, m, address, now| {
        leases.may_have(&table.networks[0], &table, mac(m), address, now)
    };
    leases.bind(bound(mac(1), at(100), later(year), 120));
    assert_eq!(offer(&mut leases, &table, 2, later(year)), Some(at(101)));
    leases.bind(bound(mac(3), at(102), later(year), 120));
    assert!(
        leases
            .decline(Holder { network: "boot", mac: mac(3), address: at(102) }, later(year))
            .is_some()
    );
    // A second, or a minute, is no step.
    assert_eq!(offer(&mut leases, &table, 4, later(year - 60)), None);
    for restarted in [false, true] {
        if restarted {
            let records: Vec<Lease> = leases.live().cloned().collect();
            leases = Leases::new();
            records.into_iter().for_each(|lease| leases.replay(lease));
        }
        assert!(has(&mut leases, 1, at(100), NOW) && !has(&mut leases, 4, at(100), later(119)));
        assert!(has(&mut leases, 4, at(100), later(121)));
        assert!(restarted || has(&mut leases, 2, at(101), later(59)));
        assert!(has(&mut leases, 4, at(101), later(61)));
        assert!(
            !has(&mut leases, 4, at(102), later(599)) && has(&mut leases, 4, at(102), later(601))
        );
    }
    assert_eq!(offer(&mut leases, &table, 4, later(700)), Some(at(101)));
}

#[test]
fn a_wish_is_granted_if_nobody_else_has_the_address() {
    let (table, mut leases) = (lab(100, 120), Leases::new());
    let network = &table.networks[0];
    let mut wish = |m, last| leases.offer(network, &table, mac(m), Some(at(last)), NOW);
    assert_eq!(wish(50, 115), Some(at(115)));
    assert_eq!(wish(51, 115), Some(at(100)), "offered to another");
    assert_eq!(wish(52, 77), Some(at(101)), "reserved");
    assert_eq!(wish(53, 10), Some(at(102)), "ours");
    assert_eq!(wish(50, 116), Some(at(115)), "it was offered one already");
}

#[test]
fn what_is_declined_is_kept_back_for_ten_minutes_and_never_more_than_half_the_pool() {
    let (table, mut leases) = (lab(100, 103), Leases::new());
    let mut states = vec![];
    for turn in 0..4 {
        let now = later(turn);
        let address = offer(&mut leases, &table, 50, now).unwrap();
        let holder = Holder { network: "boot", mac: mac(50), address };
        assert!(leases.decline(Holder { mac: mac(51), ..holder }, now).is_none());
        states.push(leases.decline(holder, now).unwrap().state);
    }
    assert_eq!(states.iter().filter(|state| **state == LeaseState::Taken).count(), 2);
    assert_eq!(leases.pool_use(&table.networks[0], &table, later(4)).taken, 2);
    assert!(offer(&mut leases, &table, 52, later(4)).is_some());
    assert_eq!(leases.pool_use(&table.networks[0], &table, later(700)).taken, 0);
}

#[test]
fn a_flood_of_strangers_is_bounded_and_shuts_nobody_out_for_long() {
    let (table, mut leases) = (lab(100, 103), Leases::new());
    let network = &table.networks[0];
    let stranger = |n: u32| {
        let [a, b, c, d] = n.to_be_bytes();
        MacAddr([2, 9, a, b, c, d])
    };
    let granted = (0..10_000)
        .filter(|n| leases.offer(network, &table, stranger(*n), None, NOW).is_some())
        .count();
    assert_eq!(granted, 4);
    assert_eq!(offer(&mut leases, &table, 50, later(9)), None);
    assert!(offer(&mut leases, &table, 50, later(11)).is_some(), "in place of the oldest offer");
    let book = &leases.books["boot"];
    assert_eq!((book.slots.len(), book.queue.len()), (4, 4));

    let mut wide = table.clone();
    wide.networks[0].subnet = Ipv4Addr::new(192, 0, 0, 0);
    wide.networks[0].prefix = 16;
    let pool = model::boot::Pool { first: [192, 0, 0, 1].into(), last: [192, 0, 250, 0].into() };
    wide.networks[0].mode = DhcpMode::Full(pool);
    let mut leases = Leases::new();
    for n in 0..10_000 {
        assert!(leases.offer(&wide.networks[0], &wide, stranger(n), None, NOW).is_some(), "{n}");
    }
    assert_eq!(leases.books["boot"].open_offers(), OFFERS);
}

#[test]
fn addresses_are_pinged_ahead_and_those_known_to_be_free_are_preferred() {
    let (table, mut leases) = (lab(100, 200), Leases::new());
    let network = &table.networks[0];
    let asked: Vec<_> =
        std::iter::from_fn(|| leases.to_probe(network, &table, NOW)).take(100).collect();
    assert_eq!(asked.len(), probe::AHEAD, "ahead, not the whole pool: {asked:?}");
    assert_eq!(leases.probed(network, at(103), Probed::Free, NOW), None);
    assert_eq!(offer(&mut leases, &table, 50, NOW), Some(at(103)));
    let by = Some(mac(99));
    let taken = leases.probed(network, at(100), Probed::Used { by }, NOW).unwrap();
    assert_eq!((taken.state, taken.mac, taken.address), (LeaseState::Taken, mac(99), at(100)));
    assert_eq!(offer(&mut leases, &table, 51, NOW), Some(at(101)), "not the one in use");
    assert_eq!(leases.to_probe(network, &table, later(1)), Some(at(132)), "as many ahead again");
    let again = leases.to_probe(network, &table, later(61));
    assert_eq!(again, Some(at(102)), "the first free one, a minute later");
}

#[test]
fn a_ping_of_the_machine_itself_takes_nothing_from_it() {
    let (table, mut leases) = (lab(100, 103), Leases::new());
    let network = &table.networks[0];
    let address = offer(&mut leases, &table, 50, NOW).unwrap();
    for by in [Some(mac(50)), None] {
        assert_eq!(leases.probed(network, address, Probed::Used { by }, NOW), None, "{by:?}");
    }
    assert!(leases.may_have(network, &table, mac(50), address, NOW));
    let stranger = Probed::Used { by: Some(mac(9)) };
    assert_eq!(leases.probed(network, address, stranger, NOW).unwrap().mac, mac(50));
    assert!(!leases.may_have(network, &table, mac(50), address, NOW), "refused when it asks");
    assert_ne!(offer(&mut leases, &table, 50, NOW), Some(address));
    leases.bind(bound(mac(51), at(103), NOW, 60));
    assert_eq!(leases.probed(network, at(103), stranger, NOW), None, "it has its ACK");
}

#[test]
fn leases_survive_a_restart_in_whatever_order_the_log_has_them() {
    let (table, mut leases) = (lab(100, 110), Leases::new());
    leases.bind(bound(mac(1), at(109), NOW, 600));
    leases.bind(bound(mac(1), at(102), later(1), 600)); // It moved: 109 is free.
    leases.bind(bound(mac(2), at(105), later(1), 600));
    let records: Vec<Lease> = leases.live().cloned().collect();
    assert_eq!(records.len(), 3);
    let mut again = Leases::new();
    records.into_iter().for_each(|lease| again.replay(lease));
    assert_eq!(offer(&mut again, &table, 1, later(2)), Some(at(102)));
    assert_eq!(offer(&mut again, &table, 2, later(2)), Some(at(105)));
    assert!(!again.may_have(&table.networks[0], &table, mac(9), at(105), later(2)));
    assert!(again.may_have(&table.networks[0], &table, mac(9), at(109), later(2)));
}

#[test]
fn a_pool_that_is_moved_and_a_reservation_that_comes_and_goes_lose_no_address() {
    let (mut table, mut leases) = (lab(100, 102), Leases::new());
    leases.bind(bound(mac(1), at(101), NOW, 600));
    assert_eq!(offer(&mut leases, &table, 50, NOW), Some(at(100)));
    let moved = lab(101, 104);
    let given: Vec<_> = (51..60).map_while(|m| offer(&mut leases, &moved, m, NOW)).collect();
    assert_eq!(given, [at(102), at(103), at(104)]);
    let bare = table.clone();
    table.insert(BootEntry {
        node: "new".parse().unwrap(),
        macs: vec![mac(60)],
        address: at(100),
        intent: BootIntent::Ask,
        attempt: None,
        traits: model::boot::BootTraits::default(),
    });
    assert_eq!(offer(&mut leases, &table, 61, later(500)), Some(at(102)));
    assert_eq!(offer(&mut leases, &bare, 62, later(561)), Some(at(100)), "nobody's again");
}

/// One thing that happens.
#[derive(Debug, Clone)]
enum Event {
    Offer(u8, Option<u8>),
    Take(u8, u8),
    Release(u8, u8),
    Decline(u8, u8),
    Probe(bool, Option<u8>),
    Pass(u64),
    Restart,
    Resize(u8),
}

fn event() -> impl Strategy<Value = Event> {
    let (who, what) = (50..58_u8, 96..108_u8);
    prop_oneof![
        3 => (who.clone(), prop::option::of(what.clone())).prop_map(|(m, a)| Event::Offer(m, a)),
        4 => (who.clone(), what.clone()).prop_map(|(m, a)| Event::Take(m, a)),
        1 => (who.clone(), what.clone()).prop_map(|(m, a)| Event::Release(m, a)),
        1 => (who.clone(), what).prop_map(|(m, a)| Event::Decline(m, a)),
        1 => (any::<bool>(), prop::option::of(who)).prop_map(|(f, m)| Event::Probe(f, m)),
        2 => (1..400_u64).prop_map(Event::Pass),
        1 => Just(Event::Restart),
        1 => (100..106_u8).prop_map(Event::Resize),
    ]
}

proptest! {
    #[test]
    fn no_address_is_two_machines_whatever_happens(events in prop::collection::vec(event(), 0..60)) {
        let (mut leases, mut now, mut table) = (Leases::new(), NOW, lab(98, 105));
        for event in events {
            let network = table.networks[0].clone();
            let holder = |m, a| Holder { network: "boot", mac: mac(m), address: at(a) };
            match event {
                Event::Offer(m, wish) => {
                    let wish = wish.map(at);
                    if let Some(address) = leases.offer(&network, &table, mac(m), wish, now) {
                        prop_assert!(leases.may_have(&network, &table, mac(m), address, now));
                        let again = leases.offer(&network, &table, mac(m), wish, now);
                        prop_assert_eq!(again, Some(address));
                    }
                }
                Event::Take(m, a) => {
                    let others = leases.live().any(|lease| {
                        lease.address == at(a) && lease.mac != mac(m)
                            && lease.state == LeaseState::Bound && lease.until > now
                    });
                    if leases.may_have(&network, &table, mac(m), at(a), now) {
                        prop_assert!(!others, "{} is another's", a);
                        leases.bind(bound(mac(m), at(a), now, 300));
                    }
                }
                Event::Release(m, a) => drop(leases.release(holder(m, a), now)),
                Event::Decline(m, a) => drop(leases.decline(holder(m, a), now)),
                Event::Probe(is_free, by) => {
                    if let Some(address) = leases.to_probe(&network, &table, now) {
                        let by = by.map(mac);
                        let found = if is_free { Probed::Free } else { Probed::Used { by } };
                        leases.probed(&network, address, found, now);
                    }
                }
                Event::Pass(seconds) => now = now.plus(Duration::from_secs(seconds)),
                Event::Restart => {
                    let records: Vec<Lease> = leases.live().cloned().collect();
                    leases = Leases::new();
                    records.into_iter().for_each(|lease| leases.replay(lease));
                }
                Event::Resize(last) => table = lab(98, last),
            }
            let mut machines: Vec<MacAddr> = leases
                .live()
                .filter(|lease| lease.state == LeaseState::Bound && lease.until > now)
                .map(|lease| lease.mac)
                .collect();
            let all = machines.len();
            machines.sort_unstable();
            machines.dedup();
            prop_assert_eq!(machines.len(), all, "a machine has one address");
            if let Some(book) = leases.books.get("boot") {
                for (free_at, address) in &book.queue {
                    let known = book.slots.get(address).map_or(NEVER, |slot| slot.free_at);
                    prop_assert_eq!(known, *free_at);
                }
                if let Some(pool) = book.pool() {
                    prop_assert_eq!(book.queue.len(), usize::try_from(pool.size()).unwrap());
                }
            }
        }
    }
}
