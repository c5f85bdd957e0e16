//! What a client is told: its address, its loader or script, and where the answer goes.
//!
//! It answers from the boot table and the leases alone, asks nobody, and sends nothing. An address belongs to a
//! hardware address, the same for ROM, iPXE and operating system; the client identifier is echoed and never looked at.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    sync::Arc,
};

use model::{
    BootEntry, BootTable, Lease, MacAddr, UnixMillis,
    boot::{BootNetwork, DhcpMode},
    sighting::DhcpKind,
};

use super::{address, answer::Answer, leases::Leases, place, proxy, request::Request};

/// How a request reached us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Where it was sent from.
    pub from: SocketAddrV4,
    /// Our own address on the network it came in by; decides the network when nothing else names one.
    pub on: Ipv4Addr,
    /// The service it was sent to.
    pub port: ServerPort,
}

/// The service a request was sent to, whatever port it is really bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerPort {
    /// DHCP, port 67.
    Dhcp,
    /// Proxy requests, port 4011 (PXE 2.1): the client has an address and asks for its boot file.
    Proxy,
}

/// What is to be done with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The node it belongs to; `None` for an unknown machine.
    pub entry: Option<Arc<BootEntry>>,
    /// Answer or silence.
    pub outcome: Outcome,
    /// The other server the client chose (option 54), where we give the addresses.
    pub rival: Option<Ipv4Addr>,
    /// What became of a lease. An ACK goes out when this is on the disk.
    pub lease: Option<Lease>,
    /// The address another server gave this node, as far as the message shows it; on proxy networks only.
    pub seen_at: Option<Ipv4Addr>,
}

/// Answer or silence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Send this.
    Reply(Box<Reply>),
    /// Send nothing, for a reason worth a line in the timeline.
    Silent {
        /// One sentence for a person.
        why: String,
    },
}

/// An answer on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The answer; encode it with the request's `max_size`.
    pub answer: Answer,
    /// Where it goes.
    pub to: Destination,
    /// Why there is no boot file although the client wants one.
    pub note: Option<String>,
    /// Milliseconds it is to be held back, at most 5,000.
    pub delay_ms: u16,
}

/// Where an answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// To a machine that has an address: a relay, a client that said so, whoever asked port 4011.
    Address(SocketAddrV4),
    /// To a client that does not use its address yet: a frame to its hardware address, without asking ARP for it
    /// (RFC 2131, 4.1). UDP port 68.
    Hardware {
        /// The address it is offered.
        address: Ipv4Addr,
        /// Its hardware address.
        mac: MacAddr,
    },
    /// To 255.255.255.255, UDP port 68.
    Broadcast,
}

/// A request with all that is needed to answer it.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) request: &'a Request,
    pub(super) arrival: Arrival,
    pub(super) table: &'a BootTable,
    pub(super) network: &'a BootNetwork,
    pub(super) entry: Option<&'a BootEntry>,
    pub(super) now: UnixMillis,
}

/// What was decided on the address: a reply or the reason for silence, and what became of a lease.
pub(super) type Decided = (Result<Reply, String>, Option<Lease>);

/// Decides by the request, the boot table and the leases. Repeated DISCOVERs and REQUESTs have the same answer,
/// whatever their transaction and client identifiers.
#[must_use]
pub fn decide(
    request: &Request,
    arrival: Arrival,
    table: &BootTable,
    leases: &mut Leases,
    now: UnixMillis,
) -> Decision {
    let entry = table.by_mac.get(&request.chaddr).cloned();
    decide_as(entry, request, arrival, table, leases, now)
}

/// Decides as [`decide`] does, with `entry` for what the table says of the machine: how one that is to be told
/// something else for a while is answered, without a table of its own.
#[must_use]
pub fn decide_as(
    entry: Option<Arc<BootEntry>>,
    request: &Request,
    arrival: Arrival,
    table: &BootTable,
    leases: &mut Leases,
    now: UnixMillis,
) -> Decision {
    let (decided, rival, seen_at) = match place::network(request, arrival, table) {
        Ok(network) => {
            let entry = entry.as_deref();
            let asked = Asked { request, arrival, table, network, entry, now };
            let rival = asked.rival();
            if rival.is_some() {
                leases.forget_offer(&network.name, request.chaddr, now);
            }
            (asked.decide(leases), rival, proxy::seen_at(&asked))
        }
        Err(why) => ((Err(why), None), None, None),
    };
    let (reply, lease) = decided;
    let outcome = match reply {
        Ok(reply) => Outcome::Reply(Box::new(reply)),
        Err(why) => Outcome::Silent { why },
    };
    Decision { entry, outcome, rival, lease, seen_at }
}

impl Asked<'_> {
    fn decide(&self, leases: &mut Leases) -> Decided {
        let Self { request, network, .. } = self;
        let silent = |why: String| (Err(why), None);
        if matches!(request.kind, DhcpKind::Offer | DhcpKind::Ack | DhcpKind::Nak) {
            return silent(format!("{} is no message of a client", request.kind));
        }
        if network.mode == DhcpMode::Off {
            return silent(format!("DHCP is off on network {}", network.name));
        }
        if request.kind == DhcpKind::Inform && request.vendor_class.starts_with(b"AAPLBSDPC") {
            return silent("it looks for a boot server of Apple's kind (BSDP)".to_owned());
        }
        match (self.arrival.port, network.mode) {
            (ServerPort::Proxy, _) => (proxy::on_4011(self), None),
            (ServerPort::Dhcp, DhcpMode::Proxy) => (proxy::on_67(self), None),
            (ServerPort::Dhcp, _) => address::decide(self, leases),
        }
    }

    /// The other server the client chose, where choosing another is worth a word.
    fn rival(&self) -> Option<Ipv4Addr> {
        let gives = self.network.mode.gives_addresses();
        let chooses = self.request.kind == DhcpKind::Request;
        let server = self.request.server_id.filter(|_| gives && chooses)?;
        let is_ours = self.table.networks.iter().any(|network| network.server == server);
        let asks_us = self.arrival.port == ServerPort::Dhcp;
        (asks_us && !is_ours && !server.is_unspecified()).then_some(server)
    }

    /// The node, if it lives on this network.
    pub(super) fn resident(&self) -> Option<&BootEntry> {
        self.entry.filter(|entry| self.network.contains(entry.address))
    }

    /// The reply with all that goes around an answer.
    pub(super) fn reply(&self, answer: Answer, to: Destination, note: Option<String>) -> Reply {
        const LONGEST_DELAY: u16 = 5_000;
        let delay_ms = self.entry.map_or(0, |entry| entry.traits.answer_delay_ms);
        Reply { answer, to, note, delay_ms: delay_ms.min(LONGEST_DELAY) }
    }

    pub(super) fn unknown(&self) -> String {
        format!("machine {} is not known", self.request.chaddr)
    }
}
