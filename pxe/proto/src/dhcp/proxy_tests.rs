//! Beside another DHCP server, and port 4011: cases 01, 03, 05, 09 and what is like them.

use std::net::{Ipv4Addr, SocketAddrV4};

use model::{
    BootTable, ClientArch,
    boot::{DhcpMode, Pool},
    sighting::DhcpKind::{self, Ack, Decline, Discover, Inform, Offer, Release},
};

use super::{
    decide_tests::{ARRIVAL, NODE, NOW, SERVER, file_of, mac, rom, table},
    *,
};
use crate::pcap::shared;

/// Where the other server put the machine.
const THERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 84);

fn in_mode(mode: DhcpMode) -> BootTable {
    let mut table = table();
    table.networks[0].mode = mode;
    let mut entry = (*table.by_mac[&mac(3)]).clone();
    entry.node = "bld-001".parse().unwrap();
    entry.macs = vec![mac(1)];
    entry.address = Ipv4Addr::UNSPECIFIED;
    if mode == DhcpMode::Proxy {
        table.insert(entry);
    } else {
        entry.address = THERE;
        table.insert(entry);
    }
    table
}

fn on(port: ServerPort, from_port: u16) -> Arrival {
    match port {
        ServerPort::Dhcp => ARRIVAL,
        ServerPort::Proxy => Arrival { from: SocketAddrV4::new(THERE, from_port), port, ..ARRIVAL },
    }
}

fn decided(bytes: &[u8], arrival: Arrival, table: &BootTable) -> Decision {
    decide(&Request::decode(bytes).unwrap(), arrival, table, &mut Leases::new(), NOW)
}

fn reply(bytes: &[u8], arrival: Arrival, table: &BootTable) -> Reply {
    match decided(bytes, arrival, table).outcome {
        Outcome::Reply(reply) => {
            assert_eq!(Answer::decode(&reply.answer.encode(1472)).as_ref(), Ok(&reply.answer));
            *reply
        }
        Outcome::Silent { why } => panic!("silent: {why}"),
    }
}

fn is_silent(bytes: &[u8], arrival: Arrival, table: &BootTable) -> bool {
    matches!(decided(bytes, arrival, table).outcome, Outcome::Silent { .. })
}

/// No address, no lease, no mask, no router; us as next server and server.
fn gives_no_address(reply: &Reply) {
    let message = reply.answer.message();
    assert_eq!(message.yiaddr, Ipv4Addr::UNSPECIFIED);
    for code in [1, 3, 6, 12, 51, 58, 59, 175] {
        assert_eq!(message.options.get(code), None, "{code}");
    }
    assert_eq!((message.siaddr, reply.answer.server_id), (SERVER, SERVER));
}

#[test]
fn case_01_a_request_on_4011_is_answered_and_the_same_on_67_is_not() {
    let mut own = rom(1, 0).message();
    own.options.set(code::MESSAGE_TYPE, [3]);
    own.options.set(code::VENDOR, [71, 4, 0x80, 0, 0, 0, 255]);
    own.options.set(code::MACHINE_ID, [[0].as_slice(), &[0xa1; 16]].concat());
    own.ciaddr = THERE;
    own.flags = 0;
    let theirs = shared("cases/inputs/01-4011-request.bin");
    for bytes in [Some(own.encode()), theirs].into_iter().flatten() {
        let table = in_mode(DhcpMode::Proxy);
        let decision = decided(&bytes, on(ServerPort::Proxy, 68), &table);
        assert_eq!(decision.seen_at, Some(THERE));
        let reply = reply(&bytes, on(ServerPort::Proxy, 68), &table);
        gives_no_address(&reply);
        assert_eq!(reply.to, Destination::Address(SocketAddrV4::new(THERE, 68)));
        assert_eq!((reply.answer.kind, file_of(&reply)), (Ack, Some("undionly.kpxe")));
        let message = reply.answer.message();
        assert_eq!(message.options.get(code::VENDOR_CLASS), Some(&b"PXEClient"[..]));
        let vendor = message.options.get(code::VENDOR).unwrap();
        assert_eq!(vendor, [6, 1, 8, 71, 4, 0x80, 0, 0, 0, 255], "the entry it chose, again");
        let sent = Message::decode(&bytes).unwrap();
        assert_eq!(message.options.get(97), sent.options.get(97));
        assert!(is_silent(&bytes, ARRIVAL, &table), "on 67 it is the other server's");
    }
}

