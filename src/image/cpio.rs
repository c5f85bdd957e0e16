//! A cpio archive in the kernel's `newc` form (Linux, Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! Deterministic: entries in order of their paths, times and owners zero, inode numbers counted. It writes only
//! what an initramfs of ours needs: folders, files and character devices.

use std::collections::BTreeMap;

const S_IFDIR: u32 = 0o040_000;
const S_IFCHR: u32 = 0o020_000;
const S_IFREG: u32 = 0o100_000;
const TRAILER: &str = "TRAILER!!!";

/// Entries by path without a leading `/`.
#[derive(Debug, Clone, Default)]
pub(super) struct Archive {
    entries: BTreeMap<String, Node>,
}

#[derive(Debug, Clone)]
enum Node {
    Folder,
    File { permissions: u32, content: Vec<u8> },
    Device { permissions: u32, major: u32, minor: u32 },
}

/// A file of 4 GiB or more does not fit the format's 32-bit sizes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} is too large for a cpio archive")]
pub(super) struct TooLargeError {
    path: String,
}

impl Archive {
    /// A folder, and those it lies in.
    pub(super) fn folder(&mut self, path: &str) {
        self.parents(path);
        self.entries.insert(path.to_owned(), Node::Folder);
    }

    /// A file with its permission bits, and the folders it lies in.
    pub(super) fn file(&mut self, path: &str, permissions: u32, content: Vec<u8>) {
        self.parents(path);
        self.entries.insert(path.to_owned(), Node::File { permissions, content });
    }

    /// A character device, and the folders it lies in.
    pub(super) fn device(&mut self, path: &str, permissions: u32, major: u32, minor: u32) {
        self.parents(path);
        self.entries.insert(path.to_owned(), Node::Device { permissions, major, minor });
    }

    fn parents(&mut self, path: &str) {
        for (at, _) in path.match_indices('/') {
            if let Some(parent) = path.get(..at) {
                self.entries.entry(parent.to_owned()).or_insert(Node::Folder);
            }
        }
    }

    /// The archive's bytes, trailer included.
    ///
    /// # Errors
    /// When a file or a path is too large for the format.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, TooLargeError> {
        let mut out = Vec::new();
        for (inode, (path, node)) in (1_u32..).zip(&self.entries) {
            write_entry(&mut out, inode, path, node)?;
        }
        let trailer = Node::File { permissions: 0, content: Vec::new() };
        write_entry(&mut out, 0, TRAILER, &trailer)?;
        Ok(out)
    }
}

fn write_entry(
    out: &mut Vec<u8>,
    inode: u32,
    path: &str,
    node: &Node,
) -> Result<(), TooLargeError> {
    let too_large = |_| TooLargeError { path: path.to_owned() };
    let (mode, links, content, device) = match node {
        Node::Folder => (S_IFDIR | 0o755, 2, &[][..], (0, 0)),
        // The trailer has no mode at all.
        Node::File { content, .. } if path == TRAILER => (0, 1, content.as_slice(), (0, 0)),
        Node::File { permissions, content } => {
            (S_IFREG | permissions, 1, content.as_slice(), (0, 0))
        }
        Node::Device { permissions, major, minor } => {
            (S_IFCHR | permissions, 1, &[][..], (*major, *minor))
        }
    };
    let size = u32::try_from(content.len()).map_err(too_large)?;
    let name_size = u32::try_from(path.len().saturating_add(1)).map_err(too_large)?;
    out.extend(b"070701");
    // inode, mode, uid, gid, nlink, mtime, filesize, dev major/minor, rdev major/minor, namesize, check
    let fields = [inode, mode, 0, 0, links, 0, size, 0, 0, device.0, device.1, name_size, 0];
    for field in fields {
        out.extend(format!("{field:08X}").bytes());
    }
    out.extend(path.bytes());
    out.push(0);
    pad(out);
    out.extend(content);
    pad(out);
    Ok(())
}

/// Header with name, and content, each end at a multiple of four.
fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_bytes_of_the_format() {
        let mut archive = Archive::default();
        archive.file("init", 0o755, b"hello".to_vec());
        // inode, mode, uid, gid, nlink, mtime, size, major, minor, rmajor, rminor, name size, check
        let entry = "00000001 000081ED 00000000 00000000 00000001 00000000 00000005 \
                     00000000 00000000 00000000 00000000 00000005 00000000";
        let trailer = "00000000 00000000 00000000 00000000 00000001 00000000 00000000 \
                       00000000 00000000 00000000 00000000 0000000B 00000000";
        let want = format!(
            "070701{}init\0\0hello\0\0\0070701{}TRAILER!!!\0\0\0\0",
            entry.replace(' ', ""),
            trailer.replace(' ', "")
        );
        let bytes = archive.to_bytes().unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes), want);
    }

    #[test]
    fn paths_are_sorted_and_folders_come_before_what_lies_in_them() {
        let mut archive = Archive::default();
        archive.file("lib/modules/6.1/kernel/a.ko", 0o644, vec![1]);
        archive.device("dev/console", 0o600, 5, 1);
        archive.file("init", 0o755, vec![]);
        archive.folder("dev");
        let text = String::from_utf8_lossy(&archive.to_bytes().unwrap()).into_owned();
        let want = [
            "dev\0",
            "dev/console\0",
            "init\0",
            "lib\0",
            "lib/modules\0",
            "lib/modules/6.1\0",
            "lib/modules/6.1/kernel\0",
            "lib/modules/6.1/kernel/a.ko\0",
            "TRAILER!!!\0",
        ];
        let places: Vec<usize> = want.iter().map(|name| text.find(name).unwrap()).collect();
        assert!(places.is_sorted(), "{places:?}");
        assert!(text.contains("00002180"), "a character device of mode 600");
        assert_eq!(text.len() % 4, 0);
    }

    #[test]
    fn the_same_entries_in_another_order_give_the_same_bytes() {
        let mut one = Archive::default();
        one.file("a/b", 0o644, vec![1]);
        one.file("c", 0o644, vec![2]);
        let mut other = Archive::default();
        other.file("c", 0o644, vec![2]);
        other.file("a/b", 0o644, vec![1]);
        assert_eq!(one.to_bytes().unwrap(), other.to_bytes().unwrap());
    }
}
