//! `volund check`: the configuration, and nothing else.

use std::path::PathBuf;

use super::{
    ExitCode, Trouble, count,
    terminal::{Terminal, clean},
};
use crate::config::{self, CheckOptions};

/// Check a configuration directory: every fault at once, with file, line and hint
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The configuration directory
    #[arg(long, value_name = "DIR", default_value = "/etc/volund")]
    config: PathBuf,
    /// Do not fetch secrets
    #[arg(long)]
    no_secrets: bool,
    /// Do not look whether loaders, kernels and templates are there
    #[arg(long)]
    no_files: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, terminal: &mut Terminal) -> Result<ExitCode, Trouble> {
    let options =
        CheckOptions { resolve_secrets: !args.no_secrets, look_for_files: !args.no_files };
    let summary = match config::check(&args.config, options) {
        Ok(summary) => summary,
        Err(faults) => {
            for fault in &faults.0 {
                terminal.tell(clean(&fault.to_string()))?;
            }
            terminal.tell(count(faults.0.len(), "fault"))?;
            return Ok(ExitCode::Usage);
        }
    };
    for warning in &summary.warnings {
        terminal.tell(format!("warning: {}", clean(&warning.to_string())))?;
    }
    terminal.say(format!(
        "lab {}: {}, {}, {}, {}; no faults",
        clean(&summary.lab),
        count(summary.networks, "network"),
        count(summary.enclosures, "enclosure"),
        count(summary.nodes, "node"),
        count(summary.profiles, "profile"),
    ))?;
    Ok(ExitCode::Ok)
}
