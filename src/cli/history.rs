//! `volund history NODE`: what became of its switches.

use api::PhaseEvent;
use model::NodeName;

use super::{
    ExitCode, Trouble,
    client::Client,
    table::{self, Cell, Look},
    terminal::{Terminal, now_ms},
};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which node, such as bld-003
    name: NodeName,
    /// Print the API's answer
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) async fn run(
    args: Args,
    client: &Client,
    terminal: &mut Terminal,
) -> Result<ExitCode, Trouble> {
    let answer = client.history(&args.name).await?;
    if args.json {
        terminal.json(&answer.json)?;
    } else {
        print(terminal, &answer.value, now_ms())?;
    }
    Ok(ExitCode::Ok)
}

/// A row per phase.
pub(super) fn print(
    terminal: &mut Terminal,
    events: &[PhaseEvent],
    now: i64,
) -> Result<(), Trouble> {
    if events.is_empty() {
        return terminal.say("no switch yet");
    }
    let row = |event: &PhaseEvent| -> Vec<Cell> {
        let look = match event.phase.as_str() {
            "held" | "failed" => Look::Bad,
            "done" => Look::Good,
            _ => Look::Plain,
        };
        vec![
            terminal.time(event.at_ms, now).into(),
            event.profile.clone().into(),
            Cell::new(&event.phase, look),
            event.by.clone().into(),
            event.reason.clone().into(),
        ]
    };
    let rows: Vec<_> = events.iter().map(row).collect();
    table::print(terminal, &["WHEN", "TO", "PHASE", "BY", "WHY"], &rows)
}
