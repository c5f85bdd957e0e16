//! `volund passwd NAME`: a log-in for the configuration.

use std::{
    io::{BufRead, Read},
    process::{Command, Stdio},
};

use super::{ExitCode, Trouble, check_title, terminal::Terminal};

/// Make a log-in: reads a password, prints what belongs under [operator]
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Log-in name
    name: String,
}

/// Longest password read.
const MAX_BYTES: u64 = 1_024;
/// Shortest password taken.
const MIN_CHARS: usize = 8;

/// Runs the command.
pub(super) fn run(args: &Args, terminal: &mut Terminal) -> Result<ExitCode, Trouble> {
    check_title(&args.name)?;
    let password = read_password(terminal)?;
    if password.chars().count() < MIN_CHARS {
        let text = format!("the password has less than {MIN_CHARS} characters");
        return Err(Trouble::usage(text).remedy("use a longer one"));
    }
    let hash = web::auth::Auth::hash_password(&password)
        .map_err(|error| Trouble::new(ExitCode::Failed, format!("cannot hash: {error}")))?;
    terminal.say("[[operator.users]]")?;
    terminal.say(format!("name = \"{}\"", args.name))?;
    terminal.say(format!("password_hash = \"{hash}\""))?;
    terminal.tell("add these lines to volund.toml and restart volund")?;
    Ok(ExitCode::Ok)
}

/// One line of input; on a terminal asked for twice and not shown.
fn read_password(terminal: &mut Terminal) -> Result<String, Trouble> {
    if !terminal.can_ask {
        return read_line(terminal);
    }
    let hidden = hide_typing(true);
    if !hidden {
        terminal.tell("this terminal will show what you type")?;
    }
    let first = ask(terminal, "Password: ");
    let second = ask(terminal, "Again: ");
    if hidden {
        hide_typing(false);
    }
    let (first, second) = (first?, second?);
    if first == second { Ok(first) } else { Err(Trouble::usage("the two passwords differ")) }
}

fn ask(terminal: &mut Terminal, prompt: &str) -> Result<String, Trouble> {
    write!(terminal.err, "{prompt}")?;
    terminal.err.flush()?;
    let line = read_line(terminal);
    writeln!(terminal.err)?;
    line
}

fn read_line(terminal: &mut Terminal) -> Result<String, Trouble> {
    let mut line = String::new();
    let read = terminal.input.as_mut().take(MAX_BYTES).read_line(&mut line);
    read.map_err(|error| Trouble::usage(format!("cannot read the password: {error}")))?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Whether `stty` could switch the echo off or on again.
fn hide_typing(hide: bool) -> bool {
    let word = if hide { "-echo" } else { "echo" };
    let stty = Command::new("stty").arg(word).stdin(Stdio::inherit()).status();
    stty.is_ok_and(|status| status.success())
}
