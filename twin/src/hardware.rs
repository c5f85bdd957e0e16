//! What sits in a blade: processors, memory, disks, network ports. The sixteen bays of the reference lab.

use model::{
    BayNumber, MacAddr, Uuid,
    agent::{DiskFacts, NicFacts},
};

/// Maker and model every blade tells.
pub const MANUFACTURER: &str = "HP";
/// Product name in SMBIOS type 1.
pub const PRODUCT: &str = "ProLiant BL460c Gen8";

/// A memory module in a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dimm {
    /// Size in MiB.
    pub mib: u16,
    /// Speed in MT/s.
    pub mts: u16,
    /// Ranks.
    pub ranks: u8,
    /// Maker's part number.
    pub part: &'static str,
    /// Serial number.
    pub serial: String,
}

/// A disk in a drive bay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Model, as the drive tells it.
    pub model: &'static str,
    /// Serial number.
    pub serial: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Whether it spins.
    pub rotational: bool,
}

/// One blade's hardware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hardware {
    /// Serial of the blade.
    pub serial: String,
    /// UUID of the blade, in the order people read.
    pub uuid: Uuid,
    /// Processor sockets, all filled.
    pub sockets: u8,
    /// Memory modules, in the order of their slots.
    pub dimms: Vec<Dimm>,
    /// Disks, in the order of their bays.
    pub disks: Vec<Disk>,
    /// Hardware addresses of the two ports; the first one boots.
    pub macs: [MacAddr; 2],
}

