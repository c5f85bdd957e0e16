//! What is peculiar about booting a node: `loaders`, `secure_boot`, `local_boot`, `tftp_blksize`, `answer_delay_ms`,
//! `options`.

use std::collections::BTreeMap;

use model::{
    ClientArch,
    boot::{BootTraits, DhcpOption, LocalBoot},
};

use super::{
    fault::{Place, Spot},
    fields::Fields,
    loaders, options,
};

/// The keys as they were read.
pub(super) struct RawQuirks {
    /// Loaders of its own, by architecture; files of the folder of `[loaders]`.
    pub(super) loaders: BTreeMap<ClientArch, Spot<String>>,
    /// Where Secure Boot is switched on.
    pub(super) secure: Option<Place>,
    local: LocalBoot,
    tftp_blksize: Option<u16>,
    answer_delay_ms: u16,
    options: Vec<DhcpOption>,
}

const LOCAL: [(&str, LocalBoot); 5] = [
    ("auto", LocalBoot::ByFirmware),
    ("sanboot", LocalBoot::Sanboot),
    ("exit", LocalBoot::Exit),
    ("not-found", LocalBoot::NotFound),
    ("no-boot-file", LocalBoot::NoBootFile),
];

impl RawQuirks {
    /// Reads the keys of a node; `uefi` is its boot mode.
    pub(super) fn read(fields: &Fields<'_>, uefi: bool) -> Self {
        let own = loaders::read_own(fields);
        let secure = fields.boolean_spot("secure_boot").filter(|on| on.value).map(|on| on.place);
        if let Some(place) = &secure {
            secure_boot_fits(fields, place, &own, uefi);
        }
        let local = fields.choice("local_boot", &LOCAL);
        if let Some(local) =
            local.as_ref().filter(|local| uefi && local.value == LocalBoot::Sanboot)
        {
            let hint = "write \"exit\": UEFI has no drive for iPXE to start";
            fields.fault(&local.place, "local_boot \"sanboot\" is for BIOS only", hint);
        }
        let delay = fields.integer("answer_delay_ms", 0..=5_000_u16);
        Self {
            loaders: own,
            secure,
            local: local.map_or(LocalBoot::ByFirmware, |local| local.value),
            tftp_blksize: fields.integer("tftp_blksize", 8..=65_464_u16).map(|size| size.value),
            answer_delay_ms: delay.map_or(0, |delay| delay.value),
            options: options::values(&options::read(fields)),
        }
    }

    /// As the boot table wants it. A menu follows from the whole configuration and is set elsewhere.
    pub(super) fn finish(self) -> BootTraits {
        let signed = self.secure.as_ref().map(loaders::signed).unwrap_or_default();
        let loaders = self.loaders.into_iter().chain(signed);
        BootTraits {
            loaders: loaders.map(|(arch, name)| (arch, name.value)).collect(),
            local: self.local,
            tftp_blksize: self.tftp_blksize,
            answer_delay_ms: self.answer_delay_ms,
            options: self.options,
            menu: None,
        }
    }
}

fn secure_boot_fits(
    fields: &Fields<'_>,
    place: &Place,
    own: &BTreeMap<ClientArch, Spot<String>>,
    uefi: bool,
) {
    if !uefi {
        let hint = "write boot_mode = \"uefi\", or remove secure_boot";
        fields.fault(place, "secure_boot needs UEFI", hint);
    }
    if let Some(name) = loaders::signed(place).keys().find_map(|arch| own.get(arch)) {
        let text = format!("loaders names {:?} beside secure_boot", name.value);
        fields.fault(&name.place, text, "remove efi_x64: Secure Boot starts shim");
    }
}
