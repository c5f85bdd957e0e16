//! PXELINUX: the configuration a node gets.
//!
//! Its language is a keyword a line, so a line break is the only way to add one, and texts with control characters are
//! refused or cleaned. It reads a few kernel arguments itself; `initrd=` would make it fetch a file, and is refused.
//! Over TFTP files are named from the root (`::`), because PXELINUX puts its own folder in front of every other name;
//! lpxelinux, which fetches its configuration over HTTP, gets URLs.

use std::fmt::Write;

use model::{
    BootAnswer, BootScript,
    boot::{BootNetwork, LocalBoot},
};

use crate::{
    path,
    texts::{Asker, ScriptError, WAIT_S, boot_if, console, plain_path},
};

const PXELINUX: &str = "PXELINUX";
/// Longest kernel command line it hands on (Syslinux 6, `max_cmd_len`).
const MOST_ARGS: usize = 2_047;

/// Which way a configuration is fetched, and so its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// TFTP: every PXELINUX.
    Tftp,
    /// HTTP: lpxelinux.0.
    Http,
}

/// The configuration for `answer`, the same text for the same answer.
///
/// # Errors
/// When the kernel arguments or a path cannot be written for PXELINUX.
pub fn config(
    answer: &BootAnswer,
    network: &BootNetwork,
    asker: &Asker<'_>,
    over: Over,
) -> Result<String, ScriptError> {
    let node = asker.node;
    Ok(match answer {
        BootAnswer::Local { why } => local(asker, &console(why)),
        BootAnswer::Wait { why } => {
            let mut text = head();
            let again = again(network, asker, over)?;
            write!(
                text,
                "PROMPT 1\n\
                 SAY volund: {node}: waiting: {why}\n\
                 TIMEOUT {tenths}\n\
                 ONTIMEOUT again\n\
                 DEFAULT again\n{again}",
                why = console(why),
                tenths = WAIT_S * 10,
            )
            .expect("a String takes any text");
            text
        }
        BootAnswer::Kernel(boot) => kernel(asker, boot, network, over)?,
    })
}

/// Nobody is to type a command line of his own.
fn head() -> String {
    "NOESCAPE 1\nALLOWOPTIONS 0\nIMPLICIT 0\n".to_owned()
}

/// 0: the first disk, as BIOS would start it. -1: tell the firmware that network boot failed, so that it goes on to
/// its next boot device.
fn local(asker: &Asker<'_>, why: &str) -> String {
    let kind = match asker.local {
        LocalBoot::ByFirmware | LocalBoot::Sanboot => 0,
        LocalBoot::Exit | LocalBoot::NotFound | LocalBoot::NoBootFile => -1,
    };
    let (head, node) = (head(), asker.node);
    format!(
        "{head}PROMPT 0\n\
         SAY volund: {node}: local boot: {why}\n\
         DEFAULT local\n\
         LABEL local\n\
         \x20 LOCALBOOT {kind}\n"
    )
}

/// Loads and starts a kernel. When it cannot, PXELINUX stands at its prompt, and after a while the server is asked
/// again: the machine never falls through to its disk.
fn kernel(
    asker: &Asker<'_>,
    boot: &BootScript,
    network: &BootNetwork,
    over: Over,
) -> Result<String, ScriptError> {
    let file = |path| file(network, path, over);
    let (mut text, node, again) = (head(), asker.node, again(network, asker, over)?);
    write!(
        text,
        "PROMPT 0\n\
         SAY volund: {node}: {title}\n\
         SAY volund: fetching {kernel}\n\
         TIMEOUT {tenths}\n\
         ONTIMEOUT again\n\
         DEFAULT volund\n\
         LABEL volund\n\
         \x20 LINUX {kernel}\n",
        title = console(&boot.title),
        kernel = file(&boot.kernel)?,
        tenths = WAIT_S * 10,
    )
    .expect("a String takes any text");
    if !boot.initrds.is_empty() {
        let initrds = boot.initrds.iter().map(|path| file(path)).collect::<Result<Vec<_>, _>>()?;
        writeln!(text, "  INITRD {}", initrds.join(",")).expect("a String takes any text");
    }
    let args = arguments(&boot.args, asker)?;
    if !args.is_empty() {
        writeln!(text, "  APPEND {args}").expect("a String takes any text");
    }
    text.push_str(&again);
    Ok(text)
}

/// The entry that asks the server again.
fn again(network: &BootNetwork, asker: &Asker<'_>, over: Over) -> Result<String, ScriptError> {
    let name = format!("pxelinux.cfg/01-{}", asker.mac.hyphenated());
    Ok(format!("LABEL again\n  CONFIG {}\n", file(network, &name, over)?))
}

fn file(network: &BootNetwork, path: &str, over: Over) -> Result<String, ScriptError> {
    let name = plain_path(path, PXELINUX)?;
    Ok(match over {
        Over::Tftp => format!("::{name}"),
        Over::Http => path::url(network.http, name),
    })
}

