//! Networks in mode `full`: strangers, reservations, refusals, and what firmware of all kinds is told there.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    time::Duration,
};

use model::{
    BootTable, ClientArch, UnixMillis,
    boot::{BootNetwork, DhcpMode, DhcpOption, LocalBoot, Pool},
    lease::LeaseState,
    sighting::DhcpKind::{self, Ack, Decline, Discover, Inform, Nak, Offer, Release},
};

use super::{
    decide_tests::{ARRIVAL, NODE, NOW, SERVER, file_of, mac, rom, table},
    *,
};
use crate::pcap::shared;

const FIRST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 100);

fn full() -> BootTable {
    let mut table = table();
    table.networks[0].mode = DhcpMode::Full(Pool { first: FIRST, last: [192, 0, 2, 109].into() });
    table
}

/// A server with its memory.
struct Server {
    table: BootTable,
    leases: Leases,
    now: UnixMillis,
}

impl Server {
    fn new(table: BootTable) -> Self {
        Self { table, leases: Leases::new(), now: NOW }
    }

    fn decide(&mut self, bytes: &[u8]) -> Decision {
        let request = Request::decode(bytes).unwrap();
        decide(&request, ARRIVAL, &self.table, &mut self.leases, self.now)
    }

    fn ask(&mut self, message: &ClientMessage) -> Decision {
        self.decide(&message.encode())
    }

    fn reply(&mut self, bytes: &[u8]) -> Reply {
        match self.decide(bytes).outcome {
            Outcome::Reply(reply) => *reply,
            Outcome::Silent { why } => panic!("silent: {why}"),
        }
    }

    fn silence(&mut self, message: &ClientMessage) -> String {
        match self.ask(message).outcome {
            Outcome::Reply(reply) => panic!("{reply:?}"),
            Outcome::Silent { why } => why,
        }
    }
}

fn kind_of_answer(decision: &Decision) -> Option<DhcpKind> {
    match &decision.outcome {
        Outcome::Reply(reply) => Some(reply.answer.kind),
        Outcome::Silent { .. } => None,
    }
}

#[test]
fn case_07_without_a_reservation_is_one_address_and_one_lease() {
    let mut clients: Vec<Vec<u8>> = vec![
        rom(0x17, 0).encode(),
        ClientMessage::ipxe(Discover, 8, mac(0x17), ClientArch(0)).encode(),
    ];
    for id in [vec![0xff, 0, 0, 0, 0xc1, 0, 1], vec![0xff, 9, 9, 9, 9, 0, 4], vec![0; 300]] {
        let mut message = ClientMessage::system(Discover, 9, mac(0x17)).message();
        message.options.set(code::CLIENT_ID, id);
        clients.push(message.encode());
    }
    let theirs = ["07a", "07b", "07c"].map(|n| shared(&format!("cases/inputs/{n}-clientid.bin")));
    let mut theirs: Vec<Vec<u8>> = theirs.into_iter().flatten().collect();
    for bytes in &mut theirs {
        bytes[33] = 0x17; // A machine without a reservation.
    }
    let mut server = Server::new(full());
    for bytes in clients.iter().chain(&theirs) {
        assert_eq!(server.reply(bytes).answer.yiaddr, FIRST);
        let mut message = Message::decode(bytes).unwrap();
        message.options.set(code::MESSAGE_TYPE, [3]);
        message.options.set(code::REQUESTED_ADDRESS, FIRST.octets());
        message.options.set(code::SERVER_ID, SERVER.octets());
        let decision = server.decide(&message.encode());
        assert_eq!(kind_of_answer(&decision), Some(Ack));
        let lease = decision.lease.unwrap();
        assert_eq!((lease.mac, lease.address), (mac(0x17), FIRST));
        assert_eq!(lease.until, NOW.plus(Duration::from_secs(120)), "short: it is not known");
    }
    assert_eq!(server.leases.live().count(), 1);
}

#[test]
fn known_nodes_have_their_reservation_and_strangers_an_address_and_no_file() {
    let mut server = Server::new(full());
    let known = server.reply(&rom(7, 7).encode());
    assert_eq!((known.answer.yiaddr, file_of(&known)), (NODE, Some("snponly.efi")));
    let stranger = server.reply(&rom(0x55, 7).encode());
    assert_eq!((stranger.answer.yiaddr, file_of(&stranger)), (FIRST, None));
    assert_eq!(stranger.note.unwrap(), "machine 02:5a:10:00:00:55 is not known: no boot file");
    assert_eq!((stranger.answer.host_name, stranger.answer.lease.unwrap().seconds), (None, 120));
    let system = server.reply(&ClientMessage::system(Discover, 1, mac(0x56)).encode());
    assert_eq!((system.note, system.answer.boot_file), (None, None));
}

