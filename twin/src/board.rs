//! What a management controller can do to the machine it sits in.
//!
//! Modelled blades and real QEMU machines both stand behind [`Board`].

use bmc_proto::ipmi::boot_options::{BootDevice, FirmwareMode, Reach};

/// A boot override as the machine's firmware acts on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootOverride {
    /// From what to boot.
    pub device: BootDevice,
    /// As BIOS or as UEFI.
    pub mode: FirmwareMode,
    /// Once or always.
    pub reach: Reach,
}

/// A machine, as its management controller sees it.
///
/// Actions only start something and return at once: the BMC answers "done" before the machine has obeyed, as
/// real ones do. Calls come from the BMC's task, one at a time.
pub trait Board: Send + Sync {
    /// Whether the power is on now.
    fn power(&self) -> bool;
    /// Switch on. Nothing when it is on.
    fn power_on(&self);
    /// Hard off. Nothing when it is off.
    fn power_off(&self);
    /// Hard reset of a running machine.
    fn reset(&self);
    /// Off, a moment, on.
    fn power_cycle(&self);
    /// ACPI power button: the operating system may or may not obey.
    fn soft_off(&self);
    /// Sets or clears the boot override. The machine takes a one-shot override back itself when it has used it.
    fn set_boot_override(&self, wanted: Option<BootOverride>);
    /// The override in force.
    fn boot_override(&self) -> Option<BootOverride>;
    /// Watts the machine takes now; `None` when it has no meter that works.
    fn watts(&self) -> Option<u16>;
    /// System GUID in SMBIOS order, as Get System GUID sends it.
    fn guid(&self) -> [u8; 16];
}
