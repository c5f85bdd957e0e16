//! DHCP through a relay without rights (RFC 8357), as the twin's enclosure does it.

use std::net::{Ipv4Addr, UdpSocket};

use model::{ClientArch, MacAddr, Sighted, sighting::DhcpKind};
use pxe_proto::dhcp::{Answer, ClientMessage, RelayInfo};

use super::{BOUND, Lab, MAC, NODE, RELAY, SERVER, at, lines, listener};
use crate::{Listener, PxeConfig, PxeError, PxeServer, SightingSink};

/// A relay on a port of its own.
struct Relay {
    socket: UdpSocket,
    server: std::net::SocketAddrV4,
}

impl Relay {
    fn new(lab: &Lab) -> Self {
        let socket = UdpSocket::bind(at(RELAY)).unwrap();
        socket.set_read_timeout(Some(BOUND)).unwrap();
        Self { socket, server: lab.bound.dhcp.unwrap() }
    }

    fn send(&self, message: &ClientMessage) {
        let info = RelayInfo { circuit_id: Some(b"bay-3".to_vec()), source_port: true };
        let relayed = message.message().through_relay(RELAY, &info);
        self.socket.send_to(&relayed.encode(), self.server).unwrap();
    }

    fn hear(&self) -> Answer {
        let mut buffer = [0; 2048];
        let length = self.socket.recv(&mut buffer).unwrap();
        assert!(length >= 300, "relays drop shorter ones");
        Answer::decode(&buffer[..length]).unwrap()
    }

