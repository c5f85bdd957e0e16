//! `volund image build agent`: the image that inspects machines.

use super::{ExitCode, Trouble, terminal::Terminal};
use crate::image::{self, BuildAgentArgs};

/// Make boot images
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Build an image
    #[command(subcommand)]
    Build(Build),
}

#[derive(Debug, clap::Subcommand)]
enum Build {
    Agent(BuildAgentArgs),
}

/// Runs the command.
pub(super) fn run(args: Args, terminal: &mut Terminal) -> Result<ExitCode, Trouble> {
    let Verb::Build(Build::Agent(args)) = args.verb;
    // The builder writes its summary to the process's own output.
    terminal.out.flush()?;
    let failed = |error: anyhow::Error| {
        Trouble::new(ExitCode::Failed, format!("cannot build the agent's image: {error:#}"))
    };
    image::run(args).map(|()| ExitCode::Ok).map_err(failed)
}
