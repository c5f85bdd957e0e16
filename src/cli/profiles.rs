//! `volund profiles`: what nodes can be.

use api::{ProfileList, ProfileView};

use super::{
    ExitCode, Trouble,
    client::Client,
    table::{self, Cell},
    terminal::{Terminal, or_dash},
};

/// Its arguments.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
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
    let answer = client.get::<ProfileList>("/api/v1/profiles", "list the profiles").await?;
    if args.json {
        terminal.json(&answer.json)?;
        return Ok(ExitCode::Ok);
    }
    let row = |profile: &ProfileView| -> Vec<Cell> {
        vec![
            profile.name.clone().into(),
            profile.kind.clone().into(),
            profile.root.clone().into(),
            or_dash(Some(&profile.about)).into(),
        ]
    };
    let rows: Vec<_> = answer.value.profiles.iter().map(row).collect();
    table::print(terminal, &["PROFILE", "KIND", "ROOT", "ABOUT"], &rows)?;
    Ok(ExitCode::Ok)
}
