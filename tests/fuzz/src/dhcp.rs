//! DHCP of both directions.

use std::{
    collections::{BTreeMap, BTreeSet},
    hint::black_box,
    net::{Ipv4Addr, SocketAddrV4},
};

use model::{
    BootEntry, BootIntent, BootTable, ClientArch, Lease, MacAddr, UnixMillis,
    boot::{BootNetwork, BootTraits, DhcpMode, Loaders, Pool},
    lease::LeaseState,
    sighting::DhcpKind,
};
use pxe_proto::dhcp::{
    Answer, Arrival, ClientMessage, Leases, Message, Outcome, Probed, Reply, Request, ServerPort,
    code, decide, request::HEADERS,
};

use super::input::Input;

const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
const NOW: UnixMillis = UnixMillis(1_000_000);
/// Around our own address, and around the reservations.
const POOL: Pool = Pool { first: Ipv4Addr::new(192, 0, 2, 70), last: Ipv4Addr::new(192, 0, 2, 77) };

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
    for mode in [DhcpMode::Full(POOL), DhcpMode::Reserved, DhcpMode::Proxy, DhcpMode::Off] {
        for port in [ServerPort::Dhcp, ServerPort::Proxy] {
            decided(&request, mode, port);
        }
    }
}

/// Decides in one mode, and once more: the same question has the same answer.
fn decided(request: &Request, mode: DhcpMode, port: ServerPort) {
    let (mut table, mut leases) = (table(), Leases::new());
    table.networks.iter_mut().for_each(|network| network.mode = mode);
    let senders = [(Ipv4Addr::UNSPECIFIED, SERVER), (request.ciaddr, Ipv4Addr::LOCALHOST)];
    for (from, on) in senders {
        let arrival = Arrival { from: SocketAddrV4::new(from, 68), on, port };
        let decision = decide(request, arrival, &table, &mut leases, NOW);
        let again = decide(request, arrival, &table, &mut leases, NOW);
        assert_eq!(decision, again, "the same question, twice");
        if let Outcome::Reply(reply) = decision.outcome {
            is_heard(&reply, request);
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
    if answer.is_bootp {
        let heard = Message::decode(&bytes).expect("our answers are BOOTP");
        assert_eq!((heard.yiaddr, heard.options.get(code::MESSAGE_TYPE)), (answer.yiaddr, None));
        return;
    }
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

/// Machines that come and go on a network with a pool, four bytes a deed: which, who, about what address, and what else.
pub(super) fn leases(data: &[u8]) {
    let (mut lab, mut input) = (Lab::new(), Input(data));
    while !input.is_empty() {
        let [deed, who, about, what] = input.array();
        lab.happens(deed, who % 8, Ipv4Addr::new(192, 0, 2, 64 + about % 16), what);
        lab.is_sound();
    }
}

/// A server, and what its clients believe.
struct Lab {
    table: BootTable,
    leases: Leases,
    now: UnixMillis,
    /// Who was given which address until when.
    given: BTreeMap<Ipv4Addr, (MacAddr, UnixMillis)>,
}

impl Lab {
    fn new() -> Self {
        let mut table = table();
        table.networks.iter_mut().for_each(|network| network.mode = DhcpMode::Full(POOL));
        Self { table, leases: Leases::new(), now: NOW, given: BTreeMap::new() }
    }

    fn happens(&mut self, deed: u8, who: u8, about: Ipv4Addr, what: u8) {
        // 3 and 4 are known.
        let mac = MacAddr([2, 0x5a, 0x10, 0, 0, who]);
        let says = |kind| ClientMessage::pxe(kind, 1, mac, ClientArch(what.into()));
        let (requested, server_id) = (Some(about), Some(SERVER));
        match deed % 9 {
            0 => self.hears(&ClientMessage { requested, ..says(DhcpKind::Discover) }),
            1 => self.hears(&says(DhcpKind::Request).selecting(about, SERVER)),
            2 => self.hears(&ClientMessage { requested, ..says(DhcpKind::Request) }),
            3 => self.hears(&ClientMessage { ciaddr: about, ..says(DhcpKind::Request) }),
            4 => self.hears(&ClientMessage { ciaddr: about, ..says(DhcpKind::Release) }),
            5 => self.hears(&ClientMessage { requested, server_id, ..says(DhcpKind::Decline) }),
            6 => self.now.0 += i64::from(what) * 2_000,
            7 => self.pings(mac, what),
            _ => {
                let records: Vec<_> = self.leases.live().cloned().collect();
                self.leases = Leases::new();
                records.into_iter().for_each(|lease| self.leases.replay(lease));
            }
        }
    }

    fn pings(&mut self, mac: MacAddr, what: u8) {
        let network = self.table.networks.first().expect("the table has one");
        if let Some(address) = self.leases.to_probe(network, &self.table, self.now) {
            let by = (what > 200).then_some(mac);
            let found = if what < 128 { Probed::Free } else { Probed::Used { by } };
            self.leases.probed(network, address, found, self.now);
        }
    }

    fn hears(&mut self, message: &ClientMessage) {
        let request = Request::read(&message.message()).expect("it is a client's");
        let from = SocketAddrV4::new(message.ciaddr, 68);
        let arrival = Arrival { from, on: SERVER, port: ServerPort::Dhcp };
        let decision = decide(&request, arrival, &self.table, &mut self.leases, self.now);
        let (mac, address) = (request.chaddr, decision.lease.as_ref().map(|lease| lease.address));
        if let Some(address) = address {
            self.given.retain(|at, (has, _)| *has != mac && *at != address);
        }
        let Outcome::Reply(reply) = decision.outcome else { return };
        is_heard(&reply, &request);
        let address = reply.answer.yiaddr;
        if address.is_unspecified() {
            return;
        }
        let other =
            self.given.get(&address).filter(|(has, until)| *has != mac && *until > self.now);
        assert_eq!(other, None, "{address} is offered or given to {mac} as well");
        let owner = self.table.by_address.get(&address);
        assert!(owner.is_none_or(|node| node.macs.contains(&mac)), "{address} is reserved");
        assert_ne!(address, SERVER);
        if let Some(lease) = decision.lease {
            self.given.insert(address, (mac, lease.until));
        }
    }

    /// A machine has one address, and what is shown is what was given.
    fn is_sound(&self) {
        let holds = |lease: &&Lease| lease.state == LeaseState::Bound && lease.until > self.now;
        let mut machines = BTreeSet::new();
        for lease in self.leases.live().filter(holds) {
            assert!(machines.insert(lease.mac), "{} has two addresses", lease.mac);
        }
        let network = self.table.networks.first().expect("the table has one");
        let used = self.leases.pool_use(network, &self.table, self.now);
        assert!(used.bound + used.taken <= used.size, "{used:?}");
    }
}
