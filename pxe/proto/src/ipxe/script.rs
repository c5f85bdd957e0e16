//! The script a node gets for an answer of the engine.
//!
//! iPXE expands `${...}` in a line, splits it at blanks, and takes the words `;`, `||`, `&&` and anything that
//! begins with `#` for its own; it knows no quotes. So what comes from outside is never quoted: texts for the
//! console keep harmless characters only, paths are percent-encoded, and kernel arguments with a word of that
//! kind are refused. A script never wipes or installs anything by itself.

use std::fmt::Write;

use model::{
    BootAnswer, BootScript,
    boot::{BootIntent, BootNetwork, LocalBoot},
};

use super::{SCRIPT_PATH, menu};
use crate::{
    path,
    texts::{Asker, REBOOT_S, ScriptError, WAIT_S, boot_if, console, steps},
};

/// How often a waiting node looks before it restarts: 20 minutes.
const WAIT_ROUNDS: u32 = 40;
/// Tries of each fetch; the pauses between them grow by 2 s: 2, 4, 6, 8, 10, 12 s, 42 s in all. A switch port
/// with spanning tree needs 30.
const LAST_PAUSE_S: u32 = 14;
/// How long a person may read why his choice was not taken.
const READ_MS: u32 = 30_000;
/// Configures the interface that was used last. iPXE 1.0 of 2019 knows it by this name as later ones do.
const CONFIGURE: &str = "ifconf --configurator dhcp netX";

/// The script for `answer`, the same bytes for the same answer.
///
/// # Errors
/// When the kernel arguments could add a command.
pub fn script(
    answer: &BootAnswer,
    network: &BootNetwork,
    asker: &Asker<'_>,
) -> Result<String, ScriptError> {
    let mut script = "#!ipxe\n".to_owned();
    match answer {
        BootAnswer::Local { .. } | BootAnswer::Wait { .. } => {
            if let Some(menu) = asker.menu {
                menu::write(&mut script, menu, network, asker);
            }
        }
        BootAnswer::Kernel(_) => (),
    }
    match answer {
        BootAnswer::Local { why } => local(&mut script, asker, why),
        BootAnswer::Wait { why } => wait(&mut script, asker, why, network),
        BootAnswer::Kernel(boot) => kernel(&mut script, asker, boot, network)?,
    }
    Ok(script)
}

/// The script for a choice at the console that is not taken: why, time to read it, and on with what was to be.
#[must_use]
pub fn refused(why: &str, asker: &Asker<'_>) -> String {
    let node = asker.node;
    let mut script = "#!ipxe\n".to_owned();
    for line in why.lines() {
        add(&mut script, &format!("echo volund: {node}: {}", console(line)));
    }
    add(&mut script, &format!("prompt --timeout {READ_MS} volund: {node}: any key to go on ||"));
    local(&mut script, asker, "nothing was changed");
    script
}

/// What iPXE runs by itself, as `autoexec.ipxe` beside its own file (1.21 and later), before it has an address: it
/// configures the network, as often as a slow switch port needs, and goes to the node's script. Where that is out of
/// reach, a node with nothing ordered (`intent`) goes on to its disk, and one with an order restarts.
#[must_use]
pub fn autoexec(network: &BootNetwork, asker: &Asker<'_>, intent: BootIntent) -> String {
    let mac = asker.mac.hyphenated();
    let url = format!("{}?mac={mac}", path::url(network.http, SCRIPT_PATH));
    let mut script = "#!ipxe\n".to_owned();
    retried(
        &mut script,
        &Tries {
            name: "network",
            shown: "by DHCP",
            command: "isset ${netX/ip} || ifconf --configurator dhcp",
            between: "ifclose",
        },
    );
    let command = format!("chain --replace --autofree {url}");
    let tries = Tries { name: "script", shown: &url, command: &command, between: CONFIGURE };
    retried(&mut script, &tries);
    match intent {
        BootIntent::Ask => end(&mut script, asker),
        BootIntent::Local | BootIntent::NoBootFile => {
            add(&mut script, ":failed");
            local(&mut script, asker, "volund cannot be reached");
        }
    }
    script
}

/// What goes on with the local disk. On UEFI the exit code matters: with 0 the firmware takes the boot for a
/// success and shows its menu, with 1 it goes on to its next boot option (UEFI 2.10, 3.1.1).
fn local(script: &mut String, asker: &Asker<'_>, why: &str) {
    let node = asker.node;
    add(script, &format!("echo volund: {node}: local boot: {}", console(why)));
    match asker.local {
        LocalBoot::ByFirmware => {
            add(script, "iseq ${platform} efi && exit 1 ||");
            add(script, "sanboot --no-describe --drive 0x80 || exit");
        }
        LocalBoot::Sanboot => add(script, "sanboot --no-describe --drive 0x80 || exit 1"),
        // The caller leaves the script out where it can; this is for what has one already.
        LocalBoot::Exit | LocalBoot::NotFound | LocalBoot::NoBootFile => add(script, "exit 1"),
    }
}

