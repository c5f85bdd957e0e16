//! `[loaders]` and `[secure_boot]`: the network boot loaders handed to firmware, by architecture.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use model::{ClientArch, boot::Loaders};

use super::{
    fault::{Place, Sink, Spot},
    fields::Fields,
};

/// Loader files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoaderFiles {
    /// Where they are.
    pub dir: PathBuf,
    /// File names by architecture, in the order they are tried; at least one for each.
    pub names: BTreeMap<ClientArch, Vec<String>>,
    /// Further files that nodes name for themselves.
    pub extra: Vec<String>,
    /// The signed loaders, where a node boots with Secure Boot.
    pub secure: Option<SecureBoot>,
}

/// The first stage the firmware's certificate holds for, and the second it starts. Debian's packages `shim-signed` and
/// `grub-efi-amd64-signed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecureBoot {
    /// Served as [`SHIM`].
    pub shim: PathBuf,
    /// Served as [`GRUB`]: the name shim asks for is compiled into it.
    pub grub: PathBuf,
}

/// Name of the first stage of Secure Boot under the TFTP root.
pub const SHIM: &str = "shimx64.efi";
/// Name of its second stage.
pub const GRUB: &str = "grubx64.efi";

/// Key, architectures it stands for (DHCP option 93), default file.
const KEYS: [(&str, &[u16], Option<&str>); 5] = [
    ("bios", &[0], Some("undionly.kpxe")),
    ("efi_x64", X64, Some("snponly.efi")),
    ("efi_ia32", &[6], None),
    ("efi_arm32", &[10], None),
    ("efi_arm64", &[11], None),
];
/// What is tried behind the default where nothing is configured and the folder has it: these bring drivers of their own,
/// for firmware whose network driver does not serve the first choice.
const FALLBACKS: [(&[u16], &str); 2] = [(&[0], "ipxe.pxe"), (X64, "ipxe.efi")];
/// UEFI on x86-64; HTTP boot (16) takes what these have.
const X64: &[u16] = &[7, 9];

impl LoaderFiles {
    /// The first choice of each architecture, as the boot table wants it.
    #[must_use]
    pub fn table(&self) -> Loaders {
        let first =
            |(arch, names): (&ClientArch, &Vec<String>)| Some((*arch, names.first()?.clone()));
        Loaders(self.names.iter().filter_map(first).collect())
    }

    /// Every choice of those architectures that have more than one.
    #[must_use]
    pub fn ladders(&self) -> BTreeMap<ClientArch, Vec<String>> {
        let more = self.names.iter().filter(|(_, names)| names.len() > 1);
        more.map(|(arch, names)| (*arch, names.clone())).collect()
    }

    /// Each file: its TFTP name and where it is.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, PathBuf> {
        let names = self.names.values().flatten().chain(&self.extra);
        let mut files: BTreeMap<_, _> =
            names.map(|name| (name.clone(), self.dir.join(name))).collect();
        if let Some(secure) = &self.secure {
            files.insert(SHIM.to_owned(), secure.shim.clone());
            files.insert(GRUB.to_owned(), secure.grub.clone());
        }
        files
    }

    /// Adds what else may be tried to the ladders nobody has written down.
    fn add_fallbacks(&mut self, written: &[u16]) {
        let more = FALLBACKS.iter().filter(|(_, file)| self.dir.join(file).is_file());
        for (arches, file) in more {
            for arch in arches.iter().filter(|arch| !written.contains(arch)) {
                let names = self.names.entry(ClientArch(*arch)).or_default();
                names.push((*file).to_owned());
            }
        }
    }

    /// Serves what nodes name for themselves, too.
    pub(super) fn add<'n>(&mut self, names: impl Iterator<Item = &'n String>) {
        self.extra.extend(names.filter(|name| name.as_str() != SHIM).cloned());
        self.extra.sort();
        self.extra.dedup();
    }
}

impl Default for LoaderFiles {
    /// Debian's package `ipxe`.
    fn default() -> Self {
        let mut names = BTreeMap::new();
        for (_, arches, file) in KEYS {
            if let Some(file) = file {
                names.extend(arches.iter().map(|arch| (ClientArch(*arch), vec![file.to_owned()])));
            }
        }
        Self { dir: PathBuf::from("/usr/lib/ipxe"), names, extra: vec![], secure: None }
    }
}

impl Default for SecureBoot {
    /// Debian's packages `shim-signed` and `grub-efi-amd64-signed`.
    fn default() -> Self {
        Self {
            shim: PathBuf::from("/usr/lib/shim/shimx64.efi.signed"),
            grub: PathBuf::from("/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed"),
        }
    }
}

/// The files with the places that named them.
pub(super) struct RawLoaders {
    pub(super) loaders: LoaderFiles,
    places: BTreeMap<String, Place>,
    place: Place,
}

