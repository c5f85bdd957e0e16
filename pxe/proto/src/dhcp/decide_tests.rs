//! Decisions: the field cases, and RFC 2131, 4.3.2.

use std::net::{Ipv4Addr, SocketAddrV4};

use model::{
    BootEntry, BootIntent, BootTable, ClientArch, MacAddr, UnixMillis,
    boot::{BootNetwork, BootTraits, DhcpMode, Loaders},
    sighting::DhcpKind::{self, Ack, Decline, Discover, Inform, Nak, Release},
};
use proptest::prelude::*;

use super::{answer::Ending, code, *};
use crate::pcap::shared;

pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
pub(super) const NODE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 77);
pub(super) const ARRIVAL: Arrival = Arrival {
    from: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 68),
    on: SERVER,
    port: ServerPort::Dhcp,
};
pub(super) const NOW: UnixMillis = UnixMillis(1_000_000);

pub(super) fn mac(last: u8) -> MacAddr {
    MacAddr([2, 0x5a, 0x10, 0, 0, last])
}

/// Nodes 3, 5, 7, 9 on one network, a loader for every architecture.
pub(super) fn table() -> BootTable {
    let mut table = BootTable::default();
    table.networks.push(BootNetwork {
        name: "boot".to_owned(),
        mode: DhcpMode::Reserved,
        unknown_lease_s: 120,
        options: vec![],
        subnet: Ipv4Addr::new(192, 0, 2, 0),
        prefix: 24,
        server: SERVER,
        router: Some(Ipv4Addr::new(192, 0, 2, 254)),
        dns: vec![],
        lease_s: 600,
        http: "192.0.2.10:8067".parse().unwrap(),
    });
    let loaders = [
        (0, "undionly.kpxe"),
        (6, "ia32.efi"),
        (7, "snponly.efi"),
        (11, "arm64.efi"),
        (16, "snponly.efi"),
        (19, "arm64.efi"),
    ];
    table.loaders = Loaders(loaders.map(|(code, name)| (ClientArch(code), name.to_owned())).into());
    for (number, address) in [(3, 73), (5, 75), (7, 77), (9, 79)] {
        table.insert(BootEntry {
            node: format!("bld-{number:03}").parse().unwrap(),
            macs: vec![mac(number)],
            address: Ipv4Addr::new(192, 0, 2, address),
            intent: BootIntent::Ask,
            attempt: None,
            traits: BootTraits::default(),
        });
    }
    table
}

fn ask(message: &ClientMessage, table: &BootTable) -> Outcome {
    decide(&Request::decode(&message.encode()).unwrap(), ARRIVAL, table, &mut Leases::new(), NOW)
        .outcome
}

fn reply_of(bytes: &[u8], table: &BootTable) -> Reply {
    match decide(&Request::decode(bytes).unwrap(), ARRIVAL, table, &mut Leases::new(), NOW).outcome
    {
        Outcome::Reply(reply) => {
            // What goes over the wire reads back as what was decided.
            assert_eq!(Answer::decode(&reply.answer.encode(1472)).as_ref(), Ok(&reply.answer));
            *reply
        }
        Outcome::Silent { why } => panic!("silent: {why}"),
    }
}

pub(super) fn file_of(reply: &Reply) -> Option<&str> {
    reply.answer.boot_file.as_ref().map(|file| file.name.as_str())
}

/// A DISCOVER as case 03, 05, 07 and 09 give them.
pub(super) fn rom(last: u8, arch: u16) -> ClientMessage {
    ClientMessage::pxe(Discover, 0x1000_0000 + u32::from(last), mac(last), ClientArch(arch))
}

#[test]
fn case_03_a_full_offer_to_uefi_carries_no_option_60() {
    let own = [Some(rom(3, 7).encode()), shared("cases/inputs/03-uefi-discover.bin")];
    for bytes in own.into_iter().flatten() {
        let reply = reply_of(&bytes, &table());
        let message = reply.answer.message();
        assert_eq!(message.options.get(code::VENDOR_CLASS), None);
        assert_eq!(message.options.get(code::BOOT_FILE), Some(&b"snponly.efi\0"[..]));
        assert_eq!(message.file, b"snponly.efi");
        assert_eq!(
            (reply.answer.yiaddr, reply.answer.siaddr),
            (Ipv4Addr::new(192, 0, 2, 73), SERVER)
        );
        assert_eq!(reply.answer.flags, BROADCAST, "the flag is copied");
        let sent_id = Message::decode(&bytes).unwrap();
        assert_eq!(reply.answer.machine_id.as_deref(), sent_id.options.get(code::MACHINE_ID));
    }
}

