//! What the configuration says of nodes and profiles, as far as the engine decides by it.

use std::{collections::BTreeMap, net::Ipv4Addr, time::Duration};

use model::{NodeName, ProfileName, RootKind};
use serde::{Deserialize, Serialize};

/// What kind of payload a profile starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileKind {
    /// volund's agent: reports the hardware, then obeys.
    Inspect,
    /// The local disk.
    Local,
    /// A kernel and initrd with arguments.
    Linux,
}

/// How long each wait may take. All are upper bounds after which the switch is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// BMC silent or busy, per phase that only talks to it.
    pub bmc: Duration,
    /// From soft shutdown to cutting power.
    pub soft_off: Duration,
    /// From cutting power to reading off.
    pub hard_off: Duration,
    /// Pause between reading off and switching on again.
    pub off_settle: Duration,
    /// From power-on to the first DHCP request.
    pub post: Duration,
    /// From the first DHCP request to a whole kernel.
    pub boot: Duration,
    /// From a whole kernel to the report or call-back.
    pub ready: Duration,
    /// A new boot attempt sooner than this after a whole kernel means the payload cannot have acted.
    pub acts_after: Duration,
    /// Least time between two settled boots of a RAM profile.
    pub min_boot: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            bmc: seconds(60),
            soft_off: seconds(60),
            hard_off: seconds(30),
            off_settle: seconds(10),
            post: seconds(8 * 60),
            boot: seconds(6 * 60),
            ready: seconds(15 * 60),
            acts_after: seconds(10),
            min_boot: seconds(60),
        }
    }
}

/// A profile, as far as the engine decides by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileSpec {
    /// Name.
    pub name: ProfileName,
    /// Kind of payload.
    pub kind: ProfileKind,
    /// Where its root lives.
    pub root: RootKind,
    /// Whether the payload calls back (the agent always does).
    pub calls_back: bool,
    /// Its bounds.
    pub bounds: Bounds,
}

impl ProfileSpec {
    /// Whether a switch to it starts over the network.
    #[must_use]
    pub fn boots_network(&self) -> bool {
        match self.kind {
            ProfileKind::Inspect | ProfileKind::Linux => true,
            ProfileKind::Local => false,
        }
    }
}

/// A node, as far as the engine decides by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSpec {
    /// Name.
    pub name: NodeName,
    /// Its reserved address on the boot network: it is answered at this one only. `None` where another server gives
    /// the addresses and none was declared: then it is answered where the boot services saw it.
    pub address: Option<Ipv4Addr>,
    /// Whether its firmware is UEFI.
    pub efi: bool,
    /// Why its owner protects it.
    pub protected: Option<String>,
    /// Profiles it may have.
    pub profiles: Vec<ProfileName>,
    /// `ADDRESS:PORT` of its BMC, for sentences.
    pub bmc: String,
    /// Where a file owns its assignment, and to what.
    pub owned: Option<FileOwned>,
}

/// An assignment a file owns: it is changed there, and carried out by a switch to just that profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOwned {
    /// The place, such as `lab.toml:41`.
    pub place: String,
    /// The profile assigned there.
    pub profile: ProfileName,
}

/// The declared lab, as far as the engine decides by it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Specs {
    /// Nodes by name.
    pub nodes: BTreeMap<NodeName, NodeSpec>,
    /// Profiles by name.
    pub profiles: BTreeMap<ProfileName, ProfileSpec>,
}
