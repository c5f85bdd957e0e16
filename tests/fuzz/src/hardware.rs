//! What a node's agent reports about it, and kernel modules for its image.

use std::hint::black_box;

use inventory::parse::{self, Facts};
use model::{
    agent::{Claim, Claimed, Next, Order, Report},
    hex,
};

#[allow(dead_code, reason = "the image builder's own file; not all of it is needed here")]
#[path = "../../../src/image/elf.rs"]
mod elf;

/// No list of facts is longer: what a page can show and the database keep.
const MOST: usize = 8_192;
/// No text of facts has more characters, nor has a sentence about them four times as many.
const LONGEST: usize = 300;

fn empty_report() -> Report {
    Report {
        nonce: String::new(),
        dmi: String::new(),
        dmi_entry: String::new(),
        cpuinfo: String::new(),
        memory_kib: 1,
        efi: true,
        kernel: "6.1.0".to_owned(),
        disks: vec![],
        nics: vec![],
    }
}

/// The first two bytes are the version, the rest is the structure table.
pub(super) fn smbios(data: &[u8]) {
    let (version, table) = data.split_at_checked(2).unwrap_or_default();
    let entry = [b"_SM3_\0\x18", version].concat();
    let report =
        Report { dmi: hex::encode(table), dmi_entry: hex::encode(&entry), ..empty_report() };
    are_kept(&parse::report(&report));
}

/// `/proc/cpuinfo`.
pub(super) fn cpuinfo(data: &[u8]) {
    let cpuinfo = String::from_utf8_lossy(data).into_owned();
    are_kept(&parse::report(&Report { cpuinfo, ..empty_report() }));
}

/// A body that an agent posts, or that one is answered with.
pub(super) fn message(data: &[u8]) {
    black_box(serde_json::from_slice::<Claim>(data).is_ok());
    black_box(serde_json::from_slice::<Next>(data).is_ok());
    black_box(serde_json::from_slice::<Claimed>(data).is_ok());
    black_box(serde_json::from_slice::<Order>(data).is_ok());
    if let Ok(report) = serde_json::from_slice::<Report>(data) {
        are_kept(&parse::report(&report));
    }
}

/// Facts are bounded, and the database gives back what it was given.
fn are_kept(facts: &Facts) {
    let Facts { processors, dimms, disks, nics, warnings, .. } = facts;
    let lengths = [processors.len(), dimms.len(), disks.len(), nics.len(), warnings.len()];
    assert!(lengths.iter().all(|length| *length <= MOST), "{lengths:?}");
    let json = serde_json::to_string(facts).expect("facts are plain data");
    assert_eq!(serde_json::from_str::<Facts>(&json).as_ref().ok(), Some(facts));
    let models = processors.iter().filter_map(|processor| processor.model.as_ref());
    let names = disks.iter().map(|disk| &disk.name).chain(nics.iter().map(|nic| &nic.name));
    for text in models.chain(names).chain(&facts.product).chain([&facts.kernel]) {
        assert!(text.chars().count() <= LONGEST && !text.contains(char::is_control), "{text:?}");
    }
    assert!(warnings.iter().all(|sentence| sentence.chars().count() <= LONGEST * 4));
}

/// A kernel module or a program that goes into an image.
pub(super) fn kernel_module(data: &[u8]) {
    black_box((elf::modinfo(data).is_ok(), elf::needs_interpreter(data).is_ok()));
}
