//! The script a node gets for an answer of the engine.
//!
//! iPXE expands `${...}` in a line, splits it at blanks, and takes the words `;`, `||`, `&&` and anything that
//! begins with `#` for its own; it knows no quotes. So what comes from outside is never quoted: texts for the
//! console keep harmless characters only, paths are percent-encoded, and kernel arguments with a word of that
//! kind are refused. A script never wipes or installs anything by itself.

use std::fmt::Write;

use model::{BootAnswer, BootScript, MacAddr, NodeName, boot::BootNetwork};

use super::SCRIPT_PATH;
use crate::path;

/// How long a waiting node sleeps before it looks again.
const WAIT_S: u32 = 30;
/// How often it looks before it gives the boot back to the firmware: 20 minutes.
const WAIT_ROUNDS: u32 = 40;
/// Tries of each fetch; the pauses between them grow by 2 s: 2, 4, 6, 8, 10, 12 s, 42 s in all. A switch port
/// with spanning tree needs 30.
const LAST_PAUSE_S: u32 = 14;
/// How long the console shows why before the machine restarts.
const REBOOT_S: u32 = 60;

/// The answer cannot be put into a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// A word of the kernel arguments would be read by iPXE instead of the kernel.
    #[error("kernel arguments hold {word:?}, which iPXE would take for its own")]
    Argument {
        /// The word.
        word: String,
    },
}

/// The script for `answer`, the same bytes for the same answer. `mac` is the one the node asks with.
///
/// # Errors
/// When the kernel arguments could add a command.
pub fn script(
    answer: &BootAnswer,
    network: &BootNetwork,
    node: &NodeName,
    mac: MacAddr,
) -> Result<String, ScriptError> {
    Ok(match answer {
        BootAnswer::Local { why } => local(node, why),
        BootAnswer::Wait { why } => wait(node, why, network, mac),
        BootAnswer::Kernel(boot) => kernel(node, boot, network)?,
    })
}

/// What goes on with the local disk. On UEFI the exit code matters: with 0 the firmware takes the boot for a
/// success and shows its menu, with 1 it goes on to its next boot option (UEFI 2.10, 3.1.1).
fn local(node: &NodeName, why: &str) -> String {
    format!(
        "#!ipxe\n\
         echo volund: {node}: local boot: {why}\n\
         iseq ${{platform}} efi && exit 1 ||\n\
         sanboot --no-describe --drive 0x80 || exit\n",
        why = console(why)
    )
}

/// What looks again in a while. The count of rounds is a setting of iPXE: it outlives the chained script.
fn wait(node: &NodeName, why: &str, network: &BootNetwork, mac: MacAddr) -> String {
    let url = path::url(network.http, SCRIPT_PATH);
    format!(
        "#!ipxe\n\
         echo volund: {node}: waiting: {why}\n\
         isset ${{rounds}} || set rounds:int32 0\n\
         :again\n\
         inc rounds\n\
         iseq ${{rounds}} {stop} && goto spent ||\n\
         sleep {WAIT_S}\n\
         chain --replace --autofree {url}?mac={mac} || goto again\n\
         :spent\n\
         echo volund: {node}: waited {WAIT_ROUNDS} rounds, leaving network boot\n\
         exit 1\n",
        why = console(why),
        stop = WAIT_ROUNDS + 1,
        mac = mac.hyphenated()
    )
}

