//! `volund nodes`: the lab at a glance.

use api::{NodeList, NodeView, PowerState};

use super::{
    ExitCode, Trouble,
    client::Client,
    hostlist,
    table::{self, Cell, Look},
    terminal::{Terminal, clean, or_dash},
};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which nodes, such as 'bld-[003,006-010]', quoted for the shell; all when left out
    hostlist: Option<String>,
    /// Print the API's answer: a list under "nodes"
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) async fn run(
    args: Args,
    client: &Client,
    terminal: &mut Terminal,
) -> Result<ExitCode, Trouble> {
    if let Some(text) = &args.hostlist {
        hostlist(text)?;
    }
    let answer = client.nodes(args.hostlist.as_deref()).await?;
    if args.json {
        terminal.json(&answer.json)?;
    } else {
        print(terminal, &answer.value)?;
    }
    Ok(ExitCode::Ok)
}

fn print(terminal: &mut Terminal, list: &NodeList) -> Result<(), Trouble> {
    let rows: Vec<Vec<Cell>> =
        list.nodes.iter().map(|node| row(terminal, node, list.at_ms)).collect();
    if rows.is_empty() {
        return terminal.say(format!("lab {} has no nodes", clean(&list.lab)));
    }
    let head = ["NODE", "BAY", "POWER", "PROFILE", "PHASE", "WATTS", "LAST SEEN", "NOTE"];
    table::print(terminal, &head, &rows)
}

fn row(terminal: &Terminal, node: &NodeView, now_ms: i64) -> Vec<Cell> {
    let seen = node.last_sighting.as_ref();
    let seen = seen.map(|seen| format!("{} {}", terminal.time(seen.at_ms, now_ms), seen.text));
    vec![
        node.name.clone().into(),
        bay(node).into(),
        power(node.power),
        profile(node).into(),
        phase(node),
        or_dash(Some(&node.watts.text)).into(),
        or_dash(seen.as_deref()).into(),
        note(node),
    ]
}

/// `c7000-1/3`.
pub(super) fn bay(node: &NodeView) -> String {
    let seat = node.enclosure.as_ref().zip(node.bay);
    or_dash(seat.map(|(enclosure, bay)| format!("{enclosure}/{bay}")).as_deref())
}

/// A power state with its look.
pub(super) fn power(state: PowerState) -> Cell {
    match state {
        PowerState::On => Cell::new("on", Look::Good),
        PowerState::Off => Cell::new("off", Look::Plain),
        PowerState::Unknown => Cell::new(or_dash(None), Look::Plain),
    }
}

/// `local`, or `local → inspect` while another is wanted.
pub(super) fn profile(node: &NodeView) -> String {
    let now = or_dash(node.profile.as_deref());
    match &node.wanted {
        Some(wanted) if Some(wanted) != node.profile.as_ref() => format!("{now} → {wanted}"),
        Some(_) | None => now,
    }
}

/// A phase with its look.
pub(super) fn phase(node: &NodeView) -> Cell {
    let look = match node.phase.name.as_str() {
        "held" | "failed" => Look::Bad,
        _ if node.phase.open => Look::Busy,
        _ => Look::Plain,
    };
    Cell::new(or_dash(Some(&node.phase.name)), look)
}

/// What a person should know: why it is held, what ails its BMC, who protects it.
fn note(node: &NodeView) -> Cell {
    let stuck = matches!(node.phase.name.as_str(), "held" | "failed");
    let parts = [
        node.phase.reason.clone().filter(|_| stuck),
        node.bmc.trouble.as_ref().map(|trouble| format!("BMC: {trouble}")),
        node.protected.as_ref().map(|reason| format!("protected: {reason}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    Cell::new(parts.join("; "), if stuck { Look::Bad } else { Look::Plain })
}
