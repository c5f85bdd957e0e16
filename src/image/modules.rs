//! Which module files an image needs, and in which order the agent has to load them.
//!
//! Packages carry no `modules.dep` (depmod makes it at installation), so each module's own `.modinfo` is read.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::{Command, Stdio},
};

use super::{
    ImageError,
    elf::{self, ModInfo},
    kernel_tree::{KernelTree, module_name},
};

/// One module as it goes into the image: never compressed.
#[derive(Debug, Clone)]
pub(super) struct Module {
    /// Name, with `_` for every `-`.
    pub(super) name: String,
    /// The ELF file.
    pub(super) content: Vec<u8>,
    /// Firmware it may ask for.
    pub(super) firmware: Vec<String>,
}

/// Modules in load order, and what was left out and why.
#[derive(Debug, Clone, Default)]
pub(super) struct Resolved {
    /// Each after everything it depends on.
    pub(super) modules: Vec<Module>,
    /// One sentence each.
    pub(super) notes: Vec<String>,
}

/// Resolves the modules of `wanted` with all they depend on. Those a kernel does not have are noted; those of
/// `required` are an error.
///
/// # Errors
/// When a required module is missing, or a module file cannot be read.
pub(super) fn resolve(
    tree: &KernelTree,
    wanted: &[String],
    required: &[String],
) -> Result<Resolved, ImageError> {
    let mut walk = Walk {
        tree,
        seen: BTreeSet::new(),
        broken: BTreeMap::new(),
        resolved: Resolved::default(),
    };
    for name in wanted {
        if let Err(Lacking(missing)) = walk.visit(&module_name(name))? {
            let note = lacking(name, &missing, &tree.version);
            walk.resolved.notes.push(note);
        }
    }
    for name in required {
        if let Err(Lacking(missing)) = walk.visit(&module_name(name))? {
            return Err(ImageError::NoModule(lacking(name, &missing, &tree.version)));
        }
    }
    Ok(walk.resolved)
}

fn lacking(name: &str, missing: &str, version: &str) -> String {
    if module_name(name) == missing {
        format!("module {name} is not in kernel {version}")
    } else {
        format!("module {name} is left out: it needs {missing}, which is not in kernel {version}")
    }
}

/// The kernel lacks this module.
struct Lacking(String);

struct Walk<'a> {
    tree: &'a KernelTree,
    seen: BTreeSet<String>,
    /// Modules that cannot be loaded, and what they lack.
    broken: BTreeMap<String, String>,
    resolved: Resolved,
}

impl Walk<'_> {
    /// Adds a module after its dependencies. The inner result says what is missing, if anything.
    fn visit(&mut self, name: &str) -> Result<Result<(), Lacking>, ImageError> {
        if self.tree.built_in.contains(name) {
            return Ok(Ok(()));
        }
        if let Some(missing) = self.broken.get(name) {
            return Ok(Err(Lacking(missing.clone())));
        }
        let Some(path) = self.tree.modules.get(name) else {
            return Ok(Err(Lacking(name.to_owned())));
        };
        // Entered before its dependencies are, so that a ring of soft dependencies ends.
        if !self.seen.insert(name.to_owned()) {
            return Ok(Ok(()));
        }
        let content = read_module(path)?;
        let info = elf::modinfo(&content).map_err(|source| ImageError::Module {
            path: path.clone(),
            source: Box::new(source),
        })?;
        if let Err(lacking) = self.visit_dependencies(&info)? {
            self.broken.insert(name.to_owned(), lacking.0.clone());
            return Ok(Err(lacking));
        }
        let module = Module { name: name.to_owned(), content, firmware: info.firmware };
        self.resolved.modules.push(module);
        Ok(Ok(()))
    }

    fn visit_dependencies(&mut self, info: &ModInfo) -> Result<Result<(), Lacking>, ImageError> {
        for name in &info.before {
            // These are often aliases of an algorithm, such as crc32c, whose plain form is crc32c_generic.
            let name = module_name(name);
            for name in [format!("{name}_generic"), name] {
                // Soft: what is missing is not missed.
                let _soft = self.visit(&name)?;
            }
        }
        for name in &info.depends {
            if let Err(lacking) = self.visit(&module_name(name))? {
                return Ok(Err(lacking));
            }
        }
        Ok(Ok(()))
    }
}

