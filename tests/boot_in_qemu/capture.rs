//! A reader of `tcpdump`'s files, as far as this test needs it: Ethernet, IPv4, UDP and TCP; DHCP, TFTP, HTTP requests.

use std::{fs, path::Path, time::Duration};

use model::MacAddr;

/// volund's own address.
const SERVER: std::net::Ipv4Addr = std::net::Ipv4Addr::new(192, 0, 2, 1);

/// What one machine did on the wire.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// DHCP messages both ways: type and transaction.
    pub(crate) dhcp: Vec<(String, u32)>,
    /// TFTP read requests.
    pub(crate) tftp: Vec<String>,
    /// HTTP requests: method and path, tickets masked as the timeline masks them.
    pub(crate) http: Vec<(String, String)>,
    /// From the first to the last packet.
    pub(crate) span: Duration,
}

/// Everything `mac`, at `address`, said and was told.
pub(crate) fn read(file: &Path, mac: MacAddr, address: &str) -> Seen {
    let bytes = fs::read(file).unwrap();
    assert_eq!(bytes[..4], [0xd4, 0xc3, 0xb2, 0xa1], "a little-endian pcap file");
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut seen = Seen::default();
    let (mut at, mut first) = (24, None);
    while at + 16 <= bytes.len() {
        let (seconds, length) = (number(at), number(at + 8) as usize);
        let first = *first.get_or_insert(seconds);
        seen.span = Duration::from_secs((seconds - first).into());
        let Some(frame) = bytes.get(at + 16..at + 16 + length) else { break };
        packet(frame, mac, address.parse().unwrap(), &mut seen);
        at += 16 + length;
    }
    seen
}

fn packet(frame: &[u8], mac: MacAddr, address: std::net::Ipv4Addr, seen: &mut Seen) {
    if frame.len() < 34 || frame[12..14] != [8, 0] {
        return;
    }
    let ip = &frame[14..];
    // A bridge also shows what others say to each other: only what volund hears or says counts.
    let target = std::net::Ipv4Addr::new(ip[16], ip[17], ip[18], ip[19]);
    let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let source = std::net::Ipv4Addr::new(ip[12], ip[13], ip[14], ip[15]);
    let body = &ip[usize::from(ip[0] & 15) * 4..total.min(ip.len())];
    let port = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
    match ip[9] {
        17 if [67, 4011].contains(&port(2)) && is_heard(frame, target) => {
            dhcp(&body[8..], mac, seen);
        }
        17 if [67, 4011].contains(&port(0)) && source == SERVER => dhcp(&body[8..], mac, seen),
        17 if port(2) == 69 && source == address => tftp(&body[8..], seen),
        6 if port(2) == 8067 && source == address => {
            http(&body[usize::from(body[12] >> 4) * 4..], seen);
        }
        _ => (),
    }
}

/// Whether volund hears a frame: one to everybody, or to its own address.
fn is_heard(frame: &[u8], target: std::net::Ipv4Addr) -> bool {
    frame[..6] == [0xff; 6] || target == SERVER
}

fn dhcp(message: &[u8], mac: MacAddr, seen: &mut Seen) {
    if message.len() < 240 || message[28..34] != mac.octets() {
        return;
    }
    let xid = u32::from_be_bytes(message[4..8].try_into().unwrap());
    let mut options = &message[240..];
    while let [code, length, rest @ ..] = options {
        if *code == 53 {
            let names =
                ["", "DISCOVER", "OFFER", "REQUEST", "DECLINE", "ACK", "NAK", "RELEASE", "INFORM"];
            seen.dhcp.push((names[usize::from(rest[0])].to_owned(), xid));
            return;
        }
        options = if *code == 0 { &options[1..] } else { &rest[usize::from(*length)..] };
    }
}

fn tftp(message: &[u8], seen: &mut Seen) {
    if let [0, 1, rest @ ..] = message {
        let end = rest.iter().position(|byte| *byte == 0).unwrap();
        seen.tftp.push(String::from_utf8_lossy(&rest[..end]).into_owned());
    }
}

fn http(segment: &[u8], seen: &mut Seen) {
    let text = String::from_utf8_lossy(segment);
    let mut words = text.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return };
    if ["GET", "HEAD", "POST"].contains(&method) {
        seen.http.push((method.to_owned(), masked(path)));
    }
}

/// `/t/TICKET/done` as the timeline has it; queries are not part of a path there.
fn masked(path: &str) -> String {
    let path = path.split('?').next().unwrap();
    match path.strip_prefix("/t/").and_then(|rest| rest.split_once('/')) {
        Some((ticket, name)) => format!("/t/{}…/{name}", &ticket[..4]),
        None => path.to_owned(),
    }
}
