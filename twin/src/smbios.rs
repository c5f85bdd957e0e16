//! A raw SMBIOS 2.7 table and its entry point, as a BL460c's firmware leaves them in memory (DMTF DSP0134).

use crate::hardware::{CPU, Dimm, Hardware, MANUFACTURER, PRODUCT};

/// DIMM slots of a BL460c Gen8: eight a socket.
const SLOTS: u8 = 16;

/// Handles, by type and number.
const BIOS: u16 = 0x0000;
const SYSTEM: u16 = 0x0100;
const BOARD: u16 = 0x0200;
const CHASSIS: u16 = 0x0300;
const PROCESSOR: u16 = 0x0400;
const MEMORY_ARRAY: u16 = 0x1000;
const MEMORY_DEVICE: u16 = 0x1100;
const END: u16 = 0xfeff;

/// A structure in the making: its formatted area and its strings.
struct Structure {
    kind: u8,
    handle: u16,
    formatted: Vec<u8>,
    strings: Vec<String>,
}

impl Structure {
    fn new(kind: u8, handle: u16) -> Self {
        Self { kind, handle, formatted: Vec::new(), strings: Vec::new() }
    }

    fn byte(mut self, value: u8) -> Self {
        self.formatted.push(value);
        self
    }

    fn word(mut self, value: u16) -> Self {
        self.formatted.extend(value.to_le_bytes());
        self
    }

    fn bytes(mut self, values: &[u8]) -> Self {
        self.formatted.extend(values);
        self
    }

    /// A string reference; strings are numbered from 1, and 0 means none. Ours are few.
    fn string(mut self, text: &str) -> Self {
        self.strings.push(text.to_owned());
        let number = u8::try_from(self.strings.len()).unwrap_or(0);
        self.byte(number)
    }

    /// Header, formatted area, strings, two zeros (section 6.1.2).
    fn write(&self, table: &mut Vec<u8>) {
        let length = u8::try_from(self.formatted.len() + 4).unwrap_or(u8::MAX);
        table.extend([self.kind, length]);
        table.extend(self.handle.to_le_bytes());
        table.extend(&self.formatted);
        for text in &self.strings {
            table.extend(text.bytes().filter(|byte| *byte != 0));
            table.push(0);
        }
        if self.strings.is_empty() {
            table.push(0);
        }
        table.push(0);
    }
}

/// The structure table and the 31 bytes of the 2.1 entry point.
#[must_use]
pub fn build(hardware: &Hardware) -> (Vec<u8>, Vec<u8>) {
    let mut structures = vec![bios(), system(hardware), board(hardware), chassis(hardware)];
    structures.extend((1..=hardware.sockets).map(processor));
    structures.push(memory_array());
    structures.extend((0..SLOTS).map(|slot| {
        let dimm = hardware.dimms.get(usize::from(slot));
        memory_device(slot, dimm)
    }));
    structures.push(Structure::new(127, END));
    let mut table = Vec::new();
    let mut largest = 0;
    for structure in &structures {
        let before = table.len();
        structure.write(&mut table);
        largest = largest.max(table.len() - before);
    }
    let entry = entry_point(table.len(), largest, structures.len());
    (table, entry)
}

/// Type 0.
fn bios() -> Structure {
    Structure::new(0, BIOS)
        .string(MANUFACTURER)
        .string("I31")
        .word(0xf000)
        .string("06/01/2015")
        // 8 MiB ROM: 64 KiB times (127 + 1).
        .byte(127)
        // PCI, plug and play, upgradeable, boot from CD, selectable boot.
        .bytes(&0x0001_9a80_u64.to_le_bytes())
        // ACPI; BIOS boot specification, network boot by function key.
        .bytes(&[0x01, 0x03])
        // BIOS release, controller firmware release (iLO 4 2.55).
        .bytes(&[0xff, 0xff, 2, 55])
}

/// Type 1.
fn system(hardware: &Hardware) -> Structure {
    Structure::new(1, SYSTEM)
        .string(MANUFACTURER)
        .string(PRODUCT)
        .byte(0)
        .string(&hardware.serial)
        .bytes(&hardware.uuid.swapped().0)
        // Woken by the power switch.
        .byte(6)
        .string("641016-B21")
        .string("ProLiant")
}

/// Type 2.
fn board(hardware: &Hardware) -> Structure {
    Structure::new(2, BOARD)
        .string(MANUFACTURER)
        .string(PRODUCT)
        .byte(0)
        .string(&hardware.serial)
        .byte(0)
        // Hosting board, replaceable.
        .byte(0x09)
        .byte(0)
        .word(CHASSIS)
        // Server blade.
        .byte(0x03)
        .byte(0)
}