#[test]
fn a_request_in_any_state_is_acknowledged_or_refused_for_we_are_the_authority() {
    let selecting = |a: Ipv4Addr| rom(0x20, 0).selecting(a, SERVER);
    let reboot = |a| ClientMessage { server_id: None, ..selecting(a) };
    let renew = |a| ClientMessage { kind: DhcpKind::Request, ciaddr: a, ..rom(0x20, 0) };
    let at = |last| Ipv4Addr::new(192, 0, 2, last);
    let other_net = Ipv4Addr::new(198, 51, 100, 7);
    let cases = [
        ("selecting what nobody has", selecting(at(105)), Some(Ack)),
        ("selecting a reservation", selecting(NODE), Some(Nak)),
        ("selecting us", selecting(SERVER), Some(Nak)),
        ("restart of ours: reboot into a free address", reboot(at(105)), Some(Ack)),
        ("reboot outside of the pool", reboot(at(200)), Some(Nak)),
        ("reboot from another network", reboot(other_net), Some(Nak)),
        ("reboot into another's", reboot(at(108)), Some(Nak)),
        ("restart of ours: renewing a free address", renew(at(105)), Some(Ack)),
        ("renewing another's", renew(at(108)), Some(Nak)),
        ("renewing a foreign address", renew(other_net), Some(Nak)),
    ];
    for (name, message, want) in cases {
        let mut server = Server::new(full());
        server.ask(&rom(0x21, 0).selecting(at(108), SERVER));
        let decision = server.ask(&message);
        assert_eq!(kind_of_answer(&decision), want, "{name}");
        assert_eq!(decision.lease.is_some(), want == Some(Ack), "{name}");
        if let (Outcome::Reply(reply), Some(Nak)) = (decision.outcome, want) {
            assert_eq!(reply.to, Destination::Broadcast, "{name}");
            assert!(reply.answer.text.is_some());
        }
    }
}

#[test]
fn a_machine_with_a_lease_keeps_to_it() {
    let mut server = Server::new(full());
    server.ask(&rom(0x20, 0).selecting(FIRST, SERVER));
    let other = rom(0x20, 0).selecting(Ipv4Addr::new(192, 0, 2, 105), SERVER);
    let other = ClientMessage { server_id: None, ..other };
    assert_eq!(kind_of_answer(&server.ask(&other)), Some(Nak), "a disk remembers another address");
    server.now = NOW.plus(Duration::from_secs(121));
    assert_eq!(kind_of_answer(&server.ask(&other)), Some(Ack), "it ran out");
}

#[test]
fn release_and_decline_count_only_from_whom_the_address_was_given_to() {
    let mut server = Server::new(full());
    server.ask(&rom(0x20, 0).selecting(FIRST, SERVER));
    let message = |kind, last, address| ClientMessage {
        kind,
        ciaddr: if kind == Release { address } else { Ipv4Addr::UNSPECIFIED },
        requested: (kind == Decline).then_some(address),
        server_id: Some(SERVER),
        ..rom(last, 0)
    };
    for kind in [Release, Decline] {
        assert_eq!(server.ask(&message(kind, 0x21, FIRST)).lease, None);
        assert_eq!(server.ask(&message(kind, 0x20, NODE)).lease, None);
        assert_eq!(server.ask(&message(kind, 7, FIRST)).lease, None);
    }
    let declined = server.ask(&message(Decline, 0x20, FIRST)).lease.unwrap();
    assert_eq!((declined.state, declined.address), (LeaseState::Taken, FIRST));
    let next = server.reply(&rom(0x20, 0).encode()).answer.yiaddr;
    assert_ne!(next, FIRST);
    server.ask(&rom(0x20, 0).selecting(next, SERVER));
    let released = server.ask(&message(Release, 0x20, next)).lease.unwrap();
    assert_eq!(released.state, LeaseState::Released);
    // A node that declines its reservation is told so, and gets it again: there is no other for it.
    server.ask(&rom(7, 0).selecting(NODE, SERVER));
    let declined = server.ask(&message(Decline, 7, NODE));
    assert_eq!(declined.lease.unwrap().state, LeaseState::Taken);
    assert_eq!(server.reply(&rom(7, 0).encode()).answer.yiaddr, NODE);
}

