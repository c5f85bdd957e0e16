//! What the boot services answer from: the boot table, and the answers the engine gives.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use crate::{ClientArch, MacAddr, NodeName, Ticket, UnixMillis};

/// A boot attempt of one node, named by the moment its first firmware-stage request came.
///
/// It ends when a later firmware-stage request follows a kernel that was fetched whole, or at its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptId(pub UnixMillis);

/// The last attempt of a node, as far as it came. Kept by the engine, seeded into the boot table at start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Which one.
    pub id: AttemptId,
    /// When its kernel was fetched whole, if it was.
    pub kernel_whole: Option<UnixMillis>,
}

/// What a known node is to be told, before anybody asks the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootIntent {
    /// An address, and no boot file: firmware goes on to its next boot device.
    NoBootFile,
    /// The loader, then a script that boots the local disk. No question to the engine.
    Local,
    /// The loader, then whatever the engine answers for this attempt; local boot when it is late.
    Ask,
}

/// One known node on a boot network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootEntry {
    /// The node.
    pub node: NodeName,
    /// Every MAC that may ask for it.
    pub macs: Vec<MacAddr>,
    /// Its reserved address: the same for ROM, iPXE and operating system.
    pub address: Ipv4Addr,
    /// What it is to be told.
    pub intent: BootIntent,
    /// Its last attempt on record, so that a restart of volund does not begin a new one.
    pub attempt: Option<Attempt>,
}

/// A network the boot services serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootNetwork {
    /// First address of the subnet.
    pub subnet: Ipv4Addr,
    /// Prefix length of the subnet, 8 to 30.
    pub prefix: u8,
    /// Our own address there: DHCP server identifier, siaddr and TFTP server.
    pub server: Ipv4Addr,
    /// Default router given to clients, if any.
    pub router: Option<Ipv4Addr>,
    /// Name servers given to clients.
    pub dns: Vec<Ipv4Addr>,
    /// Lease time in seconds.
    pub lease_s: u32,
    /// `ADDRESS:PORT` of our HTTP boot service as nodes reach it.
    pub http: SocketAddr,
}

/// Loader files by architecture, as names under the TFTP root. A missing one means: no boot file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Loaders(pub BTreeMap<ClientArch, String>);

/// The snapshot DHCP, TFTP and HTTP answer from. Built by the engine, swapped whole, never locked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BootTable {
    /// Networks served.
    pub networks: Vec<BootNetwork>,
    /// Known nodes by each of their MACs.
    pub by_mac: BTreeMap<MacAddr, Arc<BootEntry>>,
    /// Known nodes by their reserved address.
    pub by_address: BTreeMap<Ipv4Addr, Arc<BootEntry>>,
    /// Loader names by architecture.
    pub loaders: Loaders,
    /// Served files: URL path (such as `/i/inspect/vmlinuz`) or TFTP name to a file on disk.
    pub files: BTreeMap<String, PathBuf>,
}

/// A question to the engine: what is `node` to boot in this attempt?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootAsk {
    /// Who asks.
    pub node: NodeName,
    /// The MAC it asks with.
    pub mac: MacAddr,
    /// The address it asks from: always its own reserved one.
    pub from: Ipv4Addr,
    /// The attempt this belongs to.
    pub attempt: AttemptId,
    /// When it asked.
    pub at: UnixMillis,
}

/// The engine's answer, the same for every repetition inside one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootAnswer {
    /// Boot the local disk. `why` is shown on the node's console and in its timeline.
    Local {
        /// One sentence for a person.
        why: String,
    },
    /// Stay where you are, look again in a while: nothing harmful, nothing started.
    Wait {
        /// One sentence for a person.
        why: String,
    },
    /// Load and start a kernel.
    Kernel(BootScript),
}

/// What an iPXE script has to fetch and start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootScript {
    /// Shown on the node's console.
    pub title: String,
    /// URL path of the kernel on the boot service, beginning with `/`.
    pub kernel: String,
    /// URL paths of the initrds, in order.
    pub initrds: Vec<String>,
    /// Kernel arguments; [`TICKET_ARG`] and the server's URL are already in them where the profile wants them.
    pub args: String,
    /// The ticket this attempt runs under.
    pub ticket: Option<Ticket>,
}

/// Kernel argument that carries the ticket to the agent: `volund.ticket=…`.
pub const TICKET_ARG: &str = "volund.ticket";
/// Kernel argument that carries the boot service's URL to the agent: `volund.url=http://…`.
pub const URL_ARG: &str = "volund.url";
/// Kernel argument that carries the node's address to the agent: `volund.ip=192.0.2.77/24`.
pub const ADDRESS_ARG: &str = "volund.ip";
/// Kernel argument that carries the subnet's router to the agent: `volund.gw=192.0.2.1`. Needed only where the
/// boot service is not in the node's own subnet.
pub const GATEWAY_ARG: &str = "volund.gw";

impl BootTable {
    /// Adds a node under all its MACs and its address.
    pub fn insert(&mut self, entry: BootEntry) {
        let entry = Arc::new(entry);
        for mac in &entry.macs {
            self.by_mac.insert(*mac, Arc::clone(&entry));
        }
        self.by_address.insert(entry.address, entry);
    }

    /// The network `address` lies in.
    #[must_use]
    pub fn network_of(&self, address: Ipv4Addr) -> Option<&BootNetwork> {
        self.networks.iter().find(|network| network.contains(address))
    }
}

impl BootNetwork {
    /// The subnet mask as an address (DHCP option 1).
    #[must_use]
    pub fn netmask(&self) -> Ipv4Addr {
        let host_bits = 32_u32.saturating_sub(u32::from(self.prefix));
        Ipv4Addr::from(u32::MAX.checked_shl(host_bits).unwrap_or(0))
    }

    /// Whether `address` lies in the subnet.
    #[must_use]
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        let mask = u32::from(self.netmask());
        u32::from(address) & mask == u32::from(self.subnet) & mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_knows_its_own_addresses() {
        let network = BootNetwork {
            subnet: Ipv4Addr::new(192, 0, 2, 64),
            prefix: 26,
            server: Ipv4Addr::new(192, 0, 2, 65),
            router: None,
            dns: vec![],
            lease_s: 600,
            http: "192.0.2.65:8067".parse().unwrap(),
        };
        assert_eq!(network.netmask(), Ipv4Addr::new(255, 255, 255, 192));
        assert!(network.contains(Ipv4Addr::new(192, 0, 2, 127)));
        assert!(!network.contains(Ipv4Addr::new(192, 0, 2, 128)));
    }
}
