//! Real QEMU machines behind modelled management controllers.
//!
//! Power, reset and boot device really act. It never uses KVM and opens no network of its own: a machine hangs
//! on the TAP interface its configuration names, or on nothing.

mod board;
mod command;
mod config;
mod lab;
mod machine;
mod qmp;

pub use board::QemuBoard;
pub use command::{BootOrder, command_line};
pub use config::{BmcConfig, DiskBus, DiskConfig, Firmware, MachineConfig, Password, TwinConfig};
pub use lab::{QemuError, QemuLab, QemuMachine, run_qemu};
pub use qmp::{Qmp, QmpError};
