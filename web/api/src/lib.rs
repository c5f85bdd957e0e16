//! Request and response types of the HTTP API, shared by server and command line.
//!
//! All times are UTC milliseconds and end in `_ms`. A quantity always travels as a [`Quantity`]: value, unit,
//! margin, source and kind together; an absent one says why.

mod boots;
mod networks;

use serde::{Deserialize, Serialize};

pub use self::boots::{
    BootDetail, BootList, BootMethodForgotten, BootStage, BootView, BootWayView, DiagnosisView,
    LabDoctor, LoopReleased, NodeDoctor,
};
pub use self::networks::{
    DhcpCountersView, FindingView, LeaseList, LeaseView, NetworkList, NetworkView, PoolView,
    PortsView, RivalView,
};

/// The OpenAPI 3.1 document of these types and the paths that speak them.
pub const OPENAPI: &str = include_str!("../openapi.json");

/// `GET /api/v1/nodes[?nodes=HOSTLIST]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeList {
    /// Name of the lab, so that nobody acts on the wrong one.
    pub lab: String,
    /// When this was put together.
    pub at_ms: i64,
    /// The nodes, ordered by enclosure, bay, name.
    pub nodes: Vec<NodeView>,
    /// The enclosures, with how many bays they have.
    pub enclosures: Vec<EnclosureView>,
}

/// An enclosure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnclosureView {
    /// Name.
    pub name: String,
    /// Model, as configured, such as `HP BladeSystem c7000`.
    pub model: String,
    /// Number of device bays; a c7000 has 16, in two rows of eight.
    pub bays: u8,
}

/// A node as the list shows it. `GET /api/v1/nodes/NAME` gives [`NodeDetail`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeView {
    /// Name.
    pub name: String,
    /// Enclosure, if it sits in one.
    pub enclosure: Option<String>,
    /// Bay in the enclosure.
    pub bay: Option<u8>,
    /// Its MACs.
    pub macs: Vec<String>,
    /// Reserved address on the boot network; empty where another server chooses it.
    pub address: String,
    /// Its BMC.
    pub bmc: BmcView,
    /// Power as last read back from the BMC.
    pub power: PowerState,
    /// When the power state was read.
    pub power_at_ms: Option<i64>,
    /// The profile it has settled in, if any.
    pub profile: Option<String>,
    /// The profile it is to have, if another than `profile`.
    pub wanted: Option<String>,
    /// Where it stands.
    pub phase: PhaseView,
    /// Its draw.
    pub watts: Quantity,
    /// What was last seen of it on the wire.
    pub last_sighting: Option<SightingView>,
    /// Why its owner protects it, if so.
    pub protected: Option<String>,
    /// Profiles it may be switched to.
    pub profiles: Vec<String>,
}

/// A node's BMC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BmcView {
    /// Protocol, `ipmi`.
    pub kind: String,
    /// IP address.
    pub address: String,
    /// UDP port, 623 unless configured.
    pub port: u16,
    /// Cipher suite in use, once a session was opened.
    pub suite: Option<u8>,
    /// What is wrong with it, if something is: no answer since when, login refused.
    pub trouble: Option<String>,
}

/// Power as read back from the BMC; `unknown` when it does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerState {
    /// On.
    On,
    /// Off.
    Off,
    /// Nobody could read it.
    Unknown,
}

/// Where a node stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseView {
    /// Phase of the open or last switch, such as `booting`; `idle` when there was none.
    pub name: String,
    /// Whether a switch is under way.
    pub open: bool,
    /// Identity of the open or last switch.
    pub switch_id: Option<String>,
    /// Since when.
    pub since_ms: Option<i64>,
    /// Until when volund will wait in this phase.
    pub until_ms: Option<i64>,
    /// One sentence: what it waits for, or why it is held or failed.
    pub reason: Option<String>,
    /// One sentence: what to do about it.
    pub remedy: Option<String>,
}

/// A physical quantity, or the reason there is none. Missing is not zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quantity {
    /// The value; `null` when there is none.
    pub value: Option<f64>,
    /// Unit, such as `W`.
    pub unit: String,
    /// Half-width of the 95 % interval, in the unit.
    pub margin: Option<f64>,
    /// Who measured it.
    pub source: Option<String>,
    /// What was measured: `blade input`, `wall input`, `estimate`.
    pub kind: Option<String>,
    /// Start of the window it speaks for.
    pub from_ms: Option<i64>,
    /// End of that window.
    pub to_ms: Option<i64>,
    /// As people read it: `67 W ±5 % (DCMI, blade input)` or `–`.
    pub text: String,
    /// Why there is no value.
    pub absent: Option<String>,
}

/// One line of a boot timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SightingView {
    /// When.
    pub at_ms: i64,
    /// The boot attempt it belongs to (its first moment).
    pub attempt_ms: Option<i64>,
    /// Machine-readable kind, such as `dhcp-in`.
    pub kind: String,
    /// As people read it.
    pub text: String,
    /// The whole record, as kept.
    pub detail: serde_json::Value,
}

/// `GET /api/v1/nodes/NAME`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeDetail {
    /// What the list shows.
    pub node: NodeView,
    /// Its hardware, as last reported.
    pub facts: Option<FactsView>,
    /// The last boot, oldest first.
    pub timeline: Vec<SightingView>,
    /// Phases of the last switches, newest first.
    pub history: Vec<PhaseEvent>,
    /// Readings of the last hour, oldest first; gaps are gaps.
    pub power: Vec<Quantity>,
    /// How it boots: its loaders, and its way to the local disk.
    #[serde(default)]
    pub boot_method: Vec<BootWayView>,
}