#[test]
fn case_05_each_architecture_gets_its_loader() {
    let url = |name: &str| format!("http://192.0.2.10:8067/{name}");
    let cases = [
        ('a', vec![0], Some("undionly.kpxe".to_owned()), false),
        ('b', vec![6], Some("ia32.efi".to_owned()), false),
        ('c', vec![7], Some("snponly.efi".to_owned()), false),
        ('d', vec![9], Some("snponly.efi".to_owned()), false),
        ('e', vec![11], Some("arm64.efi".to_owned()), false),
        ('f', vec![16], Some(url("snponly.efi")), true),
        ('g', vec![19], Some(url("arm64.efi")), true),
        ('h', vec![7, 9], Some("snponly.efi".to_owned()), false),
        ('i', vec![0x0f00], None, false),
    ];
    for (letter, archs, want, is_http) in cases {
        let mut own = if is_http {
            ClientMessage::http_boot(Discover, 5, mac(5), ClientArch(archs[0]))
        } else {
            rom(5, archs[0])
        };
        own.archs = archs.iter().copied().map(ClientArch).collect();
        let theirs = shared(&format!("cases/inputs/05{letter}-arch.bin"));
        for bytes in [Some(own.encode()), theirs].into_iter().flatten() {
            let reply = reply_of(&bytes, &table());
            assert_eq!(file_of(&reply), want.as_deref(), "{letter}");
            assert_eq!(reply.answer.http_client, is_http, "{letter}");
            assert_eq!(reply.answer.message().options.get(43), None, "{letter}");
            assert_eq!(reply.note.is_some(), want.is_none(), "{letter}");
            if letter == 'i' {
                assert!(reply.note.unwrap().contains("3840"), "the code is named");
            }
        }
    }
}

#[test]
fn http_boot_gets_the_url_of_the_loader_that_tftp_would_send() {
    // What the configuration can name: no loader of their own for the codes of HTTP boot.
    let mut table = table();
    table.loaders.0.retain(|arch, _| arch.0 < 12);
    table.loaders.0.insert(ClientArch(10), "arm32.efi".to_owned());
    for (code, name) in
        [(15, "ia32.efi"), (16, "snponly.efi"), (18, "arm32.efi"), (19, "arm64.efi")]
    {
        let client = ClientMessage::http_boot(Discover, 5, mac(5), ClientArch(code));
        let reply = reply_of(&client.encode(), &table);
        let url = format!("http://192.0.2.10:8067/{name}");
        assert_eq!(file_of(&reply), Some(url.as_str()), "{code}");
        assert!(reply.answer.http_client, "{code}");
    }
}

#[test]
fn of_several_architectures_the_one_counts_that_fits_the_class_and_has_a_loader() {
    let snponly = Some("snponly.efi");
    let url = Some("http://192.0.2.10:8067/snponly.efi");
    let cases: [(&str, &str, &[u16], _); 9] = [
        ("both worlds, asks for PXE", "PXEClient", &[16, 7], (snponly, false)),
        ("both worlds, asks for HTTP", "HTTPClient", &[7, 16], (url, true)),
        ("the other order", "HTTPClient", &[16, 7], (url, true)),
        ("9 before 7", "PXEClient", &[9, 7], (snponly, false)),
        ("an unknown one first", "PXEClient", &[0x0f00, 9], (snponly, false)),
        ("one without loader first", "PXEClient", &[10, 7], (snponly, false)),
        ("HTTP without a code of HTTP", "HTTPClient", &[7], (url, true)),
        ("unknown ones only", "PXEClient", &[0x0f00, 0x0f01], (None, false)),
        ("known, none with a loader", "HTTPClient", &[10, 18], (None, false)),
    ];
    for (name, class, archs, want) in cases {
        let mut client = rom(5, archs[0]);
        client.vendor_class = Some(format!("{class}:Arch:{:05}:UNDI:003016", archs[0]).into());
        client.archs = archs.iter().copied().map(ClientArch).collect();
        let reply = reply_of(&client.encode(), &table());
        assert_eq!((file_of(&reply), reply.answer.http_client), want, "{name}");
        assert_eq!(reply.note.is_some(), want.0.is_none(), "{name}");
    }
}

