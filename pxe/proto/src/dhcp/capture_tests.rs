//! Recorded traffic of real firmware, iPXE and Linux clients, and dhcproto as a second opinion.

use std::net::Ipv4Addr;

use dhcproto::{Decodable, Decoder, Encodable, v4};
use model::{
    BootEntry, BootIntent, BootTable, ClientArch, MacAddr, UnixMillis,
    boot::{BootTraits, DhcpMode, Pool},
    sighting::DhcpKind,
};

use super::{
    Answer, Arrival, ClientMessage, Destination, Leases, Message, Op, Outcome, Reply, Request,
    ServerPort, decide,
};
use crate::{
    ipxe::Stage,
    pcap::{Datagram, datagrams, shared},
};

/// Captures of our own lab with DHCPv4 in them, and of another project.
const CAPTURES: [&str; 17] = [
    "data/pxe-own/aavmf-http4.pcap",
    "data/pxe-own/aavmf-pxe4.pcap",
    "data/pxe-own/linux-dhclient.pcap",
    "data/pxe-own/linux-dhcpcd.pcap",
    "data/pxe-own/linux-systemd-networkd.pcap",
    "data/pxe-own/linux-udhcpc.pcap",
    "data/pxe-own/ovmf-http4.pcap",
    "data/pxe-own/ovmf-pxe4-snponly.pcap",
    "data/pxe-own/proxy-ovmf-pxe4.pcap",
    "data/pxe-own/proxy-seabios-ipxe.pcap",
    "data/pxe-own/seabios-ipxe-qemu-nopxedhcp.pcap",
    "data/pxe-own/seabios-ipxe-qemu.pcap",
    "data/pxe-own/seabios-undionly-chain.pcap",
    "data/pxe-own/secureboot-shim.pcap",
    "data/pxe-own/secureboot-unsigned-ipxe.pcap",
    "data/rs_pxe/intel_bios_dhcp.pcap",
    "data/rs_pxe/ipxe_dhcp.pcap",
];

fn dhcp(capture: &str) -> Vec<Datagram> {
    let Some(pcap) = shared(capture) else { return vec![] };
    let is_dhcp = |d: &Datagram| {
        [67, 68, 4011].contains(&d.from.port()) && [67, 68, 4011].contains(&d.to.port())
    };
    datagrams(&pcap).into_iter().filter(is_dhcp).collect()
}

#[test]
fn every_recorded_message_reads_and_survives_a_round_trip() {
    let mut seen = 0;
    for capture in CAPTURES {
        for datagram in dhcp(capture) {
            let message = Message::decode(&datagram.payload).expect(capture);
            assert_eq!(message.warnings, [], "{capture}");
            // Our order is 53 first and 82 last, so a second trip changes nothing any more.
            let again = Message::decode(&message.encode()).expect(capture);
            assert!(message.options.iter().all(|(code, v)| again.options.get(code) == Some(v)));
            assert_eq!(Message::decode(&again.encode()), Ok(again), "{capture}");
            seen += 1;
        }
    }
    assert!(seen == 0 || seen > 100, "{seen} messages");
}

#[test]
fn dhcproto_reads_the_same_options_as_we_do() {
    for capture in CAPTURES {
        for datagram in dhcp(capture) {
            let ours = Message::decode(&datagram.payload).expect(capture);
            let theirs = v4::Message::decode(&mut Decoder::new(&datagram.payload)).expect(capture);
            compare(&ours, &theirs, capture);
        }
    }
}