/// What looks again in a while. The count of rounds is a setting of iPXE: it outlives the chained script. In the end
/// the machine restarts, and asks anew; its disk is not for it to choose.
fn wait(script: &mut String, asker: &Asker<'_>, why: &str, network: &BootNetwork) {
    let url = path::url(network.http, SCRIPT_PATH);
    let (node, mac) = (asker.node, asker.mac.hyphenated());
    write!(
        script,
        "echo volund: {node}: waiting: {why}\n\
         isset ${{rounds}} || set rounds:int32 0\n\
         :again\n\
         inc rounds\n\
         iseq ${{rounds}} {stop} && goto spent ||\n\
         sleep {WAIT_S}\n\
         chain --replace --autofree {url}?mac={mac} ||\n\
         echo volund: {node}: no answer, error ${{errno}}: {url}\n\
         {CONFIGURE} ||\n\
         goto again\n\
         :spent\n\
         echo volund: {node}: waited {WAIT_ROUNDS} rounds, restarting\n\
         reboot\n",
        why = console(why),
        stop = WAIT_ROUNDS + 1,
    )
    .expect("a String takes any text");
}

/// What loads and starts a kernel: every fetch is tried several times with growing pauses, step and URL stand on
/// the screen, and in the end the machine restarts rather than fall through to its disk.
fn kernel(
    script: &mut String,
    asker: &Asker<'_>,
    boot: &BootScript,
    network: &BootNetwork,
) -> Result<(), ScriptError> {
    let mut args = arguments(&boot.args)?;
    if let Some(word) = boot_if(&boot.args, asker.mac) {
        write!(args, " {word}").expect("a String takes any text");
    }
    for index in 0..boot.initrds.len() {
        // UEFI kernels find their initrd by name; harmless on BIOS.
        write!(args, " initrd=initrd{index}").expect("a String takes any text");
    }
    let node = asker.node;
    add(script, &format!("echo volund: {node}: {}", console(&boot.title)));
    add(script, "imgfree");
    for (name, path) in steps(boot) {
        let url = path::url(network.http, path);
        let is_kernel = name == "kernel";
        let command = if is_kernel {
            format!("kernel --name kernel {url}{args}")
        } else {
            format!("initrd --name {name} {url}")
        };
        // Behind the kernel no DHCP: the server would take it for the next boot.
        let between = if is_kernel { CONFIGURE } else { "" };
        retried(script, &Tries { name: &name, shown: &url, command: &command, between });
    }
    add(script, &format!("echo volund: {node}: starting"));
    let failed = format!("echo volund: {node}: the kernel did not start, error ${{errno}}");
    add(script, &format!("boot || {failed}"));
    end(script, asker);
    Ok(())
}

/// Where a script arrives that cannot go on.
fn end(script: &mut String, asker: &Asker<'_>) {
    let node = asker.node;
    write!(
        script,
        ":failed\n\
         echo volund: {node}: restarting in {REBOOT_S} s\n\
         sleep {REBOOT_S}\n\
         reboot\n"
    )
    .expect("a String takes any text");
}

/// A command that is tried until it works.
struct Tries<'a> {
    /// Its label, and what the screen calls it.
    name: &'a str,
    /// What is fetched, for the screen.
    shown: &'a str,
    command: &'a str,
    /// What is done between two tries; nothing when empty.
    between: &'a str,
}

/// One command with its tries.
fn retried(script: &mut String, tries: &Tries<'_>) {
    let Tries { name, shown, command, between } = tries;
    let between = if between.is_empty() { String::new() } else { format!("{between} ||\n") };
    write!(
        script,
        "set pause:int32 0\n\
         :{name}\n\
         echo volund: fetching {name} {shown}\n\
         {command} && goto {name}-done ||\n\
         echo volund: fetching {name} failed, error ${{errno}}: {shown}\n\
         inc pause 2\n\
         iseq ${{pause}} {LAST_PAUSE_S} && goto failed ||\n\
         sleep ${{pause}}\n\
         {between}\
         goto {name}\n\
         :{name}-done\n"
    )
    .expect("a String takes any text");
}

/// A line.
fn add(script: &mut String, line: &str) {
    script.push_str(line);
    script.push('\n');
}

/// Whether iPXE passes these kernel arguments on as they are.
///
/// # Errors
/// Names the first word that iPXE would take for its own.
pub fn check_arguments(args: &str) -> Result<(), ScriptError> {
    arguments(args).map(drop)
}

/// Kernel arguments as words with one blank before each, refused when iPXE would take one for its own.
fn arguments(args: &str) -> Result<String, ScriptError> {
    let mut out = String::with_capacity(args.len());
    for word in args.split_ascii_whitespace() {
        let is_taken = matches!(word, ";" | "||" | "&&")
            || word.starts_with('#')
            || word.ends_with('\\')
            || word.contains("${")
            || word.chars().any(char::is_control);
        if is_taken {
            return Err(ScriptError::Argument { word: word.to_owned(), loader: "iPXE" });
        }
        out.push(' ');
        out.push_str(word);
    }
    Ok(out)
}