/// Hardware as a node's agent reported it and volund understood it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactsView {
    /// When it was reported.
    pub at_ms: i64,
    /// SMBIOS manufacturer and product, such as `HP ProLiant BL460c Gen8`.
    pub product: Option<String>,
    /// SMBIOS system serial.
    pub serial: Option<String>,
    /// SMBIOS system UUID.
    pub uuid: Option<String>,
    /// Firmware version.
    pub firmware: Option<String>,
    /// Whether it booted by UEFI.
    pub efi: bool,
    /// Processors: model, and how many sockets, cores, threads.
    pub processors: Vec<ProcessorView>,
    /// Memory in MiB, as the firmware lists it.
    pub memory_mib: Option<u64>,
    /// Memory modules.
    pub dimms: Vec<DimmView>,
    /// Disks.
    pub disks: Vec<DiskView>,
    /// Network interfaces.
    pub nics: Vec<NicView>,
    /// What in the report could not be understood, a sentence each.
    pub warnings: Vec<String>,
}

/// A processor package.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessorView {
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DimmView {
    /// Slot designation.
    pub slot: String,
    /// Size in MiB; `null` for an empty slot.
    pub mib: Option<u64>,
    /// Part number.
    pub part: Option<String>,
    /// Serial.
    pub serial: Option<String>,
}

/// A disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskView {
    /// Kernel name.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Model.
    pub model: Option<String>,
    /// Serial.
    pub serial: Option<String>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NicView {
    /// Kernel name.
    pub name: String,
    /// MAC.
    pub mac: String,
    /// Driver.
    pub driver: Option<String>,
    /// Link speed in Mbit/s.
    pub speed_mbit: Option<u32>,
}

/// One transition of a switch. `GET /api/v1/nodes/NAME/history`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseEvent {
    /// The switch.
    pub switch_id: String,
    /// When.
    pub at_ms: i64,
    /// Where the switch leads.
    pub profile: String,
    /// Phase entered.
    pub phase: String,
    /// One sentence: why.
    pub reason: String,
    /// Who asked for the switch.
    pub by: String,
}

/// `POST /api/v1/switch` and `POST /api/v1/switch/preview`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwitchRequest {
    /// Hostlist.
    pub nodes: String,
    /// Profile to switch to.
    pub profile: String,
    /// The hash a preview gave: what was confirmed is what is done. Without it the server refuses.
    #[serde(default)]
    pub confirm: Option<String>,
}

/// What a switch would do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwitchPreview {
    /// Profile.
    pub profile: String,
    /// Per node, what will happen or what blocks it.
    pub nodes: Vec<NodePreview>,
    /// Hash over all of it, to be sent back as `confirm`.
    pub hash: String,
}

/// What a switch would do to one node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodePreview {
    /// The node.
    pub node: String,
    /// From which profile.
    pub from: Option<String>,
    /// Power now.
    pub power: PowerState,
    /// Sentences for a person, in order.
    pub steps: Vec<String>,
    /// Why it cannot be done, with the remedy; empty when it can.
    pub blocked: Vec<String>,
    /// Whether running work (the node is on, or nobody knows) or the content of a disk (an installer) may be lost.
    pub destructive: bool,
}

/// A switch was accepted for each of these nodes. Accepted is not done: follow the phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwitchAccepted {
    /// One per node.
    pub switches: Vec<SwitchRef>,
}

/// An open switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwitchRef {
    /// Its identity.
    pub id: String,
    /// The node.
    pub node: String,
}

/// `POST /api/v1/power`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PowerRequest {
    /// Hostlist.
    pub nodes: String,
    /// What to do.
    pub verb: PowerVerb,
    /// Set by `--yes` or the page's confirmation; `off` and `cycle` are refused without.
    #[serde(default)]
    pub confirmed: bool,
}

/// Power verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerVerb {
    /// Switch on.
    On,
    /// Hard off.
    Off,
    /// Ask the operating system to shut down.
    Soft,
    /// Off and on again.
    Cycle,
}

/// What came of a power verb, per node: observed, not accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PowerOutcome {
    /// One per node.
    pub nodes: Vec<PowerResult>,
}

/// What came of a power verb on one node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PowerResult {
    /// The node.
    pub node: String,
    /// Power as read back afterwards.
    pub power: PowerState,
    /// What went wrong, with the remedy.
    pub error: Option<String>,
    /// Whether it was refused, so that nothing was changed.
    #[serde(default)]
    pub refused: bool,
}

/// `GET /api/v1/profiles`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileList {
    /// The profiles, by name.
    pub profiles: Vec<ProfileView>,
}

/// A profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileView {
    /// Name.
    pub name: String,
    /// Kind: `inspect`, `local`, `linux`.
    pub kind: String,
    /// Root: `disk`, `ram`, `installer`.
    pub root: String,
    /// One sentence.
    pub about: String,
}

/// The body of every answer that is no success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// What did not work, and where.
    pub error: String,
    /// Every fault found, a sentence each with its remedy.
    pub faults: Vec<String>,
}

/// `GET /healthz`: no secret, no name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// `ok`.
    pub status: String,
    /// Version of volund.
    pub version: String,
}
