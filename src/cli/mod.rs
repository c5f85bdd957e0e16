//! The command line: a file a subcommand, no rules of its own.
//!
//! It talks to a running server through the API and prints for people, or JSON for scripts. What a command
//! means for a script is its [`ExitCode`].

mod boots;
mod check;
mod client;
mod daemon;
mod doctor;
mod exit;
mod history;
mod image;
mod networks;
mod node;
mod nodes;
mod passwd;
mod power;
mod profiles;
mod switch;
mod table;
mod terminal;
mod token;
mod trouble;
mod wait;

use std::{ffi::OsString, fs, future::Future, path::PathBuf};

use clap::{Parser, Subcommand};
use model::NodeName;

use self::client::{Client, DEFAULT_URL};
pub use self::{exit::ExitCode, terminal::Terminal, trouble::Trouble};

/// Where a command's help sends those who write scripts.
const EXIT_CODES: &str = "Exit codes: volund help exit-codes";
/// How to hear more of a command that stays.
const LOG: &str = "VOLUND_LOG=debug says more of what it does, on standard error.";

/// Bare-metal lab orchestrator: boots, switches and weighs a lab's machines
#[derive(Debug, Parser)]
#[command(
    name = "volund",
    version,
    after_help = EXIT_CODES,
    after_long_help = exit::table()
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// A command that talks to a server.
#[derive(Debug, clap::Args)]
struct Online<A: clap::Args> {
    #[command(flatten)]
    args: A,
    #[command(flatten)]
    server: Server,
}

/// Which server, and by which right.
#[derive(Debug, clap::Args)]
struct Server {
    /// The server [default: VOLUND_URL, else http://127.0.0.1:8443]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// A file that holds the API token [default: the token in VOLUND_TOKEN]
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(after_help = LOG)]
    Serve(daemon::ServeArgs),
    /// Try volund against a modelled enclosure: no root, loopback only
    #[command(after_help = LOG)]
    Demo(crate::demo::DemoArgs),
    Twin(daemon::TwinArgs),
    /// List nodes: power, profile, phase, watts, last sighting
    Nodes(Online<nodes::Args>),
    /// Show one node: state, hardware, timeline of its last boot, history, watts
    Node(Online<node::Args>),
    /// Switch nodes to a profile: says what will happen, asks, does it
    #[command(after_help = EXIT_CODES)]
    Switch(Online<switch::Args>),
    /// Switch power through the BMC and read it back; off and cycle ask first
    #[command(after_help = EXIT_CODES)]
    Power(Online<power::Args>),
    /// List a node's boots: what became of each, how long each stage took
    Boots(Online<boots::ListArgs>),
    /// Show one boot of a node, or save its packets
    Boot(Online<boots::OneArgs>),
    /// Say what is wrong with a boot, and what to do
    Doctor(Online<doctor::Args>),
    /// Show the phases of a node's switches, newest first
    History(Online<history::Args>),
    /// List boot networks: how each is served, how full its pool is, what is wrong with it
    Networks(Online<networks::NetworksArgs>),
    /// List the addresses that were given away, and to whom
    Leases(Online<networks::LeasesArgs>),
    /// List the profiles nodes can be switched to
    Profiles(Online<profiles::Args>),
    Check(check::Args),
    Image(image::Args),
    Passwd(passwd::Args),
    Token(token::Args),
    /// Print the exit codes and what they mean
    #[command(long_about = exit::table())]
    ExitCodes,
}

/// The program. `src/main.rs` is a call of it.
#[must_use]
pub fn main() -> std::process::ExitCode {
    let mut terminal = Terminal::of_process();
    run(std::env::args_os(), &mut terminal).into()
}

/// Runs one command line, program name first.
pub fn run(args: impl IntoIterator<Item = OsString>, terminal: &mut Terminal) -> ExitCode {
    let outcome = match Cli::try_parse_from(args) {
        Ok(cli) => carry_out(cli, terminal),
        Err(error) => {
            // Help and version are answers; everything else is wrong use.
            let target = if error.use_stderr() { &mut terminal.err } else { &mut terminal.out };
            let exit = if error.use_stderr() { ExitCode::Usage } else { ExitCode::Ok };
            write!(target, "{}", error.render()).map(|()| exit).map_err(Trouble::from)
        }
    };
    let exit = match outcome {
        Ok(exit) => exit,
        Err(trouble) => {
            if trouble.exit != ExitCode::Ok {
                // Nobody is left to hear that this failed.
                terminal.tell(trouble.to_string()).ok();
            }
            trouble.exit
        }
    };
    match terminal.out.flush() {
        Err(error) if exit == ExitCode::Ok => Trouble::from(error).exit,
        Ok(()) | Err(_) => exit,
    }
}

