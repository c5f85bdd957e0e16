//! Parts of `/networks`, and the line of the overview that points there.

use api::{LeaseList, LeaseView, NetworkList, NetworkView};
use askama::Template;

use super::{Clock, count, node_href, sentence};

/// Leases shown; the command line and the API list more.
const MAX_LEASES: usize = 500;

/// A network as a row.
struct Net {
    name: String,
    mode: &'static str,
    subnet: String,
    server: String,
    ports: String,
    nodes: usize,
    pool: String,
    /// Whether the pool has no address left.
    is_full: bool,
    counted: String,
    /// What was not kept or was given up; empty when nothing.
    lost: String,
    warnings: Vec<Warning>,
}

/// Something that is wrong, and what to do.
struct Warning {
    what: String,
    remedy: String,
}

/// `#networks`: the boot networks.
#[derive(Template)]
#[template(path = "networks_part.html")]
pub(crate) struct Networks {
    networks: Vec<Net>,
}

impl Networks {
    pub(crate) fn of(list: &NetworkList, clock: &Clock) -> Self {
        Self { networks: list.networks.iter().map(|network| Net::of(network, clock)).collect() }
    }
}

impl Net {
    fn of(network: &NetworkView, clock: &Clock) -> Self {
        let dhcp = &network.dhcp;
        let pool = network.pool.as_ref();
        Self {
            name: network.name.clone(),
            mode: mode_words(&network.mode),
            subnet: network.subnet.clone(),
            server: match &network.interface {
                Some(interface) => format!("{} on {interface}", network.server),
                None => format!("{}, relayed requests only", network.server),
            },
            ports: ports(network),
            nodes: network.nodes,
            pool: pool.map_or_else(String::new, |pool| {
                let taken = if pool.taken > 0 {
                    format!(", {} kept back", pool.taken)
                } else {
                    String::new()
                };
                format!("{} of {} given{taken}", pool.bound, pool.size)
            }),
            is_full: pool.is_some_and(|pool| pool.bound + pool.taken >= pool.size),
            counted: format!(
                "{} heard, {} OFFER, {} ACK, {} NAK",
                dhcp.heard, dhcp.offers, dhcp.acks, dhcp.naks
            ),
            lost: lost(network),
            warnings: warnings(network, clock),
        }
    }
}

/// What a mode means.
fn mode_words(mode: &str) -> &'static str {
    match mode {
        "full" => "full: addresses for all machines",
        "reserved" => "reserved: addresses for declared nodes",
        "proxy" => "proxy: boot files beside another DHCP server",
        "off" => "off: no DHCP",
        _ => "unknown",
    }
}

fn ports(network: &NetworkView) -> String {
    let ports = &network.ports;
    let optional = [("DHCP", ports.dhcp), ("proxy", ports.proxy)];
    let optional = optional.into_iter().filter_map(|(name, port)| Some((name, port?)));
    let all = optional.chain([("TFTP", ports.tftp), ("HTTP", ports.http)]);
    all.map(|(name, port)| format!("{name} {port}")).collect::<Vec<_>>().join(", ")
}

fn lost(network: &NetworkView) -> String {
    let dhcp = &network.dhcp;
    let parts = [
        (dhcp.late_acks, "ACKs before their record was on the disk"),
        (dhcp.dropped_discovers, "DISCOVERs given up"),
        (dhcp.dropped_requests, "REQUESTs given up"),
    ];
    let told = parts.into_iter().filter(|(number, _)| *number > 0);
    told.map(|(number, what)| format!("{what}: {number}")).collect::<Vec<_>>().join(", ")
}

/// Findings, then other DHCP servers where they are not wanted. Beside a proxy there has to be one.
fn warnings(network: &NetworkView, clock: &Clock) -> Vec<Warning> {
    let findings = network.findings.iter().map(|finding| Warning {
        what: sentence(&finding.what),
        remedy: sentence(&finding.remedy),
    });
    let rivals =
        network.rivals.iter().filter(|rival| network.mode != "proxy" || rival.file.is_some());
    let rivals = rivals.map(|rival| {
        let mac = rival.mac.as_ref().map_or_else(String::new, |mac| format!(" ({mac})"));
        let file = rival.file.as_ref();
        let file = file.map_or_else(String::new, |file| format!(" and names the boot file {file}"));
        let at = clock.second(rival.at_ms);
        let remedy = match network.mode.as_str() {
            "proxy" => "Take options 66 and 67 out of it: volund names the boot files here.",
            "off" => "Nodes take their boot file from it.",
            _ => "Switch it off there, or write dhcp = \"proxy\" for this network.",
        };
        Warning {
            what: format!(
                "Another DHCP server, {}{mac}, answers here{file}; last at {at}.",
                rival.server
            ),
            remedy: remedy.to_owned(),
        }
    });
    findings.chain(rivals).collect()
}

/// `#net-line`: one line on the overview where a boot network wants a person.
#[derive(Template)]
#[template(path = "net_line.html")]
pub(crate) struct NetLine {
    text: String,
}

impl NetLine {
    pub(crate) fn of(list: &NetworkList, clock: &Clock) -> Self {
        let all = list.networks.iter().flat_map(|network| {
            warnings(network, clock).into_iter().map(|warning| (&network.name, warning.what))
        });
        let all: Vec<(&String, String)> = all.collect();
        let more = match all.len() {
            0 | 1 => String::new(),
            number => format!(" And {}.", count(number - 1, "more", "more")),
        };
        let first = all.first().map(|(name, what)| format!("{name}: {what}{more}"));
        Self { text: first.unwrap_or_default() }
    }
}

/// A lease as a row.
struct Row {
    address: String,
    network: String,
    mac: String,
    node: String,
    href: String,
    state: String,
    is_taken: bool,
    since: String,
    until: String,
    host_name: String,
    location: String,
}

/// `#leases`: who has which address.
#[derive(Template)]
#[template(path = "leases.html")]
pub(crate) struct Leases {
    rows: Vec<Row>,
    more: bool,
}

impl Leases {
    pub(crate) fn of(list: &LeaseList, clock: &Clock) -> Self {
        let rows = list.leases.iter().take(MAX_LEASES).map(|lease| Row::of(lease, clock)).collect();
        Self { rows, more: list.more || list.leases.len() > MAX_LEASES }
    }
}

impl Row {
    fn of(lease: &LeaseView, clock: &Clock) -> Self {
        Self {
            address: lease.address.clone(),
            network: lease.network.clone(),
            mac: lease.mac.clone(),
            node: lease.node.clone().unwrap_or_default(),
            href: lease.node.as_deref().map(node_href).unwrap_or_default(),
            state: lease.state.clone(),
            is_taken: lease.state == "taken",
            since: clock.second(lease.since_ms),
            until: clock.second(lease.until_ms),
            host_name: lease.host_name.clone(),
            location: lease.location.clone().unwrap_or_default(),
        }
    }
}
