//! Another DHCP server on the segment: dnsmasq.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    thread,
};

use model::{ClientArch, Sighted, boot::DhcpMode, sighting::DhcpKind};
use pxe_proto::dhcp::{Answer, ClientMessage};
use socket2::SockRef;

use crate::{
    clients::udhcpc,
    rig::{BOUND, NODE_MAC, POOL, SERVER, STRANGER_MAC, Segment, Server, config, mac_of, until},
};

const RIVAL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// dnsmasq on a host of its own, with or without a boot file.
fn dnsmasq(segment: &mut Segment, options: &[&str]) {
    segment.host("dh2", None, Some("192.0.2.2/24"));
    let leases = format!("--dhcp-leasefile={}", segment.dir.join("dnsmasq.leases").display());
    let fixed = [
        "--keep-in-foreground",
        "--log-facility=-",
        "--conf-file=/dev/null",
        "--port=0",
        "--user=root",
        "--interface=eth0",
        "--dhcp-range=192.0.2.200,192.0.2.220,255.255.255.0,10m",
        "--no-ping",
        &leases,
    ];
    let log = segment.start("dh2", "dnsmasq", &[&fixed, options].concat());
    until("dnsmasq runs", || {
        fs::read_to_string(&log).unwrap().contains("DHCP, IP range").then_some(())
    });
}

#[test]
fn another_server_is_named_before_any_machine_meets_it() {
    let Some(mut segment) = Segment::up("rival", &["dnsmasq", "busybox"]) else { return };
    dnsmasq(&mut segment, &["--dhcp-boot=evil.kpxe"]);
    segment.host("cli", Some(NODE_MAC), None);
    segment.enter("srv");
    let server = Server::start(&config(None), DhcpMode::Reserved);
    // Our own question brings it to light.
    let rival = until("the rival is named", || server.network().rivals.first().cloned());
    assert_eq!((rival.server, rival.file.as_deref()), (RIVAL, Some("evil.kpxe")));
    assert!(rival.mac.is_some());
    let seen =
        server.sighted("a sighting", |sighting| matches!(sighting.what, Sighted::Rival { .. }));
    assert_eq!(seen.node, None, "nobody's boot yet");
    // And a node that meets it has it in its timeline.
    server.change(|table| {
        let mut entry = (*table.by_mac[&mac_of(NODE_MAC)]).clone();
        // Slow, so that the other one wins.
        entry.traits.answer_delay_ms = 3_000;
        table.insert(entry);
    });
    let address = udhcpc(&segment, "cli", &[]).unwrap();
    assert!(address.octets()[3] >= 200, "{address} is dnsmasq's");
    let chosen = server.sighted("the node's choice", |sighting| {
        sighting.node.is_some() && matches!(sighting.what, Sighted::Rival { .. })
    });
    assert!(matches!(chosen.what, Sighted::Rival { server: RIVAL, address: Some(_), .. }));
    let rival = server.network().rivals.remove(0);
    assert_eq!(rival.file.as_deref(), Some("evil.kpxe"), "what was heard stays");
}

#[test]
fn alone_on_the_segment_no_rival_is_named() {
    let Some(mut segment) = Segment::up("alone", &["busybox"]) else { return };
    segment.host("cli", Some(STRANGER_MAC), None);
    segment.enter("srv");
    let server = Server::start(&config(None), POOL);
    assert!(udhcpc(&segment, "cli", &[]).is_some());
    assert_eq!(server.network().rivals, []);
    assert_eq!(server.network().findings, [], "nothing is wrong here");
}

/// A PXE client of the UEFI kind: it gathers offers, takes the address from one and the boot file from the other.
struct Firmware {
    socket: UdpSocket,
}

impl Firmware {
    fn on(port: u16) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap();
        SockRef::from(&socket).bind_device(Some(b"eth0")).unwrap();
        socket.set_broadcast(true).unwrap();
        socket.set_read_timeout(Some(BOUND)).unwrap();
        Self { socket }
    }

    fn say(&self, message: &ClientMessage, to: SocketAddrV4) {
        self.socket.send_to(&message.message().encode(), to).unwrap();
    }

    fn hear(&self) -> (Answer, SocketAddrV4) {
        let mut buffer = [0; 2048];
        let (length, from) = self.socket.recv_from(&mut buffer).unwrap();
        let std::net::SocketAddr::V4(from) = from else { panic!("{from}") };
        (Answer::decode(&buffer[..length]).unwrap(), from)
    }

    /// The next answer of this server.
    fn hear_from(&self, server: Ipv4Addr) -> Answer {
        loop {
            let (answer, from) = self.hear();
            if *from.ip() == server {
                return answer;
            }
        }
    }
}

