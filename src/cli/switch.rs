//! `volund switch NODES PROFILE`: preview, confirmation, order; with `--wait` until it is seen to be done.

use std::time::Duration;

use api::{NodePreview, PowerState, SwitchAccepted, SwitchPreview, SwitchRequest};
use model::ProfileName;

use super::{
    ExitCode, Trouble,
    client::Client,
    count, hostlist,
    terminal::{Terminal, clean, or_dash},
    wait::{self, Wait},
};
use crate::config::duration;

/// Its arguments.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which nodes, such as 'bld-[003,006-010]', quoted for the shell
    hostlist: String,
    /// The profile they are to have
    profile: ProfileName,
    /// Wait until every node is done, held or failed, and show the phases it passes
    #[arg(long)]
    wait: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// With --wait: how long at most, such as 90s or 30m
    #[arg(long, value_parser = duration::parse, default_value = "30m", requires = "wait")]
    timeout: Duration,
}

/// Runs the command.
pub(super) async fn run(
    args: Args,
    client: &Client,
    terminal: &mut Terminal,
) -> Result<ExitCode, Trouble> {
    hostlist(&args.hostlist)?;
    let what = format!("switch {} to {}", args.hostlist, args.profile);
    let mut request = SwitchRequest {
        nodes: args.hostlist.clone(),
        profile: args.profile.to_string(),
        confirm: None,
    };
    let path = "/api/v1/switch/preview";
    let preview = client.post::<SwitchPreview>(path, &request, &what).await?.value;
    show(terminal, &preview)?;
    refuse_blocked(&what, &preview)?;
    if !args.yes {
        confirm(client, terminal, &args, preview.nodes.len()).await?;
    }
    request.confirm = Some(preview.hash);
    let accepted = client.post::<SwitchAccepted>("/api/v1/switch", &request, &what).await?.value;
    if args.wait {
        let wait = Wait::new(&args.hostlist, accepted.switches, args.timeout);
        return wait::until_all_end(client, terminal, wait).await;
    }
    for switch in &accepted.switches {
        let line = format!("{}  accepted, switch {}", switch.node, switch.id);
        terminal.say(clean(&line))?;
    }
    terminal.tell("accepted is not done: follow it with `volund node NAME`, or use --wait")?;
    Ok(ExitCode::Ok)
}

/// What will happen, per node.
fn show(terminal: &mut Terminal, preview: &SwitchPreview) -> Result<(), Trouble> {
    for node in &preview.nodes {
        terminal.say(headline(node, &preview.profile))?;
        for step in &node.steps {
            terminal.say(format!("  {}", clean(step)))?;
        }
    }
    Ok(())
}

fn headline(node: &NodePreview, profile: &str) -> String {
    let power = match node.power {
        PowerState::On => "on",
        PowerState::Off => "off",
        PowerState::Unknown => "power unknown",
    };
    let risk = match (node.destructive, node.power) {
        (false, _) => "",
        (true, PowerState::Off) => "; what its disk holds may be lost",
        (true, PowerState::On | PowerState::Unknown) => "; work that runs there may be lost",
    };
    let from = or_dash(node.from.as_deref());
    format!("{}  {from} → {} ({power}{risk})", clean(&node.node), clean(profile))
}

fn refuse_blocked(what: &str, preview: &SwitchPreview) -> Result<(), Trouble> {
    let faults = preview.nodes.iter().flat_map(|node| {
        node.blocked.iter().map(move |why| {
            // The sentence may name its node already.
            if why.contains(&node.node) { why.clone() } else { format!("{}: {why}", node.node) }
        })
    });
    let faults: Vec<String> = faults.collect();
    if faults.is_empty() {
        return Ok(());
    }
    let text = format!("cannot {what}: {} blocked; nothing was changed", count_blocked(preview));
    Err(Trouble::new(ExitCode::Refused, text).faults(faults))
}

fn count_blocked(preview: &SwitchPreview) -> String {
    let blocked = preview.nodes.iter().filter(|node| !node.blocked.is_empty()).count();
    let are = if blocked == 1 { "is" } else { "are" };
    format!("{} {are}", count(blocked, "node"))
}

async fn confirm(
    client: &Client,
    terminal: &mut Terminal,
    args: &Args,
    nodes: usize,
) -> Result<(), Trouble> {
    let lab = client.nodes(Some(&args.hostlist)).await?.value.lab;
    let nodes = count(nodes, "node");
    let question = format!("Switch {nodes} of lab {} to {}?", clean(&lab), args.profile);
    if terminal.confirm(&question)? {
        Ok(())
    } else {
        Err(Trouble::new(ExitCode::Refused, "not confirmed; nothing was changed"))
    }
}
