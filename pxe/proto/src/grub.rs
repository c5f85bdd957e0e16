//! GRUB: the configuration a node gets, mostly behind a signed shim (Secure Boot).
//!
//! Every word that is not ours stands between single quotes, in which GRUB's language knows nothing but the closing
//! quote (GRUB manual 2.12, 6.2 Quoting), and a word with that quote is refused. GRUB hands arguments on to the kernel
//! with a backslash before quotes and backslashes, so those are refused too; a value with blanks is given to GRUB as
//! one word, and GRUB puts the quotes around it that the kernel understands.
//!
//! Files are fetched over HTTP, and where that fails over TFTP: builds before 2.12 know HTTP on port 80 only.

use std::{fmt::Write, net::SocketAddr};

use model::{BootAnswer, BootScript, boot::BootNetwork};

use crate::{
    path,
    texts::{Asker, REBOOT_S, ScriptError, WAIT_S, boot_if, console, plain_path, steps},
};

/// Rounds a node waits before it restarts: each is a configuration inside the one before, and GRUB's stack is small.
const WAIT_ROUNDS: usize = 10;
/// Seconds between the tries of a fetch.
const PAUSES: &str = "2 4 6 8 10 12";
const GRUB: &str = "GRUB";

/// The configuration for `answer`, the same text for the same answer.
///
/// # Errors
/// When the kernel arguments or a path cannot be written for GRUB.
pub fn config(
    answer: &BootAnswer,
    network: &BootNetwork,
    asker: &Asker<'_>,
) -> Result<String, ScriptError> {
    Ok(match answer {
        BootAnswer::Local { why } => local(asker, why),
        BootAnswer::Wait { why } => wait(asker, why, network),
        BootAnswer::Kernel(boot) => kernel(asker, boot, network)?,
    })
}

/// A sentence that stays between single quotes.
fn quotable(text: &str) -> String {
    console(text).replace('\'', "`")
}

/// Back to the firmware, which goes on to its next boot option. The number makes newer builds say so (an image that
/// ends well ends the boot, UEFI 2.10, 3.1.1); older ones do not look at it.
fn local(asker: &Asker<'_>, why: &str) -> String {
    format!("echo 'volund: {}: local boot: {}'\nexit 1\n", asker.node, quotable(why))
}

/// Looks again in a while. GRUB cannot count, so each round makes a text longer by a letter.
fn wait(asker: &Asker<'_>, why: &str, network: &BootNetwork) -> String {
    let (node, why) = (asker.node, quotable(why));
    let name = format!("grub/grub.cfg-01-{}", asker.mac.hyphenated());
    let spent = "x".repeat(WAIT_ROUNDS);
    format!(
        "echo 'volund: {node}: waiting: {why}'\n\
         set volund_rounds=\"${{volund_rounds}}x\"\n\
         export volund_rounds\n\
         if [ \"$volund_rounds\" != '{spent}' ]; then\n\
         \x20 sleep {WAIT_S}\n\
         \x20 configfile '{http}'\n\
         \x20 configfile '{tftp}'\n\
         fi\n\
         echo 'volund: {node}: waited {WAIT_ROUNDS} rounds, restarting'\n\
         reboot\n",
        http = over_http(network.http, &name),
        tftp = over_tftp(network, &name),
    )
}

/// Loads and starts a kernel. What cannot be fetched is named on the screen, tried again with growing pauses, and in
/// the end the machine restarts rather than fall through to its disk.
fn kernel(
    asker: &Asker<'_>,
    boot: &BootScript,
    network: &BootNetwork,
) -> Result<String, ScriptError> {
    let node = asker.node;
    let mut args = String::new();
    for word in words(&boot.args)?.into_iter().chain(boot_if(&boot.args, asker.mac)) {
        write!(args, " '{word}'").expect("a String takes any text");
    }
    let mut text =
        format!("echo 'volund: {node}: {}'\nset volund_failed=\n", quotable(&boot.title));
    fetch(&mut text, "kernel", &Fetch::new("linux", &[&boot.kernel], &args, network)?);
    let initrds: Vec<&str> = steps(boot).skip(1).map(|(_, path)| path).collect();
    if !initrds.is_empty() {
        fetch(&mut text, "initrd", &Fetch::new("initrd", &initrds, "", network)?);
    }
    write!(
        text,
        "if [ -z \"$volund_failed\" ]; then\n\
         \x20 echo 'volund: {node}: starting'\n\
         \x20 boot\n\
         \x20 echo 'volund: {node}: the kernel did not start'\n\
         fi\n\
         echo 'volund: {node}: restarting in {REBOOT_S} s'\n\
         sleep {REBOOT_S}\n\
         reboot\n"
    )
    .expect("a String takes any text");
    Ok(text)
}

