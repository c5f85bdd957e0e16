//! Who gets which address, on networks whose addresses we give (RFC 2131, 4.3).
//!
//! A known node gets its reservation and nothing else. A machine without one gets an address of the pool where there
//! is one, and then we are the authority: what we did not give is refused. Without a pool a stranger hears nothing.

use std::net::Ipv4Addr;

use model::{Lease, boot::DhcpMode, lease::LeaseState, sighting::DhcpKind};

use super::{
    boot_file::boot_file,
    compose,
    decide::{Asked, Decided, Reply},
    leases::{Holder, Leases},
    place,
};

/// What a client may have.
#[derive(Debug, Clone, Copy)]
enum Claim {
    /// This address, by configuration.
    Reserved(Ipv4Addr),
    /// One of the pool.
    Pool,
}

/// The answer to a request on a network whose addresses we give.
pub(super) fn decide(asked: &Asked<'_>, leases: &mut Leases) -> Decided {
    let claim = match claim(asked) {
        Ok(claim) => claim,
        Err(why) => return (Err(why), None),
    };
    if asked.request.is_bootp {
        return (bootp(asked, claim), None);
    }
    match asked.request.kind {
        DhcpKind::Discover => (discover(asked, claim, leases), None),
        DhcpKind::Request => request(asked, claim, leases),
        DhcpKind::Inform => (inform(asked), None),
        DhcpKind::Decline => decline(asked, leases),
        DhcpKind::Release => release(asked, leases),
        DhcpKind::Offer | DhcpKind::Ack | DhcpKind::Nak => {
            (Err("no message of a client".to_owned()), None)
        }
    }
}

fn claim(asked: &Asked<'_>) -> Result<Claim, String> {
    if let Some(entry) = asked.resident() {
        return Ok(Claim::Reserved(entry.address));
    }
    match (asked.network.mode, asked.entry) {
        (DhcpMode::Full(_), _) => Ok(Claim::Pool),
        (_, None) => Err(asked.unknown()),
        (_, Some(entry)) => Err(format!(
            "its address {} is not on {}/{}, the network it asks from",
            entry.address, asked.network.subnet, asked.network.prefix
        )),
    }
}

fn discover(asked: &Asked<'_>, claim: Claim, leases: &mut Leases) -> Result<Reply, String> {
    place::at_home(asked.request, asked.network)?;
    let Asked { request, table, network, now, .. } = *asked;
    let address = match claim {
        Claim::Reserved(address) => address,
        Claim::Pool => leases
            .offer(network, table, request.chaddr, request.requested, now)
            .ok_or_else(|| exhausted(asked))?,
    };
    Ok(give(asked, DhcpKind::Offer, address))
}

fn exhausted(asked: &Asked<'_>) -> String {
    let name = &asked.network.name;
    match asked.network.mode {
        DhcpMode::Full(pool) => format!(
            "the pool {}-{} of network {name} has no free address: make it larger, or `unknown_lease_s` shorter",
            pool.first, pool.last
        ),
        DhcpMode::Reserved | DhcpMode::Proxy | DhcpMode::Off => {
            format!("network {name} has no pool")
        }
    }
}

/// A REQUEST by the client's state (RFC 2131, 4.3.2): SELECTING, INIT-REBOOT, RENEWING, REBINDING.
fn request(asked: &Asked<'_>, claim: Claim, leases: &mut Leases) -> Decided {
    let wanted = match wanted(asked) {
        Ok(wanted) => wanted,
        Err(why) => return (Err(why), None),
    };
    let Asked { request, table, network, now, .. } = *asked;
    let is_granted = match claim {
        Claim::Reserved(address) => wanted == address,
        Claim::Pool => leases.may_have(network, table, request.chaddr, wanted, now),
    };
    if !is_granted {
        return (Ok(refuse(asked, claim, wanted)), None);
    }
    if let Err(why) = place::at_home(asked.request, asked.network) {
        return (Err(why), None);
    }
    let lease = leases.bind(Lease {
        network: network.name.clone(),
        address: wanted,
        mac: request.chaddr,
        state: LeaseState::Bound,
        at: now,
        until: now.plus(std::time::Duration::from_secs(compose::lease_s(asked).into())),
        host_name: request.host_text(),
        location: request.relay_text(),
    });
    (Ok(give(asked, DhcpKind::Ack, wanted)), Some(lease))
}