#[test]
fn dhcproto_reads_what_we_write() {
    let mac = MacAddr([2, 0, 0, 0, 0, 1]);
    for client in [
        ClientMessage::pxe(DhcpKind::Discover, 1, mac, ClientArch(0)),
        ClientMessage::http_boot(DhcpKind::Discover, 2, mac, ClientArch(16)),
        ClientMessage::ipxe(DhcpKind::Discover, 3, mac, ClientArch(7)),
        ClientMessage::system(DhcpKind::Inform, 4, mac),
    ] {
        let bytes = client.encode();
        let theirs = v4::Message::decode(&mut Decoder::new(&bytes)).unwrap();
        compare(&client.message(), &theirs, "own");
        let again = Message::decode(&theirs.to_vec().unwrap()).unwrap();
        for (code, value) in client.message().options.iter() {
            assert_eq!(again.options.get(code), Some(value), "{code}");
        }
    }
}

fn compare(ours: &Message, theirs: &v4::Message, place: &str) {
    assert_eq!(ours.xid, theirs.xid(), "{place}");
    assert_eq!(ours.chaddr.octets(), theirs.chaddr(), "{place}");
    assert_eq!(ours.flags, u16::from(theirs.flags()), "{place}");
    let addresses = [theirs.ciaddr(), theirs.yiaddr(), theirs.siaddr(), theirs.giaddr()];
    assert_eq!([ours.ciaddr, ours.yiaddr, ours.siaddr, ours.giaddr], addresses, "{place}");
    let mut codes: Vec<u8> = ours.options.iter().map(|(code, _)| code).collect();
    codes.sort_unstable();
    let mut known: Vec<u8> = theirs.opts().iter().map(|(code, _)| u8::from(*code)).collect();
    known.retain(|code| *code != 255);
    known.sort_unstable();
    assert_eq!(codes, known, "{place}");
}

#[test]
fn the_stages_of_recorded_boots_are_told_apart() {
    let table = [
        ("data/pxe-own/seabios-ipxe-qemu.pcap", &[Stage::Ipxe][..]),
        ("data/pxe-own/ovmf-pxe4-snponly.pcap", &[Stage::Pxe, Stage::Ipxe][..]),
        ("data/pxe-own/aavmf-http4.pcap", &[Stage::HttpBoot, Stage::Ipxe, Stage::System][..]),
        ("data/pxe-own/linux-udhcpc.pcap", &[Stage::System][..]),
    ];
    for (capture, want) in table {
        let mut stages: Vec<Stage> = dhcp(capture)
            .iter()
            .filter_map(|datagram| Request::decode(&datagram.payload).ok())
            .map(|request| request.stage)
            .collect();
        stages.dedup();
        if !stages.is_empty() {
            assert_eq!(stages[..want.len().min(stages.len())], *want, "{capture}");
        }
    }
}

/// A lab in which the client is known, and lives where its message says.
fn lab_of(message: &Message, mode: DhcpMode) -> (BootTable, Ipv4Addr) {
    let mut warnings = vec![];
    let requested = message.options.address(super::code::REQUESTED_ADDRESS, &mut warnings);
    let mut named = [Some(message.ciaddr), requested].into_iter().flatten();
    let address = named.rfind(|a| !a.is_unspecified()).unwrap_or([192, 0, 2, 77].into());
    let server = message.options.address(super::code::SERVER_ID, &mut warnings);
    let [a, b, c, _] = address.octets();
    let server = server.unwrap_or([a, b, c, 1].into());
    let mut table = super::decide_tests::table();
    let network = &mut table.networks[0];
    (network.mode, network.subnet, network.server) = (mode, [a, b, c, 0].into(), server);
    table.insert(BootEntry {
        node: "recorded".parse().unwrap(),
        macs: vec![message.chaddr],
        address,
        intent: BootIntent::Ask,
        attempt: None,
        traits: BootTraits::default(),
    });
    (table, address)
}

/// What the cases demand of the file named to a client.
fn is_right(reply: &Reply, request: &Request, capture: &str) {
    let file = reply.answer.boot_file.as_ref().map(|file| file.name.as_str());
    let http = request.is_http_boot();
    assert_eq!(reply.answer.http_client, http, "{capture}");
    match request.stage {
        Stage::System => assert_eq!(file, None, "{capture}"),
        Stage::Ipxe => assert!(file.unwrap().contains("/boot.ipxe?mac="), "{capture}"),
        Stage::Pxe | Stage::HttpBoot | Stage::CutDownIpxe => {
            let file = file.unwrap();
            assert_eq!(file.starts_with("http://"), http, "{capture}: {file}");
        }
    }
}