#[test]
fn an_exhausted_pool_is_named_and_takes_nothing_from_known_nodes() {
    let mut server = Server::new(full());
    for last in 0x20..0x2a {
        server.reply(&rom(last, 0).encode());
    }
    assert_eq!(
        server.silence(&rom(0x2a, 0)),
        "the pool 192.0.2.100-192.0.2.109 of network boot has no free address: make it larger, or `unknown_lease_s` \
         shorter"
    );
    assert_eq!(server.reply(&rom(7, 0).encode()).answer.yiaddr, NODE);
}

#[test]
fn who_chooses_another_server_names_it_and_leaves_our_address() {
    let other = Ipv4Addr::new(192, 0, 2, 66);
    for (table, last) in [(full(), 0x20), (table(), 7), (table(), 0x20)] {
        let mut server = Server::new(table);
        let _offer = server.ask(&rom(last, 0));
        let decision = server.ask(&rom(last, 0).selecting(Ipv4Addr::new(192, 0, 2, 150), other));
        assert_eq!((decision.rival, kind_of_answer(&decision)), (Some(other), None));
        let next = server.ask(&rom(0x30, 0));
        if let Outcome::Reply(reply) = next.outcome {
            assert_ne!(reply.answer.yiaddr, NODE);
        }
    }
    let mut server = Server::new(full());
    assert_eq!(server.ask(&rom(7, 0).selecting(NODE, SERVER)).rival, None, "that is us");
    let discover = ClientMessage { server_id: Some(other), ..rom(7, 0) };
    assert_eq!(server.ask(&discover).rival, None, "no choice");
}

#[test]
fn a_client_that_hears_unicast_gets_a_frame_and_others_a_broadcast() {
    let mut server = Server::new(full());
    let quiet = ClientMessage { flags: 0, ..rom(7, 0) };
    let to = Destination::Hardware { address: NODE, mac: mac(7) };
    assert_eq!(server.reply(&quiet.encode()).to, to);
    assert_eq!(server.reply(&quiet.clone().selecting(NODE, SERVER).encode()).to, to);
    assert_eq!(server.reply(&rom(7, 0).encode()).to, Destination::Broadcast);
    let inform = ClientMessage { kind: Inform, ciaddr: NODE, ..quiet };
    let to = Destination::Address(SocketAddrV4::new(NODE, 68));
    assert_eq!(server.reply(&inform.encode()).to, to);
}

#[test]
fn bootp_of_a_known_node_is_answered_in_its_own_words() {
    let mut server = Server::new(full());
    let bootp = |last| {
        let mut message = rom(last, 0).message();
        for code in [53, 57, 60, 93, 94] {
            message.options.remove(code);
        }
        message
    };
    let reply = server.reply(&bootp(7).encode());
    let sent = Message::decode(&reply.answer.encode(576)).unwrap();
    assert_eq!((sent.yiaddr, sent.siaddr, &*sent.file), (NODE, SERVER, &b"undionly.kpxe"[..]));
    for code in [51, 52, 53, 54, 57, 58, 59] {
        assert_eq!(sent.options.get(code), None, "{code}");
    }
    assert_eq!(sent.options.get(1), Some(&[255, 255, 255, 0][..]));
    let stranger = server.decide(&bootp(0x66).encode());
    assert_eq!((kind_of_answer(&stranger), server.leases.live().count()), (None, 0));
    let mut bad = bootp(7);
    bad.options.set(53, [99]);
    assert_eq!(Request::read(&bad), Err(DecodeError::Kind), "a type unknown is not BOOTP");
}

