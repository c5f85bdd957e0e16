//! Names of files that are made for each node: which text a name means, and for which of the node's MACs.
//!
//! A node is known by the address it asks from; what a name says besides (a MAC, an address) is only held against it.
//! It makes no text, and asks nobody.

use std::net::Ipv4Addr;

use model::{BootEntry, MacAddr};

/// A text made for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generated {
    /// An iPXE script: `autoexec.ipxe`, which iPXE looks for beside itself.
    Ipxe,
    /// A configuration of GRUB: `grub.cfg` in any folder, `grub.cfg-01-MAC`, `grub.cfg-HEXIP`.
    Grub,
    /// A configuration of PXELINUX: `pxelinux.cfg/UUID`, `01-MAC`, `HEXIP`, `default`.
    Pxelinux,
}

/// What `name` (slashes normal, none in front) means to the node that asks from `from`, and the MAC it is made for:
/// the one in the name, or the node's first. `None`: no such text, or one of another machine.
#[must_use]
pub fn generated(name: &str, entry: &BootEntry, from: Ipv4Addr) -> Option<(Generated, MacAddr)> {
    let name = name.to_ascii_lowercase();
    let (folder, base) = name.rsplit_once('/').unwrap_or(("", &name));
    let kind = match base {
        "autoexec.ipxe" => Generated::Ipxe,
        _ if base.starts_with("grub.cfg") => Generated::Grub,
        _ if folder.rsplit('/').next() == Some("pxelinux.cfg") => Generated::Pxelinux,
        _ => return None,
    };
    let whose = match kind {
        Generated::Ipxe => "",
        Generated::Grub => match base.strip_prefix("grub.cfg")? {
            "" => "",
            rest => rest.strip_prefix('-')?,
        },
        Generated::Pxelinux if base == "default" => "",
        Generated::Pxelinux => base,
    };
    mac_for(whose, entry, from).map(|mac| (kind, mac))
}

/// The MAC a text is made for, when `whose` names this node: by nothing, hardware type 1 and MAC, the address in hex
/// shortened at its end, or a UUID, which says nothing we could check.
fn mac_for(whose: &str, entry: &BootEntry, from: Ipv4Addr) -> Option<MacAddr> {
    let first = entry.macs.first().copied();
    if let Some(mac) = whose.strip_prefix("01-").and_then(|mac| mac.parse().ok()) {
        return entry.macs.contains(&mac).then_some(mac);
    }
    let address = format!("{:08x}", u32::from(from));
    let is_own = whose.is_empty() || address.starts_with(whose) || is_uuid(whose);
    first.filter(|_| is_own)
}

/// Groups of 8, 4, 4, 4 and 12 hexadecimal digits.
fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use model::boot::{BootIntent, BootTraits};
    use proptest::prelude::*;

    use super::*;

    const FIRST: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const SECOND: MacAddr = MacAddr([2, 0, 0, 0, 0xab, 2]);
    const FROM: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 17);

    fn entry() -> BootEntry {
        BootEntry {
            node: "bld-001".parse().unwrap(),
            macs: vec![FIRST, SECOND],
            address: FROM,
            intent: BootIntent::Ask,
            attempt: None,
            traits: BootTraits::default(),
        }
    }

    #[test]
    fn the_names_loaders_ask_for_mean_the_node_that_asks() {
        let (ipxe, grub, linux) = (Generated::Ipxe, Generated::Grub, Generated::Pxelinux);
        let cases = [
            ("autoexec.ipxe", Some((ipxe, FIRST))),
            ("efi/x64/autoexec.ipxe", Some((ipxe, FIRST))),
            ("grub/grub.cfg", Some((grub, FIRST))),
            ("grub.cfg", Some((grub, FIRST))),
            ("EFI/debian/grub.cfg", Some((grub, FIRST))),
            ("boot/grub/grub.cfg-01-02-00-00-00-ab-02", Some((grub, SECOND))),
            ("grub/grub.cfg-01-02-00-00-00-AB-02", Some((grub, SECOND))),
            ("grub/grub.cfg-01-02-00-00-00-00-09", None),
            ("grub/grub.cfg-C0000211", Some((grub, FIRST))),
            ("grub/grub.cfg-C00002", Some((grub, FIRST))),
            ("grub/grub.cfg-C0000212", None),
            ("grub/grub.cfg.bak", None),
            ("grub/x86_64-efi/command.lst", None),
            ("grub/x86_64-efi/fs.lst", None),
            ("pxelinux.cfg/4c4c4544-0042-4810-8053-b4c04f4a3332", Some((linux, FIRST))),
            ("pxelinux.cfg/01-02-00-00-00-00-01", Some((linux, FIRST))),
            ("pxelinux.cfg/01-02-00-00-00-00-09", None),
            ("pxelinux.cfg/C0000211", Some((linux, FIRST))),
            ("bios/pxelinux.cfg/C", Some((linux, FIRST))),
            ("pxelinux.cfg/C0000299", None),
            ("pxelinux.cfg/default", Some((linux, FIRST))),
            ("pxelinux.cfg/other", None),
            ("pxelinux.cfg", None),
            ("default", None),
            ("ldlinux.c32", None),
            ("", None),
        ];
        for (name, want) in cases {
            assert_eq!(generated(name, &entry(), FROM), want, "{name}");
        }
    }

    #[test]
    fn a_node_without_a_mac_has_no_texts() {
        let entry = BootEntry { macs: vec![], ..entry() };
        assert_eq!(generated("autoexec.ipxe", &entry, FROM), None);
    }

    proptest! {
        #[test]
        fn no_name_makes_it_panic(name: String) {
            let _meant = generated(&name, &entry(), FROM);
        }
    }
}
