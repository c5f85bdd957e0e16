//! `[loaders]`: the network boot loaders handed to firmware, by architecture.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use model::{ClientArch, boot::Loaders};

use super::{
    fault::{Place, Sink, Spot},
    fields::Fields,
};

/// Loader files of one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoaderFiles {
    /// Where they are.
    pub dir: PathBuf,
    /// File name by architecture.
    pub names: BTreeMap<ClientArch, String>,
}

/// Key, architectures it stands for (DHCP option 93), default file.
const KEYS: [(&str, &[u16], Option<&str>); 5] = [
    ("bios", &[0], Some("undionly.kpxe")),
    ("efi_x64", &[7, 9], Some("snponly.efi")),
    ("efi_ia32", &[6], None),
    ("efi_arm32", &[10], None),
    ("efi_arm64", &[11], None),
];

impl LoaderFiles {
    /// As the boot table wants it.
    #[must_use]
    pub fn table(&self) -> Loaders {
        Loaders(self.names.clone())
    }

    /// Each file: its TFTP name and where it is.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, PathBuf> {
        self.names.values().map(|name| (name.clone(), self.dir.join(name))).collect()
    }
}

impl Default for LoaderFiles {
    /// Debian's package `ipxe`.
    fn default() -> Self {
        let mut names = BTreeMap::new();
        for (_, arches, file) in KEYS {
            if let Some(file) = file {
                names.extend(arches.iter().map(|arch| (ClientArch(*arch), file.to_owned())));
            }
        }
        Self { dir: PathBuf::from("/usr/lib/ipxe"), names }
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
        Self { loaders: LoaderFiles::default(), places: BTreeMap::new(), place }
    }

    pub(super) fn read(fields: Fields<'_>, dir: &Path) -> Self {
        let mut raw = Self::unsaid(fields.place.clone());
        if let Some(folder) = fields.path("dir", dir) {
            raw.place = folder.place;
            raw.loaders.dir = folder.value;
        }
        for (key, arches, _) in KEYS {
            let Some(Spot { value: name, place }) = fields.text(key) else { continue };
            if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0']) {
                let text = format!("{key} {name:?} is no file name");
                fields.fault(&place, text, "name a file in the folder that dir names");
                continue;
            }
            raw.loaders.names.extend(arches.iter().map(|arch| (ClientArch(*arch), name.clone())));
            raw.places.insert(name, place);
        }
        fields.done();
        raw
    }

    /// Notes every loader that is not there.
    pub(super) fn look(&self, sink: &Sink) {
        for (name, path) in self.loaders.files() {
            if !path.is_file() {
                let place = self.places.get(&name).unwrap_or(&self.place);
                let text = format!("[loaders]: {} does not exist", path.display());
                sink.fault(place, text, "install the Debian package ipxe, or name another dir");
            }
        }
    }
}
