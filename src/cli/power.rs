//! `volund power NODES VERB`: what the BMCs were told, and what was read back.

use api::{PowerOutcome, PowerRequest, PowerResult, PowerState, PowerVerb};

use super::{
    ExitCode, Trouble,
    client::Client,
    count, hostlist, nodes,
    table::{self, Cell, Look},
    terminal::{Terminal, clean},
    wait::worse,
};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which nodes, such as 'bld-[003,006-010]', quoted for the shell
    hostlist: String,
    /// What to do
    #[arg(value_enum)]
    verb: Verb,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print the API's answer: a list under "nodes"
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Verb {
    /// Switch on
    On,
    /// Cut the power
    Off,
    /// Ask the operating system to shut down
    Soft,
    /// Cut the power and switch on again
    Cycle,
}

/// Runs the command.
pub(super) async fn run(
    args: Args,
    client: &Client,
    terminal: &mut Terminal,
) -> Result<ExitCode, Trouble> {
    let names = hostlist(&args.hostlist)?;
    if matches!(args.verb, Verb::Off | Verb::Cycle) && !args.yes {
        let lab = client.nodes(Some(&args.hostlist)).await?.value.lab;
        let then = if args.verb == Verb::Cycle { " and switch on again" } else { "" };
        let question = format!(
            "Cut the power of {} of lab {} ({}){then}? Work that runs there is lost.",
            count(names.len(), "node"),
            clean(&lab),
            args.hostlist
        );
        if !terminal.confirm(&question)? {
            return Err(Trouble::new(ExitCode::Refused, "not confirmed; nothing was changed"));
        }
    }
    let request =
        PowerRequest { nodes: args.hostlist.clone(), verb: verb(args.verb), confirmed: true };
    let what = format!("switch the power of {}", args.hostlist);
    let answer = client.post::<PowerOutcome>("/api/v1/power", &request, &what).await?;
    if args.json {
        terminal.json(&answer.json)?;
    } else {
        print(terminal, &answer.value.nodes)?;
    }
    Ok(answer.value.nodes.iter().map(|node| exit(args.verb, node)).fold(ExitCode::Ok, worse))
}

/// Done is what was read back, not what the BMC accepted: a soft shutdown may take longer than the server looks.
fn exit(verb: Verb, result: &PowerResult) -> ExitCode {
    let wanted = match verb {
        Verb::On | Verb::Cycle => PowerState::On,
        Verb::Off | Verb::Soft => PowerState::Off,
    };
    if result.refused {
        ExitCode::Refused
    } else if result.error.is_some() {
        ExitCode::Failed
    } else if result.power == wanted {
        ExitCode::Ok
    } else {
        ExitCode::TimedOut
    }
}

fn verb(verb: Verb) -> PowerVerb {
    match verb {
        Verb::On => PowerVerb::On,
        Verb::Off => PowerVerb::Off,
        Verb::Soft => PowerVerb::Soft,
        Verb::Cycle => PowerVerb::Cycle,
    }
}

fn print(terminal: &mut Terminal, results: &[PowerResult]) -> Result<(), Trouble> {
    let row = |result: &PowerResult| -> Vec<Cell> {
        let error = result.error.clone().unwrap_or_default();
        vec![result.node.clone().into(), nodes::power(result.power), Cell::new(error, Look::Bad)]
    };
    let rows: Vec<_> = results.iter().map(row).collect();
    table::print(terminal, &["NODE", "POWER", "ERROR"], &rows)
}