/// The arguments on one line, with one blank between words.
fn arguments(args: &str, asker: &Asker<'_>) -> Result<String, ScriptError> {
    let mut out = String::new();
    let named = boot_if(args, asker.mac);
    for word in args.split_ascii_whitespace().chain(named.as_deref()) {
        // A lone `-` empties the line, `initrd=` fetches.
        let is_taken =
            word == "-" || word.starts_with("initrd=") || word.chars().any(char::is_control);
        if is_taken || out.len() + word.len() > MOST_ARGS {
            return Err(ScriptError::Argument { word: word.to_owned(), loader: PXELINUX });
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::texts::testing::{asker, boot, network, node};

    fn write_config(answer: &BootAnswer, over: Over) -> Result<String, ScriptError> {
        config(answer, &network(), &asker(&node()), over)
    }

    #[test]
    fn the_configurations_read_like_this() {
        let local = BootAnswer::Local { why: "no switch in flight".to_owned() };
        insta::assert_snapshot!(write_config(&local, Over::Tftp).unwrap(), @"
        NOESCAPE 1
        ALLOWOPTIONS 0
        IMPLICIT 0
        PROMPT 0
        SAY volund: bld-003: local boot: no switch in flight
        DEFAULT local
        LABEL local
          LOCALBOOT 0
        ");
        let wait = BootAnswer::Wait { why: "power is not known yet".to_owned() };
        insta::assert_snapshot!(write_config(&wait, Over::Tftp).unwrap(), @"
        NOESCAPE 1
        ALLOWOPTIONS 0
        IMPLICIT 0
        PROMPT 1
        SAY volund: bld-003: waiting: power is not known yet
        TIMEOUT 300
        ONTIMEOUT again
        DEFAULT again
        LABEL again
          CONFIG ::pxelinux.cfg/01-02-5a-10-00-00-01
        ");
        let kernel = boot("inspect", "console=ttyS0  a=\"b c\"");
        insta::assert_snapshot!(write_config(&kernel, Over::Tftp).unwrap(), @r#"
        NOESCAPE 1
        ALLOWOPTIONS 0
        IMPLICIT 0
        PROMPT 0
        SAY volund: bld-003: inspect
        SAY volund: fetching ::i/inspect/vmlinuz
        TIMEOUT 300
        ONTIMEOUT again
        DEFAULT volund
        LABEL volund
          LINUX ::i/inspect/vmlinuz
          INITRD ::i/inspect/initrd.gz
          APPEND console=ttyS0 a="b c" BOOTIF=01-02-5a-10-00-00-01
        LABEL again
          CONFIG ::pxelinux.cfg/01-02-5a-10-00-00-01
        "#);
        let urls = write_config(&kernel, Over::Http).unwrap();
        let urls: Vec<_> = urls.lines().filter(|line| line.contains("://")).collect();
        insta::assert_snapshot!(urls.join("\n"), @"
        SAY volund: fetching http://192.0.2.1:8067/i/inspect/vmlinuz
          LINUX http://192.0.2.1:8067/i/inspect/vmlinuz
          INITRD http://192.0.2.1:8067/i/inspect/initrd.gz
          CONFIG http://192.0.2.1:8067/pxelinux.cfg/01-02-5a-10-00-00-01
        ");
    }

    #[test]
    fn a_node_that_goes_on_by_leaving_leaves() {
        let node = node();
        let asker = Asker { local: LocalBoot::Exit, ..asker(&node) };
        let answer = BootAnswer::Local { why: String::new() };
        let text = config(&answer, &network(), &asker, Over::Tftp).unwrap();
        assert!(text.ends_with("  LOCALBOOT -1\n"), "{text}");
    }

    #[test]
    fn what_pxelinux_would_take_for_its_own_is_refused() {
        for word in ["-", "initrd=x", "a\0b"] {
            let answer = write_config(&boot("t", &format!("quiet {word} splash")), Over::Tftp);
            let want = ScriptError::Argument { word: word.to_owned(), loader: "PXELINUX" };
            assert_eq!(answer, Err(want));
        }
        assert!(write_config(&boot("t", &"x ".repeat(1_100)), Over::Tftp).is_err(), "too long");
    }

    proptest! {
        #[test]
        fn no_text_adds_a_keyword(title: String, why: String, args: String, file in "/\\PC{0,20}") {
            let keywords = |text: &str| -> Vec<String> {
                let first = |line: &str| line.split_whitespace().next().unwrap().to_owned();
                text.lines().map(first).collect()
            };
            let mut answer = boot(&title, &args);
            if let BootAnswer::Kernel(boot) = &mut answer {
                boot.kernel = file;
            }
            let want = keywords(&write_config(&boot("t", "x"), Over::Tftp).unwrap());
            if let Ok(text) = write_config(&answer, Over::Tftp) {
                prop_assert_eq!(keywords(&text), want);
            }
            let wait = |why: &str| {
                let answer = BootAnswer::Wait { why: why.to_owned() };
                keywords(&write_config(&answer, Over::Http).unwrap())
            };
            prop_assert_eq!(wait(&why), wait("x"));
            let local = |why: &str| {
                let answer = BootAnswer::Local { why: why.to_owned() };
                keywords(&write_config(&answer, Over::Tftp).unwrap())
            };
            prop_assert_eq!(local(&why), local("x"));
        }
    }
}
