//! Clients of operating systems, a relay, and a load generator.

use std::{
    collections::BTreeSet,
    fs,
    net::{Ipv4Addr, UdpSocket},
    thread,
};

use model::{ClientArch, LeaseState, MacAddr, Sighted, boot::DhcpMode, sighting::DhcpKind};
use pxe_proto::dhcp::{Answer, ClientMessage, RelayInfo};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;

use crate::rig::{
    BOUND, NODE, NODE_MAC, POOL, SERVER, STRANGER_MAC, Segment, Server, config, mac_of, network,
    until,
};

/// dhclient's address, asked for under a client identifier.
pub(crate) fn dhclient(segment: &Segment, host: &str, identifier: Option<&str>) -> Ipv4Addr {
    let (settings, leases) =
        (segment.dir.join("dhclient.conf"), segment.dir.join("dhclient.leases"));
    let text = identifier.map(|id| format!("send dhcp-client-identifier \"{id}\";\n"));
    fs::write(&settings, text.unwrap_or_default()).unwrap();
    let _old = fs::remove_file(&leases);
    fs::write(&leases, "").unwrap();
    let (settings, leases) = (settings.to_str().unwrap(), leases.to_str().unwrap());
    let pid = segment.dir.join("dhclient.pid");
    let args = [
        "-d",
        "-1",
        "-v",
        "-sf",
        "/bin/true",
        "-cf",
        settings,
        "-lf",
        leases,
        "-pf",
        pid.to_str().unwrap(),
        "eth0",
    ];
    // In the foreground it stays; it is ended once it has its lease.
    let mut client = segment.command(host, "dhclient", &args);
    let log = segment.dir.join("dhclient.log");
    let file = fs::File::create(&log).unwrap();
    client.stdout(file.try_clone().unwrap()).stderr(file);
    let mut client = client.spawn().unwrap();
    let address = until("dhclient is bound", || {
        let text = fs::read_to_string(&log).unwrap();
        word_after(&text, "bound to ").map(|address| address.parse().unwrap())
    });
    client.kill().unwrap();
    client.wait().unwrap();
    address
}

