//! Emulated devices over sockets, and the simulated world; loopback only.
//!
//! Blades, their management controllers and their enclosure, either modelled in this process or real QEMU
//! machines. Everything here speaks to volund through sockets and shares nothing with its servers but the
//! codecs. It never binds an address outside 127.0.0.0/8 for a modelled device.

pub mod blade;
pub mod bmc;
pub mod board;
pub mod chance;
pub mod dhcp;
pub mod draw;
pub mod hardware;
pub mod http;
pub mod ipxe;
pub mod lab;
pub mod log;
pub mod qemu;
pub mod relay;
pub mod smbios;
#[cfg(test)]
mod testing;
pub mod tftp;
pub mod world;

pub use lab::{Lab, LabBlade, LabError, LabSpec};
pub use qemu::{QemuLab, TwinConfig, run_qemu};
