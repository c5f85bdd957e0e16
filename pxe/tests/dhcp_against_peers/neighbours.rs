//! Who else is on the segment: a machine that sits on an address of the pool, and clients that look for a router.

use std::net::Ipv4Addr;

use model::{LeaseState, Sighted, boot::DhcpMode};

use crate::{
    clients::udhcpc,
    rig::{STRANGER_MAC, Segment, Server, config, until},
};

#[test]
fn an_address_somebody_sits_on_is_not_given_away() {
    let Some(mut segment) = Segment::up("taken", &["busybox"]) else { return };
    let squatter = "02:5a:30:00:00:07";
    segment.host("sit", Some(squatter), Some("192.0.2.100/24"));
    segment.host("cli", Some(STRANGER_MAC), None);
    segment.enter("srv");
    let mut config = config(None);
    config.listeners[0].checks_conflicts = true;
    let server = Server::start(
        &config,
        DhcpMode::Full(model::boot::Pool {
            first: [192, 0, 2, 100].into(),
            last: [192, 0, 2, 101].into(),
        }),
    );
    // Looked at before anybody asks for it.
    let taken = server.sighted("who sits there", |sighting| {
        matches!(sighting.what, Sighted::AddressTaken { .. })
    });
    let Sighted::AddressTaken { address, by } = taken.what else { panic!("{taken:?}") };
    assert_eq!(address, Ipv4Addr::new(192, 0, 2, 100));
    assert_eq!(by.map(|by| by.to_string()).as_deref(), Some(squatter));
    let free = Ipv4Addr::new(192, 0, 2, 101);
    assert_eq!(udhcpc(&segment, "cli", &[]), Some(free));
    let kept = until("it is on record", || server.leases.try_recv());
    assert_eq!((kept.address, kept.state), (address, LeaseState::Taken));
    until("it is counted", || server.network().pool.filter(|pool| pool.taken == 1));
}

#[test]
fn a_client_that_looks_for_a_router_hears_that_there_is_none() {
    let Some(mut segment) = Segment::up("ra", &["rdisc6"]) else { return };
    segment.host("cli", Some(STRANGER_MAC), None);
    segment.enter("srv");
    let mut config = config(None);
    config.listeners[0].advertises = true;
    let server = Server::start(&config, DhcpMode::Reserved);
    // Link-local addresses take a moment to be tried for duplicates.
    let text = until("an advertisement", || {
        let text = segment.run("cli", "rdisc6", &["-1", "-r", "1", "-w", "1000", "eth0"]);
        text.contains("Router lifetime").then_some(text)
    });
    let line = |name: &str| {
        let found = text.lines().find(|line| line.trim_start().starts_with(name));
        found.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
    };
    assert!(line("Router lifetime").is_some_and(|value| value.starts_with('0')), "{text}");
    assert!(!text.contains("Prefix"), "{text}");
    assert_eq!(server.network().findings, []);
    // The system takes no route and no address from it.
    let routes = segment.run("cli", "ip", &["-6", "route", "show", "default"]);
    assert_eq!(routes.trim(), "");
}
