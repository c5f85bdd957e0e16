//! `volund token NAME`: an API token for a script.

use super::{ExitCode, Trouble, check_title, terminal::Terminal};

/// Make an API token: prints the secret once, and what belongs under [operator]
///
/// The secret goes to standard output: keep it where VOLUND_TOKEN or --token-file finds it. The configuration's
/// lines go to standard error.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What the token is called, such as the script that will use it
    name: String,
}

/// Runs the command. The secret goes to standard output, the configuration's part to standard error.
pub(super) fn run(args: &Args, terminal: &mut Terminal) -> Result<ExitCode, Trouble> {
    check_title(&args.name)?;
    let (secret, token) = web::auth::Auth::new_token(&args.name)
        .map_err(|error| Trouble::new(ExitCode::Failed, format!("cannot make a token: {error}")))?;
    terminal.say(secret)?;
    terminal.tell("[[operator.tokens]]")?;
    terminal.tell(format!("name = \"{}\"", token.name))?;
    terminal.tell(format!("sha256 = \"{}\"", model::hex::encode(&token.sha256)))?;
    terminal.tell("add the three lines above to volund.toml and restart volund")?;
    Ok(ExitCode::Ok)
}