/// Type 3.
fn chassis(hardware: &Hardware) -> Structure {
    Structure::new(3, CHASSIS)
        .string(MANUFACTURER)
        // Blade.
        .byte(0x1c)
        .byte(0)
        .string(&hardware.serial)
        .byte(0)
        // Boot-up, power supply and thermal state safe; no security.
        .bytes(&[3; 4])
        .bytes(&[0; 4])
        // One unit, cords not told, no contained elements.
        .bytes(&[1, 0, 0, 0])
}

/// Type 4, one a socket.
fn processor(socket: u8) -> Structure {
    let handle = PROCESSOR + u16::from(socket - 1);
    Structure::new(4, handle)
        .string(&format!("Proc {socket}"))
        // Central processor, Xeon.
        .bytes(&[3, 0xb3])
        .string("Intel")
        // CPUID signature 0x206d7 and feature flags.
        .bytes(&[0xd7, 0x06, 0x02, 0x00, 0xff, 0xfb, 0xeb, 0xbf])
        .string(CPU)
        // 1.1 V, external clock 100 MHz, at most 4800 MHz, now 2500 MHz.
        .byte(0x80 | 11)
        .word(100)
        .word(4800)
        .word(2500)
        // Socket filled, enabled; LGA2011.
        .bytes(&[0x41, 0x26])
        // No cache handles.
        .word(0xffff)
        .word(0xffff)
        .word(0xffff)
        .bytes(&[0, 0, 0])
        // Six cores, six enabled, twelve threads; 64-bit, multi-core, hardware threads.
        .bytes(&[6, 6, 12])
        .word(0x00fc)
        .word(0xb3)
}

/// Type 16: system memory on the board, multi-bit ECC, 512 GiB at most.
fn memory_array() -> Structure {
    Structure::new(16, MEMORY_ARRAY)
        .bytes(&[3, 3, 6])
        .bytes(&(512_u32 * 1024 * 1024).to_le_bytes())
        .word(0xfffe)
        .word(u16::from(SLOTS))
}

/// Type 17, one a slot, filled or not.
fn memory_device(slot: u8, dimm: Option<&Dimm>) -> Structure {
    let (socket, place) = (slot / 8 + 1, slot % 8 + 1);
    let handle = MEMORY_DEVICE + u16::from(slot);
    let width = if dimm.is_some() { (72, 64) } else { (0xffff, 0xffff) };
    let device = Structure::new(17, handle)
        .word(MEMORY_ARRAY)
        .word(0xfffe)
        .word(width.0)
        .word(width.1)
        .word(dimm.map_or(0, |dimm| dimm.mib))
        // DIMM, of no set.
        .bytes(&[9, 0])
        .string(&format!("PROC  {socket} DIMM  {place}"))
        .byte(0);
    // DDR3, or of unknown type in an empty slot; registered.
    let device = match dimm {
        Some(dimm) => device.byte(24).word(0x2000).word(dimm.mts),
        None => device.byte(2).word(0x0004).word(0),
    };
    let device = match dimm {
        Some(dimm) => device.string("HYNIX").string(&dimm.serial).byte(0).string(dimm.part),
        None => device.bytes(&[0; 4]),
    };
    let (ranks, speed) = dimm.map_or((0, 0), |dimm| (dimm.ranks, dimm.mts));
    device.byte(ranks).bytes(&[0; 4]).word(speed)
}

/// The 32-bit entry point (section 5.2.1); sizes beyond a word cannot come up with sixteen slots.
fn entry_point(length: usize, largest: usize, count: usize) -> Vec<u8> {
    let word = |value: usize| u16::try_from(value).unwrap_or(u16::MAX).to_le_bytes();
    let mut inner = b"_DMI_\0".to_vec();
    inner.extend(word(length));
    // Where BIOSes like to put it.
    inner.extend(0x000e_9000_u32.to_le_bytes());
    inner.extend(word(count));
    inner.push(0x27);
    seal(&mut inner, 5);
    let mut entry = b"_SM_\0\x1f\x02\x07".to_vec();
    entry.extend(word(largest));
    entry.extend([0; 6]);
    entry.extend(inner);
    seal(&mut entry, 4);
    entry
}

/// Puts the byte at `at` that makes the sum zero.
fn seal(bytes: &mut [u8], at: usize) {
    let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    if let Some(place) = bytes.get_mut(at) {
        *place = sum.wrapping_neg();
    }
}

#[cfg(test)]
mod tests {
    use model::BayNumber;

    use super::*;

    fn third_bay() -> Hardware {
        Hardware::of_bay(0, BayNumber::new(3).unwrap())
    }