/// The address a REQUEST is about.
fn wanted(asked: &Asked<'_>) -> Result<Ipv4Addr, String> {
    let Asked { request, network, .. } = *asked;
    match (request.server_id, request.requested) {
        // SELECTING: the client chose among offers.
        (Some(server), _) if server != network.server => {
            Err(format!("it took the offer of another server, {server}"))
        }
        (_, Some(requested)) => Ok(requested), // SELECTING or INIT-REBOOT
        _ if !request.ciaddr.is_unspecified() => Ok(request.ciaddr), // RENEWING or REBINDING
        _ => Err("its REQUEST names no address".to_owned()),
    }
}

/// OFFER or ACK.
fn give(asked: &Asked<'_>, kind: DhcpKind, address: Ipv4Addr) -> Reply {
    let (file, note) = boot_file(asked);
    let answer = compose::with_address(asked, kind, address, file);
    let to = place::destination(asked.request, asked.arrival, address);
    asked.reply(answer, to, note)
}

fn refuse(asked: &Asked<'_>, claim: Claim, wanted: Ipv4Addr) -> Reply {
    let why = match claim {
        Claim::Reserved(address) => format!("your address here is {address}"),
        Claim::Pool => format!("{wanted} is not yours here"),
    };
    let to = place::destination_of_refusal(asked.request, asked.arrival);
    asked.reply(compose::refusal(asked, why), to, None)
}

/// The client has an address from elsewhere and wants the rest (RFC 2131, 4.3.5).
fn inform(asked: &Asked<'_>) -> Result<Reply, String> {
    place::at_home(asked.request, asked.network)?;
    let (file, note) = boot_file(asked);
    let answer = compose::without_address(asked, file);
    let to = place::destination(asked.request, asked.arrival, Ipv4Addr::UNSPECIFIED);
    Ok(asked.reply(answer, to, note))
}

fn decline(asked: &Asked<'_>, leases: &mut Leases) -> Decided {
    let Asked { request, now, .. } = *asked;
    if request.server_id.is_some_and(|server| server != asked.network.server) {
        return (Err("it declines an address of another server".to_owned()), None);
    }
    let Some(address) = request.requested else {
        return (Err("it declines, and names no address".to_owned()), None);
    };
    match leases.decline(holder(asked, address), now) {
        Some(lease) => {
            (Err(format!("it declines {address}: another machine uses that address")), Some(lease))
        }
        None => (Err(format!("it declines {address}, which was not given to it")), None),
    }
}

fn release(asked: &Asked<'_>, leases: &mut Leases) -> Decided {
    let address = asked.request.ciaddr;
    match leases.release(holder(asked, address), asked.now) {
        Some(lease) => (Err(format!("it gives {address} back")), Some(lease)),
        None => (Err(format!("it gives {address} back, which it did not have")), None),
    }
}

fn holder<'a>(asked: &Asked<'a>, address: Ipv4Addr) -> Holder<'a> {
    Holder { network: &asked.network.name, mac: asked.request.chaddr, address }
}

/// BOOTP knows no leases: what is given is given for ever, so only reservations are (RFC 1534, 2).
fn bootp(asked: &Asked<'_>, claim: Claim) -> Result<Reply, String> {
    let Claim::Reserved(address) = claim else {
        return Err(format!("{}, and BOOTP is answered to known nodes only", asked.unknown()));
    };
    place::at_home(asked.request, asked.network)?;
    let (file, note) = boot_file(asked);
    let answer = compose::to_bootp(asked, address, file);
    let to = place::destination(asked.request, asked.arrival, address);
    Ok(asked.reply(answer, to, note))
}