/// Options in another order, with padding, spread over `file`, split in two: the same client, the same answer.
#[test]
fn the_answer_does_not_hang_on_how_options_are_laid_out() {
    for arch in [0, 6, 7, 9, 11, 16, 19, 0x0f00] {
        let client = match arch {
            16 | 19 => ClientMessage::http_boot(Discover, 5, mac(5), ClientArch(arch)),
            _ => rom(5, arch),
        };
        let plain = client.encode();
        let want = reply_of(&plain, &table()).answer;
        let options: Vec<(u8, Vec<u8>)> =
            client.message().options.iter().map(|(code, value)| (code, value.to_vec())).collect();
        let tlv =
            |code: u8, value: &[u8]| [&[code, u8::try_from(value.len()).unwrap()], value].concat();
        let head = &plain[..240];
        let backwards: Vec<u8> = options.iter().rev().flat_map(|(c, v)| tlv(*c, v)).collect();
        let padded: Vec<u8> =
            options.iter().flat_map(|(c, v)| [&[0, 0], tlv(*c, v).as_slice()].concat()).collect();
        let split: Vec<u8> = options
            .iter()
            .flat_map(|(c, v)| {
                let (first, rest) = v.split_at(v.len() / 2);
                [tlv(*c, first), tlv(*c, rest)].concat()
            })
            .collect();
        let mut overloaded = [head, &[code::OVERLOAD, 1, 1, 255]].concat();
        let mut at = 108;
        for (code, value) in &options {
            let option = tlv(*code, value);
            overloaded[at..at + option.len()].copy_from_slice(&option);
            at += option.len();
        }
        overloaded[at] = 255;
        let layouts = [
            ("backwards", [head, &backwards, &[255]].concat()),
            ("padded, without END", [head, &padded].concat()),
            ("split", [head, &split, &[255]].concat()),
            ("in the file field", overloaded),
        ];
        for (name, bytes) in layouts {
            assert_eq!(reply_of(&bytes, &table()).answer, want, "{arch}: {name}");
        }
    }
}

#[test]
fn no_answer_of_any_kind_invites_to_port_4011() {
    let kinds = [Discover, DhcpKind::Request, Inform];
    for (arch, kind) in (0..32).flat_map(|arch| kinds.map(|kind| (arch, kind))) {
        let clients = [
            ClientMessage::pxe(kind, 3, mac(3), ClientArch(arch)),
            ClientMessage::ipxe(kind, 3, mac(3), ClientArch(arch)),
            ClientMessage::http_boot(kind, 3, mac(3), ClientArch(arch)),
            ClientMessage::system(kind, 3, mac(3)),
        ];
        for requested in [Ipv4Addr::new(192, 0, 2, 73), Ipv4Addr::new(192, 0, 2, 99)] {
            for client in &clients {
                let client = ClientMessage { requested: Some(requested), ..client.clone() };
                let message = reply_of(&client.encode(), &table()).answer.message();
                let class = message.options.get(code::VENDOR_CLASS);
                assert!(matches!(class, None | Some(b"HTTPClient")), "{client:?}: {class:?}");
                assert_eq!(message.options.get(43), None, "{client:?}");
            }
        }
    }
}

#[test]
fn odd_identifiers_change_neither_address_nor_answer() {
    let ids: [Option<Vec<u8>>; 7] = [
        None,
        Some(vec![]),
        Some(vec![0]),
        Some(vec![1, 2, 0x5a, 0x10, 0, 0, 9]), // another node's MAC
        Some(b"\0node07".to_vec()),
        Some(vec![0xff; 255]),
        Some(vec![7; 300]),
    ];
    let machines: [Option<Vec<u8>>; 6] = [
        None,
        Some(vec![]),
        Some(vec![0; 17]),
        Some(vec![0xff; 17]),
        Some(vec![0; 16]),
        Some(vec![0, 1]),
    ];
    for (id, machine) in ids.iter().flat_map(|id| machines.iter().map(move |m| (id, m))) {
        let mut message = rom(7, 7).message();
        if let Some(id) = id {
            message.options.set(code::CLIENT_ID, id.clone());
        }
        if let Some(machine) = machine {
            message.options.set(code::MACHINE_ID, machine.clone());
        }
        let reply = reply_of(&message.encode(), &table());
        assert_eq!((reply.answer.yiaddr, file_of(&reply)), (NODE, Some("snponly.efi")));
        assert_eq!((&reply.answer.client_id, &reply.answer.machine_id), (id, machine));
    }
}

