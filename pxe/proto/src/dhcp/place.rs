//! Where a client is, and where its answer goes.

use std::net::{Ipv4Addr, SocketAddrV4};

use model::{BootTable, boot::BootNetwork};

use super::{
    decide::{Arrival, Destination},
    message::BROADCAST,
    request::Request,
};

/// Port servers and relays listen on.
const SERVER_PORT: u16 = 67;
/// Port clients listen on.
const CLIENT_PORT: u16 = 68;

/// The network a client is on: the one its relay names (option 82.5 before all, RFC 3527), the one it names itself
/// (option 118, RFC 3011), that of its relay, or that of our own address which heard it. A client that sends from the
/// address it has, through a router, is on that address's network (RFC 2131, 4.3.2, RENEWING).
pub(super) fn network<'t>(
    request: &Request,
    arrival: Arrival,
    table: &'t BootTable,
) -> Result<&'t BootNetwork, String> {
    let find = |address, what| {
        let found = table.network_of(address);
        found.ok_or_else(|| format!("no boot network holds {what} {address}"))
    };
    relay_is_there(request, arrival, table)?;
    if let Some(link) = request.link_selection.filter(|link| !link.is_unspecified()) {
        return find(link, "the subnet its relay names,");
    }
    if let Some(subnet) = request.subnet_selection.filter(|subnet| !subnet.is_unspecified()) {
        return find(subnet, "the subnet it asks for,");
    }
    if !request.giaddr.is_unspecified() {
        return find(request.giaddr, "its relay");
    }
    let sends_from_its_own =
        !request.ciaddr.is_unspecified() && *arrival.from.ip() == request.ciaddr;
    if let Some(network) = table.network_of(request.ciaddr).filter(|_| sends_from_its_own) {
        return Ok(network);
    }
    let by_server = table.networks.iter().find(|network| network.server == arrival.on);
    by_server.ok_or_else(|| format!("no boot network has our address {}", arrival.on))
}

/// An answer goes to `giaddr`, whatever that says. So a relay is on a boot network, or else it is the one that asks
/// (RFC 3527 lets it be anywhere): nobody shall have answers sent to a third machine.
fn relay_is_there(request: &Request, arrival: Arrival, table: &BootTable) -> Result<(), String> {
    let relay = request.giaddr;
    let asks_itself = relay == *arrival.from.ip();
    if relay.is_unspecified() || asks_itself || table.network_of(relay).is_some() {
        return Ok(());
    }
    Err(format!("no boot network holds its relay {relay}"))
}

/// An answer to `ciaddr` would go there, to somebody who may never have asked: it must be of the network.
pub(super) fn at_home(request: &Request, network: &BootNetwork) -> Result<(), String> {
    let goes_there = request.giaddr.is_unspecified() && !request.ciaddr.is_unspecified();
    if goes_there && !network.contains(request.ciaddr) {
        return Err(format!("it says it is at {}, which is not on its network", request.ciaddr));
    }
    Ok(())
}

/// Where an OFFER or ACK goes (RFC 2131, 4.1; RFC 8357, 5). `address` is the one the client is given; unspecified
/// when it is given none.
pub(super) fn destination(request: &Request, arrival: Arrival, address: Ipv4Addr) -> Destination {
    if !request.giaddr.is_unspecified() {
        return Destination::Address(relay(request, arrival));
    }
    if !request.ciaddr.is_unspecified() {
        return Destination::Address(SocketAddrV4::new(request.ciaddr, CLIENT_PORT));
    }
    if request.flags & BROADCAST != 0 || address.is_unspecified() {
        return Destination::Broadcast;
    }
    Destination::Hardware { address, mac: request.chaddr }
}

/// Where a NAK goes: never to an address, for the client's is wrong (RFC 2131, 4.3.2).
pub(super) fn destination_of_refusal(request: &Request, arrival: Arrival) -> Destination {
    if request.giaddr.is_unspecified() {
        Destination::Broadcast
    } else {
        Destination::Address(relay(request, arrival))
    }
}

fn relay(request: &Request, arrival: Arrival) -> SocketAddrV4 {
    let own_port = request.relay_info.as_ref().is_some_and(|info| info.source_port);
    SocketAddrV4::new(request.giaddr, if own_port { arrival.from.port() } else { SERVER_PORT })
}
