//! What the boot texts of all loaders have in common: who they are made for, their words, their limits.
//!
//! What comes from outside never becomes a command of a loader. Sentences for the console keep harmless characters
//! only; kernel arguments and paths that a loader would take for its own are refused, not bent.

use model::{
    BootScript, MacAddr, NodeName,
    boot::{LocalBoot, Menu},
};

/// How long a waiting node sleeps before it looks again.
pub(crate) const WAIT_S: u32 = 30;
/// How long the console shows why before the machine restarts.
pub(crate) const REBOOT_S: u32 = 60;

/// Kernel argument that names the interface a machine booted from: `BOOTIF=01-aa-bb-cc-dd-ee-ff`, where 01 is the
/// hardware type of Ethernet. PXELINUX began it; initramfs, dracut and volund's agent read it.
const BOOTIF: &str = "BOOTIF";

/// The node a text is made for.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// Its name.
    pub node: &'a NodeName,
    /// The MAC it asks with.
    pub mac: MacAddr,
    /// How it goes on to its own disk.
    pub local: LocalBoot,
    /// What a person at its console may choose.
    pub menu: Option<&'a Menu>,
}

/// The answer cannot be put into the language of the loader.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// A word of the kernel arguments would be read by the loader instead of the kernel.
    #[error("kernel arguments hold {word:?}, which {loader} would take for its own")]
    Argument {
        /// The word.
        word: String,
        /// The loader: `iPXE`, `GRUB`, `PXELINUX`.
        loader: &'static str,
    },
    /// A path would be read by the loader as something else.
    #[error(
        "the path {path:?} cannot be written for {loader}: use letters, digits and /-._~ in it"
    )]
    Path {
        /// The path.
        path: String,
        /// The loader.
        loader: &'static str,
    },
}

/// A text for a console: letters, digits and marks that mean nothing to any loader; the rest becomes `?`, and what is
/// long is cut.
pub(crate) fn console(text: &str) -> String {
    let is_harmless = |c: char| c.is_ascii_alphanumeric() || " .,:-_()/'%+=@!?".contains(c);
    text.chars().take(200).map(|c| if is_harmless(c) { c } else { '?' }).collect()
}

/// `BOOTIF=01-…` of the MAC that asked, unless the arguments say themselves which interface it is.
pub(crate) fn boot_if(args: &str, mac: MacAddr) -> Option<String> {
    let says = |word: &str| word.split_once('=').is_some_and(|(name, _)| name == BOOTIF);
    let is_said = args.split_ascii_whitespace().any(says);
    (!is_said).then(|| format!("{BOOTIF}=01-{}", mac.hyphenated()))
}

/// The path without its leading slash, for loaders that take it over TFTP.
///
/// # Errors
/// When it has a character that some loader reads as the end of a name.
pub(crate) fn plain_path<'a>(path: &'a str, loader: &'static str) -> Result<&'a str, ScriptError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-._~".contains(c);
    let name = path.trim_start_matches('/');
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(ScriptError::Path { path: path.to_owned(), loader });
    }
    Ok(name)
}

/// The paths of a script in the order in which they are fetched, each with the name of its step: `kernel`,
/// `initrd0`, `initrd1`.
pub(crate) fn steps(boot: &BootScript) -> impl Iterator<Item = (String, &str)> {
    let initrds = boot.initrds.iter().enumerate();
    std::iter::once(("kernel".to_owned(), boot.kernel.as_str()))
        .chain(initrds.map(|(index, path)| (format!("initrd{index}"), path.as_str())))
}

#[cfg(test)]
pub(crate) mod testing {
    use std::net::Ipv4Addr;

    use model::{
        BootAnswer,
        boot::{BootNetwork, DhcpMode},
    };

    use super::*;

    pub(crate) const MAC: MacAddr = MacAddr([2, 0x5a, 0x10, 0, 0, 1]);

    pub(crate) fn network() -> BootNetwork {
        BootNetwork {
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
        }
    }

    pub(crate) fn node() -> NodeName {
        "bld-003".parse().unwrap()
    }

    pub(crate) fn asker(node: &NodeName) -> Asker<'_> {
        Asker { node, mac: MAC, local: LocalBoot::ByFirmware, menu: None }
    }

    pub(crate) fn boot(title: &str, args: &str) -> BootAnswer {
        BootAnswer::Kernel(BootScript {
            title: title.to_owned(),
            kernel: "/i/inspect/vmlinuz".to_owned(),
            initrds: vec!["/i/inspect/initrd.gz".to_owned()],
            args: args.to_owned(),
            ticket: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{testing::MAC, *};

    #[test]
    fn the_interface_is_named_once() {
        let named = Some("BOOTIF=01-02-5a-10-00-00-01".to_owned());
        for args in ["", "quiet", "xBOOTIF=1", "BOOTIF", "a=BOOTIF=1"] {
            assert_eq!(boot_if(args, MAC), named, "{args}");
        }
        for args in ["BOOTIF=01-00-00-00-00-00-01", "quiet BOOTIF=eth1 splash", "BOOTIF="] {
            assert_eq!(boot_if(args, MAC), None, "{args}");
        }
    }

    #[test]
    fn a_path_with_letters_of_another_language_is_refused() {
        assert_eq!(plain_path("/i/inspect/vmlinuz", "GRUB").unwrap(), "i/inspect/vmlinuz");
        for path in ["", "/", "/a b", "/a'b", "/a,b", "/a$b", "/ä", "/a\nb"] {
            assert!(plain_path(path, "GRUB").is_err(), "{path:?}");
        }
    }
}