#[test]
fn every_kind_of_4011_request_is_answered_to_where_it_came_from_in_every_mode() {
    let pool = Pool { first: [192, 0, 2, 64].into(), last: [192, 0, 2, 127].into() };
    for mode in [DhcpMode::Proxy, DhcpMode::Full(pool), DhcpMode::Reserved] {
        let table = in_mode(mode);
        for (arch, file) in
            [(0, "undionly.kpxe"), (6, "ia32.efi"), (7, "snponly.efi"), (9, "snponly.efi")]
        {
            for (kind, port, server_id, machine_id) in [
                (DhcpKind::Request, 4011, None, Some([7; 16])), // EDK2
                (DhcpKind::Request, 68, Some(SERVER), None),    // iPXE
                (Inform, 68, None, None),
                (DhcpKind::Request, 40_000, None, None),
            ] {
                let message = ClientMessage {
                    kind,
                    server_id,
                    machine_id,
                    ciaddr: THERE,
                    ..ClientMessage::pxe(kind, 77, mac(1), ClientArch(arch))
                };
                let arrival = on(ServerPort::Proxy, port);
                let reply = reply(&message.encode(), arrival, &table);
                gives_no_address(&reply);
                assert_eq!(reply.to, Destination::Address(SocketAddrV4::new(THERE, port)));
                assert_eq!((reply.answer.kind, file_of(&reply)), (Ack, Some(file)), "{arch}");
                assert_eq!(reply.answer.machine_id.is_some(), machine_id.is_some());
            }
        }
    }
    assert!(is_silent(&rom(1, 0).encode(), on(ServerPort::Proxy, 68), &in_mode(DhcpMode::Proxy)));
    let mut off = in_mode(DhcpMode::Off);
    for port in [ServerPort::Dhcp, ServerPort::Proxy] {
        let ask = ClientMessage { kind: DhcpKind::Request, ciaddr: THERE, ..rom(1, 0) };
        assert!(is_silent(&ask.encode(), on(port, 68), &off));
    }
    off.networks.clear();
    assert!(is_silent(&rom(1, 0).encode(), ARRIVAL, &off));
}

#[test]
fn a_discover_gets_the_boot_file_beside_the_other_offer() {
    let table = in_mode(DhcpMode::Proxy);
    let theirs = shared("cases/inputs/09-no-guid.bin");
    for bytes in [Some(rom(9, 0).encode()), theirs].into_iter().flatten() {
        let reply = reply(&bytes, ARRIVAL, &table);
        gives_no_address(&reply);
        assert_eq!((reply.answer.kind, file_of(&reply)), (Offer, Some("undionly.kpxe")));
        assert_eq!((reply.answer.machine_id.clone(), reply.to), (None, Destination::Broadcast));
        assert_eq!(reply.answer.pxe_client.as_deref(), Some(&[6, 1, 8, 255][..]));
    }
    let ipxe = ClientMessage::ipxe(Discover, 5, mac(3), ClientArch(7));
    let reply = reply(&ipxe.encode(), ARRIVAL, &table);
    gives_no_address(&reply);
    assert_eq!(file_of(&reply), Some("http://192.0.2.10:8067/boot.ipxe?mac=02-5a-10-00-00-03"));
    assert_eq!(reply.answer.message().options.get(code::VENDOR_CLASS), Some(&b"PXEClient"[..]));
    assert_eq!(
        (reply.answer.message().options.get(code::VENDOR), reply.to),
        (None, Destination::Broadcast)
    );
}

#[test]
fn case_05_beside_another_server() {
    let table = in_mode(DhcpMode::Proxy);
    let url = "http://192.0.2.10:8067/";
    for (letter, arch, want) in [
        ('a', 0, Some("undionly.kpxe".to_owned())),
        ('b', 6, Some("ia32.efi".to_owned())),
        ('c', 7, Some("snponly.efi".to_owned())),
        ('d', 9, Some("snponly.efi".to_owned())),
        ('e', 11, Some("arm64.efi".to_owned())),
        ('f', 16, Some(format!("{url}snponly.efi"))),
        ('g', 19, Some(format!("{url}arm64.efi"))),
        ('i', 0x0f00, None),
    ] {
        let is_http = [16, 19].contains(&arch);
        let own = if is_http {
            ClientMessage::http_boot(Discover, 5, mac(5), ClientArch(arch))
        } else {
            rom(5, arch)
        };
        let theirs = shared(&format!("cases/inputs/05{letter}-arch.bin"));
        for bytes in [Some(own.encode()), theirs].into_iter().flatten() {
            let Some(want) = &want else {
                assert!(is_silent(&bytes, ARRIVAL, &table), "nothing to say");
                continue;
            };
            let reply = reply(&bytes, ARRIVAL, &table);
            gives_no_address(&reply);
            assert_eq!(file_of(&reply), Some(want.as_str()), "{letter}");
            let class = if is_http { &b"HTTPClient"[..] } else { b"PXEClient" };
            let message = reply.answer.message();
            assert_eq!(message.options.get(code::VENDOR_CLASS), Some(class), "{letter}");
            assert_eq!(message.options.get(code::VENDOR).is_some(), !is_http, "{letter}");
        }
    }
}

