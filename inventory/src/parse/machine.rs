//! What SMBIOS structures mean: types 0 (firmware), 1 (system), 2 (board), 3 (chassis), 4 (processor),
//! 16 (memory array), 17 (memory device). Section numbers are of DSP0134.

use model::Uuid;

use super::{
    Dimm, Facts, Part, Processor,
    smbios::{Structure, Table, Version},
    text,
    warnings::Warnings,
};

/// Reads everything known out of `table` into `facts`.
pub(super) fn read(table: &Table, facts: &mut Facts, warnings: &mut Warnings) {
    facts.firmware = table.of_kind(0).next().and_then(firmware);
    match table.of_kind(1).next() {
        Some(system) => read_system(system, table.version, facts, warnings),
        None => warnings.add("the SMBIOS table has no system information (type 1)"),
    }
    facts.board = table.of_kind(2).next().and_then(|board| part(board, Some(5)));
    facts.chassis = table.of_kind(3).next().and_then(|chassis| part(chassis, None));
    facts.processors = table.of_kind(4).filter_map(processor).collect();
    facts.dimms = dimms(table, warnings);
}

/// Type 0 (7.1): version and release date; some makers only count the date up.
fn firmware(structure: &Structure) -> Option<String> {
    let version = structure.text(5)?;
    Some(match structure.text(8) {
        Some(date) => format!("{version} ({date})"),
        None => version,
    })
}

/// Type 1 (7.2).
fn read_system(system: &Structure, version: Version, facts: &mut Facts, warnings: &mut Warnings) {
    facts.product = match (system.text(4), system.text(5)) {
        (Some(maker), Some(product)) if !product.starts_with(&maker) => {
            Some(format!("{maker} {product}"))
        }
        (_, Some(product)) => Some(product),
        (maker, None) => maker,
    };
    facts.serial = system.string(7).and_then(text::serial);
    if facts.serial.is_none() {
        warnings.add("the firmware gives no system serial");
    }
    facts.uuid = system.array(8).map(|bytes| uuid(bytes, version)).filter(|uuid| !uuid.is_junk());
    if facts.uuid.is_none() {
        warnings.add("the firmware gives no system UUID");
    }
}

/// Since 2.6 the first three fields are little-endian (7.2.1); before, nobody had said so and makers sent them
/// as people read them.
fn uuid(bytes: [u8; 16], version: Version) -> Uuid {
    if version >= (2, 6) { Uuid::from_smbios(bytes) } else { Uuid(bytes) }
}

/// Type 2 (7.3) has its product at offset 5, type 3 (7.4) has none; maker and serial stand alike.
fn part(structure: &Structure, product: Option<usize>) -> Option<Part> {
    let part = Part {
        manufacturer: structure.text(4),
        product: product.and_then(|offset| structure.text(offset)),
        serial: structure.string(7).and_then(text::serial),
    };
    let empty = part.manufacturer.is_none() && part.product.is_none() && part.serial.is_none();
    (!empty).then_some(part)
}

/// Type 4 (7.5); `None` for an empty socket.
fn processor(structure: &Structure) -> Option<Processor> {
    const CENTRAL: u8 = 3;
    const POPULATED: u8 = 1 << 6;
    if structure.byte(5)? != CENTRAL || structure.byte(0x18)? & POPULATED == 0 {
        return None;
    }
    Some(Processor {
        socket: structure.text(4).unwrap_or_else(|| "unnamed".to_owned()),
        model: structure.text(0x10),
        cores: count(structure, 0x23, 0x2a),
        threads: count(structure, 0x25, 0x2e),
    })
}

/// A count of one byte, where 255 means: see the wide one (3.0), and 0 means: unknown.
fn count(structure: &Structure, narrow: usize, wide: usize) -> Option<u32> {
    match structure.byte(narrow)? {
        0 => None,
        u8::MAX => match structure.word(wide) {
            Some(0 | u16::MAX) | None => Some(u32::from(u8::MAX)),
            Some(number) => Some(u32::from(number)),
        },
        number => Some(u32::from(number)),
    }
}

/// The memory devices of arrays that are system memory (16, 7.17): flash and caches have arrays as well.
fn dimms(table: &Table, warnings: &mut Warnings) -> Vec<Dimm> {
    const SYSTEM_MEMORY: u8 = 3;
    let foreign: Vec<u16> = table
        .of_kind(16)
        .filter(|array| array.byte(5).is_some_and(|purpose| purpose != SYSTEM_MEMORY))
        .map(|array| array.handle)
        .collect();
    table
        .of_kind(17)
        .filter(|device| device.word(4).is_none_or(|array| !foreign.contains(&array)))
        .map(|device| dimm(device, warnings))
        .collect()
}

/// Type 17 (7.18).
fn dimm(device: &Structure, warnings: &mut Warnings) -> Dimm {
    let slot = device.text(0x10).unwrap_or_else(|| format!("{:#06x}", device.handle));
    let mib = match size_mib(device) {
        Size::Empty => return Dimm { slot, mib: None, part: None, serial: None },
        Size::Mib(mib) => Some(mib),
        Size::Unknown => {
            warnings.add(format!("the firmware does not know the size of memory module {slot}"));
            None
        }
    };
    let serial = device.string(0x18).and_then(text::serial);
    Dimm { slot, mib, part: device.text(0x1a), serial }
}

enum Size {
    Empty,
    Unknown,
    Mib(u64),
}

/// Size (offset 0x0c): 0 is empty, 0xFFFF unknown, 0x7FFF means the extended size (7.18.5); bit 15 set means
/// KiB, clear MiB.
fn size_mib(device: &Structure) -> Size {
    const KIB: u16 = 1 << 15;
    match device.word(0x0c) {
        None | Some(u16::MAX) => Size::Unknown,
        Some(0) => Size::Empty,
        Some(0x7fff) => device
            .dword(0x1c)
            .map_or(Size::Unknown, |size| Size::Mib(u64::from(size & 0x7fff_ffff))),
        Some(size) if size & KIB != 0 => Size::Mib(u64::from(size & !KIB) / 1_024),
        Some(size) => Size::Mib(u64::from(size)),
    }
}