/// What loads and starts a kernel: every fetch is tried several times with growing pauses, step and URL stand on
/// the screen, and in the end the machine restarts rather than fall through to its disk.
fn kernel(
    node: &NodeName,
    boot: &BootScript,
    network: &BootNetwork,
) -> Result<String, ScriptError> {
    let mut args = arguments(&boot.args)?;
    for index in 0..boot.initrds.len() {
        // UEFI kernels find their initrd by name; harmless on BIOS.
        write!(args, " initrd=initrd{index}").expect("a String takes any text");
    }
    let title = console(&boot.title);
    let mut script = format!("#!ipxe\necho volund: {node}: {title}\nimgfree\n");
    let kernel = path::url(network.http, &boot.kernel);
    step(&mut script, "kernel", &kernel, &format!("kernel --name kernel {kernel}{args}"));
    for (index, initrd) in boot.initrds.iter().enumerate() {
        let initrd = path::url(network.http, initrd);
        let name = format!("initrd{index}");
        step(&mut script, &name, &initrd, &format!("initrd --name {name} {initrd}"));
    }
    write!(
        script,
        "echo volund: {node}: starting\n\
         boot || echo volund: {node}: the kernel did not start, error ${{errno}}\n\
         :failed\n\
         echo volund: {node}: restarting in {REBOOT_S} s\n\
         sleep {REBOOT_S}\n\
         reboot\n"
    )
    .expect("a String takes any text");
    Ok(script)
}

/// One fetch with its tries.
fn step(script: &mut String, name: &str, url: &str, command: &str) {
    write!(
        script,
        "set pause:int32 0\n\
         :{name}\n\
         echo volund: fetching {name} {url}\n\
         {command} && goto {name}-done ||\n\
         echo volund: fetching {name} failed, error ${{errno}}: {url}\n\
         inc pause 2\n\
         iseq ${{pause}} {LAST_PAUSE_S} && goto failed ||\n\
         sleep ${{pause}}\n\
         goto {name}\n\
         :{name}-done\n"
    )
    .expect("a String takes any text");
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
            return Err(ScriptError::Argument { word: word.to_owned() });
        }
        out.push(' ');
        out.push_str(word);
    }
    Ok(out)
}