#[test]
fn every_recorded_client_gets_the_answer_it_needs_in_every_mode() {
    let pool = Pool { first: [192, 0, 2, 250].into(), last: [192, 0, 2, 251].into() };
    let (mut heard, mut answered) = (0, [0; 3]);
    for capture in CAPTURES {
        for datagram in dhcp(capture) {
            heard += 1;
            let message = Message::decode(&datagram.payload).unwrap();
            let Ok(request) = Request::read(&message) else { continue };
            let is_proxy_port = datagram.to.port() == 4011;
            let port = if is_proxy_port { ServerPort::Proxy } else { ServerPort::Dhcp };
            let modes = [DhcpMode::Reserved, DhcpMode::Full(pool), DhcpMode::Proxy];
            for (mode, count) in modes.into_iter().zip(&mut answered) {
                let (table, address) = lab_of(&message, mode);
                let arrival = Arrival { from: datagram.from, on: table.networks[0].server, port };
                let decision = decide(&request, arrival, &table, &mut Leases::new(), UnixMillis(9));
                let reply = match decision.outcome {
                    Outcome::Reply(reply) => reply,
                    Outcome::Silent { why } => {
                        let asks = matches!(request.kind, DhcpKind::Discover | DhcpKind::Request);
                        let must = asks && mode != DhcpMode::Proxy && !is_proxy_port;
                        assert!(!must, "{capture}: {mode:?}: {why}");
                        continue;
                    }
                };
                *count += 1;
                is_right(&reply, &request, capture);
                let is_proxy = mode == DhcpMode::Proxy || is_proxy_port;
                let yiaddr = if is_proxy { Ipv4Addr::UNSPECIFIED } else { address };
                assert_eq!(
                    (reply.answer.yiaddr, reply.answer.lease.is_some()),
                    (yiaddr, !is_proxy)
                );
                if is_proxy_port {
                    assert_eq!(reply.to, Destination::Address(datagram.from), "{capture}");
                }
            }
        }
    }
    assert!(heard == 0 || answered.iter().all(|count| *count > 10), "{answered:?}");
}

#[test]
fn operating_systems_and_installers_are_named_no_boot_file() {
    for capture in CAPTURES.into_iter().filter(|c| c.contains("linux-") || c.contains("rs_pxe")) {
        let mut systems = 0;
        for datagram in dhcp(capture) {
            let message = Message::decode(&datagram.payload).unwrap();
            let Ok(request) = Request::read(&message) else { continue };
            let is_firmware = request.vendor_class.starts_with(b"PXEClient");
            assert_eq!(request.stage.is_firmware(), is_firmware, "{capture}: {request:?}");
            systems += usize::from(!is_firmware);
        }
        let is_linux = capture.contains("linux-");
        assert!(!is_linux || systems > 0 || dhcp(capture).is_empty(), "{capture}");
    }
}

#[test]
fn answers_of_another_server_read_as_a_client_reads_them() {
    let recorded = dhcp("data/pxe-own/ovmf-http4.pcap");
    let answers: Vec<Answer> = recorded
        .iter()
        .filter(|d| Message::decode(&d.payload).is_ok_and(|message| message.op == Op::Reply))
        .map(|datagram| Answer::decode(&datagram.payload).unwrap())
        .collect();
    let to_http = answers.iter().filter(|answer| answer.http_client);
    assert!(recorded.is_empty() || to_http.clone().count() > 0, "{answers:?}");
    for answer in to_http {
        assert!(answer.boot_file.as_ref().unwrap().name.starts_with("http://"), "{answer:?}");
        assert_eq!(answer.lease.unwrap().seconds, 600);
    }
}