#[test]
fn options_of_a_node_stand_for_those_of_its_network_and_none_for_ours() {
    let option = |code, value: &[u8]| DhcpOption { code, value: value.to_vec() };
    let mut table = full();
    table.networks[0].options = vec![
        option(15, b"lab"),
        option(42, &[1; 4]),
        option(43, b"vendor"),
        option(66, b"elsewhere"),
        option(54, &[9; 4]),
        option(67, b"evil.efi"),
        option(175, &[1]),
        option(255, &[]),
    ];
    let mut entry = (*table.by_mac[&mac(7)]).clone();
    entry.traits.options = vec![option(42, &[2; 4]), option(53, &[6]), option(119, &[0; 300])];
    entry.traits.answer_delay_ms = 9_000;
    table.insert(entry);
    let mut server = Server::new(table);
    let codes = |reply: &Reply| -> Vec<(u8, usize)> {
        reply.answer.extra.iter().map(|option| (option.code, option.value.len())).collect()
    };
    let system = server.reply(&ClientMessage::system(Discover, 1, mac(7)).encode());
    assert_eq!(codes(&system), [(15, 3), (43, 6), (66, 9), (42, 4), (119, 300)]);
    assert_eq!(system.answer.extra[3].value, [2; 4], "the node's");
    assert_eq!((system.answer.server_id, file_of(&system)), (SERVER, None));
    assert_eq!(system.delay_ms, 5_000);
    assert_eq!(Answer::decode(&system.answer.encode(1472)).as_ref(), Ok(&system.answer));
    let firmware = server.reply(&rom(7, 7).encode());
    assert_eq!(codes(&firmware), [(15, 3), (42, 4), (119, 300)], "43 and 66 would mislead it");
    let stranger = server.reply(&ClientMessage::system(Discover, 1, mac(0x77)).encode());
    assert_eq!((codes(&stranger)[1], stranger.delay_ms), ((42, 4), 0));
}

#[test]
fn what_is_too_long_goes_into_file_and_sname_for_systems_and_is_dropped_for_firmware() {
    let mut table = full();
    table.networks[0].options = [(119, 150), (114, 90), (120, 60)]
        .map(|(code, length)| DhcpOption { code, value: vec![7; length] })
        .to_vec();
    let mut server = Server::new(table);
    let system =
        ClientMessage { max_size: Some(576), ..ClientMessage::system(Discover, 1, mac(7)) };
    let bytes = server.reply(&system.encode()).answer.encode(576);
    assert!(bytes.len() <= 548, "{}", bytes.len());
    let read = Answer::decode(&bytes).unwrap();
    assert_eq!(read.extra.len(), 3, "all of them");
    assert_eq!(read.boot_file, None);
    let firmware = server.reply(&ClientMessage { max_size: None, ..rom(7, 7) }.encode());
    let bytes = firmware.answer.encode(576);
    let read = Answer::decode(&bytes).unwrap();
    assert!(bytes.len() <= 548 && read.extra.len() < 3);
    assert_eq!(Message::decode(&bytes).unwrap().file, b"snponly.efi");
}

#[test]
fn the_subnet_named_apart_from_the_relay_decides() {
    let mut table = full();
    let far = BootNetwork {
        name: "far".to_owned(),
        subnet: [198, 51, 100, 0].into(),
        server: [198, 51, 100, 10].into(),
        mode: DhcpMode::Full(Pool {
            first: [198, 51, 100, 50].into(),
            last: [198, 51, 100, 60].into(),
        }),
        ..table.networks[0].clone()
    };
    table.networks.push(far);
    let mut server = Server::new(table);
    let relay = Ipv4Addr::new(192, 0, 2, 1);
    let want = Ipv4Addr::new(198, 51, 100, 50);
    let mut by_relay = rom(0x20, 0).message().through_relay(relay, &RelayInfo::default());
    by_relay.options.set(code::RELAY, [1, 1, 7, 5, 4, 198, 51, 100, 0]);
    let reply = server.reply(&by_relay.encode());
    assert_eq!((reply.answer.yiaddr, reply.answer.server_id), (want, [198, 51, 100, 10].into()));
    assert_eq!(reply.to, Destination::Address(SocketAddrV4::new(relay, 67)));
    assert_eq!(reply.answer.relay.as_deref(), by_relay.options.get(code::RELAY));
    let mut by_client = rom(0x20, 0).message();
    by_client.options.set(code::SUBNET_SELECTION, [198, 51, 100, 0]);
    let reply = server.reply(&by_client.encode());
    assert_eq!(reply.answer.yiaddr, want);
    assert_eq!(reply.answer.subnet_selection, Some([198, 51, 100, 0].into()), "RFC 3011: echoed");
    // Renewing through a router: no relay, another network's socket, its own address.
    let renew = ClientMessage { kind: DhcpKind::Request, ciaddr: want, ..rom(0x20, 0) };
    let request = Request::decode(&renew.encode()).unwrap();
    let arrival = Arrival { from: SocketAddrV4::new(want, 68), ..ARRIVAL };
    let decision = decide(&request, arrival, &server.table, &mut server.leases, NOW);
    assert_eq!(decision.lease.unwrap().network, "far");
}

