//! Beside another DHCP server (PXE 2.1, proxyDHCP), and port 4011 wherever it is asked.
//!
//! These answers name a boot file and never an address, a lease, a mask or a router.

use std::net::{Ipv4Addr, SocketAddrV4};

use model::{boot::DhcpMode, sighting::DhcpKind};

use super::{
    answer::Answer,
    boot_file::boot_file,
    compose,
    decide::{Asked, Destination, Reply, ServerPort},
    place,
};
use crate::ipxe::Stage;

/// Option 43 for firmware: "discovery control: no discovery, start the boot file you were named" (PXE 2.1, 2.2).
const START_THE_FILE: [u8; 3] = [6, 1, 8];
/// Sub-option of option 43: the entry of the boot menu the answer is about.
const MENU_ITEM: u8 = 71;
/// End of option 43.
const END: u8 = 255;

/// A message on port 67 of a network whose addresses another server gives.
pub(super) fn on_67(asked: &Asked<'_>) -> Result<Reply, String> {
    let request = asked.request;
    match request.kind {
        _ if request.is_bootp => Err("BOOTP is the other server's".to_owned()),
        DhcpKind::Discover => {
            place::at_home(request, asked.network)?;
            let answer = Answer { kind: DhcpKind::Offer, ..answer(asked)? };
            let to = place::destination(request, asked.arrival, Ipv4Addr::UNSPECIFIED);
            Ok(asked.reply(answer, to, None))
        }
        // Some builds of iPXE send their proxy request here, to us by name.
        DhcpKind::Request if request.server_id == Some(asked.network.server) => to_sender(asked),
        DhcpKind::Request => {
            Err("its REQUEST is for the server that gives the addresses".to_owned())
        }
        kind => Err(format!("its {kind} is for the server that gives the addresses")),
    }
}

/// A message on port 4011, on any network.
pub(super) fn on_4011(asked: &Asked<'_>) -> Result<Reply, String> {
    match asked.request.kind {
        DhcpKind::Request | DhcpKind::Inform if !asked.request.is_bootp => to_sender(asked),
        kind => Err(format!("port 4011 answers REQUEST and INFORM, not {kind}")),
    }
}

/// The ACK to whoever asks with an address of its own: it goes back where it came from, to the port too. EDK2 asks from
/// port 4011, iPXE and BIOS ROMs from 68.
fn to_sender(asked: &Asked<'_>) -> Result<Reply, String> {
    let (from, network) = (asked.arrival.from, asked.network);
    if !from.ip().is_unspecified() && !network.contains(*from.ip()) {
        return Err(format!("it asks from {}, which is not on its network", from.ip()));
    }
    let answer = Answer { ciaddr: asked.request.ciaddr, ..answer(asked)? };
    let to = if from.ip().is_unspecified() {
        let at = asked.request.ciaddr;
        if network.contains(at) {
            Destination::Address(SocketAddrV4::new(at, from.port()))
        } else {
            Destination::Broadcast
        }
    } else {
        Destination::Address(from)
    };
    Ok(asked.reply(answer, to, None))
}

/// The answer without its kind; or why there is none: without a boot file there is nothing to say.
fn answer(asked: &Asked<'_>) -> Result<Answer, String> {
    let request = asked.request;
    if asked.entry.is_none() {
        return Err(asked.unknown());
    }
    if request.stage == Stage::System {
        return Err("it is no boot client: there is no boot file for it".to_owned());
    }
    let (file, note) = boot_file(asked);
    let file = file
        .ok_or_else(|| note.unwrap_or_else(|| "it is to go on without a boot file".to_owned()))?;
    let is_http = request.is_http_boot();
    let is_firmware = request.stage == Stage::Pxe;
    Ok(Answer {
        boot_file: Some(file),
        http_client: is_http,
        pxe_client: (!is_http)
            .then(|| if is_firmware { vendor(request.menu_item) } else { vec![] }),
        machine_id: request.machine_id.clone(),
        ..compose::bare(asked)
    })
}

/// Option 43: start the file; and the menu's entry again, if the client asks for one.
fn vendor(item: Option<[u8; 4]>) -> Vec<u8> {
    let mut vendor = START_THE_FILE.to_vec();
    if let Some(item) = item {
        vendor.extend([MENU_ITEM, 4]);
        vendor.extend(item);
    }
    vendor.push(END);
    vendor
}

/// The address another server gave a known node, as its message shows it: the one it sends from on port 4011, the one
/// it takes from the other server, the one it renews. Never another node's.
pub(super) fn seen_at(asked: &Asked<'_>) -> Option<Ipv4Addr> {
    let Asked { request, table, network, .. } = *asked;
    if network.mode != DhcpMode::Proxy {
        return None;
    }
    let entry = asked.entry?;
    let has_its_own = !request.ciaddr.is_unspecified();
    let address = match request.kind {
        DhcpKind::Request | DhcpKind::Inform if has_its_own => request.ciaddr,
        DhcpKind::Request if asked.arrival.port == ServerPort::Dhcp => request.requested?,
        _ => return None,
    };
    let is_somebody_elses = table.by_address.get(&address).is_some_and(|at| at.node != entry.node);
    let is_ours = table.networks.iter().any(|network| network.server == address);
    (network.contains(address) && !is_somebody_elses && !is_ours).then_some(address)
}
