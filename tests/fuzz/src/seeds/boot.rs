//! What a node says on the boot network: DHCP, TFTP, HTTP, iPXE.

use std::net::Ipv4Addr;

use model::{
    BootAnswer, BootScript, ClientArch, MacAddr, NodeName, boot::LocalBoot, sighting::DhcpKind,
};
use pxe_proto::{
    dhcp::{Answer, ClientMessage, RelayInfo, code},
    ipxe::script::script,
    texts::Asker,
    tftp::{Packet, packet},
};

use super::super::{dhcp, ipxe};
use super::{Seed, piece, seed};

const MAC: MacAddr = MacAddr([2, 0x5a, 0x10, 0, 0, 3]);

pub(super) fn dhcp_seeds() -> Vec<Seed> {
    let messages = client_messages();
    let answers = messages.iter().filter_map(|(name, bytes)| {
        let answer = dhcp::answered(bytes)?;
        assert!(Answer::decode(&answer).is_ok());
        Some(seed("dhcp_reply", name, answer))
    });
    let answers: Vec<_> = answers.collect();
    let requests = messages.into_iter().map(|(name, bytes)| seed("dhcp_request", name, bytes));
    requests.chain(answers).chain(lease_seeds()).collect()
}

/// Deeds as [`dhcp::leases`] reads them: which, who, about what address, and what else.
fn lease_seeds() -> impl Iterator<Item = Seed> {
    let stories: [(&str, &[[u8; 4]]); 4] = [
        (
            "a-machine-comes-and-goes",
            &[[0, 5, 12, 7], [1, 5, 6, 7], [3, 5, 6, 7], [4, 5, 6, 0], [0, 5, 6, 7]],
        ),
        (
            "one-declines-all-it-gets",
            &[
                [0, 5, 6, 0],
                [5, 5, 6, 0],
                [0, 5, 7, 0],
                [5, 5, 7, 0],
                [0, 5, 8, 0],
                [5, 5, 8, 0],
                [0, 5, 12, 0],
                [0, 6, 12, 0],
            ],
        ),
        (
            "two-want-one-address-across-a-restart",
            &[
                [0, 5, 8, 0],
                [1, 5, 8, 0],
                [8, 0, 0, 0],
                [1, 6, 8, 0],
                [6, 0, 0, 100],
                [1, 6, 8, 0],
                [1, 5, 8, 0],
            ],
        ),
        (
            "a-reservation-in-the-pool-and-pings",
            &[
                [7, 1, 0, 0],
                [7, 1, 0, 210],
                [0, 3, 9, 0],
                [1, 3, 9, 0],
                [0, 7, 9, 0],
                [1, 7, 9, 0],
                [2, 7, 10, 0],
            ],
        ),
    ];
    stories.into_iter().map(|(name, deeds)| seed("dhcp_leases", name, deeds.concat()))
}

fn client_messages() -> Vec<(String, Vec<u8>)> {
    let offered = Ipv4Addr::new(192, 0, 2, 73);
    let pxe = |kind, arch| ClientMessage::pxe(kind, 0x1000_0003, MAC, ClientArch(arch));
    let http = ClientMessage::http_boot(DhcpKind::Discover, 4, MAC, ClientArch(16));
    let ipxe = ClientMessage::ipxe(DhcpKind::Discover, 5, MAC, ClientArch(7));
    let system = ClientMessage::system(DhcpKind::Request, 6, MAC);
    let renewing = ClientMessage { ciaddr: offered, ..system.clone() };
    let elsewhere = ClientMessage { requested: Some(Ipv4Addr::new(10, 0, 0, 9)), ..system.clone() };
    let unknown = ClientMessage { chaddr: MacAddr([2, 0, 0, 0, 0, 9]), ..system };
    let long_id = ClientMessage { client_id: Some(vec![1; 300]), ..pxe(DhcpKind::Discover, 7) };
    let bios = ClientMessage { machine_id: Some([9; 16]), ..pxe(DhcpKind::Discover, 0) };
    let mut cases: Vec<(String, Vec<u8>)> = [
        ("bios-discover", bios),
        ("uefi-discover", pxe(DhcpKind::Discover, 7)),
        ("uefi-long-id", long_id),
        ("http-discover", http),
        ("ipxe-request", ipxe.selecting(offered, Ipv4Addr::new(192, 0, 2, 10))),
        ("system-renewing", renewing),
        ("system-elsewhere", elsewhere),
        ("unknown-machine", unknown),
        ("inform", pxe(DhcpKind::Inform, 7)),
        ("decline", pxe(DhcpKind::Decline, 7)),
    ]
    .map(|(name, message)| (name.to_owned(), message.encode()))
    .into();
    let info = RelayInfo { circuit_id: Some(b"bay 3".to_vec()), source_port: true };
    let relayed = pxe(DhcpKind::Discover, 7).message();
    let relayed = relayed.through_relay(Ipv4Addr::new(192, 0, 2, 254), &info);
    cases.push(("relayed".to_owned(), relayed.encode()));
    cases.push(("overloaded".to_owned(), overloaded(pxe(DhcpKind::Discover, 7))));
    cases
}

/// Options in `file` and `sname` too (RFC 2132, 9.3).
fn overloaded(message: ClientMessage) -> Vec<u8> {
    let mut message = message.message();
    message.options.set(code::OVERLOAD, [3]);
    let mut bytes = message.encode();
    for (at, piece) in [(44, [61, 1, 4, 255]), (108, [61, 1, 3, 255])] {
        bytes.splice(at..at + 4, piece);
    }
    bytes
}

