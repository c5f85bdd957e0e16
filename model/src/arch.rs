//! Client system architecture types of network boot.

use std::fmt;

/// DHCP option 93 (RFC 4578, IANA "Processor Architecture Types").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientArch(pub u16);

/// What a client of some architecture can load, as far as volund tells families apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClientFamily {
    /// x86 BIOS, code 0: takes `undionly.kpxe` over TFTP.
    Bios,
    /// x86-64 UEFI PXE, codes 7 and 9 (the field swapped them; RFC 4578 erratum): takes `snponly.efi`.
    EfiX64,
    /// 32-bit x86 UEFI, code 6.
    EfiIa32,
    /// 32-bit ARM UEFI, code 10.
    EfiArm32,
    /// 64-bit ARM UEFI, code 11.
    EfiArm64,
    /// UEFI HTTP boot on x86-64, code 16: takes a URL.
    HttpX64,
    /// UEFI HTTP boot on 64-bit ARM, code 19: takes a URL.
    HttpArm64,
}

impl ClientArch {
    /// The family, or `None` for a code volund knows no loader for.
    #[must_use]
    pub fn family(self) -> Option<ClientFamily> {
        match self.0 {
            0 => Some(ClientFamily::Bios),
            6 => Some(ClientFamily::EfiIa32),
            7 | 9 => Some(ClientFamily::EfiX64),
            10 => Some(ClientFamily::EfiArm32),
            11 => Some(ClientFamily::EfiArm64),
            16 => Some(ClientFamily::HttpX64),
            19 => Some(ClientFamily::HttpArm64),
            _ => None,
        }
    }
}

impl fmt::Display for ClientArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.family() {
            Some(ClientFamily::Bios) => "x86 BIOS",
            Some(ClientFamily::EfiX64) => "x86-64 UEFI",
            Some(ClientFamily::EfiIa32) => "ia32 UEFI",
            Some(ClientFamily::EfiArm32) => "arm32 UEFI",
            Some(ClientFamily::EfiArm64) => "arm64 UEFI",
            Some(ClientFamily::HttpX64) => "x86-64 UEFI HTTP",
            Some(ClientFamily::HttpArm64) => "arm64 UEFI HTTP",
            None => "unknown architecture",
        };
        write!(f, "{name} ({})", self.0)
    }
}