#[test]
fn case_07_rom_ipxe_and_system_keep_one_address() {
    let clients = [
        rom(7, 0),
        ClientMessage::ipxe(Discover, 8, mac(7), ClientArch(0)),
        ClientMessage {
            client_id: Some(vec![0xff, 0, 0, 0, 0xc1, 0, 1, 0, 1]),
            ..ClientMessage::system(Discover, 9, mac(7))
        },
        ClientMessage {
            client_id: Some(vec![0xff, 9, 9, 9, 9, 0, 4]),
            ..ClientMessage::system(Discover, 10, mac(7))
        },
    ];
    let theirs = ['a', 'b', 'c'].map(|l| shared(&format!("cases/inputs/07{l}-clientid.bin")));
    let own = clients.iter().map(ClientMessage::encode);
    for bytes in own.chain(theirs.into_iter().flatten()) {
        let reply = reply_of(&bytes, &table());
        let sent = Message::decode(&bytes).unwrap();
        assert_eq!(reply.answer.yiaddr, NODE);
        assert_eq!(reply.answer.client_id.as_deref(), sent.options.get(code::CLIENT_ID));
        if Request::decode(&bytes).unwrap().stage == crate::ipxe::Stage::System {
            assert_eq!(file_of(&reply), None, "a system gets an address only");
        }
    }
}

#[test]
fn case_09_a_rom_without_machine_id_is_answered_without_one() {
    for bytes in
        [Some(rom(9, 0).encode()), shared("cases/inputs/09-no-guid.bin")].into_iter().flatten()
    {
        let reply = reply_of(&bytes, &table());
        assert_eq!(reply.answer.machine_id, None);
        assert_eq!(file_of(&reply), Some("undionly.kpxe"));
    }
}

#[test]
fn ipxe_gets_the_script_without_a_zero_and_without_the_wait() {
    let reply =
        reply_of(&ClientMessage::ipxe(Discover, 1, mac(7), ClientArch(0)).encode(), &table());
    let file = reply.answer.boot_file.clone().unwrap();
    assert_eq!(file.name, "http://192.0.2.10:8067/boot.ipxe?mac=02-5a-10-00-00-07");
    assert_eq!((file.ending, reply.answer.no_pxedhcp), (Ending::Bare, true));
}

#[test]
fn a_cut_down_ipxe_gets_the_full_loader() {
    let mut ipxe = ClientMessage::ipxe(Discover, 1, mac(7), ClientArch(0));
    ipxe.ipxe = Some(vec![0x18, 1, 1]);
    let file = reply_of(&ipxe.encode(), &table()).answer.boot_file.unwrap();
    assert_eq!((file.name.as_str(), file.ending), ("undionly.kpxe", Ending::Bare));
}

#[test]
fn a_node_that_is_to_boot_its_disk_gets_no_file_at_any_stage() {
    let mut table = table();
    let mut entry = (*table.by_mac[&mac(7)]).clone();
    entry.intent = BootIntent::NoBootFile;
    table.insert(entry);
    for client in [rom(7, 0), ClientMessage::ipxe(Discover, 1, mac(7), ClientArch(7))] {
        let reply = reply_of(&client.encode(), &table);
        assert_eq!(
            (reply.answer.yiaddr, file_of(&reply), reply.note.as_deref()),
            (NODE, None, None)
        );
    }
}

#[test]
fn a_missing_loader_is_an_address_and_a_clear_line() {
    let mut table = table();
    table.loaders.0.remove(&ClientArch(11));
    let reply = reply_of(&rom(7, 11).encode(), &table);
    assert_eq!((reply.answer.yiaddr, file_of(&reply)), (NODE, None));
    assert_eq!(
        reply.note.unwrap(),
        "no loader is configured for arm64 UEFI (11): no boot file; name one under `loaders`"
    );
}

