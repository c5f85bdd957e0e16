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
    /// UEFI HTTP boot on 32-bit x86, code 15: takes a URL.
    HttpIa32,
    /// UEFI HTTP boot on x86-64, code 16: takes a URL.
    HttpX64,
    /// UEFI HTTP boot on 32-bit ARM, code 18: takes a URL.
    HttpArm32,
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
            15 => Some(ClientFamily::HttpIa32),
            16 => Some(ClientFamily::HttpX64),
            18 => Some(ClientFamily::HttpArm32),
            19 => Some(ClientFamily::HttpArm64),
            _ => None,
        }
    }
}

impl ClientFamily {
    /// Whether it is UEFI HTTP boot: wants a URL, and takes it from an offer that says `HTTPClient` only.
    #[must_use]
    pub fn takes_url(self) -> bool {
        match self {
            Self::HttpIa32 | Self::HttpX64 | Self::HttpArm32 | Self::HttpArm64 => true,
            Self::Bios | Self::EfiX64 | Self::EfiIa32 | Self::EfiArm32 | Self::EfiArm64 => false,
        }
    }

    /// Codes of the architectures whose loader it can start, best first. A UEFI program is the same whether it
    /// came by TFTP or by HTTP.
    #[must_use]
    pub fn loader_codes(self) -> &'static [u16] {
        match self {
            Self::Bios => &[0],
            Self::EfiIa32 => &[6],
            Self::EfiX64 => &[7, 9],
            Self::EfiArm32 => &[10],
            Self::EfiArm64 => &[11],
            Self::HttpIa32 => &[15, 6],
            Self::HttpX64 => &[16, 7, 9],
            Self::HttpArm32 => &[18, 10],
            Self::HttpArm64 => &[19, 11],
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
            Some(ClientFamily::HttpIa32) => "ia32 UEFI HTTP",
            Some(ClientFamily::HttpX64) => "x86-64 UEFI HTTP",
            Some(ClientFamily::HttpArm32) => "arm32 UEFI HTTP",
            Some(ClientFamily::HttpArm64) => "arm64 UEFI HTTP",
            None => "unknown architecture",
        };
        write!(f, "{name} ({})", self.0)
    }
}
