//! Boots, what became of them, and what the doctor says.

use serde::{Deserialize, Serialize};

use crate::SightingView;

/// `GET /api/v1/nodes/NAME/boots`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BootList {
    /// The node.
    pub node: String,
    /// Its boots that are kept, newest first.
    pub boots: Vec<BootView>,
}

/// A boot of a node. `GET /api/v1/nodes/NAME/boots/ID` gives [`BootDetail`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BootView {
    /// Which one: the moment of its first request.
    pub id: i64,
    /// First sighting.
    pub from_ms: i64,
    /// Last sighting, a waiting agent's left out.
    pub to_ms: i64,
    /// `booted`, `kernel`, `local`, `no-boot-file`, `looped`, `failed` or `under-way`.
    pub outcome: String,
    /// The same as people read it: `booted inspect`.
    pub text: String,
    /// Its stages in the order they began.
    pub stages: Vec<BootStage>,
    /// What is wrong with it, the most specific first; empty when nothing is.
    pub diagnoses: Vec<DiagnosisView>,
    /// Whether its packets are kept: `GET /api/v1/nodes/NAME/boots/ID/pcap`.
    pub packets: bool,
}

/// A stage of a boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BootStage {
    /// `firmware DHCP`, `loader`, `iPXE DHCP`, `script`, `kernel`, `initrd` or `call-back`.
    pub name: String,
    /// Its first sighting.
    pub from_ms: i64,
    /// Its last one.
    pub to_ms: i64,
}

/// A boot with all that was seen of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BootDetail {
    /// The node.
    pub node: String,
    /// What the list shows.
    pub boot: BootView,
    /// Its sightings, oldest first.
    pub timeline: Vec<SightingView>,
}

/// What is wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiagnosisView {
    /// Identity of the rule: `offer-ignored`.
    pub id: String,
    /// One sentence.
    pub cause: String,
    /// One sentence.
    pub remedy: String,
    /// `certain`, `likely` or `possible`.
    pub confidence: String,
    /// The sightings that show it, as people read them; empty where it is silence that shows it.
    pub evidence: Vec<String>,
}

/// `GET /api/v1/nodes/NAME/doctor`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeDoctor {
    /// The node.
    pub node: String,
    /// The boot that was looked at; `null` when it has shown nothing since it was to boot.
    pub boot: Option<i64>,
    /// What is wrong, the most specific first; empty when nothing is.
    pub diagnoses: Vec<DiagnosisView>,
}

/// `GET /api/v1/doctor`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabDoctor {
    /// Nodes with something wrong.
    pub nodes: Vec<NodeDoctor>,
    /// What is wrong with the boot networks and this machine.
    pub networks: Vec<DiagnosisView>,
}

/// `POST /api/v1/nodes/NAME/release-loop`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopReleased {
    /// The node.
    pub node: String,
    /// Whether it was kept out of a loop; it boots as ordered from now on.
    pub was_held: bool,
}

/// A way a node boots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootWayView {
    /// What it is a way of: `loader for x64 UEFI (7)`, `local disk`.
    pub what: String,
    /// The way: a loader's file, or a word of `local_boot`.
    pub way: String,
    /// Where it comes from: `configured`, `learnt` of the node, of its `model`, or `default`.
    pub source: String,
    /// Ways that were tried and do not work.
    pub failed: Vec<String>,
}

/// `POST /api/v1/nodes/NAME/forget-boot-method`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootMethodForgotten {
    /// The node.
    pub node: String,
    /// Whether anything was known of it or its model; it is learnt anew from here on.
    pub was_known: bool,
}
