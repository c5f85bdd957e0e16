//! What the machine is made of, as procfs and sysfs tell it. Every function takes the root folder, so that tests
//! run on a made tree; nothing is written, and what cannot be read is absent rather than wrong.

mod disks;
mod nics;

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

use model::agent::Report;

pub(crate) use disks::disk_names;
pub(crate) use nics::ethernet_names;

/// Largest file taken over: a `cpuinfo` of 512 threads has some 800 KB, SMBIOS tables some tens.
const LARGEST_FILE: u64 = 1 << 20;

/// The whole report for the claim with `nonce`.
pub(crate) fn report(root: &Path, nonce: &str) -> Report {
    let tables = root.join("sys/firmware/dmi/tables");
    Report {
        nonce: nonce.to_owned(),
        dmi: model::hex::encode(&bytes(&tables.join("DMI"))),
        dmi_entry: model::hex::encode(&bytes(&tables.join("smbios_entry_point"))),
        cpuinfo: String::from_utf8_lossy(&bytes(&root.join("proc/cpuinfo"))).into_owned(),
        memory_kib: memory_kib(&text(&root.join("proc/meminfo")).unwrap_or_default()),
        efi: root.join("sys/firmware/efi").is_dir(),
        kernel: text(&root.join("proc/sys/kernel/osrelease")).unwrap_or_default(),
        disks: disks::collect(root),
        nics: nics::collect(root),
    }
}

/// `MemTotal` of a `/proc/meminfo` (proc_meminfo(5)), in KiB; 0 where it is not told.
fn memory_kib(meminfo: &str) -> u64 {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let number = total.and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

/// The bytes of a file, at most [`LARGEST_FILE`]; none where it cannot be read.
fn bytes(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Ok(file) = File::open(path) else { return bytes };
    match file.take(LARGEST_FILE).read_to_end(&mut bytes) {
        Ok(_) => bytes,
        // sysfs answers EINVAL for, say, the speed of an interface that is down.
        Err(_) => Vec::new(),
    }
}

/// The text of a sysfs attribute without blanks around it; `None` where it is empty or cannot be read.
pub(crate) fn text(path: &Path) -> Option<String> {
    let bytes = bytes(path);
    trimmed(&bytes)
}

/// Printable text of bytes that firmware filled: NULs and blanks around it go.
fn trimmed(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

/// Names in a folder, sorted; none where it is not there.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The last part of where a symbolic link points.
fn link_name(path: &Path) -> Option<String> {
    Some(fs::read_link(path).ok()?.file_name()?.to_str()?.to_owned())
}

/// A made procfs and sysfs.
#[cfg(test)]
pub(crate) mod fake {
    use std::{
        env, fs,
        os::unix::fs::symlink,
        path::{Path, PathBuf},
        process,
        sync::atomic::{AtomicU32, Ordering},
    };

    static NEXT: AtomicU32 = AtomicU32::new(0);

    /// A folder that goes when the test ends.
    pub(crate) struct Tree(PathBuf);

    impl Tree {
        pub(crate) fn new() -> Self {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let root = env::temp_dir().join(format!("volund-agent-{}-{number}", process::id()));
            fs::create_dir_all(&root).unwrap();
            Self(root)
        }

        pub(crate) fn root(&self) -> &Path {
            &self.0
        }

        pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        /// A link at `path` to `to`, which is made as a folder below the root.
        pub(crate) fn link(&self, path: &str, to: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::create_dir_all(self.0.join(to)).unwrap();
            symlink(self.0.join(to), path).unwrap();
        }

        /// An Ethernet interface with a device.
        pub(crate) fn nic(&self, name: &str, mac: &str, index: &str) {
            let folder = format!("sys/class/net/{name}");
            self.file(&format!("{folder}/type"), "1\n");
            self.file(&format!("{folder}/address"), format!("{mac}\n"));
            self.file(&format!("{folder}/ifindex"), format!("{index}\n"));
            self.link(&format!("{folder}/device"), &format!("sys/devices/pci0/{name}"));
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _left_behind = fs::remove_dir_all(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_holds_the_machine_of_a_tree() {
        let tree = fake::Tree::new();
        tree.file("sys/firmware/dmi/tables/DMI", [1, 27, 0, 1]);
        tree.file("sys/firmware/dmi/tables/smbios_entry_point", b"_SM3_");
        tree.file("proc/cpuinfo", "processor\t: 0\nmodel name\t: Xeon\n");
        tree.file("proc/meminfo", "MemTotal:       65807268 kB\nMemFree: 1 kB\n");
        tree.file("proc/sys/kernel/osrelease", "6.1.0-57-amd64\n");
        tree.file("sys/firmware/efi/runtime", "0x1");
        let report = report(tree.root(), "n1");
        assert_eq!((report.dmi.as_str(), report.dmi_entry.as_str()), ("011b0001", "5f534d335f"));
        assert_eq!(report.cpuinfo, "processor\t: 0\nmodel name\t: Xeon\n");
        assert_eq!((report.memory_kib, report.efi), (65_807_268, true));
        assert_eq!((report.kernel.as_str(), report.nonce.as_str()), ("6.1.0-57-amd64", "n1"));
    }

    #[test]
    fn an_empty_tree_gives_an_empty_report_and_no_panic() {
        let report = report(Path::new("/nonexistent"), "n1");
        assert_eq!((report.dmi.len(), report.memory_kib, report.efi), (0, 0, false));
        assert!(report.disks.is_empty() && report.nics.is_empty());
    }

    #[test]
    fn odd_memory_lines_are_zero() {
        for text in ["", "MemTotal:", "MemTotal: many kB", "MemTotal: -1 kB", "XMemTotal: 5 kB"] {
            assert_eq!(memory_kib(text), 0, "{text}");
        }
    }
}
