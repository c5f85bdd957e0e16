//! `volund networks` and `volund leases`: how boot networks are served, and who has which address.

use api::{LeaseList, LeaseView, NetworkList, NetworkView};
use model::MacAddr;

use super::{
    ExitCode, Trouble,
    client::Client,
    table::{self, Cell, Look},
    terminal::{Terminal, clean, or_dash},
};

/// Arguments of `volund networks`.
#[derive(Debug, clap::Args)]
pub(super) struct NetworksArgs {
    /// Print the API's answer: a list under "networks"
    #[arg(long)]
    json: bool,
}

/// Arguments of `volund leases`.
#[derive(Debug, clap::Args)]
pub(super) struct LeasesArgs {
    /// Only those of this network
    #[arg(long, value_name = "NAME")]
    network: Option<String>,
    /// Only those of this hardware address
    #[arg(long, value_name = "MAC")]
    mac: Option<MacAddr>,
    /// Print the API's answer: a list under "leases"
    #[arg(long)]
    json: bool,
}

/// Runs `volund networks`.
pub(super) async fn networks(
    args: NetworksArgs,
    client: &Client,
    terminal: &mut Terminal,
) -> Result<ExitCode, Trouble> {
    let answer = client.get::<NetworkList>("/api/v1/networks", "list the networks").await?;
    if args.json {
        terminal.json(&answer.json)?;
    } else {
        print_networks(terminal, &answer.value)?;
    }
    Ok(ExitCode::Ok)
}

/// Runs `volund leases`.
pub(super) async fn leases(
    args: LeasesArgs,
    client: &Client,
    terminal: &mut Terminal,
) -> Result<ExitCode, Trouble> {
    let mac = args.mac.map(|mac| mac.to_string());
    let answer = client.leases(args.network.as_deref(), mac.as_deref()).await?;
    if args.json {
        terminal.json(&answer.json)?;
    } else {
        print_leases(terminal, &answer.value)?;
    }
    Ok(ExitCode::Ok)
}

fn print_networks(terminal: &mut Terminal, list: &NetworkList) -> Result<(), Trouble> {
    if list.networks.is_empty() {
        return terminal.say(format!("lab {} has no boot networks", clean(&list.lab)));
    }
    let rows: Vec<Vec<Cell>> = list.networks.iter().map(network_row).collect();
    let head = ["NETWORK", "DHCP", "SUBNET", "SERVER", "PORTS", "NODES", "POOL", "OFFER/ACK/NAK"];
    table::print(terminal, &head, &rows)?;
    for network in &list.networks {
        for line in remarks(terminal, network, list.at_ms) {
            terminal.say(format!("{}: {}", clean(&network.name), clean(&line)))?;
        }
    }
    Ok(())
}

fn network_row(network: &NetworkView) -> Vec<Cell> {
    let server = match &network.interface {
        Some(interface) => format!("{} on {interface}", network.server),
        None => network.server.clone(),
    };
    let ports = &network.ports;
    let ports = [ports.dhcp, ports.proxy, Some(ports.tftp), Some(ports.http)];
    let ports: Vec<String> = ports.into_iter().flatten().map(|port| port.to_string()).collect();
    let dhcp = &network.dhcp;
    vec![
        network.name.clone().into(),
        network.mode.clone().into(),
        network.subnet.clone().into(),
        server.into(),
        ports.join(",").into(),
        network.nodes.to_string().into(),
        pool(network),
        format!("{}/{}/{}", dhcp.offers, dhcp.acks, dhcp.naks).into(),
    ]
}

/// `3 of 50`, as bad when none is left.
fn pool(network: &NetworkView) -> Cell {
    let Some(pool) = &network.pool else { return or_dash(None).into() };
    let taken = if pool.taken > 0 { format!(", {} taken", pool.taken) } else { String::new() };
    let look = if pool.bound + pool.taken >= pool.size { Look::Bad } else { Look::Plain };
    Cell::new(format!("{} of {}{taken}", pool.bound, pool.size), look)
}

/// What is not as it should be, and what to do; then other servers, which are as they should be beside a proxy.
fn remarks(terminal: &Terminal, network: &NetworkView, now_ms: i64) -> Vec<String> {
    let dhcp = &network.dhcp;
    let counted = [
        (dhcp.late_acks, "ACKs before their record was on the disk"),
        (dhcp.dropped_discovers, "DISCOVERs given up"),
        (dhcp.dropped_requests, "REQUESTs given up (this machine is too small for its lab)"),
    ];
    let counted = counted.iter().filter(|(number, _)| *number > 0);
    let counted = counted.map(|(number, what)| format!("{what}: {number}"));
    let findings = network.findings.iter();
    let findings = findings.map(|finding| format!("{}; {}", finding.what, finding.remedy));
    let rivals = network.rivals.iter().map(|rival| {
        let mac = rival.mac.as_ref().map_or_else(String::new, |mac| format!(" ({mac})"));
        let file = rival.file.as_ref();
        let file = file.map_or_else(String::new, |file| format!(", names boot file {file}"));
        let at = terminal.time(rival.at_ms, now_ms);
        format!("another DHCP server, {}{mac}{file}, heard {at}", rival.server)
    });
    counted.chain(findings).chain(rivals).collect()
}

fn print_leases(terminal: &mut Terminal, list: &LeaseList) -> Result<(), Trouble> {
    if list.leases.is_empty() {
        return terminal.say("no leases");
    }
    let rows: Vec<Vec<Cell>> =
        list.leases.iter().map(|lease| lease_row(terminal, lease, list.at_ms)).collect();
    let head =
        ["ADDRESS", "MAC", "NODE", "STATE", "SINCE", "UNTIL", "CALLS ITSELF", "AT", "NETWORK"];
    table::print(terminal, &head, &rows)?;
    if list.more {
        terminal.tell("there are more; narrow them down with --network or --mac")?;
    }
    Ok(())
}

/// A text, unless nothing was told.
fn told(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn lease_row(terminal: &Terminal, lease: &LeaseView, now_ms: i64) -> Vec<Cell> {
    let look = match lease.state.as_str() {
        "bound" => Look::Good,
        "taken" => Look::Bad,
        _ => Look::Plain,
    };
    vec![
        lease.address.clone().into(),
        or_dash(told(&lease.mac)).into(),
        or_dash(lease.node.as_deref()).into(),
        Cell::new(&lease.state, look),
        terminal.time(lease.since_ms, now_ms).into(),
        terminal.time(lease.until_ms, now_ms).into(),
        or_dash(told(&lease.host_name)).into(),
        lease.location.clone().unwrap_or_default().into(),
        lease.network.clone().into(),
    ]
}
