//! What a client is told: its reservation, its loader or script, and where the answer goes.
//!
//! Known nodes only. An unknown machine gets nothing: another server may be responsible for it, and an address
//! of ours would take it away from there. Leases are reservations by hardware address, the same for ROM, iPXE
//! and operating system; the client identifier is echoed and never looked at.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    sync::Arc,
};

use model::{
    BootEntry, BootIntent, BootTable, ClientArch, Lease, MacAddr, UnixMillis, boot::BootNetwork,
    sighting::DhcpKind,
};

use super::{
    answer::{Answer, BootFile, Ending, LeaseTimes},
    leases::Leases,
    message::BROADCAST,
    request::Request,
};
use crate::{ipxe::Stage, path};

/// Port servers and relays listen on.
const SERVER_PORT: u16 = 67;
/// Port clients listen on.
const CLIENT_PORT: u16 = 68;

/// How a request reached us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Where it was sent from.
    pub from: SocketAddrV4,
    /// Our own address on the network it came in by; decides the network when no relay is named.
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

/// Decides by the request, the boot table and the leases. Idempotent: repeated DISCOVERs and REQUESTs have the same
/// answer, whatever their transaction and client identifiers.
#[must_use]
pub fn decide(
    request: &Request,
    arrival: Arrival,
    table: &BootTable,
    leases: &mut Leases,
    now: UnixMillis,
) -> Decision {
    let _unused = (&leases, now);
    let Some(entry) = table.by_mac.get(&request.chaddr) else {
        return silent(None, format!("machine {} is not known", request.chaddr));
    };
    let entry = Arc::clone(entry);
    match outcome(request, arrival, table, &entry) {
        Ok(reply) => Decision {
            entry: Some(entry),
            outcome: Outcome::Reply(Box::new(reply)),
            rival: None,
            lease: None,
            seen_at: None,
        },
        Err(why) => silent(Some(entry), why),
    }
}

fn silent(entry: Option<Arc<BootEntry>>, why: String) -> Decision {
    Decision { entry, outcome: Outcome::Silent { why }, rival: None, lease: None, seen_at: None }
}

/// The reply to a known node, or why there is none.
fn outcome(
    request: &Request,
    arrival: Arrival,
    table: &BootTable,
    entry: &BootEntry,
) -> Result<Reply, String> {
    let network = network(request, arrival, table, entry)?;
    let kind = match request.kind {
        DhcpKind::Discover => DhcpKind::Offer,
        DhcpKind::Request => answer_to_request(request, network, entry)?,
        DhcpKind::Inform => DhcpKind::Ack,
        DhcpKind::Decline => {
            let address = request.requested.unwrap_or(entry.address);
            return Err(format!("it declines {address}: another machine uses that address"));
        }
        DhcpKind::Release => return Err(format!("it gives {} back", request.ciaddr)),
        DhcpKind::Offer | DhcpKind::Ack | DhcpKind::Nak => {
            return Err(format!("{} is no message of a client", request.kind));
        }
    };
    if kind == DhcpKind::Nak {
        return Ok(refuse(request, arrival, network, entry));
    }
    let goes_to_client = request.giaddr.is_unspecified() && !request.ciaddr.is_unspecified();
    if goes_to_client && !network.contains(request.ciaddr) {
        // The answer would go there, to somebody who may never have asked.
        return Err(format!("it says it is at {}, which is not on its network", request.ciaddr));
    }
    let (boot_file, note) = boot_file(request, table, network, entry);
    let answer = grant(request, kind, network, entry, boot_file);
    Ok(Reply { answer, to: destination(request, arrival), note, delay_ms: 0 })
}

/// The network the client is on: the relay's, or the one of our address that heard it.
fn network<'t>(
    request: &Request,
    arrival: Arrival,
    table: &'t BootTable,
    entry: &BootEntry,
) -> Result<&'t BootNetwork, String> {
    let found = if request.giaddr.is_unspecified() {
        let by_server = table.networks.iter().find(|network| network.server == arrival.on);
        by_server.ok_or_else(|| format!("no boot network has our address {}", arrival.on))
    } else {
        let by_relay = table.network_of(request.giaddr);
        by_relay.ok_or_else(|| format!("no boot network holds its relay {}", request.giaddr))
    };
    let network = found?;
    if !network.contains(entry.address) {
        let BootNetwork { subnet, prefix, .. } = network;
        return Err(format!(
            "its address {} is not on {subnet}/{prefix}, the network it asks from",
            entry.address
        ));
    }
    Ok(network)
}

/// ACK, NAK or silence for a REQUEST by the client's state (RFC 2131, 4.3.2).
fn answer_to_request(
    request: &Request,
    network: &BootNetwork,
    entry: &BootEntry,
) -> Result<DhcpKind, String> {
    let wanted = match (request.server_id, request.requested) {
        // SELECTING: the client chose among offers.
        (Some(server), _) if server != network.server => {
            return Err(format!("it took the offer of another server, {server}"));
        }
        (_, Some(requested)) => requested, // SELECTING or INIT-REBOOT
        _ if !request.ciaddr.is_unspecified() => request.ciaddr, // RENEWING or REBINDING
        _ => return Err("its REQUEST names no address".to_owned()),
    };
    Ok(if wanted == entry.address { DhcpKind::Ack } else { DhcpKind::Nak })
}