#[test]
fn a_relay_off_the_boot_networks_is_answered_only_when_it_asks_itself() {
    let mut server = Server::new(full());
    let far = Ipv4Addr::new(203, 0, 113, 5);
    let selections =
        [(code::RELAY, &[5, 4, 192, 0, 2, 0][..]), (code::SUBNET_SELECTION, &[192, 0, 2, 0])];
    for (option, value) in selections {
        let mut message = rom(7, 0).message().through_relay(far, &RelayInfo::default());
        message.options.set(option, value);
        let request = Request::decode(&message.encode()).unwrap();
        let mut asked_by = |from: Ipv4Addr| {
            let arrival = Arrival { from: SocketAddrV4::new(from, 67), ..ARRIVAL };
            decide(&request, arrival, &server.table, &mut server.leases, NOW).outcome
        };
        for other in [Ipv4Addr::UNSPECIFIED, [192, 0, 2, 99].into(), [203, 0, 113, 6].into()] {
            let outcome = asked_by(other);
            let Outcome::Silent { why } = outcome else { panic!("{option}: {outcome:?}") };
            assert!(why.contains("203.0.113.5"), "{why}");
        }
        let outcome = asked_by(far);
        let Outcome::Reply(reply) = outcome else { panic!("{option}: {outcome:?}") };
        assert_eq!(reply.to, Destination::Address(SocketAddrV4::new(far, 67)));
    }
}

#[test]
fn special_firmware_is_not_given_what_it_cannot_start() {
    let mut server = Server::new(full());
    let mut pi = rom(7, 0).message();
    pi.options.set(code::MACHINE_ID, *b"\0RPi4\x11\x31\x03\0\x9d\xc6\x02\x6d\0\0\0\0");
    let reply = server.reply(&pi.encode());
    assert_eq!(file_of(&reply), None);
    assert!(reply.note.unwrap().contains("Raspberry Pi"));
    let mut entry = (*server.table.by_mac[&mac(7)]).clone();
    entry.traits.loaders.insert(ClientArch(0), "pi/start4.elf".to_owned());
    server.table.insert(entry);
    assert_eq!(file_of(&server.reply(&pi.encode())), Some("pi/start4.elf"), "it was said to be so");
    let mut apple = ClientMessage::system(Inform, 1, mac(7));
    apple.vendor_class = Some(b"AAPLBSDPC/i386/MacPro3,1".to_vec());
    apple.ciaddr = NODE;
    assert!(server.silence(&apple).contains("BSDP"));
}

#[test]
fn a_nodes_own_loader_and_its_way_to_the_disk_count() {
    let mut table = full();
    let mut entry = (*table.by_mac[&mac(7)]).clone();
    entry.traits.loaders.insert(ClientArch(7), "ipxe.efi".to_owned());
    entry.traits.local = LocalBoot::NoBootFile;
    table.insert(entry.clone());
    let mut server = Server::new(table);
    let file = |server: &mut Server, message: &ClientMessage| {
        file_of(&server.reply(&message.encode())).map(str::to_owned)
    };
    assert_eq!(file(&mut server, &rom(7, 9)).as_deref(), Some("ipxe.efi"), "9 is 7");
    let http = ClientMessage::http_boot(Discover, 1, mac(7), ClientArch(16));
    assert_eq!(file(&mut server, &http).as_deref(), Some("http://192.0.2.10:8067/ipxe.efi"));
    assert_eq!(file(&mut server, &rom(7, 11)).as_deref(), Some("arm64.efi"));
    entry.intent = model::BootIntent::Local;
    server.table.insert(entry);
    let reply = server.reply(&rom(7, 7).encode());
    assert_eq!((reply.answer.kind, file_of(&reply), reply.note.clone()), (Offer, None, None));
}

#[test]
fn a_name_too_long_for_its_field_is_in_option_67_alone_and_whole() {
    for length in [100, 127, 128, 250] {
        let name = "a".repeat(length);
        let mut table = full();
        table.loaders.0.insert(ClientArch(7), name.clone());
        let reply = Server::new(table).reply(&rom(7, 7).encode());
        let sent = Message::decode(&reply.answer.encode(1472)).unwrap();
        let option = sent.options.get(code::BOOT_FILE).unwrap();
        assert_eq!(option, format!("{name}\0").as_bytes(), "{length}");
        assert_eq!(sent.file.len(), if length < 128 { length } else { 0 }, "{length}");
    }
}