    fn exchange(&self, message: &ClientMessage) -> Answer {
        self.send(message);
        self.hear()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rom_and_then_ipxe_get_one_address_in_one_attempt() {
    let lab = Lab::start();
    let relay = Relay::new(&lab);

    let rom = ClientMessage::pxe(DhcpKind::Discover, 0x11, MAC, ClientArch(7));
    let offer = relay.exchange(&rom);
    assert_eq!((offer.kind, offer.yiaddr, offer.siaddr), (DhcpKind::Offer, NODE, SERVER));
    let ack = relay.exchange(&rom.selecting(offer.yiaddr, offer.server_id));
    assert_eq!(ack.boot_file.unwrap().name, "snponly.efi");

    let ipxe = ClientMessage::ipxe(DhcpKind::Discover, 0x12, MAC, ClientArch(7));
    let script = relay.exchange(&ipxe).boot_file.unwrap().name;
    assert_eq!(script, format!("http://{}/boot.ipxe?mac=02-5a-10-00-00-03", lab.bound.http));
    let system = relay.exchange(&ClientMessage::system(DhcpKind::Discover, 0x13, MAC));
    assert_eq!((system.yiaddr, system.boot_file), (NODE, None));

    let is_last = |what: &Sighted| matches!(what, Sighted::DhcpOut { xid: 0x13, .. });
    let seen = lab.until("the last offer", is_last).await;
    let file = script;
    assert_eq!(
        lines(&seen),
        [
            "DHCP DISCOVER from x86-64 UEFI (7) through 127.77.0.1 bay-3".to_owned(),
            "DHCP OFFER 127.77.0.13, boot file snponly.efi".to_owned(),
            "DHCP REQUEST from x86-64 UEFI (7) through 127.77.0.1 bay-3".to_owned(),
            "DHCP ACK 127.77.0.13, boot file snponly.efi".to_owned(),
            "DHCP DISCOVER from iPXE through 127.77.0.1 bay-3".to_owned(),
            format!("DHCP OFFER 127.77.0.13, boot file {file}"),
            "DHCP DISCOVER through 127.77.0.1 bay-3".to_owned(),
            "DHCP OFFER 127.77.0.13".to_owned(),
        ]
    );
    let first = seen[0].attempt;
    assert!(first.is_some() && seen.iter().all(|sighting| sighting.attempt == first));
    assert!(seen.iter().all(|sighting| sighting.mac == Some(MAC)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_an_unknown_machine_is_silence_and_one_line() {
    let lab = Lab::start();
    let relay = Relay::new(&lab);
    let stranger = MacAddr([2, 9, 9, 9, 9, 9]);
    for xid in 0..50 {
        relay.send(&ClientMessage::pxe(DhcpKind::Discover, xid, stranger, ClientArch(0)));
    }
    for junk in [&b""[..], b"junk", &[0xff; 300], &[1; 241]] {
        relay.socket.send_to(junk, relay.server).unwrap();
    }
    let answer = relay.exchange(&ClientMessage::pxe(DhcpKind::Discover, 99, MAC, ClientArch(0)));
    assert_eq!((answer.xid, answer.yiaddr), (99, NODE), "the first answer is the known node's");
    let is_last = |what: &Sighted| matches!(what, Sighted::DhcpOut { .. });
    let seen = lab.until("the offer", is_last).await;
    let strangers: Vec<_> = seen.iter().filter(|sighting| sighting.node.is_none()).collect();
    assert!((1..=3).contains(&strangers.len()), "{strangers:?}");
    assert_eq!(strangers[0].mac, Some(stranger));
    assert_eq!(
        strangers[0].what.to_string(),
        "DHCP: machine 02:09:09:09:09:09 is not known: no answer to its DISCOVER from x86 BIOS (0) \
         through 127.77.0.1 bay-3"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_wants_its_answers_late_holds_up_nobody() {
    let lab = Lab::start();
    lab.change_entry(|entry| entry.traits.answer_delay_ms = 500);
    let quick = MacAddr([2, 0x5a, 0x10, 0, 0, 4]);
    lab.change(|table| {
        let mut entry = (*table.by_mac[&MAC]).clone();
        entry.node = "bld-004".parse().unwrap();
        (entry.macs, entry.address) = (vec![quick], Ipv4Addr::new(127, 77, 0, 14));
        entry.traits.answer_delay_ms = 0;
        table.insert(entry);
    });
    let relay = Relay::new(&lab);
    relay.send(
        &ClientMessage::pxe(DhcpKind::Request, 1, MAC, ClientArch(0)).selecting(NODE, SERVER),
    );
    relay.send(&ClientMessage::pxe(DhcpKind::Discover, 2, MAC, ClientArch(0)));
    relay.send(&ClientMessage::pxe(DhcpKind::Discover, 3, quick, ClientArch(0)));
    assert_eq!(relay.hear().xid, 3, "the quick one overtakes");
    let mut late = [relay.hear(), relay.hear()].map(|answer| (answer.xid, answer.kind));
    late.sort_by_key(|(xid, _)| *xid);
    assert_eq!(late, [(1, DhcpKind::Ack), (2, DhcpKind::Offer)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_architecture_without_loader_is_a_line_in_the_timeline() {
    let lab = Lab::start();
    let answer =
        Relay::new(&lab).exchange(&ClientMessage::pxe(DhcpKind::Discover, 1, MAC, ClientArch(11)));
    assert_eq!((answer.yiaddr, answer.boot_file), (NODE, None));
    let seen = lab.until("a reason", |what| matches!(what, Sighted::DhcpSilent { .. })).await;
    assert!(lines(&seen).last().unwrap().contains("no loader is configured for arm64 UEFI (11)"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_is_named_and_nothing_is_started() {
    let lab = Lab::start();
    let dhcp_port = Some(lab.bound.dhcp.unwrap().port());
    let taken = Listener { dhcp_port, proxy_port: None, ..listener() };
    let foreign =
        Listener { server: Ipv4Addr::new(192, 0, 2, 1), dhcp_port: Some(0), ..taken.clone() };
    let start = |listener| {
        let (calls, _kept) = tokio::sync::mpsc::channel(1);
        let mut tasks = tokio::task::JoinSet::new();
        let table = std::sync::Arc::default();
        let config = PxeConfig::new(vec![listener]);
        let sink = SightingSink::new(1);
        PxeServer::start(&config, table, calls, super::sinks(&sink), &mut tasks, lab.stop.clone())
            .unwrap_err()
    };
    let error = start(taken);
    assert!(matches!(error, PxeError::InUse { service: "DHCP", .. }), "{error}");
    let error = start(foreign);
    assert!(matches!(error, PxeError::Bind { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_log_that_cannot_be_read_ends_the_start_and_one_that_cannot_be_written_does_not() {
    let lab = Lab::start();
    let start = |lease_log| {
        let (calls, _kept) = tokio::sync::mpsc::channel(1);
        let mut tasks = tokio::task::JoinSet::new();
        let config = PxeConfig { lease_log, ..PxeConfig::new(vec![listener()]) };
        let sinks = super::sinks(&SightingSink::new(1));
        PxeServer::start(
            &config,
            std::sync::Arc::default(),
            calls,
            sinks,
            &mut tasks,
            lab.stop.clone(),
        )
    };
    let error = start(Some(lab.folder.0.clone())).unwrap_err();
    assert!(matches!(error, PxeError::LeaseLog { .. }), "{error}");
    assert!(error.to_string().contains("addresses would be given away twice"), "{error}");

    let started = start(Some(lab.folder.0.join("nowhere/leases"))).unwrap();
    let findings = started.status.networks().remove(0).findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].what.contains("nowhere/leases cannot be written"), "{findings:?}");
}
