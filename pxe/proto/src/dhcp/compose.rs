//! Answers put together: the fields and options of each kind of answer.

use std::net::Ipv4Addr;

use model::{boot::DhcpOption, sighting::DhcpKind};

use super::{
    answer::{Answer, BootFile, LeaseTimes},
    code,
    decide::Asked,
    message::BROADCAST,
};
use crate::ipxe::Stage;

/// Options that volund sets itself, or that only clients send: configured ones of these codes are not sent. The
/// configuration refuses them with where they are set instead.
const OWN: [u8; 26] = [
    0,
    code::SUBNET_MASK,
    code::ROUTER,
    code::DNS,
    code::HOST_NAME,
    code::REQUESTED_ADDRESS,
    code::LEASE_TIME,
    code::OVERLOAD,
    code::MESSAGE_TYPE,
    code::SERVER_ID,
    code::PARAMETERS,
    code::TEXT,
    code::MAX_SIZE,
    code::RENEWAL,
    code::REBINDING,
    code::VENDOR_CLASS,
    code::CLIENT_ID,
    code::BOOT_FILE,
    code::USER_CLASS,
    80, // rapid commit
    code::RELAY,
    code::ARCHITECTURE,
    code::NETWORK_INTERFACE,
    code::MACHINE_ID,
    code::SUBNET_SELECTION,
    code::IPXE,
];
/// Options that would send firmware elsewhere: they are for operating systems only. 150 is a list of TFTP servers.
const MISLEADS_FIRMWARE: [u8; 3] = [code::VENDOR, code::TFTP_SERVER, 150];

/// The lease time of a client.
pub(super) fn lease_s(asked: &Asked<'_>) -> u32 {
    let network = asked.network;
    if asked.resident().is_some() { network.lease_s } else { network.unknown_lease_s }
}

/// OFFER or ACK with an address.
pub(super) fn with_address(
    asked: &Asked<'_>,
    kind: DhcpKind,
    address: Ipv4Addr,
    file: Option<BootFile>,
) -> Answer {
    let ciaddr = if kind == DhcpKind::Ack { asked.request.ciaddr } else { Ipv4Addr::UNSPECIFIED };
    Answer {
        kind,
        ciaddr,
        yiaddr: address,
        lease: Some(LeaseTimes { seconds: lease_s(asked) }),
        ..complete(asked, file)
    }
}

/// ACK to INFORM: all but address and lease.
pub(super) fn without_address(asked: &Asked<'_>, file: Option<BootFile>) -> Answer {
    Answer { ciaddr: asked.request.ciaddr, ..complete(asked, file) }
}

/// Answer to BOOTP: nothing of what DHCP brought.
pub(super) fn to_bootp(asked: &Asked<'_>, address: Ipv4Addr, file: Option<BootFile>) -> Answer {
    Answer {
        is_bootp: true,
        ciaddr: asked.request.ciaddr,
        yiaddr: address,
        client_id: None,
        machine_id: None,
        ..complete(asked, file)
    }
}

/// The answer of a server that gives addresses.
fn complete(asked: &Asked<'_>, boot_file: Option<BootFile>) -> Answer {
    let request = asked.request;
    let network = asked.network;
    Answer {
        netmask: Some(network.netmask()),
        router: network.router,
        dns: network.dns.clone(),
        host_name: asked.resident().map(|entry| entry.node.to_string()),
        // Only to UEFI HTTP boot: EDK2 takes an answer with option 60 `PXEClient` and no option 43 for an
        // invitation to ask port 4011.
        http_client: request.is_http_boot() && boot_file.is_some(),
        no_pxedhcp: matches!(request.stage, Stage::Ipxe | Stage::CutDownIpxe),
        machine_id: request.machine_id.clone(),
        extra: extra(asked),
        boot_file,
        ..bare(asked)
    }
}

/// The parts every answer has: an ACK of nothing.
pub(super) fn bare(asked: &Asked<'_>) -> Answer {
    let (request, network) = (asked.request, asked.network);
    Answer {
        kind: DhcpKind::Ack,
        is_bootp: false,
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
        pxe_client: None,
        no_pxedhcp: false,
        client_id: request.client_id.clone(),
        machine_id: None,
        subnet_selection: request.subnet_selection,
        relay: request.relay.clone(),
        extra: vec![],
        text: None,
    }
}

/// A NAK. A relay broadcasts it (RFC 2131, 4.3.2).
pub(super) fn refusal(asked: &Asked<'_>, why: String) -> Answer {
    let relayed = if asked.request.giaddr.is_unspecified() { 0 } else { BROADCAST };
    Answer {
        kind: DhcpKind::Nak,
        flags: asked.request.flags | relayed,
        siaddr: Ipv4Addr::UNSPECIFIED,
        text: Some(why),
        ..bare(asked)
    }
}

/// The options of network and node that volund does not set itself; the node's stand for the network's.
fn extra(asked: &Asked<'_>) -> Vec<DhcpOption> {
    let of_node = asked.resident().map_or(&[][..], |entry| &entry.traits.options);
    let is_of_node = |code: u8| of_node.iter().any(|option| option.code == code);
    let of_network = asked.network.options.iter().filter(|option| !is_of_node(option.code));
    let firmware = asked.request.stage.is_firmware();
    let is_sent = |code: u8| {
        code != 255 && !OWN.contains(&code) && !(firmware && MISLEADS_FIRMWARE.contains(&code))
    };
    let all = of_network.chain(of_node);
    all.filter(|option| is_sent(option.code)).cloned().collect()
}