#[test]
fn beside_dnsmasq_a_node_has_its_address_from_there_and_its_boot_file_from_us() {
    let Some(mut segment) = Segment::up("proxy", &["dnsmasq"]) else { return };
    dnsmasq(&mut segment, &[]);
    // Its address by hand: what is tried is the exchange, not a client's stack.
    segment.host("cli", Some(NODE_MAC), Some("192.0.2.210/24"));
    segment.enter("srv");
    let server = Server::start(&config(None), DhcpMode::Proxy);
    thread::scope(|scope| {
        let segment = &segment;
        scope.spawn(move || {
            segment.enter("cli");
            uefi_boot_beside_dnsmasq();
        });
    });
    let asked = server.sighted("a request to port 4011", |sighting| {
        matches!(sighting.what, Sighted::DhcpIn { proxy: true, .. })
    });
    assert_eq!(asked.node.unwrap().to_string(), "bld-003");
    let rival = until("the main server is named", || server.network().rivals.first().cloned());
    assert_eq!(rival.server, RIVAL);
}

fn uefi_boot_beside_dnsmasq() {
    let mac = mac_of(NODE_MAC);
    let everybody = SocketAddrV4::new(Ipv4Addr::BROADCAST, 67);
    let firmware = Firmware::on(68);
    let discover = ClientMessage::pxe(DhcpKind::Discover, 0x31, mac, ClientArch(7));
    firmware.say(&discover, everybody);
    let (mut main, mut proxy) = (None, None);
    while main.is_none() || proxy.is_none() {
        let (answer, from) = firmware.hear();
        // The answer to volund's own question is a broadcast too.
        if answer.xid != 0x31 {
            continue;
        }
        assert_eq!(answer.kind, DhcpKind::Offer);
        if *from.ip() == SERVER { proxy = Some(answer) } else { main = Some(answer) }
    }
    let (main, proxy) = (main.unwrap(), proxy.unwrap());
    assert!(main.yiaddr.octets()[3] >= 200 && main.boot_file.is_none());
    assert_eq!((proxy.yiaddr, proxy.siaddr), (Ipv4Addr::UNSPECIFIED, SERVER));
    let request = discover.selecting(main.yiaddr, RIVAL);
    firmware.say(&request, everybody);
    assert_eq!(firmware.hear_from(RIVAL).kind, DhcpKind::Ack);

    // EDK2: from port 4011 to port 4011, with a new xid, its address, and no server identifier.
    let boot = Firmware::on(4011);
    let mut ask = ClientMessage::pxe(DhcpKind::Request, 0x32, mac, ClientArch(7));
    (ask.ciaddr, ask.flags) = ([192, 0, 2, 210].into(), 0);
    boot.say(&ask, SocketAddrV4::new(SERVER, 4011));
    let (answer, from) = boot.hear();
    assert_eq!((from, answer.kind), (SocketAddrV4::new(SERVER, 4011), DhcpKind::Ack));
    assert_eq!(answer.boot_file.unwrap().name, "snponly.efi");

    // iPXE: from port 68 to port 4011, with option 54 of the proxy's offer.
    let mut ask = ClientMessage::ipxe(DhcpKind::Request, 0x33, mac, ClientArch(7));
    (ask.ciaddr, ask.server_id) = ([192, 0, 2, 210].into(), Some(SERVER));
    firmware.say(&ask, SocketAddrV4::new(SERVER, 4011));
    let answer = firmware.hear_from(SERVER);
    assert_eq!((answer.kind, answer.xid, answer.siaddr), (DhcpKind::Ack, 0x33, SERVER));
    assert!(answer.boot_file.unwrap().name.contains("boot.ipxe"), "the script, not a loader");
}
