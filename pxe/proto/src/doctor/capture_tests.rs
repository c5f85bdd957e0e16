//! Recorded boots, turned into sightings as the server would have told them.

use std::net::Ipv4Addr;

use super::*;
use crate::{
    dhcp::{Message, Request},
    pcap::{Datagram, datagrams, shared},
    tftp,
};

const OURS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// Sightings of a recording, a tenth of a second apart. Answers of `us` are ours, those of other servers are rivals.
fn sightings(name: &str, us: Option<Ipv4Addr>) -> Option<Vec<Sighting>> {
    let bytes = shared(&format!("data/pxe-own/{name}"))?;
    let mut reading: Option<String> = None;
    let seen =
        datagrams(&bytes).into_iter().filter_map(|one| match (one.from.port(), one.to.port()) {
            (67 | 4011, 67 | 68) => sent(&one, us),
            (_, 67 | 4011) => heard(&one),
            _ => transfer(&one, &mut reading),
        });
    let line = |(place, what): (usize, Sighted)| {
        let at = UnixMillis(i64::try_from(place).unwrap() * 100);
        let (node, mac, peer, attempt) = (None, None, None, Some(UnixMillis(0)));
        Sighting { at, node, mac, peer, attempt, what }
    };
    Some(seen.enumerate().map(line).collect())
}

fn heard(one: &Datagram) -> Option<Sighted> {
    let request = Request::decode(&one.payload).ok()?;
    Some(Sighted::DhcpIn {
        kind: request.kind,
        xid: request.xid,
        client: request.client(),
        relay: None,
        proxy: one.to.port() == 4011,
    })
}

fn sent(one: &Datagram, us: Option<Ipv4Addr>) -> Option<Sighted> {
    let reply = Message::decode(&one.payload).ok()?;
    let file = reply.options.get(67).map(|name| String::from_utf8_lossy(name).into_owned());
    let field = String::from_utf8_lossy(&reply.file).into_owned();
    let file = file.or(Some(field));
    let file =
        file.map(|name| name.trim_end_matches('\0').to_owned()).filter(|name| !name.is_empty());
    if Some(*one.from.ip()) != us {
        return Some(Sighted::Rival { server: *one.from.ip(), address: Some(reply.yiaddr), file });
    }
    let kind = match reply.options.get(53)?.first()? {
        2 => DhcpKind::Offer,
        5 => DhcpKind::Ack,
        _ => DhcpKind::Nak,
    };
    Some(Sighted::DhcpOut { kind, xid: reply.xid, address: reply.yiaddr, file })
}

/// The read requests, their size probes, and the end of those that transferred something.
fn transfer(one: &Datagram, reading: &mut Option<String>) -> Option<Sighted> {
    match tftp::Packet::decode(&one.payload).ok()? {
        tftp::Packet::Read(request) => {
            let file = String::from_utf8_lossy(request.file).into_owned();
            *reading = Some(file.clone());
            Some(Sighted::TftpRead { file })
        }
        tftp::Packet::Error { .. } => Some(Sighted::TftpProbe { file: reading.take()? }),
        tftp::Packet::Ack { block: 1.. } => {
            Some(Sighted::TftpDone { file: reading.take()?, bytes: 173_792, millis: 100 })
        }
        _ => None,
    }
}

fn facts() -> Facts {
    Facts {
        now: UnixMillis(60_000),
        power: None,
        awaited: Some(UnixMillis(0)),
        post_limit: Duration::from_secs(300),
        heard_before: true,
        is_over: false,
        is_proxy: false,
        strangers: vec![],
        memory_mib: None,
    }
}

/// The recording keeps the first 200 bytes of a frame, which cuts its DHCP messages short: the firmware's own are put
/// before it.
#[test]
fn a_recorded_uefi_machine_that_refuses_an_unsigned_loader_is_told_so() {
    let Some(mut seen) = sightings("secureboot-unsigned-ipxe.pcap", Some(OURS)) else { return };
    let client = "x86-64 UEFI (7)".to_owned();
    let asked =
        Sighted::DhcpIn { kind: DhcpKind::Request, xid: 1, client, relay: None, proxy: false };
    let what = seen.first().expect("it was recorded").clone();
    seen.insert(0, Sighting { what: asked, ..what });
    let said = diagnose(&seen, &facts());
    assert_eq!(said.first().map(|one| one.id), Some("secure-boot"), "{said:?}\n{seen:?}");
}

#[test]
fn a_recorded_proxy_without_a_server_address_is_the_fault_of_that_server() {
    let Some(seen) = sightings("proxy-seabios-ipxe-nosiaddr-fails.pcap", None) else { return };
    for is_proxy in [false, true] {
        let said = diagnose(&seen, &Facts { is_proxy, ..facts() });
        let first = said.first().unwrap_or_else(|| panic!("{seen:?}"));
        assert_eq!(first.id, "rival-boot-file");
        assert!(first.cause.contains("192.0.2.1"), "{}", first.cause);
    }
}

#[test]
fn the_same_seen_by_that_proxy_itself_is_an_answer_nobody_takes() {
    let Some(seen) = sightings("proxy-seabios-ipxe-nosiaddr-fails.pcap", Some(OURS)) else {
        return;
    };
    let said = diagnose(&seen, &Facts { is_proxy: true, ..facts() });
    assert_eq!(said.first().map(|one| one.id), Some("proxy-refused"), "{said:?}\n{seen:?}");
}

#[test]
fn recorded_boots_that_went_well_are_well() {
    let names = [
        "seabios-ipxe-qemu.pcap",
        "seabios-undionly-chain.pcap",
        "ovmf-pxe4-snponly.pcap",
        "aavmf-pxe4.pcap",
    ];
    for name in names {
        let Some(mut seen) = sightings(name, Some(OURS)) else { return };
        // HTTP is in none of them: the script is what these boots went on to.
        let (at, what) =
            (UnixMillis(50_000), Sighted::Script { what: "local boot (a test)".to_owned() });
        let first = seen.first().expect("it was recorded").clone();
        seen.push(Sighting { at, what, ..first });
        assert_eq!(diagnose(&seen, &facts()), [], "{name}");
    }
}