#[test]
fn nobody_else_hears_us_beside_another_server() {
    let table = in_mode(DhcpMode::Proxy);
    let other = Ipv4Addr::new(192, 0, 2, 1);
    let ciaddr = THERE;
    let mut bootp = rom(1, 0).message();
    bootp.options.remove(code::MESSAGE_TYPE);
    let cases = [
        ("unknown", rom(0x99, 0).message()),
        ("unknown iPXE", ClientMessage::ipxe(Discover, 1, mac(0x99), ClientArch(0)).message()),
        ("system", ClientMessage::system(Discover, 1, mac(1)).message()),
        ("taking the other's offer", rom(1, 7).selecting(THERE, other).message()),
        (
            "rebooting",
            ClientMessage { server_id: None, ..rom(1, 7).selecting(THERE, other) }.message(),
        ),
        ("renewing", ClientMessage { kind: DhcpKind::Request, ciaddr, ..rom(1, 7) }.message()),
        ("release", ClientMessage { kind: Release, ciaddr, ..rom(1, 7) }.message()),
        ("decline", ClientMessage { kind: Decline, requested: Some(THERE), ..rom(1, 7) }.message()),
        ("inform", ClientMessage { kind: Inform, ciaddr, ..rom(1, 7) }.message()),
        ("BOOTP", bootp),
    ];
    for (name, message) in cases {
        let decision = decided(&message.encode(), ARRIVAL, &table);
        assert!(matches!(decision.outcome, Outcome::Silent { .. }), "{name}: {decision:?}");
        assert_eq!((decision.rival, decision.lease), (None, None), "{name}");
    }
    let unknown = ClientMessage { kind: DhcpKind::Request, ciaddr, ..rom(0x99, 7) };
    assert!(is_silent(&unknown.encode(), on(ServerPort::Proxy, 4011), &table));
    let system = ClientMessage { ciaddr, ..ClientMessage::system(DhcpKind::Request, 1, mac(1)) };
    assert!(is_silent(&system.encode(), on(ServerPort::Proxy, 68), &table));
}

#[test]
fn a_request_on_67_that_names_us_is_a_proxy_request() {
    let table = in_mode(DhcpMode::Proxy);
    let ipxe = ClientMessage::ipxe(DhcpKind::Request, 1, mac(1), ClientArch(0));
    let ipxe = ClientMessage { ciaddr: THERE, server_id: Some(SERVER), ..ipxe };
    let arrival = Arrival { from: SocketAddrV4::new(THERE, 68), ..ARRIVAL };
    let reply = reply(&ipxe.encode(), arrival, &table);
    gives_no_address(&reply);
    assert_eq!((reply.answer.kind, reply.to), (Ack, Destination::Address(arrival.from)));
}

#[test]
fn where_a_node_is_seen_is_learnt_from_its_own_words_and_never_at_anothers_address() {
    let table = in_mode(DhcpMode::Proxy);
    let other = Ipv4Addr::new(192, 0, 2, 1);
    let seen =
        |message: &ClientMessage, port| decided(&message.encode(), on(port, 68), &table).seen_at;
    let select = |a| rom(1, 7).selecting(a, other);
    let renew = |a| ClientMessage { kind: DhcpKind::Request, ciaddr: a, ..rom(1, 7) };
    assert_eq!(seen(&select(THERE), ServerPort::Dhcp), Some(THERE));
    assert_eq!(seen(&renew(THERE), ServerPort::Dhcp), Some(THERE));
    assert_eq!(seen(&renew(THERE), ServerPort::Proxy), Some(THERE));
    assert_eq!(seen(&select(NODE), ServerPort::Dhcp), None, "reserved for another node");
    assert_eq!(seen(&select(SERVER), ServerPort::Dhcp), None, "ours");
    assert_eq!(seen(&select([198, 51, 100, 1].into()), ServerPort::Dhcp), None, "elsewhere");
    assert_eq!(seen(&rom(1, 7), ServerPort::Dhcp), None, "a DISCOVER says nothing");
    let stranger = ClientMessage { chaddr: mac(0x99), ..select(THERE) };
    assert_eq!(seen(&stranger, ServerPort::Dhcp), None);
    let own = ClientMessage { chaddr: mac(7), ..select(NODE) };
    assert_eq!(seen(&own, ServerPort::Dhcp), Some(NODE), "its declared address");
    let full = in_mode(DhcpMode::Reserved);
    assert_eq!(decided(&select(THERE).encode(), ARRIVAL, &full).seen_at, None);
}

#[test]
fn a_forged_sender_gets_no_answer_sent_elsewhere() {
    let table = in_mode(DhcpMode::Proxy);
    let ask = ClientMessage { kind: DhcpKind::Request, ciaddr: THERE, ..rom(1, 0) };
    let from = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 7), 4011);
    let arrival = Arrival { from, port: ServerPort::Proxy, ..ARRIVAL };
    assert!(is_silent(&ask.encode(), arrival, &table));
}

#[test]
fn a_discover_that_says_it_is_elsewhere_gets_no_answer_sent_there() {
    let table = in_mode(DhcpMode::Proxy);
    let ask = |ciaddr| ClientMessage { ciaddr, ..rom(1, 0) }.encode();
    assert!(is_silent(&ask([198, 51, 100, 7].into()), ARRIVAL, &table));
    assert!(!is_silent(&ask(THERE), ARRIVAL, &table));
}
