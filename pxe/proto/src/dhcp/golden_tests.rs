//! Every client family in every mode, as one picture; and the contract that what is named is served.

use std::{
    fmt::Write as _,
    net::{Ipv4Addr, SocketAddrV4},
};

use model::{
    BootTable, ClientArch, UnixMillis,
    boot::{DhcpMode, Pool},
    sighting::DhcpKind::{self, Discover},
};

use super::{
    decide_tests::{ARRIVAL, NODE, NOW, SERVER, file_of, mac, table},
    *,
};

const POOL: Pool =
    Pool { first: Ipv4Addr::new(192, 0, 2, 100), last: Ipv4Addr::new(192, 0, 2, 120) };

fn families(last: u8) -> Vec<(&'static str, ClientMessage)> {
    let pxe = |arch| ClientMessage::pxe(Discover, 1, mac(last), ClientArch(arch));
    let http = |arch| ClientMessage::http_boot(Discover, 1, mac(last), ClientArch(arch));
    let ipxe = |arch| ClientMessage::ipxe(Discover, 1, mac(last), ClientArch(arch));
    let cut_down = ClientMessage { ipxe: Some(vec![0x18, 1, 1]), ..ipxe(0) };
    vec![
        ("BIOS", pxe(0)),
        ("UEFI ia32", pxe(6)),
        ("UEFI x64", pxe(7)),
        ("UEFI x64, 9", pxe(9)),
        ("UEFI arm64", pxe(11)),
        ("HTTP x64", http(16)),
        ("HTTP arm64", http(19)),
        ("unknown 0f00", pxe(0x0f00)),
        ("iPXE BIOS", ipxe(0)),
        ("iPXE UEFI", ipxe(7)),
        ("iPXE without HTTP", cut_down),
        ("system", ClientMessage::system(Discover, 1, mac(last))),
    ]
}

fn tell(decision: &Decision) -> String {
    let reply = match &decision.outcome {
        Outcome::Silent { why } => return format!("- {why}"),
        Outcome::Reply(reply) => reply,
    };
    let message = reply.answer.message();
    let codes: Vec<String> = message.options.iter().map(|(code, _)| code.to_string()).collect();
    let class = message.options.get(code::VENDOR_CLASS).map(String::from_utf8_lossy);
    let to = match reply.to {
        Destination::Address(to) => to.to_string(),
        Destination::Hardware { address, .. } => format!("{address} by frame"),
        Destination::Broadcast => "all".to_owned(),
    };
    let mut told = format!("{} to {to}: {}", reply.answer.kind, message.yiaddr);
    let file = file_of(reply).unwrap_or("no file");
    let class = class.unwrap_or_default();
    write!(told, " [{file}] {class} {}", codes.join(",")).unwrap();
    if let Some(note) = &reply.note {
        write!(told, " ({note})").unwrap();
    }
    told
}

#[test]
fn every_family_in_every_mode() {
    let mut picture = String::new();
    for (name, mode) in [
        ("full", DhcpMode::Full(POOL)),
        ("reserved", DhcpMode::Reserved),
        ("proxy", DhcpMode::Proxy),
    ] {
        for (who, last) in [("node", 7), ("stranger", 0x66)] {
            writeln!(picture, "{name}, {who}").unwrap();
            let mut table = table();
            table.networks[0].mode = mode;
            for (family, message) in families(last) {
                let request = Request::decode(&message.encode()).unwrap();
                let decision = decide(&request, ARRIVAL, &table, &mut Leases::new(), NOW);
                writeln!(picture, "  {family}: {}", tell(&decision)).unwrap();
                if mode == DhcpMode::Reserved {
                    continue;
                }
                let ask = ClientMessage { kind: DhcpKind::Request, ciaddr: NODE, ..message };
                let from = SocketAddrV4::new(NODE, 4011);
                let arrival = Arrival { from, port: ServerPort::Proxy, ..ARRIVAL };
                let request = Request::decode(&ask.encode()).unwrap();
                let decision = decide(&request, arrival, &table, &mut Leases::new(), NOW);
                writeln!(picture, "    4011: {}", tell(&decision)).unwrap();
            }
        }
    }
    insta::assert_snapshot!(picture);
}

/// The lab with the files it serves.
fn serving() -> BootTable {
    let mut table = table();
    for name in table.loaders.0.values().cloned().collect::<Vec<_>>() {
        table.files.insert(name.clone(), name.into());
    }
    table
}

#[test]
fn every_file_that_is_named_is_served() {
    let kinds = [Discover, DhcpKind::Request, DhcpKind::Inform];
    let modes = [DhcpMode::Full(POOL), DhcpMode::Reserved, DhcpMode::Proxy];
    let ports = [ServerPort::Dhcp, ServerPort::Proxy];
    let mut named = 0;
    for (mode, port) in modes.into_iter().flat_map(|mode| ports.map(|port| (mode, port))) {
        let mut table = serving();
        table.networks[0].mode = mode;
        for (arch, kind) in (0..64).flat_map(|arch| kinds.map(|kind| (arch, kind))) {
            for make in [ClientMessage::pxe, ClientMessage::ipxe, ClientMessage::http_boot] {
                let mut message = make(kind, 3, mac(7), ClientArch(arch));
                message.ciaddr = if kind == Discover { Ipv4Addr::UNSPECIFIED } else { NODE };
                let request = Request::decode(&message.encode()).unwrap();
                let arrival = Arrival { port, ..ARRIVAL };
                let decision = decide(&request, arrival, &table, &mut Leases::new(), UnixMillis(5));
                let Outcome::Reply(reply) = decision.outcome else { continue };
                let Some(file) = file_of(&reply) else { continue };
                named += 1;
                let url = format!("http://{}/", table.networks[0].http);
                let path = file.strip_prefix(&url).unwrap_or(file);
                let is_script =
                    format!("/{path}").starts_with(&format!("{}?", crate::ipxe::SCRIPT_PATH));
                assert!(is_script || table.files.contains_key(path), "{file}");
                assert_eq!(reply.answer.siaddr, SERVER);
            }
        }
    }
    assert!(named > 300, "{named}");
}