    /// (type, formatted area with header, strings), read by the rules of section 6.1.
    fn walk(mut table: &[u8]) -> Vec<(u8, Vec<u8>, Vec<String>)> {
        let mut found = Vec::new();
        while let [kind, length, ..] = *table {
            let (formatted, rest) = table.split_at(usize::from(length));
            let end = rest.windows(2).position(|pair| pair == [0, 0]).unwrap();
            let strings = rest[..end].split(|byte| *byte == 0).filter(|text| !text.is_empty());
            let strings = strings.map(|text| String::from_utf8(text.to_vec()).unwrap()).collect();
            found.push((kind, formatted.to_vec(), strings));
            table = &rest[end + 2..];
        }
        found
    }

    #[test]
    fn the_table_holds_the_blade_by_the_letter_of_the_standard() {
        let (table, _) = build(&third_bay());
        let found = walk(&table);
        let kinds: Vec<u8> = found.iter().map(|(kind, ..)| *kind).collect();
        let mut want = vec![0, 1, 2, 3, 4, 4, 16];
        want.extend([17; 16]);
        want.push(127);
        assert_eq!(kinds, want);
        // Lengths the standard gives for 2.7: types 0, 1, 4, 16, 17.
        let lengths: Vec<usize> = [0, 1, 4, 6, 7].iter().map(|&n| found[n].1.len()).collect();
        assert_eq!(lengths, [0x18, 0x1b, 0x2a, 0x0f, 0x22]);
        let (_, system, strings) = &found[1];
        assert_eq!(strings[2], third_bay().serial);
        let uuid: [u8; 16] = system[8..24].try_into().unwrap();
        assert_eq!(model::Uuid::from_smbios(uuid), third_bay().uuid);
        let sizes: Vec<u16> = found[7..23]
            .iter()
            .map(|(_, bytes, _)| u16::from_le_bytes([bytes[12], bytes[13]]))
            .collect();
        assert_eq!(sizes.iter().filter(|&&mib| mib == 4096).count(), 8);
        assert_eq!(sizes.iter().filter(|&&mib| mib == 0).count(), 8);
    }

    #[test]
    fn the_entry_point_adds_up() {
        let (table, entry) = build(&third_bay());
        let sum = |bytes: &[u8]| bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        assert_eq!((entry.len(), sum(&entry), sum(&entry[16..])), (31, 0, 0));
        assert_eq!(usize::from(u16::from_le_bytes([entry[22], entry[23]])), table.len());
    }

    /// dmidecode is a reader we did not write. Its dumps hold the entry point, then the table at byte 32.
    #[test]
    fn dmidecode_reads_the_table_without_complaint() {
        let (table, mut entry) = build(&third_bay());
        entry[24..28].copy_from_slice(&32_u32.to_le_bytes());
        (entry[4], entry[21]) = (0, 0);
        let sum = |bytes: &[u8]| bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        entry[21] = sum(&entry[16..]).wrapping_neg();
        entry[4] = sum(&entry).wrapping_neg();
        entry.resize(32, 0);
        entry.extend(table);
        let path = std::env::temp_dir().join(format!("volund-dmi-{}", std::process::id()));
        std::fs::write(&path, entry).unwrap();
        let mut command = std::process::Command::new("dmidecode");
        let ran =
            command.arg("--from-dump").arg(&path).env("PATH", "/usr/sbin:/usr/bin:/bin").output();
        std::fs::remove_file(&path).unwrap();
        let Ok(ran) = ran else {
            let why = "dmidecode is not installed: the table was not checked by a foreign reader";
            assert!(std::env::var_os("CI").is_none(), "{why}");
            println!("{why}");
            return;
        };
        let said = String::from_utf8(ran.stdout).unwrap();
        for line in [
            "SMBIOS 2.7 present.",
            "Product Name: ProLiant BL460c Gen8",
            "Serial Number: CZ3000Y003",
            "UUID: 39343536-3831-435a-3330-303059303033",
            "Version: Intel(R) Xeon(R) CPU E5-2640 0 @ 2.50GHz",
            "Upgrade: Socket LGA2011",
            "Thread Count: 12",
            "Number Of Devices: 16",
            "Size: 4 GB",
            "Size: No Module Installed",
            "Locator: PROC  2 DIMM  8",
            "Configured Memory Speed: 1333 MT/s",
            "End Of Table",
        ] {
            assert!(said.contains(line), "no {line:?} in\n{said}");
        }
        for complaint in ["<BAD INDEX>", "<OUT OF SPEC>", "Wrong DMI", "Invalid entry"] {
            assert!(!said.contains(complaint), "{complaint} in\n{said}");
        }
    }
}