#[test]
fn a_request_is_acknowledged_refused_or_left_to_others() {
    let other = Ipv4Addr::new(192, 0, 2, 99);
    let base = rom(7, 0);
    let request = |requested, server_id, ciaddr: Option<Ipv4Addr>| ClientMessage {
        kind: DhcpKind::Request,
        requested,
        server_id,
        ciaddr: ciaddr.unwrap_or(Ipv4Addr::UNSPECIFIED),
        ..base.clone()
    };
    let cases = [
        ("selecting us", request(Some(NODE), Some(SERVER), None), Some(Ack)),
        ("selecting us, wrong address", request(Some(other), Some(SERVER), None), Some(Nak)),
        ("selecting another", request(Some(other), Some(other), None), None),
        ("selecting another, our address", request(Some(NODE), Some(other), None), None),
        ("init-reboot", request(Some(NODE), None, None), Some(Ack)),
        ("init-reboot, old address", request(Some(other), None, None), Some(Nak)),
        ("renewing", request(None, None, Some(NODE)), Some(Ack)),
        ("renewing, old address", request(None, None, Some(other)), Some(Nak)),
        ("no address at all", request(None, None, None), None),
        ("inform", ClientMessage { kind: Inform, ciaddr: NODE, ..base.clone() }, Some(Ack)),
        ("release", ClientMessage { kind: Release, ciaddr: NODE, ..base.clone() }, None),
        ("decline", ClientMessage { kind: Decline, requested: Some(NODE), ..base.clone() }, None),
    ];
    for (name, message, want) in cases {
        let (kind, to) = match ask(&message, &table()) {
            Outcome::Reply(reply) => (Some(reply.answer.kind), Some(reply.to)),
            Outcome::Silent { why } => {
                assert!(!why.is_empty());
                (None, None)
            }
        };
        assert_eq!(kind, want, "{name}");
        let to_client = !message.ciaddr.is_unspecified() && kind == Some(Ack);
        let want_to = if to_client {
            Destination::Address(SocketAddrV4::new(NODE, 68))
        } else {
            Destination::Broadcast
        };
        assert_eq!(to, kind.map(|_| want_to), "{name}");
    }
}

#[test]
fn an_ack_to_inform_has_no_lease_and_no_address() {
    let inform =
        ClientMessage { kind: Inform, ciaddr: NODE, ..ClientMessage::system(Inform, 1, mac(7)) };
    let answer = reply_of(&inform.encode(), &table()).answer;
    assert_eq!((answer.lease, answer.yiaddr), (None, Ipv4Addr::UNSPECIFIED));
    assert!(answer.netmask.is_some());
}

#[test]
fn relays_choose_the_network_and_the_port() {
    let relay = Ipv4Addr::new(192, 0, 2, 1);
    for (source_port, port) in [(false, 67), (true, 40_067)] {
        let info = RelayInfo { circuit_id: Some(b"7".to_vec()), source_port };
        let relayed = rom(7, 7).message().through_relay(relay, &info);
        let request = Request::decode(&relayed.encode()).unwrap();
        assert_eq!(request.relay_text().as_deref(), Some("192.0.2.1 7"));
        let arrival = Arrival {
            from: SocketAddrV4::new(relay, 40_067),
            on: Ipv4Addr::new(198, 51, 100, 1), // unicast to an address of another network
            port: ServerPort::Dhcp,
        };
        let Outcome::Reply(reply) =
            decide(&request, arrival, &table(), &mut Leases::new(), NOW).outcome
        else {
            panic!("no reply")
        };
        assert_eq!(reply.to, Destination::Address(SocketAddrV4::new(relay, port)));
        assert_eq!(reply.answer.relay, Some(info.encode()));
        let bytes = reply.answer.encode(1472);
        let end = [
            &[code::RELAY, u8::try_from(info.encode().len()).unwrap()],
            &info.encode()[..],
            &[255],
        ];
        let options = bytes[240..].to_vec();
        let written = options.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        assert!(options[..written].ends_with(&end.concat()), "82 is last");
    }
}

#[test]
fn a_refusal_goes_through_the_relay_with_82_and_the_broadcast_flag() {
    let info = RelayInfo { circuit_id: Some(b"7".to_vec()), source_port: false };
    let mut wrong = rom(7, 7).selecting(Ipv4Addr::new(192, 0, 2, 99), SERVER);
    wrong.flags = 0;
    let relay = Ipv4Addr::new(192, 0, 2, 1);
    let reply = reply_of(&wrong.message().through_relay(relay, &info).encode(), &table());
    assert_eq!(
        (reply.answer.kind, reply.to),
        (Nak, Destination::Address(SocketAddrV4::new(relay, 67)))
    );
    assert_eq!((reply.answer.flags, reply.answer.relay), (BROADCAST, Some(info.encode())));
    assert_eq!(reply.answer.yiaddr, Ipv4Addr::UNSPECIFIED);
}

