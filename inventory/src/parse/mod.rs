//! What an agent reported, understood: firmware tables, processors, disks, interfaces.
//!
//! The report comes from a machine nobody vouches for. Parsing is total and bounded: every fault becomes one
//! warning and the rest is kept. It decides nothing and looks nothing up.

mod cpuinfo;
mod devices;
mod machine;
mod smbios;
#[cfg(test)]
mod tests;
mod text;
mod warnings;

use model::{MacAddr, Serial, Uuid, agent::Report};
use serde::{Deserialize, Serialize};

use warnings::Warnings;

/// Hardware as reported and understood. Its JSON has the fields of the API's `FactsView` (all but `at_ms`) and a
/// few more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Facts {
    /// SMBIOS manufacturer and product, such as `HP ProLiant BL460c Gen8`.
    pub product: Option<String>,
    /// SMBIOS system serial; placeholders are none.
    pub serial: Option<Serial>,
    /// SMBIOS system UUID; all zeros or all ones is none.
    pub uuid: Option<Uuid>,
    /// Firmware version, with its date in brackets.
    pub firmware: Option<String>,
    /// Main board.
    pub board: Option<Part>,
    /// Chassis; of a blade, often the enclosure's.
    pub chassis: Option<Part>,
    /// Whether it booted by UEFI.
    pub efi: bool,
    /// Kernel release of the agent's system.
    pub kernel: String,
    /// Processors that are there.
    pub processors: Vec<Processor>,
    /// Memory in MiB: the sum of the modules, or what the kernel has if the firmware lists none.
    pub memory_mib: Option<u64>,
    /// Memory slots, empty ones too.
    pub dimms: Vec<Dimm>,
    /// Disks with a size.
    pub disks: Vec<Disk>,
    /// Network interfaces with a usable MAC.
    pub nics: Vec<Nic>,
    /// What could not be understood or does not fit together, a sentence each.
    pub warnings: Vec<String>,
}

/// A board or a chassis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Maker.
    pub manufacturer: Option<String>,
    /// Model.
    pub product: Option<String>,
    /// Serial.
    pub serial: Option<Serial>,
}

/// A processor package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    /// Socket designation.
    pub socket: String,
    /// Model.
    pub model: Option<String>,
    /// Cores.
    pub cores: Option<u32>,
    /// Threads.
    pub threads: Option<u32>,
}

/// A memory slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dimm {
    /// Slot designation.
    pub slot: String,
    /// Size in MiB; `None` for an empty slot.
    pub mib: Option<u64>,
    /// Part number.
    pub part: Option<String>,
    /// Serial.
    pub serial: Option<Serial>,
}

/// A disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Kernel name.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Model.
    pub model: Option<String>,
    /// Serial.
    pub serial: Option<Serial>,
    /// Whether it spins.
    pub rotational: Option<bool>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// Kernel name.
    pub name: String,
    /// MAC.
    pub mac: MacAddr,
    /// Driver.
    pub driver: Option<String>,
    /// Link speed in Mbit/s.
    pub speed_mbit: Option<u32>,
    /// PCI vendor and device.
    pub pci: Option<String>,
    /// A link to the machine's own BMC over USB: its MAC is shared by all machines of a model and identifies
    /// none.
    pub bmc_internal: bool,
}

/// Everything of `report` that can be understood.
#[must_use]
pub fn report(report: &Report) -> Facts {
    let mut warnings = Warnings::default();
    let mut facts = Facts {
        efi: report.efi,
        kernel: text::clean(report.kernel.as_bytes()).unwrap_or_default(),
        ..Facts::default()
    };
    if let Some(table) = smbios::Table::from_report(report, &mut warnings) {
        machine::read(&table, &mut facts, &mut warnings);
    }
    cpuinfo::complete(&report.cpuinfo, &mut facts.processors);
    facts.memory_mib = memory(&facts.dimms, report.memory_kib, &mut warnings);
    facts.disks = devices::disks(&report.disks, &mut warnings);
    facts.nics = devices::nics(&report.nics, &mut warnings);
    facts.warnings = warnings.into_sentences();
    facts
}

/// The modules' sum; the kernel keeps some per cent for itself, so only large differences are remarked on.
fn memory(dimms: &[Dimm], kernel_kib: u64, warnings: &mut Warnings) -> Option<u64> {
    let kernel = kernel_kib / 1_024;
    let listed = dimms.iter().filter_map(|dimm| dimm.mib).fold(0_u64, u64::saturating_add);
    if listed == 0 {
        if kernel > 0 {
            let what = format!("the firmware lists no memory; {kernel} MiB is what the kernel has");
            warnings.add(what);
        }
        return (kernel > 0).then_some(kernel);
    }
    if kernel > 0 && (kernel > listed || kernel < listed / 4 * 3) {
        warnings.add(format!("the firmware lists {listed} MiB of memory, the kernel has {kernel}"));
    }
    Some(listed)
}
