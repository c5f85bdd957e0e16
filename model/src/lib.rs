//! The words of the field as types: identity, units, readings, the boot table, the permit.
//!
//! No I/O, no clock, no async: whoever needs the time passes it in. Every other crate of the house may use
//! this one; it uses none of them.

pub mod agent;
pub mod arch;
pub mod bay;
pub mod boot;
pub mod hex;
pub mod hostlist;
pub mod lease;
pub mod mac;
pub mod names;
pub mod permit;
pub mod power;
pub mod profile;
pub mod sighting;
pub mod ticket;
pub mod time;
pub mod uuid;

pub use arch::ClientArch;
pub use bay::BayNumber;
pub use boot::{BootAnswer, BootEntry, BootIntent, BootScript, BootTable};
pub use lease::{Lease, LeaseState};
pub use mac::MacAddr;
pub use names::{EnclosureName, NodeName, ProfileName, Serial};
pub use permit::{Permit, Verb};
pub use power::{PowerKind, PowerReading, PowerSource, Watts};
pub use profile::RootKind;
pub use sighting::{Sighted, Sighting};
pub use ticket::Ticket;
pub use time::UnixMillis;
pub use uuid::Uuid;