/// udhcpc's address, with options of its own.
pub(crate) fn udhcpc(segment: &Segment, host: &str, options: &[&str]) -> Option<Ipv4Addr> {
    let script = segment.dir.join("udhcpc.sh");
    fs::write(&script, "#!/bin/sh\necho \"$1 address=$ip file=$boot_file\"\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, mode).unwrap();
    let fixed = [
        "udhcpc",
        "-f",
        "-q",
        "-n",
        "-t",
        "5",
        "-T",
        "2",
        "-i",
        "eth0",
        "-s",
        script.to_str().unwrap(),
    ];
    let text = segment.run(host, "busybox", &[&fixed, options].concat());
    word_after(&text, "bound address=").map(|address| address.parse().unwrap())
}

/// dhcpcd's address; it calls itself by a DUID.
fn dhcpcd(segment: &Segment, host: &str) -> Ipv4Addr {
    let args = ["-4", "-1", "-B", "-d", "--noarp", "-c", "/bin/true", "-f", "/dev/null", "eth0"];
    let text = segment.run(host, "dhcpcd", &args);
    let address = word_after(&text, "leased ");
    address.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

fn word_after<'t>(text: &'t str, before: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_whitespace().next()
}

#[test]
fn three_foreign_clients_with_their_own_identifiers_get_one_address_of_the_pool() {
    let Some(mut segment) = Segment::up("three", &["dhclient", "busybox", "dhcpcd", "tcpdump"])
    else {
        return;
    };
    segment.host("cli", Some(STRANGER_MAC), None);
    let wire = segment.listen("cli", "udp port 67");
    segment.enter("srv");
    let server = Server::start(&config(None), POOL);

    let first = udhcpc(&segment, "cli", &[]).unwrap();
    assert!((100..150).contains(&first.octets()[3]), "{first} is of the pool");
    assert_eq!(
        udhcpc(&segment, "cli", &["-x", "0x3d:00616263"]),
        Some(first),
        "another identifier"
    );
    assert_eq!(udhcpc(&segment, "cli", &["-C", "-B"]), Some(first), "none, and by broadcast");
    assert_eq!(dhclient(&segment, "cli", None), first);
    assert_eq!(dhclient(&segment, "cli", Some("somebody else")), first);
    assert_eq!(dhcpcd(&segment, "cli"), first);

    let lease = until("the lease is told", || server.leases.try_recv());
    assert_eq!(
        (lease.address, lease.mac, lease.state),
        (first, mac_of(STRANGER_MAC), LeaseState::Bound)
    );
    let framed = format!("> {STRANGER_MAC}, ethertype IPv4");
    let sent = format!("192.0.2.1.67 > {first}.68: BOOTP/DHCP, Reply");
    until("an answer without ARP, to the hardware address", || {
        let text = fs::read_to_string(&wire).unwrap();
        text.lines().any(|line| line.contains(&framed) && line.contains(&sent)).then_some(())
    });
    let pool =
        until("the pool is counted", || server.network().pool.filter(|pool| pool.bound == 1));
    assert_eq!((pool.size, pool.taken), (50, 0));
    let counters = server.network().dhcp;
    assert!(counters.acks >= 6 && counters.offers >= 4, "{counters:?}");
    assert_eq!((counters.late_acks, counters.dropped_requests), (0, 0));
}

#[test]
fn a_known_node_gets_its_reservation_and_a_system_no_boot_file() {
    let Some(mut segment) = Segment::up("node", &["dhclient", "busybox"]) else { return };
    segment.host("cli", Some(NODE_MAC), None);
    segment.host("other", Some(STRANGER_MAC), None);
    segment.enter("srv");
    let server = Server::start(&config(None), DhcpMode::Reserved);
    assert_eq!(udhcpc(&segment, "cli", &[]), Some(NODE));
    assert_eq!(dhclient(&segment, "cli", Some("the system")), NODE);
    let ack = server.sighted("an ACK", |sighting| {
        matches!(sighting.what, Sighted::DhcpOut { kind: DhcpKind::Ack, .. })
    });
    assert_eq!(ack.node.unwrap().to_string(), "bld-003");
    assert!(matches!(ack.what, Sighted::DhcpOut { file: None, address: NODE, .. }));
    let kept = until("a packet is kept", || server.packets.try_recv());
    assert_eq!((kept.to.port(), kept.from.port(), kept.length >= 300), (67, 68, true));
    assert_eq!(udhcpc(&segment, "other", &["-t", "1"]), None, "a stranger gets nothing");
    server.sighted("why", |sighting| sighting.mac == Some(mac_of(STRANGER_MAC)));
}

#[test]
fn a_client_behind_a_foreign_relay_gets_an_address_and_its_place_is_on_record() {
    let Some(mut segment) = Segment::up("relay", &["dhclient", "busybox", "dhcrelay"]) else {
        return;
    };
    segment.host("rel", None, Some("192.0.2.2/24"));
    segment.namespace("far");
    segment.cable(("rel", "eth1", Some("198.51.100.1/24")), ("far", "eth0", STRANGER_MAC));
    segment.ip("srv", "route add 198.51.100.0/24 via 192.0.2.2");
    segment.enter("srv");
    let server = Server::start(&config(None), POOL);
    server.change(|table| {
        let mut far = network(DhcpMode::Full(model::boot::Pool {
            first: [198, 51, 100, 50].into(),
            last: [198, 51, 100, 59].into(),
        }));
        (far.name, far.subnet) = ("far".to_owned(), [198, 51, 100, 0].into());
        far.router = Some([198, 51, 100, 1].into());
        table.networks.push(far);
    });
    // It strips its own option 82 from answers, and drops those that do not have it (-a, -D).
    let log = segment.start(
        "rel",
        "dhcrelay",
        &["-4", "-d", "-a", "-D", "-iu", "eth0", "-id", "eth1", &SERVER.to_string()],
    );
    until("the relay listens", || {
        fs::read_to_string(&log).unwrap().contains("Socket/fallback").then_some(())
    });
    let address = udhcpc(&segment, "far", &[]).unwrap();
    assert!((50..60).contains(&address.octets()[3]) && address.octets()[0] == 198, "{address}");
    let lease = until("the lease is told", || server.leases.try_recv());
    assert_eq!((lease.network.as_str(), lease.address), ("far", address));
    let location = lease.location.unwrap();
    assert!(location.starts_with("198.51.100.1") && location.contains("eth1"), "{location}");
}

#[test]
fn three_thousand_machines_that_ask_at_once_are_all_answered() {
    let Some(mut segment) = Segment::up("burst", &[]) else { return };
    segment.host("load", None, Some("192.0.2.9/24"));
    segment.enter("srv");
    let server = Server::start(&config(None), wide());
    server.change(|table| {
        (table.networks[0].prefix, table.networks[0].subnet) = (16, [192, 0, 0, 0].into())
    });
    let answered = thread::scope(|scope| {
        let burst = scope.spawn(|| {
            segment.enter("load");
            burst(3000)
        });
        burst.join().unwrap()
    });
    assert_eq!(answered.len(), 3000, "an address for each");
    // Counted a moment after they left.
    let counters = until("all are counted", || {
        Some(server.network().dhcp).filter(|counters| counters.offers == 3000)
    });
    assert_eq!((counters.heard, counters.dropped_discovers), (3000, 0));
}

/// DISCOVERs of so many machines, as fast as they can be sent, through a relay; the addresses offered.
fn burst(machines: u32) -> BTreeSet<Ipv4Addr> {
    let relay = Ipv4Addr::new(192, 0, 2, 9);
    let socket = UdpSocket::bind((relay, 67)).unwrap();
    // Their OFFERs have to wait until all are sent.
    set_socket_recv_buffer_size_force(&socket, 16 * 1024 * 1024).unwrap();
    socket.set_read_timeout(Some(BOUND)).unwrap();
    for n in 0..machines {
        let [_, _, high, low] = n.to_be_bytes();
        let mac = MacAddr([2, 0x5a, 0x40, 0, high, low]);
        let discover = ClientMessage::pxe(DhcpKind::Discover, n, mac, ClientArch(7));
        let relayed = discover.message().through_relay(relay, &RelayInfo::default());
        socket.send_to(&relayed.encode(), (SERVER, 67)).unwrap();
    }
    let mut buffer = [0; 2048];
    let offers = (0..machines).map(|_| {
        let length = socket.recv(&mut buffer).unwrap();
        Answer::decode(&buffer[..length]).unwrap().yiaddr
    });
    offers.collect()
}

#[test]
fn perfdhcp_loses_no_exchange_and_no_record() {
    let Some(mut segment) = Segment::up("perf", &["perfdhcp"]) else { return };
    segment.host("load", None, Some("192.0.2.9/24"));
    segment.enter("srv");
    let log = segment.dir.join("leases");
    let server = Server::start(&config(Some(log.clone())), wide());
    server.change(|table| table.networks[0].prefix = 16);
    server.change(|table| table.networks[0].subnet = [192, 0, 0, 0].into());
    let args =
        ["-4", "-n", "1000", "-R", "1000", "-r", "500", "-W", "2000000", "-l", "eth0", "192.0.2.1"];
    let text = segment.run("load", "perfdhcp", &args);
    assert_eq!(text.matches("drops: 0\n").count(), 2, "{text}");
    let counters = until("all are counted", || {
        Some(server.network().dhcp).filter(|counters| counters.acks == 1000)
    });
    assert_eq!((counters.offers, counters.dropped_requests), (1000, 0));
    let records = fs::read_to_string(&log).unwrap();
    assert_eq!(records.matches("\tbound\t").count(), 1000);
}

/// A pool for a storm.
fn wide() -> DhcpMode {
    DhcpMode::Full(model::boot::Pool {
        first: [192, 0, 16, 0].into(),
        last: [192, 0, 47, 255].into(),
    })
}
