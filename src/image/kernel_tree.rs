//! An unpacked kernel package: where its kernel and its modules lie, and which modules it has.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use super::ImageError;

/// A kernel and its modules.
#[derive(Debug, Clone)]
pub(super) struct KernelTree {
    /// Kernel release, such as `6.1.0-57-amd64`.
    pub(super) version: String,
    /// The kernel image.
    pub(super) vmlinuz: PathBuf,
    /// Folder of firmware the package brings along; it may not exist.
    pub(super) firmware: PathBuf,
    /// Module files by name, with `_` for every `-`.
    pub(super) modules: BTreeMap<String, PathBuf>,
    /// Modules compiled into the kernel, by name.
    pub(super) built_in: BTreeSet<String>,
}

impl KernelTree {
    /// Looks into `folder`, which is a root folder such as an unpacked `linux-image-*` package or `/`. Of several
    /// kernels the newest is taken.
    ///
    /// # Errors
    /// When there is no kernel, or none with modules.
    pub(super) fn open(folder: &Path) -> Result<Self, ImageError> {
        let no_kernel = |why: &str| ImageError::NoKernel { tree: folder.into(), why: why.into() };
        let boot = folder.join("boot");
        let names = sorted_names(&boot).map_err(|_| no_kernel("it has no folder boot/"))?;
        let versions = names.iter().filter_map(|name| name.strip_prefix("vmlinuz-"));
        let version = versions.max_by_key(|version| version_key(version));
        let version = version.ok_or_else(|| no_kernel("it has no file boot/vmlinuz-VERSION"))?;
        // Merged /usr since Debian 13.
        let places = ["lib/modules", "usr/lib/modules"];
        let mut homes = places.iter().map(|place| folder.join(place).join(version));
        let home = homes.find(|home| home.join("kernel").is_dir());
        let home =
            home.ok_or_else(|| no_kernel(&format!("it has no modules for kernel {version}")))?;
        let mut modules = BTreeMap::new();
        index(&home.join("kernel"), &mut modules)?;
        let firmware = folder.join("lib/firmware");
        let vmlinuz = boot.join(format!("vmlinuz-{version}"));
        Ok(Self { version: version.into(), vmlinuz, firmware, modules, built_in: built_in(&home) })
    }
}

/// `-` and `_` are one in module names.
pub(super) fn module_name(name: &str) -> String {
    name.replace('-', "_")
}

/// The module's name, if the file is one.
fn name_of_file(file: &str) -> Option<String> {
    let endings = [".ko", ".ko.xz", ".ko.zst"];
    endings.iter().find_map(|ending| file.strip_suffix(ending)).map(module_name)
}

fn index(folder: &Path, modules: &mut BTreeMap<String, PathBuf>) -> Result<(), ImageError> {
    let names = sorted_names(folder).map_err(ImageError::io("read folder", folder))?;
    for name in names {
        let path = folder.join(&name);
        if let Some(module) = name_of_file(&name) {
            modules.insert(module, path);
        } else if path.is_dir() && !path.is_symlink() {
            index(&path, modules)?;
        }
    }
    Ok(())
}

/// Lines such as `kernel/drivers/virtio/virtio.ko`; a package without the file has nothing to say.
fn built_in(home: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(home.join("modules.builtin")).unwrap_or_default();
    text.lines().filter_map(|line| name_of_file(line.rsplit('/').next()?)).collect()
}

/// Names in a folder that are text, sorted.
pub(super) fn sorted_names(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// The numbers of a version, in order: enough to say which of two kernels of one distribution is newer.
pub(super) fn version_key(version: &str) -> Vec<u64> {
    let digits = version.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty());
    digits.map(|run| run.parse().unwrap_or(u64::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::testing::Folder;

    #[test]
    fn the_newest_kernel_of_a_tree_is_found_with_its_modules() {
        let tree = Folder::new();
        tree.file("boot/vmlinuz-6.1.0-9-amd64", "old");
        tree.file("boot/vmlinuz-6.1.0-57-amd64", "new");
        tree.file("usr/lib/modules/6.1.0-57-amd64/kernel/drivers/net/tg3.ko", "");
        tree.file("usr/lib/modules/6.1.0-57-amd64/kernel/lib/crc-t10dif.ko.xz", "");
        tree.file(
            "usr/lib/modules/6.1.0-57-amd64/modules.builtin",
            "kernel/drivers/virtio/virtio.ko\n",
        );
        let found = KernelTree::open(tree.path()).unwrap();
        assert_eq!(found.version, "6.1.0-57-amd64");
        assert_eq!(found.vmlinuz, tree.path().join("boot/vmlinuz-6.1.0-57-amd64"));
        assert!(found.modules.keys().eq(["crc_t10dif", "tg3"]), "{:?}", found.modules);
        assert!(found.built_in.contains("virtio"));
    }

    #[test]
    fn a_tree_without_kernel_or_modules_says_what_it_lacks() {
        let tree = Folder::new();
        let said = |tree: &Folder| KernelTree::open(tree.path()).unwrap_err().to_string();
        assert!(said(&tree).contains("no folder boot/"), "{}", said(&tree));
        tree.file("boot/config-6.1", "");
        assert!(said(&tree).contains("no file boot/vmlinuz-VERSION"), "{}", said(&tree));
        tree.file("boot/vmlinuz-6.1", "");
        assert!(said(&tree).contains("no modules for kernel 6.1"), "{}", said(&tree));
    }
}
