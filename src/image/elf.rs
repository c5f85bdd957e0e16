//! As much of ELF-64 (System V ABI, little-endian) as an image needs: what a kernel module says of itself, and
//! whether a program is static.

use std::ops::Range;

const MAGIC: &[u8] = b"\x7fELF\x02\x01";
const PT_INTERP: u32 = 3;

/// What a kernel module's `.modinfo` section says, as far as loading it goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ModInfo {
    /// Modules whose symbols it uses.
    pub(super) depends: Vec<String>,
    /// Modules or aliases to be loaded before it if they exist (`softdep=pre:`).
    pub(super) before: Vec<String>,
    /// Firmware it may ask for, as paths below `/lib/firmware`.
    pub(super) firmware: Vec<String>,
}

/// The bytes are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ElfError {
    #[error("it is no little-endian 64-bit ELF file")]
    NotElf,
    #[error("it is cut short or its headers point outside")]
    Truncated,
    #[error("it has no .modinfo section, so it is no kernel module")]
    NoModInfo,
}

/// Reads a module's `.modinfo`.
///
/// # Errors
/// When the bytes are no whole ELF file or have no such section.
pub(super) fn modinfo(elf: &[u8]) -> Result<ModInfo, ElfError> {
    let section = find_section(elf, b".modinfo")?.ok_or(ElfError::NoModInfo)?;
    let mut info = ModInfo::default();
    for entry in section.split(|byte| *byte == 0) {
        let entry = String::from_utf8_lossy(entry);
        match entry.split_once('=') {
            Some(("depends", list)) => info.depends.extend(split(list, ',')),
            Some(("softdep", list)) => info.before.extend(before(list)),
            Some(("firmware", path)) => info.firmware.push(path.to_owned()),
            _ => (),
        }
    }
    Ok(info)
}

/// Whether a program asks for a dynamic linker, which an initramfs of ours does not have.
///
/// # Errors
/// When the bytes are no whole ELF file.
pub(super) fn needs_interpreter(elf: &[u8]) -> Result<bool, ElfError> {
    check_magic(elf)?;
    let table =
        Table { offset: word(elf, 0x20)?, entry: half(elf, 0x36)?, count: half(elf, 0x38)? };
    for header in table.entries(elf) {
        if four(header?, 0)? == PT_INTERP {
            return Ok(true);
        }
    }
    Ok(false)
}

fn split(list: &str, at: char) -> impl Iterator<Item = String> {
    list.split(at).filter(|name| !name.is_empty()).map(str::to_owned)
}

/// `pre: a b post: c` gives a and b.
fn before(list: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_before = false;
    for word in list.split_ascii_whitespace() {
        match word {
            "pre:" => is_before = true,
            "post:" => is_before = false,
            name if is_before => names.push(name.to_owned()),
            _ => (),
        }
    }
    names
}

/// A table of equally long headers.
struct Table {
    offset: usize,
    entry: usize,
    count: usize,
}

impl Table {
    fn get<'a>(&self, elf: &'a [u8], index: usize) -> Result<&'a [u8], ElfError> {
        let start = index.checked_mul(self.entry).and_then(|at| at.checked_add(self.offset));
        part(elf, start.ok_or(ElfError::Truncated)?, self.entry)
    }

    fn entries<'a>(&self, elf: &'a [u8]) -> impl Iterator<Item = Result<&'a [u8], ElfError>> {
        (0..self.count).map(|index| self.get(elf, index))
    }
}

fn find_section<'a>(elf: &'a [u8], wanted: &[u8]) -> Result<Option<&'a [u8]>, ElfError> {
    check_magic(elf)?;
    let table =
        Table { offset: word(elf, 0x28)?, entry: half(elf, 0x3a)?, count: half(elf, 0x3c)? };
    let names = section_content(elf, table.get(elf, half(elf, 0x3e)?)?)?;
    for header in table.entries(elf) {
        let header = header?;
        let at = usize::try_from(four(header, 0)?).map_err(|_| ElfError::Truncated)?;
        let name = names.get(at..).ok_or(ElfError::Truncated)?;
        if name.split(|byte| *byte == 0).next() == Some(wanted) {
            return section_content(elf, header).map(Some);
        }
    }
    Ok(None)
}

fn section_content<'a>(elf: &'a [u8], header: &[u8]) -> Result<&'a [u8], ElfError> {
    part(elf, word(header, 0x18)?, word(header, 0x20)?)
}

fn check_magic(elf: &[u8]) -> Result<(), ElfError> {
    if elf.starts_with(MAGIC) { Ok(()) } else { Err(ElfError::NotElf) }
}

