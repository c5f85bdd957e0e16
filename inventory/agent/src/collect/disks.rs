//! Disks out of `/sys/block`.

use std::path::Path;

use model::agent::DiskFacts;

use super::{bytes, names, text, trimmed};

/// The kernel counts sizes in these, whatever the disk's own sectors are.
const SECTOR: u64 = 512;
/// Block devices that are no disks: made of memory, files or other disks, or optical and floppy drives.
const NO_DISKS: [&str; 9] = ["loop", "ram", "zram", "sr", "fd", "dm-", "md", "nbd", "mtdblock"];

/// Names of the disks there are now, sorted.
pub(crate) fn disk_names(root: &Path) -> Vec<String> {
    let mut disks = names(&root.join("sys/block"));
    disks.retain(|name| !NO_DISKS.iter().any(|prefix| name.starts_with(prefix)));
    disks
}

/// Every disk with a medium in it.
pub(super) fn collect(root: &Path) -> Vec<DiskFacts> {
    let disks = disk_names(root).into_iter().filter_map(|name| one(root, name));
    // An empty card reader or a BMC's virtual drive without an image has size 0.
    disks.filter(|disk| disk.bytes > 0).collect()
}

fn one(root: &Path, name: String) -> Option<DiskFacts> {
    let folder = root.join("sys/block").join(&name);
    let sectors: u64 = text(&folder.join("size"))?.parse().ok()?;
    let rotational = match text(&folder.join("queue/rotational")).as_deref() {
        Some("1") => Some(true),
        Some("0") => Some(false),
        _ => None,
    };
    Some(DiskFacts {
        bytes: sectors.saturating_mul(SECTOR),
        model: text(&folder.join("device/model")),
        serial: serial(&folder),
        rotational,
        name,
    })
}

/// The serial as the label has it where any source tells it: virtio-blk, NVMe, SCSI page 80h; else what the world-wide
/// identifier holds.
fn serial(folder: &Path) -> Option<String> {
    text(&folder.join("serial"))
        .or_else(|| text(&folder.join("device/serial")))
        .or_else(|| unit_serial(&bytes(&folder.join("device/vpd_pg80"))))
        .or_else(|| from_wwid(&text(&folder.join("device/wwid"))?))
}

/// SPC-4, 7.8.18, Unit Serial Number page: two bytes, page 80h at byte 1, length at 2..4, then ASCII.
fn unit_serial(page: &[u8]) -> Option<String> {
    let (head, rest) = page.split_first_chunk::<4>()?;
    let [_, 0x80, high, low] = *head else { return None };
    let length = usize::from(u16::from_be_bytes([high, low])).min(rest.len());
    trimmed(rest.get(..length)?)
}

/// SAT-3, 12.4.2.4: the T10 identifier of an ATA disk is `ATA` in 8 bytes, the model in 40, the serial in 20. Any
/// other identifier (`naa.…`, `eui.…`) is given whole: it is unique, and cannot be taken for a label.
fn from_wwid(wwid: &str) -> Option<String> {
    match wwid.strip_prefix("t10.ATA") {
        Some(rest) => trimmed(rest.split_ascii_whitespace().last()?.as_bytes()),
        None => Some(wwid.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::collect::fake::Tree;

    #[test]
    fn disks_of_each_kind_tell_size_model_and_serial() {
        let tree = Tree::new();
        tree.file("sys/block/vda/size", "2097152\n");
        tree.file("sys/block/vda/serial", "VOL-0001");
        tree.file("sys/block/vda/queue/rotational", "1\n");
        tree.file("sys/block/sda/size", "585937500\n");
        tree.file("sys/block/sda/device/model", "EG0300FBVFL     \n");
        tree.file("sys/block/sda/device/vpd_pg80", b"\x00\x80\x00\x14    PPWAS8RG        rest");
        tree.file("sys/block/sda/queue/rotational", "1\n");
        tree.file("sys/block/nvme0n1/size", "1000215216\n");
        tree.file("sys/block/nvme0n1/device/model", "SAMSUNG MZVLB512\n");
        tree.file("sys/block/nvme0n1/device/serial", "S4GENX0N      \n");
        tree.file("sys/block/nvme0n1/queue/rotational", "0\n");
        let disk = |name: &str, bytes, model: Option<&str>, serial: &str, spins| DiskFacts {
            name: name.into(),
            bytes,
            model: model.map(Into::into),
            serial: Some(serial.into()),
            rotational: Some(spins),
        };
        let want = [
            disk("nvme0n1", 512_110_190_592, Some("SAMSUNG MZVLB512"), "S4GENX0N", false),
            disk("sda", 300_000_000_000, Some("EG0300FBVFL"), "PPWAS8RG", true),
            disk("vda", 1_073_741_824, None, "VOL-0001", true),
        ];
        assert_eq!(collect(tree.root()), want);
    }

    #[test]
    fn what_is_no_disk_or_has_no_medium_is_left_out() {
        let tree = Tree::new();
        for name in ["loop0", "ram1", "zram0", "sr0", "fd0", "dm-0", "md127", "sdb"] {
            tree.file(&format!("sys/block/{name}/size"), if name == "sdb" { "0\n" } else { "8\n" });
        }
        tree.file("sys/block/sdc/size", "no number\n");
        assert_eq!(collect(tree.root()), []);
    }

    #[test]
    fn a_serial_is_taken_out_of_the_identifier_where_nothing_else_tells_it() {
        let model = "QEMU HARDDISK";
        let cases = [
            (format!("t10.ATA     {model:40}{:20}", "QM00005"), Some("QM00005")),
            ("naa.600508b1001c4d2f".to_owned(), Some("naa.600508b1001c4d2f")),
            ("t10.ATA     ".to_owned(), None),
        ];
        for (wwid, want) in cases {
            assert_eq!(from_wwid(&wwid).as_deref(), want, "{wwid}");
        }
    }

    proptest! {
        #[test]
        fn no_page_and_no_identifier_makes_it_panic(page: Vec<u8>, wwid: String) {
            let _outcome = unit_serial(&page);
            let _outcome = from_wwid(&wwid);
        }
    }
}