/// OFFER or ACK.
fn grant(
    request: &Request,
    kind: DhcpKind,
    network: &BootNetwork,
    entry: &BootEntry,
    boot_file: Option<BootFile>,
) -> Answer {
    let is_inform = request.kind == DhcpKind::Inform;
    let is_ipxe = matches!(request.stage, Stage::Ipxe | Stage::CutDownIpxe);
    Answer {
        ciaddr: if kind == DhcpKind::Ack { request.ciaddr } else { Ipv4Addr::UNSPECIFIED },
        yiaddr: if is_inform { Ipv4Addr::UNSPECIFIED } else { entry.address },
        lease: (!is_inform).then_some(LeaseTimes { seconds: network.lease_s }),
        netmask: Some(network.netmask()),
        router: network.router,
        dns: network.dns.clone(),
        host_name: Some(entry.node.to_string()),
        // Only to UEFI HTTP boot: EDK2 takes an answer with option 60 `PXEClient` and no option 43 for an
        // invitation to ask port 4011.
        http_client: request.is_http_boot() && boot_file.is_some(),
        no_pxedhcp: is_ipxe,
        machine_id: request.machine_id.clone(),
        boot_file,
        ..bare(request, kind, network)
    }
}

/// The parts every answer has.
fn bare(request: &Request, kind: DhcpKind, network: &BootNetwork) -> Answer {
    Answer {
        kind,
        xid: request.xid,
        chaddr: request.chaddr,
        flags: request.flags,
        ciaddr: Ipv4Addr::UNSPECIFIED,
        yiaddr: Ipv4Addr::UNSPECIFIED,
        siaddr: network.server,
        giaddr: request.giaddr,
        server_id: network.server,
        lease: None,
        netmask: None,
        router: None,
        dns: vec![],
        host_name: None,
        boot_file: None,
        http_client: false,
        no_pxedhcp: false,
        client_id: request.client_id.clone(),
        machine_id: None,
        relay: request.relay.clone(),
        text: None,
    }
}

/// A NAK: no address, broadcast to the client by us or by its relay (RFC 2131, 4.3.2).
fn refuse(request: &Request, arrival: Arrival, network: &BootNetwork, entry: &BootEntry) -> Reply {
    let mut answer = bare(request, DhcpKind::Nak, network);
    answer.siaddr = Ipv4Addr::UNSPECIFIED;
    answer.text = Some(format!("your address here is {}", entry.address));
    let to = if request.giaddr.is_unspecified() {
        Destination::Broadcast
    } else {
        answer.flags |= BROADCAST;
        destination(request, arrival)
    };
    Reply { answer, to, note: None, delay_ms: 0 }
}

/// Where an OFFER or ACK goes (RFC 2131, 4.1; RFC 8357, 5).
///
/// A client without an address and without the broadcast flag should be sent a frame to its hardware address,
/// which needs a raw socket we do not have yet: it gets a broadcast, which all but some builds of udhcpc take.
fn destination(request: &Request, arrival: Arrival) -> Destination {
    if !request.giaddr.is_unspecified() {
        let own_port = request.relay_info.as_ref().is_some_and(|info| info.source_port);
        let port = if own_port { arrival.from.port() } else { SERVER_PORT };
        return Destination::Address(SocketAddrV4::new(request.giaddr, port));
    }
    if request.ciaddr.is_unspecified() {
        Destination::Broadcast
    } else {
        Destination::Address(SocketAddrV4::new(request.ciaddr, CLIENT_PORT))
    }
}

/// The boot file of a client, or why it gets none although it wants one.
fn boot_file(
    request: &Request,
    table: &BootTable,
    network: &BootNetwork,
    entry: &BootEntry,
) -> (Option<BootFile>, Option<String>) {
    if entry.intent == BootIntent::NoBootFile {
        return (None, None);
    }
    match request.stage {
        Stage::System => (None, None),
        Stage::Ipxe => (Some(script(request, network)), None),
        Stage::Pxe | Stage::HttpBoot | Stage::CutDownIpxe => {
            match loader(request, table, network) {
                Ok(file) => (Some(file), None),
                Err(why) => (None, Some(why)),
            }
        }
    }
}

/// The URL of the script, with the MAC in it so that it can be checked against the address that asks.
fn script(request: &Request, network: &BootNetwork) -> BootFile {
    let url = path::url(network.http, crate::ipxe::SCRIPT_PATH);
    let name = format!("{url}?mac={}", request.chaddr.hyphenated());
    BootFile { name, ending: Ending::Bare }
}

/// The loader for an architecture. Nothing is guessed: a loader of the wrong kind hangs a machine.
fn loader(request: &Request, table: &BootTable, network: &BootNetwork) -> Result<BootFile, String> {
    let arch = request.arch().ok_or("it names no architecture: no boot file")?;
    if arch.family().is_none() {
        return Err(format!("no loader is known for {arch}: no boot file"));
    }
    let loadable = request.loadable();
    let name = loadable.iter().find_map(|arch| configured(table, *arch)).ok_or_else(|| {
        format!("no loader is configured for {arch}: no boot file; name one under `loaders`")
    })?;
    let name = if request.is_http_boot() { path::url(network.http, name) } else { name.clone() };
    let ending = if request.stage == Stage::CutDownIpxe { Ending::Bare } else { Ending::Zero };
    Ok(BootFile { name, ending })
}

/// The loader named for an architecture.
fn configured(table: &BootTable, arch: ClientArch) -> Option<&String> {
    let mut codes = arch.family()?.loader_codes().iter();
    codes.find_map(|code| table.loaders.0.get(&ClientArch(*code)))
}