/// The module, decompressed by the distribution's own tool where it is compressed.
fn read_module(path: &Path) -> Result<Vec<u8>, ImageError> {
    let (tool, package) = match path.extension().and_then(|ending| ending.to_str()) {
        Some("xz") => ("xz", "xz-utils"),
        Some("zst") => ("zstd", "zstd"),
        _ => return fs::read(path).map_err(ImageError::io("read", path)),
    };
    let mut command = Command::new(tool);
    let run = command.arg("-dc").arg(path).stdin(Stdio::null()).output();
    let output = run.map_err(|source| ImageError::Tool { tool, package, source })?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(ImageError::Module { path: path.into(), source: said.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{elf::module_with, testing::Folder};

    const HOME: &str = "lib/modules/6.1/kernel";

    fn tree(modules: &[(&str, &str)]) -> (Folder, KernelTree) {
        let folder = Folder::new();
        folder.file("boot/vmlinuz-6.1", "kernel");
        folder.file("lib/modules/6.1/modules.builtin", "kernel/drivers/virtio/virtio_ring.ko\n");
        for (file, modinfo) in modules {
            folder.file(&format!("{HOME}/{file}"), module_with(modinfo));
        }
        let tree = KernelTree::open(folder.path()).unwrap();
        (folder, tree)
    }

    fn names(resolved: &Resolved) -> Vec<&str> {
        resolved.modules.iter().map(|module| module.name.as_str()).collect()
    }

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn modules_come_after_what_they_depend_on_and_once() {
        let (_folder, tree) = tree(&[
            ("sd_mod.ko", "depends=scsi_mod,crc-t10dif\0"),
            ("scsi_mod.ko", "depends=scsi_common\0"),
            ("scsi_common.ko", "depends=\0"),
            ("crc-t10dif.ko", "depends=\0softdep=pre: crct10dif\0"),
            ("crct10dif_generic.ko", "depends=\0"),
            ("ahci.ko", "depends=scsi_mod,virtio_ring\0"),
        ]);
        let resolved = resolve(&tree, &list(&["ahci", "sd-mod"]), &[]).unwrap();
        let want = ["scsi_common", "scsi_mod", "ahci", "crct10dif_generic", "crc_t10dif", "sd_mod"];
        assert_eq!(names(&resolved), want);
        assert_eq!(resolved.notes, Vec::<String>::new());
    }

    #[test]
    fn a_module_the_kernel_lacks_is_noted_and_a_required_one_is_an_error() {
        let (_folder, tree) = tree(&[
            ("tg3.ko", "depends=libphy\0"),
            ("e1000.ko", "depends=\0"),
            ("x.ko", "depends=tg3\0"),
        ]);
        let resolved = resolve(&tree, &list(&["hpsa", "tg3", "e1000", "x"]), &[]).unwrap();
        assert_eq!(names(&resolved), ["e1000"]);
        let want = [
            "module hpsa is not in kernel 6.1",
            "module tg3 is left out: it needs libphy, which is not in kernel 6.1",
            "module x is left out: it needs libphy, which is not in kernel 6.1",
        ];
        assert_eq!(resolved.notes, want);
        let error = resolve(&tree, &[], &list(&["qlcnic"])).unwrap_err().to_string();
        assert!(error.contains("module qlcnic is not in kernel 6.1"), "{error}");
    }

    #[test]
    fn a_ring_of_dependencies_ends() {
        let (_folder, tree) = tree(&[("a.ko", "softdep=pre: b\0"), ("b.ko", "softdep=pre: a\0")]);
        assert_eq!(names(&resolve(&tree, &list(&["a"]), &[]).unwrap()), ["b", "a"]);
    }

    #[test]
    fn a_compressed_module_goes_in_unpacked() {
        let (folder, _) = tree(&[("a.ko", "depends=b\0"), ("b.ko", "depends=\0")]);
        let plain = folder.path().join(HOME).join("b.ko");
        let packed = Command::new("xz").arg("-z").arg(&plain).status();
        match packed {
            Ok(status) => assert!(status.success()),
            Err(error) => {
                assert!(std::env::var("CI").as_deref() != Ok("true"), "xz-utils: {error}");
                return println!("not tried: xz (Debian: xz-utils) does not run: {error}");
            }
        }
        assert!(!plain.exists() && plain.with_extension("ko.xz").exists());
        let tree = KernelTree::open(folder.path()).unwrap();
        let resolved = resolve(&tree, &list(&["a"]), &[]).unwrap();
        assert_eq!(names(&resolved), ["b", "a"]);
        assert_eq!(resolved.modules[0].content, module_with("depends=\0"));
    }

    #[test]
    fn a_file_that_is_no_module_is_named() {
        let (folder, tree) = tree(&[("a.ko", "")]);
        folder.file(&format!("{HOME}/a.ko"), "text");
        let error = resolve(&tree, &list(&["a"]), &[]).unwrap_err();
        assert!(error.to_string().contains("kernel/a.ko"), "{error}");
        folder.file(&format!("{HOME}/b.ko.xz"), "no xz either");
        let tree = KernelTree::open(folder.path()).unwrap();
        let error = resolve(&tree, &list(&["b"]), &[]).unwrap_err();
        assert!(error.to_string().contains("b.ko.xz"), "{error}");
    }
}