/// A text for the console: letters, digits and marks that mean nothing to iPXE; the rest becomes `?`, and what
/// is long is cut.
fn console(text: &str) -> String {
    let is_harmless = |c: char| c.is_ascii_alphanumeric() || " .,:-_()/'%+=@!?".contains(c);
    text.chars().take(200).map(|c| if is_harmless(c) { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use model::boot::DhcpMode;
    use proptest::prelude::*;

    use super::*;

    fn write_script(answer: &BootAnswer) -> Result<String, ScriptError> {
        let network = BootNetwork {
            name: "boot".to_owned(),
            mode: DhcpMode::Reserved,
            unknown_lease_s: 120,
            options: vec![],
            subnet: Ipv4Addr::new(192, 0, 2, 0),
            prefix: 24,
            server: Ipv4Addr::new(192, 0, 2, 1),
            router: None,
            dns: vec![],
            lease_s: 600,
            http: "192.0.2.1:8067".parse().unwrap(),
        };
        script(answer, &network, &"bld-003".parse().unwrap(), MacAddr([2, 0x5a, 0x10, 0, 0, 1]))
    }

    fn boot(title: &str, args: &str) -> BootAnswer {
        BootAnswer::Kernel(BootScript {
            title: title.to_owned(),
            kernel: "/i/inspect/vmlinuz".to_owned(),
            initrds: vec!["/i/inspect/initrd.gz".to_owned()],
            args: args.to_owned(),
            ticket: None,
        })
    }

    #[test]
    fn local_boot_reads_like_this() {
        let script = write_script(&BootAnswer::Local { why: "no switch in flight".to_owned() });
        insta::assert_snapshot!(script.unwrap(), @r"
        #!ipxe
        echo volund: bld-003: local boot: no switch in flight
        iseq ${platform} efi && exit 1 ||
        sanboot --no-describe --drive 0x80 || exit
        ");
    }

    #[test]
    fn waiting_reads_like_this() {
        let script = write_script(&BootAnswer::Wait { why: "held: boot loop".to_owned() });
        insta::assert_snapshot!(script.unwrap(), @r"
        #!ipxe
        echo volund: bld-003: waiting: held: boot loop
        isset ${rounds} || set rounds:int32 0
        :again
        inc rounds
        iseq ${rounds} 41 && goto spent ||
        sleep 30
        chain --replace --autofree http://192.0.2.1:8067/boot.ipxe?mac=02-5a-10-00-00-01 || goto again
        :spent
        echo volund: bld-003: waited 40 rounds, leaving network boot
        exit 1
        ");
    }

    #[test]
    fn a_kernel_reads_like_this() {
        let script = write_script(&boot("inspect", "console=ttyS0  volund.ip=192.0.2.77/24"));
        insta::assert_snapshot!(script.unwrap(), @r"
        #!ipxe
        echo volund: bld-003: inspect
        imgfree
        set pause:int32 0
        :kernel
        echo volund: fetching kernel http://192.0.2.1:8067/i/inspect/vmlinuz
        kernel --name kernel http://192.0.2.1:8067/i/inspect/vmlinuz console=ttyS0 volund.ip=192.0.2.77/24 initrd=initrd0 && goto kernel-done ||
        echo volund: fetching kernel failed, error ${errno}: http://192.0.2.1:8067/i/inspect/vmlinuz
        inc pause 2
        iseq ${pause} 14 && goto failed ||
        sleep ${pause}
        goto kernel
        :kernel-done
        set pause:int32 0
        :initrd0
        echo volund: fetching initrd0 http://192.0.2.1:8067/i/inspect/initrd.gz
        initrd --name initrd0 http://192.0.2.1:8067/i/inspect/initrd.gz && goto initrd0-done ||
        echo volund: fetching initrd0 failed, error ${errno}: http://192.0.2.1:8067/i/inspect/initrd.gz
        inc pause 2
        iseq ${pause} 14 && goto failed ||
        sleep ${pause}
        goto initrd0
        :initrd0-done
        echo volund: bld-003: starting
        boot || echo volund: bld-003: the kernel did not start, error ${errno}
        :failed
        echo volund: bld-003: restarting in 60 s
        sleep 60
        reboot
        ");
    }

    #[test]
    fn arguments_that_ipxe_would_take_for_its_own_are_refused() {
        for word in [";", "||", "&&", "#x", "a${net0/mac}", "x\\", "a\0b"] {
            let answer = write_script(&boot("t", &format!("quiet {word} splash")));
            assert_eq!(answer, Err(ScriptError::Argument { word: word.to_owned() }));
            assert!(check_arguments(&format!("quiet {word} {{{{ node.name }}}}")).is_err());
        }
        let fine = "root=/dev/sda1 a=\"b c\" price=5$ x;y a&&b c||d #"; // the last one is not
        assert!(write_script(&boot("t", fine)).is_err());
        assert!(write_script(&boot("t", fine.trim_end_matches('#'))).is_ok());
    }

    proptest! {
        /// Whatever the texts: no line is added, no word of ours is changed.
        #[test]
        fn no_text_adds_a_command(title: String, why: String, args: String, file in "/\\PC{0,20}") {
            let mut answer = boot(&title, &args);
            if let BootAnswer::Kernel(boot) = &mut answer {
                boot.kernel = file.clone();
                boot.initrds = vec![file];
            }
            let commands = |script: &str| -> Vec<String> {
                script.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
            };
            let want = commands(&write_script(&boot("t", "")).unwrap());
            if let Ok(script) = write_script(&answer) {
                prop_assert_eq!(commands(&script), want);
                let fetch = script.lines().find(|line| line.starts_with("kernel ")).unwrap();
                let operators = fetch.split(' ').filter(|word| ["||", "&&", ";"].contains(word));
                prop_assert_eq!(operators.count(), 2);
                prop_assert_eq!(fetch.matches("$").count(), args.matches('$').count());
            }
            let wait = write_script(&BootAnswer::Wait { why: why.clone() }).unwrap();
            let calm = write_script(&BootAnswer::Wait { why: "x".to_owned() }).unwrap();
            prop_assert_eq!(commands(&wait), commands(&calm));
            prop_assert_eq!(wait.matches('$').count(), 2);
            let local = write_script(&BootAnswer::Local { why }).unwrap();
            prop_assert_eq!((local.lines().count(), local.matches('$').count()), (4, 1));
        }
    }
}