/// A command that fetches, in both ways.
struct Fetch {
    shown: String,
    over_http: String,
    over_tftp: String,
}

impl Fetch {
    fn new(
        command: &str,
        paths: &[&str],
        args: &str,
        network: &BootNetwork,
    ) -> Result<Self, ScriptError> {
        let names = paths.iter().map(|path| plain_path(path, GRUB));
        let names = names.collect::<Result<Vec<_>, _>>()?;
        let line = |file: &dyn Fn(&str) -> String| {
            let files: String = names.iter().map(|name| format!(" '{}'", file(name))).collect();
            format!("{command}{files}{args}")
        };
        let urls: Vec<String> = names.iter().map(|name| path::url(network.http, name)).collect();
        Ok(Self {
            shown: urls.join(" "),
            over_http: line(&|name| over_http(network.http, name)),
            over_tftp: line(&|name| over_tftp(network, name)),
        })
    }
}

/// One fetch with its tries. After a step that failed for good the others are left out.
fn fetch(text: &mut String, name: &str, fetch: &Fetch) {
    let Fetch { shown, over_http, over_tftp } = fetch;
    write!(
        text,
        "if [ -z \"$volund_failed\" ]; then set volund_failed={name}; fi\n\
         for pause in {PAUSES}; do\n\
         \x20 if [ \"$volund_failed\" = {name} ]; then\n\
         \x20   echo 'volund: fetching {name} {shown}'\n\
         \x20   if {over_http}; then set volund_failed=\n\
         \x20   elif {over_tftp}; then set volund_failed=\n\
         \x20   else\n\
         \x20     echo 'volund: fetching {name} failed: {shown}'\n\
         \x20     sleep $pause\n\
         \x20   fi\n\
         \x20 fi\n\
         done\n"
    )
    .expect("a String takes any text");
}

fn over_http(http: SocketAddr, name: &str) -> String {
    format!("(http,{http})/{name}")
}

fn over_tftp(network: &BootNetwork, name: &str) -> String {
    format!("(tftp,{})/{name}", network.server)
}

/// Kernel arguments as GRUB's words: parted at blanks outside double quotes, without those quotes, as the kernel reads
/// them (Linux, lib/cmdline.c: around a whole argument, or around what follows its first `=`).
fn words(args: &str) -> Result<Vec<String>, ScriptError> {
    let mut words = Vec::new();
    let mut rest = args.trim_ascii();
    while !rest.is_empty() {
        let mut quoted = false;
        let end = rest.find(|c: char| {
            quoted ^= c == '"';
            !quoted && c.is_ascii_whitespace()
        });
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.trim_ascii_start();
        words.push(
            unquoted(word)
                .ok_or_else(|| ScriptError::Argument { word: word.to_owned(), loader: GRUB })?,
        );
    }
    Ok(words)
}

/// The word without its quotes; `None` when GRUB could not hand it on as it is.
fn unquoted(word: &str) -> Option<String> {
    let inside = |text: &str| -> Option<String> {
        Some(text.strip_prefix('"')?.strip_suffix('"')?.to_owned())
    };
    let plain = match word.split_once('=') {
        _ if !word.contains('"') => word.to_owned(),
        _ if word.starts_with('"') => inside(word)?,
        Some((name, value)) => format!("{name}={}", inside(value)?),
        None => return None,
    };
    let is_fine = !plain.contains(['\'', '"', '\\']) && !plain.chars().any(char::is_control);
    (is_fine && !plain.is_empty()).then_some(plain)
}

#[cfg(test)]
#[path = "grub_tests.rs"]
mod tests;