impl RawLoaders {
    /// What holds when there is no `[loaders]`.
    pub(super) fn unsaid(place: Place) -> Self {
        let mut loaders = LoaderFiles::default();
        loaders.add_fallbacks(&[]);
        Self { loaders, places: BTreeMap::new(), place }
    }

    pub(super) fn read(fields: Fields<'_>, dir: &Path) -> Self {
        let (loaders, place) = (LoaderFiles::default(), fields.place.clone());
        let mut raw = Self { loaders, places: BTreeMap::new(), place };
        if let Some(folder) = fields.path("dir", dir) {
            raw.place = folder.place;
            raw.loaders.dir = folder.value;
        }
        let mut written = Vec::new();
        for (key, arches, _) in KEYS {
            let Some(texts) = fields.text_or_texts(key) else { continue };
            written.extend_from_slice(arches);
            if texts.is_empty() {
                fields.fault(
                    &fields.place,
                    format!("{key} names no file"),
                    "name one, or remove it",
                );
            }
            let names: Vec<_> =
                texts.into_iter().filter(|name| is_name(&fields, key, name)).collect();
            if names.is_empty() {
                continue;
            }
            let list: Vec<String> = names.iter().map(|name| name.value.clone()).collect();
            raw.loaders.names.extend(arches.iter().map(|arch| (ClientArch(*arch), list.clone())));
            raw.places.extend(names.into_iter().map(|name| (name.value, name.place)));
        }
        raw.loaders.add_fallbacks(&written);
        fields.done();
        raw
    }

    /// Notes every loader that is not there; `of_nodes` are those nodes name for themselves.
    pub(super) fn look<'n>(&self, of_nodes: impl Iterator<Item = &'n Spot<String>>, sink: &Sink) {
        let missing = |name: &str, place: &Place| {
            let path = self.loaders.dir.join(name);
            if !path.is_file() {
                let text = format!("[loaders]: {} does not exist", path.display());
                sink.fault(
                    place,
                    text,
                    "correct its name, install the Debian package ipxe, or name another dir",
                );
            }
        };
        for name in self.loaders.names.values().flatten() {
            missing(name, self.places.get(name).unwrap_or(&self.place));
        }
        of_nodes.for_each(|name| missing(&name.value, &name.place));
    }
}

/// `loaders = { … }` of a node: one file for each architecture.
pub(super) fn read_own(fields: &Fields<'_>) -> BTreeMap<ClientArch, Spot<String>> {
    let mut own = BTreeMap::new();
    let subject = format!("{}: loaders", fields.subject);
    let Some(table) = fields.table("loaders", subject) else { return own };
    for (key, arches, _) in KEYS {
        let Some(name) = table.text(key).filter(|name| is_name(&table, key, name)) else {
            continue;
        };
        own.extend(arches.iter().map(|arch| (ClientArch(*arch), name.clone())));
    }
    table.done();
    own
}

/// What a node with Secure Boot is given.
pub(super) fn signed(place: &Place) -> BTreeMap<ClientArch, Spot<String>> {
    let shim = || Spot::new(SHIM.to_owned(), place.clone());
    X64.iter().map(|arch| (ClientArch(*arch), shim())).collect()
}

fn is_name(fields: &Fields<'_>, key: &str, name: &Spot<String>) -> bool {
    let text = &name.value;
    let good = !(text.is_empty() || text.starts_with('.') || text.contains(['/', '\\', '\0']));
    if !good {
        let what = format!("{key} {text:?} is no file name");
        fields.fault(&name.place, what, "name a file in the folder that dir of [loaders] names");
    }
    good
}

/// `[secure_boot]` with the places of its files.
pub(super) struct RawSecureBoot {
    pub(super) files: SecureBoot,
    shim: Option<Place>,
    grub: Option<Place>,
}

impl RawSecureBoot {
    /// What holds when there is no `[secure_boot]`.
    pub(super) fn unsaid() -> Self {
        Self { files: SecureBoot::default(), shim: None, grub: None }
    }

    pub(super) fn read(fields: Fields<'_>, dir: &Path) -> Self {
        let mut raw = Self::unsaid();
        if let Some(shim) = fields.path("shim", dir) {
            raw.files.shim = shim.value;
            raw.shim = Some(shim.place);
        }
        if let Some(grub) = fields.path("grub", dir) {
            raw.files.grub = grub.value;
            raw.grub = Some(grub.place);
        }
        fields.done();
        raw
    }

    /// Notes every file that is not there. `wanted` is the node that needs them.
    pub(super) fn look(&self, wanted: &Place, sink: &Sink) {
        let files = [
            (&self.files.shim, &self.shim, "shim-signed"),
            (&self.files.grub, &self.grub, "grub-efi-amd64-signed"),
        ];
        for (path, place, package) in files {
            if !path.is_file() {
                let text = format!("[secure_boot]: {} does not exist", path.display());
                let hint = format!("install the Debian package {package}, or name another file");
                sink.fault(place.as_ref().unwrap_or(wanted), text, hint);
            }
        }
    }
}
