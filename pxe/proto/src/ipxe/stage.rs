//! Which stage of a boot is asking: firmware, iPXE, or an operating system.

use crate::dhcp::options::sub_options;

/// Feature numbers iPXE lists inside option 175 (ipxe.org, `src/include/ipxe/features.h`).
mod feature {
    pub(super) const HTTP: u8 = 0x13;
    pub(super) const BZIMAGE: u8 = 0x18;
    pub(super) const EFI: u8 = 0x24;
}

/// Who is asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// A PXE ROM or UEFI PXE: wants a loader over TFTP.
    Pxe,
    /// UEFI HTTP boot: wants a loader's URL.
    HttpBoot,
    /// iPXE that can do what our scripts need: wants the script.
    Ipxe,
    /// An iPXE that lacks HTTP or cannot start a kernel (VirtualBox, some ROMs): wants the full loader.
    CutDownIpxe,
    /// Anything else: wants an address only.
    System,
}

impl Stage {
    /// Tells the stage from options 60, 77 and 175.
    ///
    /// User class alone is not enough: FlexBoot is iPXE without it, and some ROMs say `iPXE` but lack HTTP.
    #[must_use]
    pub fn read(vendor: &[u8], user_class: Option<&[u8]>, ipxe: Option<&[u8]>) -> Self {
        let features = ipxe.map(Features::read);
        let says_ipxe = user_class.is_some_and(is_ipxe_class);
        match features {
            Some(features) if features.suffice() => Self::Ipxe,
            Some(features) if says_ipxe || features.any => Self::CutDownIpxe,
            None if says_ipxe => Self::Ipxe,
            _ if vendor.starts_with(b"PXEClient") => Self::Pxe,
            _ if vendor.starts_with(b"HTTPClient") => Self::HttpBoot,
            _ => Self::System,
        }
    }

    /// Whether this is a stage before the kernel: its requests begin and belong to boot attempts.
    #[must_use]
    pub fn is_firmware(self) -> bool {
        self != Self::System
    }
}

/// RFC 3004 wants a length before each class, and allows several; iPXE sends the bare word. `gPXE` is its ancestor.
fn is_ipxe_class(value: &[u8]) -> bool {
    let is_it = |class: &[u8]| matches!(class, b"iPXE" | b"gPXE");
    is_it(value) || classes(value).any(is_it)
}

/// The classes of a list with a length before each; one that is cut short is left out.
fn classes(mut value: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = value.split_first()?;
        let (class, rest) = rest.split_at_checked(usize::from(*length))?;
        value = rest;
        Some(class)
    })
}

/// What an iPXE says it can do.
#[derive(Debug, Clone, Copy, Default)]
struct Features {
    any: bool,
    http: bool,
    kernel: bool,
}

impl Features {
    fn read(value: &[u8]) -> Self {
        let mut features = Self::default();
        for (code, value) in sub_options(value) {
            let is_on = value.iter().any(|byte| *byte != 0);
            features.any |= is_on;
            features.http |= is_on && code == feature::HTTP;
            features.kernel |= is_on && matches!(code, feature::BZIMAGE | feature::EFI);
        }
        features
    }

    fn suffice(self) -> bool {
        self.http && self.kernel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HTTP and bzImage; HTTP and EFI (snponly); neither HTTP (VirtualBox).
    const BIOS: &[u8] = &[0xb1, 2, 1, 1, 0x13, 1, 1, 0x18, 1, 1];
    const SNPONLY: &[u8] = &[0x24, 1, 1, 0x13, 1, 1];
    const CUT_DOWN: &[u8] = &[0x18, 1, 1, 0x11, 1, 1];

    #[test]
    fn the_stage_is_told_by_all_three_signs() {
        let pxe = &b"PXEClient:Arch:00000:UNDI:002001"[..];
        let cases = [
            ("ROM", pxe, None, None, Stage::Pxe),
            ("HTTP boot", b"HTTPClient:Arch:00016:UNDI:003000", None, None, Stage::HttpBoot),
            ("iPXE, raw class", pxe, Some(&b"iPXE"[..]), Some(BIOS), Stage::Ipxe),
            ("iPXE, RFC 3004 class", pxe, Some(b"\x04iPXE"), Some(SNPONLY), Stage::Ipxe),
            ("gPXE without features", pxe, Some(b"gPXE"), None, Stage::Ipxe),
            ("FlexBoot: no class", pxe, None, Some(BIOS), Stage::Ipxe),
            ("says iPXE, lacks HTTP", pxe, Some(b"iPXE"), Some(CUT_DOWN), Stage::CutDownIpxe),
            ("says iPXE, lists nothing", pxe, Some(b"iPXE"), Some(b""), Stage::CutDownIpxe),
            ("empty 175 of a ROM", pxe, None, Some(b""), Stage::Pxe),
            ("udhcpc", b"udhcp 1.35.0", None, None, Stage::System),
            ("dhclient", b"", None, None, Stage::System),
            ("another user class", b"", Some(b"lab"), None, Stage::System),
            ("iPXE after another class", pxe, Some(b"\x03lab\x04iPXE"), None, Stage::Ipxe),
            ("iPXE before another class", pxe, Some(b"\x04iPXE\x03lab"), None, Stage::Ipxe),
            ("a list cut short", pxe, Some(b"\x03lab\x09iPXE"), None, Stage::Pxe),
            ("an empty class, and iPXE", pxe, Some(b"\x00\x04gPXE"), None, Stage::Ipxe),
            ("iPXE in a longer class", pxe, Some(b"\x08iPXE-old"), None, Stage::Pxe),
        ];
        for (name, vendor, class, ipxe, want) in cases {
            assert_eq!(Stage::read(vendor, class, ipxe), want, "{name}");
        }
    }
}