#[test]
fn nobody_gets_an_answer_that_is_not_ours_to_give() {
    let silent = |message: Message, on| {
        let request = Request::decode(&message.encode()).unwrap();
        let arrival = Arrival { on, ..ARRIVAL };
        let decision = decide(&request, arrival, &table(), &mut Leases::new(), NOW);
        match decision.outcome {
            Outcome::Silent { why } => (decision.entry.is_some(), why),
            Outcome::Reply(reply) => panic!("{reply:?}"),
        }
    };
    let unknown = silent(rom(0x99, 0).message(), SERVER);
    assert_eq!(unknown, (false, "machine 02:5a:10:00:00:99 is not known".to_owned()));
    let elsewhere = silent(rom(7, 0).message(), Ipv4Addr::new(203, 0, 113, 10));
    assert_eq!(elsewhere, (true, "no boot network has our address 203.0.113.10".to_owned()));
    let relay = Ipv4Addr::new(203, 0, 113, 1);
    let far = silent(rom(7, 0).message().through_relay(relay, &RelayInfo::default()), SERVER);
    assert_eq!(far, (true, "no boot network holds its relay 203.0.113.1".to_owned()));
}

#[test]
fn a_node_that_asks_from_a_network_it_does_not_live_on_is_told_apart() {
    let mut table = table();
    let mut second = table.networks[0].clone();
    second.subnet = Ipv4Addr::new(198, 51, 100, 0);
    second.server = Ipv4Addr::new(198, 51, 100, 10);
    table.networks.push(second.clone());
    let request = Request::decode(&rom(7, 0).encode()).unwrap();
    let decision =
        decide(&request, Arrival { on: second.server, ..ARRIVAL }, &table, &mut Leases::new(), NOW);
    let why = "its address 192.0.2.77 is not on 198.51.100.0/24, the network it asks from";
    assert_eq!(decision.outcome, Outcome::Silent { why: why.to_owned() });
}

proptest! {
    /// Whatever a known or unknown client sends: no panic, and an address only to a known one, its own.
    #[test]
    fn only_reservations_are_ever_given(
        kind in 1..9_u8, last in 0..16_u8, arch: u16, area: Vec<u8>, addresses: [u32; 2],
    ) {
        let mut message = ClientMessage {
            kind: kind_of(kind).unwrap_or(Discover),
            ..rom(last, arch)
        }
        .message();
        message.ciaddr = addresses[0].into();
        message.giaddr = addresses[1].into();
        let mut bytes = message.encode();
        let end = bytes.iter().rposition(|byte| *byte == 255).unwrap();
        bytes.truncate(end);
        bytes.extend(area);
        if let Ok(request) = Request::decode(&bytes) {
            let table = table();
            let decision = decide(&request, ARRIVAL, &table, &mut Leases::new(), NOW);
            if let Outcome::Reply(reply) = decision.outcome {
                let entry = &table.by_mac[&request.chaddr];
                prop_assert!([entry.address, Ipv4Addr::UNSPECIFIED].contains(&reply.answer.yiaddr));
                prop_assert!(reply.answer.encode(request.max_size).len() <= 1472 - 28);
            }
        }
    }
}

#[test]
fn no_answer_goes_to_an_address_off_the_network_whoever_claims_it() {
    let table = table();
    let foreign = Ipv4Addr::new(198, 51, 100, 7);
    for kind in [Discover, Inform, DhcpKind::Request] {
        let message = ClientMessage { kind, ciaddr: foreign, requested: Some(NODE), ..rom(7, 7) };
        match ask(&message, &table) {
            Outcome::Silent { why } => assert!(why.contains("198.51.100.7"), "{kind}: {why}"),
            Outcome::Reply(reply) => panic!("{kind}: {reply:?}"),
        }
        let message = ClientMessage { kind, ciaddr: NODE, requested: Some(NODE), ..rom(7, 7) };
        assert!(matches!(ask(&message, &table), Outcome::Reply(_)), "{kind}");
    }
}