/// Size in MiB, speed in MT/s, ranks, part number.
type DimmKind = (u16, u16, u8, &'static str);
/// Model and size in bytes.
type DiskKind = (&'static str, u64);

/// Kinds of memory module of the reference lab (RAM-006 to RAM-010).
const RAM_006: DimmKind = (8192, 1600, 2, "HMT31GR7CFR4C-PB");
const RAM_007: DimmKind = (8192, 1600, 2, "HMT31GR7CFR8C-PB");
const RAM_008: DimmKind = (4096, 1333, 1, "HMT351R7CFR4C-H9");
const RAM_009: DimmKind = (2048, 1333, 2, "HMT125R7TFR8C-H9");
const RAM_010: DimmKind = (2048, 1333, 1, "HMT325R7BFR4C-H9");

/// Kinds of disk of the reference lab (HDD-011 to HDD-014).
const HDD_011: DiskKind = ("EH0146FARWD", 146_815_737_856);
const HDD_012: DiskKind = ("EG0300FAWHV", 300_000_000_000);
const HDD_013: DiskKind = ("EG0900FBLSK", 900_185_481_216);
const HDD_014: DiskKind = ("EG0900FBVFQ", 900_185_481_216);

/// What stands in the lab's books for a bay: modules and disks.
fn books(bay: u8) -> (Vec<DimmKind>, Vec<DiskKind>) {
    match bay {
        1 => (vec![RAM_008], vec![HDD_011; 2]),
        2 => ([vec![RAM_009; 4], vec![RAM_010; 3]].concat(), vec![]),
        3 => (vec![RAM_008; 8], vec![HDD_012; 2]),
        5 => (vec![RAM_008; 2], vec![HDD_011, HDD_012]),
        6 | 10 | 15 => (vec![RAM_008; 2], vec![HDD_012; 2]),
        7 => (vec![RAM_008; 2], vec![HDD_013, HDD_014]),
        8 => (vec![RAM_007; 2], vec![HDD_012; 2]),
        11 | 12 => (vec![RAM_009; 4], vec![HDD_012; 2]),
        13 => (vec![RAM_006; 4], vec![]),
        // 4, 9, 14, 16; and bays the books do not know.
        _ => (vec![RAM_008; 2], vec![]),
    }
}

impl Hardware {
    /// The blade of the reference lab in `bay`. `enclosure` tells the blades of two enclosures apart: it enters
    /// serials and hardware addresses.
    #[must_use]
    pub fn of_bay(enclosure: u8, bay: BayNumber) -> Self {
        let number = bay.get();
        let serial = format!("CZ3{enclosure:03}Y{number:03}");
        let (dimms, disks) = books(number);
        let dimms = dimms.into_iter().enumerate().map(|(slot, (mib, mts, ranks, part))| Dimm {
            mib,
            mts,
            ranks,
            part,
            serial: format!("{enclosure:02X}{number:02X}{slot:04X}"),
        });
        let disks = disks.into_iter().enumerate().map(|(slot, (model, bytes))| Disk {
            model,
            serial: format!("S0K{enclosure:02X}{number:02X}{slot:01}B4F"),
            bytes,
            rotational: true,
        });
        let mac = |port| MacAddr([0x9c, 0x8e, 0x99, enclosure, number, port]);
        Self {
            uuid: uuid_of(&serial),
            dimms: dimms.collect(),
            disks: disks.collect(),
            macs: [mac(1), mac(2)],
            sockets: 2,
            serial,
        }
    }

    /// Memory in KiB as the kernel's `MemTotal` shows it: about 2 % stay with the kernel.
    #[must_use]
    pub fn memory_kib(&self) -> u64 {
        let mib: u64 = self.dimms.iter().map(|dimm| u64::from(dimm.mib)).sum();
        mib * 1024 / 100 * 98
    }

    /// The disks as Linux lists them.
    #[must_use]
    pub fn disk_facts(&self) -> Vec<DiskFacts> {
        let names = ["sda", "sdb", "sdc", "sdd"];
        let facts = |(name, disk): (&str, &Disk)| DiskFacts {
            name: name.to_owned(),
            bytes: disk.bytes,
            model: Some(disk.model.to_owned()),
            serial: Some(disk.serial.clone()),
            rotational: Some(disk.rotational),
        };
        names.into_iter().zip(&self.disks).map(facts).collect()
    }

    /// The ports as Linux lists them: an Emulex 554FLB, linked at 1 Gb/s by the bay's switch.
    #[must_use]
    pub fn nic_facts(&self) -> Vec<NicFacts> {
        let facts = |(name, mac): (&str, &MacAddr)| NicFacts {
            name: name.to_owned(),
            mac: *mac,
            driver: Some("be2net".to_owned()),
            speed_mbit: Some(1000),
            pci: Some("19a2:0710".to_owned()),
        };
        ["eth0", "eth1"].into_iter().zip(&self.macs).map(facts).collect()
    }

    /// `/proc/cpuinfo` of two Xeon E5-2640: six cores and twelve threads each.
    #[must_use]
    pub fn cpuinfo(&self) -> String {
        let mut text = String::new();
        let per_socket = 12;
        for processor in 0..u16::from(self.sockets) * per_socket {
            let (socket, core) = (processor / per_socket, processor % 6);
            text.push_str(&format!(
                "processor\t: {processor}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 45\n\
                 model name\t: {CPU}\nstepping\t: 7\ncpu MHz\t\t: 2500.000\ncache size\t: 15360 KB\n\
                 physical id\t: {socket}\nsiblings\t: 12\ncore id\t\t: {core}\ncpu cores\t: 6\n\
                 flags\t\t: fpu sse sse2 ht syscall nx lm constant_tsc ssse3 sse4_1 sse4_2 x2apic \
                 popcnt aes xsave avx vmx\n\n"
            ));
        }
        text
    }
}

/// The processors' name, as `/proc/cpuinfo` and SMBIOS tell it.
pub const CPU: &str = "Intel(R) Xeon(R) CPU E5-2640 0 @ 2.50GHz";

/// HP makes a blade's UUID of its product number (here 945681) and its serial, as ASCII.
fn uuid_of(serial: &str) -> Uuid {
    let mut bytes = *b"945681CZ30000000";
    let text = serial.as_bytes().iter().copied();
    for (byte, from) in bytes.iter_mut().skip(6).zip(text) {
        *byte = from;
    }
    Uuid(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bays_hold_what_the_books_say() {
        let gib = |bay| {
            let hardware = Hardware::of_bay(0, BayNumber::new(bay).unwrap());
            let mib: u32 = hardware.dimms.iter().map(|dimm| u32::from(dimm.mib)).sum();
            (mib / 1024, hardware.disks.len())
        };
        let want = [
            (1, (4, 2)),
            (2, (14, 0)),
            (3, (32, 2)),
            (4, (8, 0)),
            (5, (8, 2)),
            (8, (16, 2)),
            (11, (8, 2)),
            (13, (32, 0)),
            (16, (8, 0)),
        ];
        for (bay, want) in want {
            assert_eq!(gib(bay), want, "bay {bay}");
        }
    }

    #[test]
    fn no_two_blades_share_an_identity() {
        let mut seen = std::collections::BTreeSet::new();
        for enclosure in [0, 77] {
            for bay in 1..=16 {
                let hardware = Hardware::of_bay(enclosure, BayNumber::new(bay).unwrap());
                assert_eq!(hardware.serial.len(), 10, "HP serials have ten characters");
                assert!(seen.insert(hardware.serial), "serial");
                assert!(seen.insert(hardware.uuid.to_string()), "uuid");
                assert!(hardware.macs.iter().all(|mac| seen.insert(mac.to_string())), "mac");
                assert!(hardware.disks.into_iter().all(|disk| seen.insert(disk.serial)), "disk");
            }
        }
        let third = Hardware::of_bay(0, BayNumber::new(3).unwrap());
        assert_eq!(third.macs[0].to_string(), "9c:8e:99:00:03:01");
        assert_eq!(third.cpuinfo().matches("processor\t").count(), 24);
    }
}
