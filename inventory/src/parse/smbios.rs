//! The raw SMBIOS structure table (DMTF DSP0134): cut into structures, fields by offset. No meaning here.

use model::agent::Report;

use super::{text, warnings::Warnings};

/// Longest table looked at; real ones have some kilobytes.
const MOST_BYTES: usize = 1 << 20;
/// Most structures looked at; large servers have some hundreds.
const MOST_STRUCTURES: usize = 8_192;
/// The structure that ends a table (section 7.45).
const END_OF_TABLE: u8 = 127;

/// Version of the specification a table follows, major and minor.
pub(super) type Version = (u8, u8);

/// A table cut into structures.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) version: Version,
    pub(super) structures: Vec<Structure>,
}

/// One structure: its formatted area, header included, and its strings (section 6.1).
#[derive(Debug)]
pub(super) struct Structure {
    pub(super) kind: u8,
    pub(super) handle: u16,
    formatted: Vec<u8>,
    strings: Vec<Vec<u8>>,
}

impl Table {
    /// The table of a report; `None` with a warning when there is none to read.
    pub(super) fn from_report(report: &Report, warnings: &mut Warnings) -> Option<Self> {
        if report.dmi.is_empty() {
            warnings.add("the firmware gave no SMBIOS table");
            return None;
        }
        if report.dmi.len() > MOST_BYTES * 2 {
            warnings.add("the SMBIOS table is longer than 1 MiB and was not read");
            return None;
        }
        let Ok(bytes) = model::hex::decode(&report.dmi) else {
            warnings.add("the SMBIOS table was not sent as hexadecimal digits");
            return None;
        };
        let entry = model::hex::decode(report.dmi_entry.get(..256).unwrap_or(&report.dmi_entry));
        let version = version(&entry.unwrap_or_default()).unwrap_or_else(|| {
            warnings.add("the SMBIOS entry point cannot be read; version 2.6 or newer is assumed");
            (2, 6)
        });
        Some(Self { version, structures: cut(&bytes, warnings) })
    }

    /// All structures of one kind, in order.
    pub(super) fn of_kind(&self, kind: u8) -> impl Iterator<Item = &Structure> {
        self.structures.iter().filter(move |structure| structure.kind == kind)
    }
}

/// The version an entry point names: `_SM_` (section 5.2.1) or `_SM3_` (section 5.2.2).
fn version(entry: &[u8]) -> Option<Version> {
    let at = if entry.starts_with(b"_SM3_") {
        7
    } else if entry.starts_with(b"_SM_") {
        6
    } else {
        return None;
    };
    Some((*entry.get(at)?, *entry.get(at + 1)?))
}

fn cut(mut rest: &[u8], warnings: &mut Warnings) -> Vec<Structure> {
    let whole = rest.len();
    let mut structures = Vec::new();
    while !rest.is_empty() {
        let at = whole.saturating_sub(rest.len());
        let Some((structure, after)) = Structure::split(rest) else {
            warnings.add(format!("the SMBIOS table is damaged from byte {at} of {whole} on"));
            break;
        };
        rest = after;
        if structure.kind == END_OF_TABLE {
            break;
        }
        structures.push(structure);
        if structures.len() == MOST_STRUCTURES {
            warnings.add(format!("only the first {MOST_STRUCTURES} SMBIOS structures were read"));
            break;
        }
    }
    structures
}

impl Structure {
    /// The structure `bytes` begin with, and what follows it.
    fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&[kind, length, low, high], _) = bytes.split_first_chunk()?;
        let (formatted, tail) = bytes.split_at_checked(usize::from(length).max(4))?;
        if length < 4 {
            return None;
        }
        let (strings, rest) = strings(tail)?;
        let handle = u16::from_le_bytes([low, high]);
        Some((Self { kind, handle, formatted: formatted.to_vec(), strings }, rest))
    }

    pub(super) fn byte(&self, offset: usize) -> Option<u8> {
        self.formatted.get(offset).copied()
    }

    pub(super) fn word(&self, offset: usize) -> Option<u16> {
        self.array(offset).map(u16::from_le_bytes)
    }

    pub(super) fn dword(&self, offset: usize) -> Option<u32> {
        self.array(offset).map(u32::from_le_bytes)
    }

    pub(super) fn array<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.formatted.get(offset..)?.first_chunk().copied()
    }

    /// The bytes of the string whose number stands at `offset`; 0 means none (section 6.1.3).
    pub(super) fn string(&self, offset: usize) -> Option<&[u8]> {
        let index = usize::from(self.byte(offset)?).checked_sub(1)?;
        self.strings.get(index).map(Vec::as_slice)
    }

    /// The string at `offset` as shown to people.
    pub(super) fn text(&self, offset: usize) -> Option<String> {
        self.string(offset).and_then(text::product)
    }
}

/// The strings before the double zero that ends a structure, and what follows it.
fn strings(tail: &[u8]) -> Option<(Vec<Vec<u8>>, &[u8])> {
    if let Some(rest) = tail.strip_prefix(&[0, 0]) {
        return Some((Vec::new(), rest));
    }
    let mut strings = Vec::new();
    let mut rest = tail;
    loop {
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (string, after) = rest.split_at_checked(end)?;
        rest = after.get(1..)?;
        if string.is_empty() {
            return Some((strings, rest));
        }
        strings.push(string.to_vec());
    }
}