fn carry_out(cli: Cli, terminal: &mut Terminal) -> Result<ExitCode, Trouble> {
    match cli.command {
        Command::Nodes(Online { args, server }) => {
            online(async { nodes::run(args, &server.client()?, terminal).await })
        }
        Command::Node(Online { args, server }) => {
            online(async { node::run(args, &server.client()?, terminal).await })
        }
        Command::Switch(Online { args, server }) => {
            online(async { switch::run(args, &server.client()?, terminal).await })
        }
        Command::Power(Online { args, server }) => {
            online(async { power::run(args, &server.client()?, terminal).await })
        }
        Command::History(Online { args, server }) => {
            online(async { history::run(args, &server.client()?, terminal).await })
        }
        Command::Boots(Online { args, server }) => {
            online(async { boots::list(args, &server.client()?, terminal).await })
        }
        Command::Boot(Online { args, server }) => {
            online(async { boots::one(args, &server.client()?, terminal).await })
        }
        Command::Doctor(Online { args, server }) => {
            online(async { doctor::run(args, &server.client()?, terminal).await })
        }
        Command::Networks(Online { args, server }) => {
            online(async { networks::networks(args, &server.client()?, terminal).await })
        }
        Command::Leases(Online { args, server }) => {
            online(async { networks::leases(args, &server.client()?, terminal).await })
        }
        Command::Profiles(Online { args, server }) => {
            online(async { profiles::run(args, &server.client()?, terminal).await })
        }
        Command::Serve(args) => daemon::serve(&args),
        Command::Demo(args) => daemon::demo(args),
        Command::Twin(args) => daemon::twin(&args),
        Command::Check(args) => check::run(&args, terminal),
        Command::Image(args) => image::run(args, terminal),
        Command::Passwd(args) => passwd::run(&args, terminal),
        Command::Token(args) => token::run(&args, terminal),
        Command::ExitCodes => terminal.say(exit::table()).map(|()| ExitCode::Ok),
    }
}

/// Runs a command that talks to the server.
fn online(command: impl Future<Output = Result<ExitCode, Trouble>>) -> Result<ExitCode, Trouble> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Trouble::new(ExitCode::Failed, format!("cannot start the runtime: {error}"))
    })?;
    runtime.block_on(command)
}

impl Server {
    /// The server by option, then by environment, then by default.
    fn client(&self) -> Result<Client, Trouble> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let url = self.url.clone().or_else(|| variable("VOLUND_URL"));
        let token = match &self.token_file {
            Some(path) => Some(read_token(path)?),
            None => variable("VOLUND_TOKEN"),
        };
        Client::new(url.as_deref().unwrap_or(DEFAULT_URL), token)
    }
}

fn read_token(path: &std::path::Path) -> Result<String, Trouble> {
    let text = fs::read_to_string(path).map_err(|error| {
        let text = format!("cannot read the token file {}: {error}", path.display());
        Trouble::usage(text).remedy("name a readable file that holds the token and nothing else")
    })?;
    Ok(text.trim().to_owned())
}

/// The names in a hostlist, or what is wrong with it, before anybody is asked.
fn hostlist(text: &str) -> Result<Vec<NodeName>, Trouble> {
    model::hostlist::parse(text)
        .map_err(|error| Trouble::usage(format!("{text:?} names no nodes: {error}")))
}

/// Whether `name` may stand in quotes in the configuration that a command prints.
fn check_title(name: &str) -> Result<(), Trouble> {
    if name.is_empty() || name.chars().any(|c| c.is_control() || c == '"' || c == '\\') {
        return Err(Trouble::usage("the name is empty or holds quotes or control characters"));
    }
    Ok(())
}

/// `1 node`, `3 nodes`.
fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