pub(super) fn tftp_seeds() -> Vec<Seed> {
    let asked: Vec<(&[u8], &[u8])> =
        vec![(b"tsize", b"0"), (b"blksize", b"1468"), (b"windowsize", b"4")];
    let read = packet::Request { file: b"snponly.efi", mode: b"octet", options: asked };
    let plain = packet::Request { options: vec![], ..read.clone() };
    let packets = [
        ("read", Packet::Read(read.clone())),
        ("read-plain", Packet::Read(plain.clone())),
        ("write", Packet::Write(plain.clone())),
        ("data", Packet::Data { block: 1, payload: b"bytes" }),
        ("ack", Packet::Ack { block: 65_535 }),
        ("error", Packet::Error { code: 8, message: b"not now" }),
        ("oack", Packet::OptionAck(vec![(b"tsize", b"9")])),
    ];
    let mut seeds: Vec<Seed> =
        packets.iter().map(|(name, packet)| seed("tftp_packet", *name, packet.encode())).collect();
    let ack = |delay: u8, block| [vec![delay], piece(Packet::Ack { block }.encode())].concat();
    let windowed = [ack(1, 0), ack(1, 2), ack(1, 2), vec![200, 0], ack(1, 5)].concat();
    let begin = |size: u16, request: packet::Request<'_>| {
        let head = [&size.to_le_bytes(), &[0, 0][..], &1_468_u16.to_le_bytes(), &[16]].concat();
        [head, piece(Packet::Read(request).encode())].concat()
    };
    seeds.push(seed("tftp_transfer", "windowed", [begin(9_000, read), windowed].concat()));
    let lock_step = [ack(1, 1), ack(0, 1), vec![255, 0, 255, 0], ack(9, 2)].concat();
    seeds.push(seed("tftp_transfer", "lock-step", [begin(1_024, plain), lock_step].concat()));
    seeds
}

pub(super) fn http_seeds() -> Vec<Seed> {
    let two = "HEAD //a HTTP/1.1\r\nHost: x\r\n\r\nPOST /agent/v1/claim HTTP/1.1\r\n\
        Authorization: Ticket 00112233445566778899aabbccddeeff\r\nContent-Length: 2\r\n\r\n{}";
    let odd = "POST /x HTTP/1.0\r\nExpect: 100-continue\r\nConnection: a, close\r\n\
        Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc";
    let requests = [
        ("two-on-one", two),
        ("odd", odd),
        ("chunked", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("bare", "GET http://192.0.2.10:8067/boot.ipxe?mac=02-5a HTTP/1.1\n\n"),
    ];
    let paths = [
        ("tftp", "\\EFI\\BOOT\\grubx64.efi"),
        ("c-string", "undionly.kpxe\0"),
        ("up", "boot/../../etc/shadow"),
        ("coded", "//i//a%20b/%2e%2e?x=1#f"),
        ("absolute", "http://192.0.2.1:8067/t/00/done"),
    ];
    let requests = requests.map(|(name, text)| seed("http_request", name, text));
    requests.into_iter().chain(paths.map(|(name, text)| seed("boot_paths", name, text))).collect()
}

pub(super) fn ipxe_seeds() -> Vec<Seed> {
    let boot = BootScript {
        title: "inspect".to_owned(),
        kernel: "/i/inspect/vmlinuz".to_owned(),
        initrds: vec!["/i/inspect/initrd.img".to_owned()],
        args: "console=ttyS0 quiet".to_owned(),
        ticket: None,
    };
    let wait = BootAnswer::Wait { why: "the plan changed".to_owned() };
    let node: NodeName = "bld-003".parse().expect("a good name");
    let asker = Asker { node: &node, mac: MAC, local: LocalBoot::ByFirmware, menu: None };
    let text = |answer| script(answer, &ipxe::network(), &asker).expect("harmless words");
    let own = "#!ipxe\nset a ${net0/mac:hexhyp}\nisset ${b} || set b 1\n:top\ninc b\n\
        iseq ${b} 4 && goto out ||\nkernel http://192.0.2.1/${a} x=${b} \\\n y || goto top\n:out\n\
        imgargs k z ; initrd -n i /i ; boot k || sanboot --drive 0x80 || prompt -t 1 || exit 1\n";
    let scripts = [
        ("kernel", text(&BootAnswer::Kernel(boot))),
        ("wait", text(&wait)),
        ("own", own.to_owned()),
        ("loop", "#!ipxe\n:a\nset x ${x}${x}y\ngoto a\n".to_owned()),
    ];
    let scripts = scripts.into_iter().flat_map(|(name, text)| {
        [("lucky", 0), ("unlucky", 0xff_u8)].map(|(luck, byte)| {
            seed("ipxe_script", format!("{name}-{luck}"), [&[byte], text.as_bytes()].concat())
        })
    });
    let made = |kind: u8, texts: &[&str]| {
        let texts = texts.iter().flat_map(piece);
        [kind].into_iter().chain(texts).collect::<Vec<u8>>()
    };
    let harmless = made(2, &["install", "i/vmlinuz", "a=1 b=#2", "i/one", "i/two words"]);
    let harmful = made(1, &["${x} || exit", "k ${y}", "a ; reboot ||", "i"]);
    let written =
        [seed("ipxe_written", "harmless", harmless), seed("ipxe_written", "harmful", harmful)];
    scripts.chain(written).collect()
}