fn part(bytes: &[u8], start: usize, length: usize) -> Result<&[u8], ElfError> {
    let end = start.checked_add(length).ok_or(ElfError::Truncated)?;
    bytes.get(Range { start, end }).ok_or(ElfError::Truncated)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], ElfError> {
    part(bytes, at, N)?.try_into().map_err(|_| ElfError::Truncated)
}

fn half(bytes: &[u8], at: usize) -> Result<usize, ElfError> {
    Ok(u16::from_le_bytes(array(bytes, at)?).into())
}

fn four(bytes: &[u8], at: usize) -> Result<u32, ElfError> {
    Ok(u32::from_le_bytes(array(bytes, at)?))
}

fn word(bytes: &[u8], at: usize) -> Result<usize, ElfError> {
    usize::try_from(u64::from_le_bytes(array(bytes, at)?)).map_err(|_| ElfError::Truncated)
}

/// A small ELF file with one `.modinfo` section.
#[cfg(test)]
pub(super) fn module_with(modinfo: &str) -> Vec<u8> {
    let names = b"\0.modinfo\0.shstrtab\0";
    let mut elf = vec![0_u8; 64];
    elf[..6].copy_from_slice(MAGIC);
    let modinfo_at = elf.len();
    elf.extend(modinfo.bytes());
    let names_at = elf.len();
    elf.extend(names);
    let table_at = elf.len();
    let section = |name: u32, at: usize, size: usize| {
        let mut header = [0_u8; 64];
        header[..4].copy_from_slice(&name.to_le_bytes());
        header[0x18..0x20].copy_from_slice(&(at as u64).to_le_bytes());
        header[0x20..0x28].copy_from_slice(&(size as u64).to_le_bytes());
        header
    };
    elf.extend(section(0, 0, 0));
    elf.extend(section(1, modinfo_at, modinfo.len()));
    elf.extend(section(10, names_at, names.len()));
    elf[0x28..0x30].copy_from_slice(&(table_at as u64).to_le_bytes());
    for (at, value) in [(0x3a, 64_u16), (0x3c, 3), (0x3e, 2)] {
        elf[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    elf
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_tells_what_it_needs() {
        let elf = module_with(
            "license=GPL\0depends=mdio,libcrc32c\0softdep=pre: crc32c crct10dif post: late\0\
             firmware=bnx2x/bnx2x-e2-7.13.21.0.fw\0name=bnx2x\0",
        );
        let want = ModInfo {
            depends: vec!["mdio".into(), "libcrc32c".into()],
            before: vec!["crc32c".into(), "crct10dif".into()],
            firmware: vec!["bnx2x/bnx2x-e2-7.13.21.0.fw".into()],
        };
        assert_eq!(modinfo(&elf), Ok(want));
        assert_eq!(modinfo(&module_with("depends=\0")), Ok(ModInfo::default()));
    }

    #[test]
    fn what_is_no_module_is_refused_with_its_reason() {
        let renamed = module_with("depends=\0");
        let at = renamed.windows(8).rposition(|eight| eight == b".modinfo").unwrap();
        let mut renamed = renamed;
        renamed[at] = b'x';
        assert_eq!(modinfo(&renamed), Err(ElfError::NoModInfo));
        assert_eq!(modinfo(b"\xfd7zXZ\0 and more"), Err(ElfError::NotElf));
        assert_eq!(modinfo(&module_with("depends=\0")[..70]), Err(ElfError::Truncated));
    }

    #[test]
    fn a_program_with_a_dynamic_linker_is_told_from_a_static_one() {
        let mut elf = module_with("");
        assert_eq!(needs_interpreter(&elf), Ok(false));
        let at = elf.len();
        elf.extend([3, 0, 0, 0]);
        elf.extend([0; 52]);
        elf[0x20..0x28].copy_from_slice(&(at as u64).to_le_bytes());
        elf[0x36] = 56;
        elf[0x38] = 1;
        assert_eq!(needs_interpreter(&elf), Ok(true));
        assert_eq!(needs_interpreter(b"#!/bin/sh"), Err(ElfError::NotElf));
    }

    #[test]
    fn no_cut_and_no_flipped_byte_makes_it_panic() {
        let whole = module_with("depends=a,b\0softdep=pre: c\0");
        for at in 0..whole.len() {
            let _outcome = modinfo(&whole[..at]);
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                let _outcome = (modinfo(&changed), needs_interpreter(&changed));
            }
        }
    }
}
