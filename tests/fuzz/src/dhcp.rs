//! DHCP of both directions.

use std::{
    collections::BTreeMap,
    hint::black_box,
    net::{Ipv4Addr, SocketAddrV4},
};

use model::{
    BootEntry, BootIntent, BootTable, ClientArch, MacAddr, UnixMillis,
    boot::{BootNetwork, BootTraits, DhcpMode, Loaders},
};
use pxe_proto::dhcp::{
    Answer, Arrival, Leases, Message, Outcome, Reply, Request, ServerPort, code, decide,
    request::HEADERS,
};

const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
const NOW: UnixMillis = UnixMillis(1_000_000);

/// Two nodes on one network: one asks the engine, one is to get no boot file.
fn table() -> BootTable {
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
        dns: vec![Ipv4Addr::new(192, 0, 2, 53)],
        lease_s: 600,
        http: "192.0.2.10:8067".parse().expect("a literal"),
    });
    let loaders = [(0, "undionly.kpxe"), (7, "snponly.efi"), (16, "snponly.efi")];
    table.loaders = Loaders(loaders.map(|(arch, name)| (ClientArch(arch), name.to_owned())).into());
    for (last, intent) in [(3, BootIntent::Ask), (4, BootIntent::NoBootFile)] {
        table.insert(BootEntry {
            node: format!("bld-{last:03}").parse().expect("a good name"),
            macs: vec![MacAddr([2, 0x5a, 0x10, 0, 0, last])],
            address: Ipv4Addr::new(192, 0, 2, 70 + last),
            intent,
            attempt: None,
            traits: BootTraits::default(),
        });
    }
    table
}

/// A datagram on port 67: read, decided on, and the answer read as a client would.
pub(super) fn request(data: &[u8]) {
    let Ok(message) = Message::decode(data) else { return };
    reads_back(&message);
    let Ok(request) = Request::read(&message) else { return };
    black_box((request.client(), request.relay_text()));
    let table = table();
    let mut leases = Leases::new();
    for (from, on) in [(Ipv4Addr::UNSPECIFIED, SERVER), (Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST)]
    {
        let arrival = Arrival { from: SocketAddrV4::new(from, 68), on, port: ServerPort::Dhcp };
        let decision = decide(&request, arrival, &table, &mut leases, NOW);
        assert_eq!(
            decision,
            decide(&request, arrival, &table, &mut leases, NOW),
            "the same question, twice"
        );
        if let Outcome::Reply(reply) = decision.outcome {
            is_heard(&reply, &request);
        }
    }
}

/// What a client that sends `datagram` is answered, if anything.
pub(super) fn answered(datagram: &[u8]) -> Option<Vec<u8>> {
    let request = Request::decode(datagram).ok()?;
    let arrival = Arrival {
        from: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 68),
        on: SERVER,
        port: ServerPort::Dhcp,
    };
    match decide(&request, arrival, &table(), &mut Leases::new(), NOW).outcome {
        Outcome::Reply(reply) => Some(reply.answer.encode(request.max_size)),
        Outcome::Silent { .. } => None,
    }
}

/// The answer fits what the client takes, and what it needs is in it.
fn is_heard(Reply { answer, .. }: &Reply, request: &Request) {
    let bytes = answer.encode(request.max_size);
    assert!(bytes.len() + HEADERS <= usize::from(request.max_size), "{} bytes", bytes.len());
    let heard = Answer::decode(&bytes).expect("our answers are DHCP");
    assert_eq!((heard.kind, heard.xid, heard.chaddr), (answer.kind, request.xid, request.chaddr));
    assert_eq!((heard.yiaddr, heard.server_id), (answer.yiaddr, SERVER));
    assert_eq!((heard.lease, heard.boot_file), (answer.lease, answer.boot_file.clone()));
}

/// What was read is written so that it reads the same.
fn reads_back(message: &Message) {
    let again = Message::decode(&message.encode()).expect("what we write is DHCP");
    let options = |message: &Message| -> BTreeMap<u8, Vec<u8>> {
        message.options.iter().map(|(code, value)| (code, value.to_vec())).collect()
    };
    assert_eq!(options(&again), options(message));
    let fixed = |message: &Message| {
        let Message { op, hops, xid, secs, flags, ciaddr, yiaddr, siaddr, giaddr, chaddr, .. } =
            message;
        (*op, *hops, *xid, *secs, *flags, [*ciaddr, *yiaddr, *siaddr, *giaddr], *chaddr)
    };
    assert_eq!(fixed(&again), fixed(message));
}

/// A server's answer, as the twin's firmware reads it.
pub(super) fn reply(data: &[u8]) {
    // No datagram is longer, and nothing may be dropped below.
    let data = data.get(..1_472).unwrap_or(data);
    let Ok(answer) = Answer::decode(data) else { return };
    let bytes = answer.encode(u16::MAX);
    assert_eq!(Answer::decode(&bytes).as_ref(), Ok(&answer));
    let relay = Message::decode(data).expect("it was an answer").options;
    assert_eq!(relay.get(code::RELAY), answer.relay.as_deref());
}
