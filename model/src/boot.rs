//! What the boot services answer from: the boot table, and the answers the engine gives.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use crate::{ClientArch, MacAddr, NodeName, ProfileName, Ticket, UnixMillis};

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
    /// Its reserved address: the same for ROM, iPXE and operating system. 0.0.0.0 where another server gives the
    /// addresses and none was declared.
    pub address: Ipv4Addr,
    /// What it is to be told.
    pub intent: BootIntent,
    /// Its last attempt on record, so that a restart of volund does not begin a new one.
    pub attempt: Option<Attempt>,
    /// What is peculiar about booting it, set or learnt.
    pub traits: BootTraits,
}

/// What is peculiar about booting a node: set in the configuration, or learnt from how its boots went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BootTraits {
    /// Loaders that stand for those of [`BootTable::loaders`], as names under the TFTP root.
    pub loaders: BTreeMap<ClientArch, String>,
    /// How it goes on to its own disk.
    pub local: LocalBoot,
    /// Largest TFTP block its firmware copes with, if it copes with less than it asks for.
    pub tftp_blksize: Option<u16>,
    /// Milliseconds its DHCP answers are held back: a few ROMs lose an answer that comes at once. At most 5,000.
    pub answer_delay_ms: u16,
    /// DHCP options of the node and its profile; they stand for the network's of the same code.
    pub options: Vec<DhcpOption>,
    /// What a person at its console may choose; `None`: no menu is offered.
    pub menu: Option<Menu>,
}

/// How a node's firmware is sent on to its own disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum LocalBoot {
    /// As its firmware usually wants it: `exit 1` on UEFI, `sanboot` on BIOS.
    #[default]
    ByFirmware,
    /// iPXE starts the first disk itself (`sanboot`); BIOS only.
    Sanboot,
    /// iPXE gives the boot back to the firmware (`exit`).
    Exit,
    /// The script is not there (404), which a chained loader takes for the end of network boot.
    NotFound,
    /// DHCP names no boot file at all.
    NoBootFile,
}

/// What a person at a node's console may choose. Nothing is chosen for them but the local boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Menu {
    /// Seconds the question "press a key" stands before the safe default goes on, 1 to 60.
    pub timeout_s: u8,
    /// Entries in their order.
    pub items: Vec<MenuItem>,
}

/// An entry of a console menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MenuItem {
    /// Shown on the console.
    pub label: String,
    /// What it does.
    pub does: MenuAct,
}

/// What an entry of a console menu does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MenuAct {
    /// Boot the local disk: the default.
    Local,
    /// iPXE's own shell.
    Shell,
    /// Chain to a URL of another boot service, such as netboot.xyz.
    Chain {
        /// The URL.
        url: String,
    },
    /// Start a kernel that touches nothing, such as memtest, from this URL path of ours.
    Tool {
        /// URL path of the kernel on the boot service, beginning with `/`.
        kernel: String,
    },
    /// Ask the engine for a profile. It may refuse, and it never starts an installer from here.
    Profile(ProfileName),
}

/// A DHCP option as it is sent (RFC 2132 and later).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DhcpOption {
    /// Code, 1 to 254.
    pub code: u8,
    /// Value, as bytes.
    pub value: Vec<u8>,
}

/// What volund's DHCP does on a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DhcpMode {
    /// Known nodes get their reserved address, all others one of the pool.
    Full(Pool),
    /// Known nodes get their reserved address, all others nothing.
    Reserved,
    /// Another server gives the addresses; known nodes are told their boot file beside it (PXE 2.1, proxyDHCP).
    Proxy,
    /// Nothing.
    Off,
}

impl DhcpMode {
    /// Whether the addresses of the network are ours to give.
    #[must_use]
    pub fn gives_addresses(self) -> bool {
        match self {
            Self::Full(_) | Self::Reserved => true,
            Self::Proxy | Self::Off => false,
        }
    }
}

/// A range of addresses, both ends included. Reservations and our own address inside it are never given away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    /// The lowest.
    pub first: Ipv4Addr,
    /// The highest.
    pub last: Ipv4Addr,
}

/// A network the boot services serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootNetwork {
    /// Its name in the configuration.
    pub name: String,
    /// What our DHCP does there.
    pub mode: DhcpMode,
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
    /// Lease time of known nodes in seconds.
    pub lease_s: u32,
    /// Lease time of unknown machines in seconds: short, so that a passing machine keeps no address.
    pub unknown_lease_s: u32,
    /// DHCP options every client gets that volund does not set itself.
    pub options: Vec<DhcpOption>,
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
    /// Where nodes that have no reserved address were answered last, as far as that is on record: it stands until they
    /// are seen again after a restart.
    pub last_at: BTreeMap<Ipv4Addr, NodeName>,
    /// Known nodes by name.
    pub by_node: BTreeMap<NodeName, Arc<BootEntry>>,
    /// Loader names by architecture.
    pub loaders: Loaders,
    /// Every loader worth trying by architecture, the one of `loaders` first. No entry: there is only that one.
    pub ladders: BTreeMap<ClientArch, Vec<String>>,
    /// Served files: URL path (such as `/i/inspect/vmlinuz`) or TFTP name to a file on disk.
    pub files: BTreeMap<String, PathBuf>,
    /// SHA-256 of those files that have one declared, by the same names. Another content is not served.
    pub digests: BTreeMap<String, [u8; 32]>,
}

/// A question to the engine: what is `node` to boot in this attempt?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootAsk {
    /// Who asks.
    pub node: NodeName,
    /// The MAC it asks with.
    pub mac: MacAddr,
    /// The address it asks from: its own reserved one, or the one it was seen at where another server gives them.
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
    /// Adds a node under its name, all its MACs, and its address if it has one.
    pub fn insert(&mut self, entry: BootEntry) {
        let entry = Arc::new(entry);
        for mac in &entry.macs {
            self.by_mac.insert(*mac, Arc::clone(&entry));
        }
        self.by_node.insert(entry.node.clone(), Arc::clone(&entry));
        if !entry.address.is_unspecified() {
            self.by_address.insert(entry.address, entry);
        }
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
            name: "boot".to_owned(),
            mode: DhcpMode::Reserved,
            unknown_lease_s: 120,
            options: vec![],
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
