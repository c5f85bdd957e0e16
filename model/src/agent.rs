//! What the agent on a node and the server say to each other: JSON over the boot network's HTTP port.
//!
//! `POST /agent/v1/VERB` with `Authorization: Ticket TICKET`. Verbs, in order: `claim` ([`Claim`] to
//! [`Claimed`]), `report` ([`Report`] to [`Order`]), then `next` ([`Next`] to [`Order`]) until told to stop.
//! A payload of a foreign system calls `GET` or `POST /t/TICKET/done` instead.

use serde::{Deserialize, Serialize};

use crate::MacAddr;

/// The agent takes its ticket. `nonce` is made once per start of the agent: the same nonce gets the same
/// answer again, another one is refused (compare-and-set, durable before the answer).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// 16 random bytes as hex.
    pub nonce: String,
}

/// The claim was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// The node's name, for the console.
    pub node: String,
    /// What to do first; always [`Order::Report`] for `inspect`.
    pub order: Order,
}

/// What the agent is told to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Order {
    /// Look at the hardware and post a [`Report`].
    Report,
    /// Ask again after this many seconds.
    Wait {
        /// Seconds, 1 to 60.
        seconds: u32,
    },
    /// Restart the machine.
    Reboot,
    /// Switch the machine off.
    PowerOff,
}

/// Asks for the next order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Next {
    /// The nonce of the claim.
    pub nonce: String,
}

/// The hardware as the agent found it, raw where the server understands it better.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The nonce of the claim.
    pub nonce: String,
    /// Raw SMBIOS structure table (`/sys/firmware/dmi/tables/DMI`) as hex; empty where there is none.
    pub dmi: String,
    /// Raw SMBIOS entry point (`/sys/firmware/dmi/tables/smbios_entry_point`) as hex; empty where there is none.
    pub dmi_entry: String,
    /// `/proc/cpuinfo`, as read.
    pub cpuinfo: String,
    /// `MemTotal` of `/proc/meminfo`, in KiB.
    pub memory_kib: u64,
    /// Whether `/sys/firmware/efi` exists.
    pub efi: bool,
    /// Kernel release.
    pub kernel: String,
    /// Disks the kernel found.
    pub disks: Vec<DiskFacts>,
    /// Network interfaces the kernel found.
    pub nics: Vec<NicFacts>,
}

/// A disk out of `/sys/block`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskFacts {
    /// Kernel name, such as `sda`.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Model, blanks trimmed, if told.
    pub model: Option<String>,
    /// Serial, blanks trimmed, if told.
    pub serial: Option<String>,
    /// Whether it spins, if told.
    pub rotational: Option<bool>,
}

/// A network interface out of `/sys/class/net`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicFacts {
    /// Kernel name, such as `eth0`.
    pub name: String,
    /// Hardware address.
    pub mac: MacAddr,
    /// Driver, if bound.
    pub driver: Option<String>,
    /// Link speed in Mbit/s, if there is a link.
    pub speed_mbit: Option<u32>,
    /// PCI vendor and device as `14e4:1639`, if it is a PCI device.
    pub pci: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_a_stable_text() {
        let cases = [
            (Order::Report, r#"{"do":"report"}"#),
            (Order::Wait { seconds: 5 }, r#"{"do":"wait","seconds":5}"#),
            (Order::PowerOff, r#"{"do":"power-off"}"#),
        ];
        for (order, text) in cases {
            assert_eq!(serde_json::to_string(&order).unwrap(), text);
            assert_eq!(serde_json::from_str::<Order>(text).unwrap(), order);
        }
    }
}
