//! What the page and the API need of the lab: a trait the root implements, so that `web` needs no arrow to
//! engine, BMC or database for it.

use std::{future::Future, pin::Pin};

use api::{
    BootDetail, BootList, BootMethodForgotten, LabDoctor, LeaseList, LoopReleased, NetworkList,
    NodeDetail, NodeDoctor, NodeList, PowerOutcome, PowerRequest, ProfileList, SwitchAccepted,
    SwitchPreview, SwitchRequest,
};
use tokio::sync::broadcast;

/// A future that borrows the lab.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 'a>>;

/// Who is asking; goes into audit lines and histories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// User name, or `token NAME`.
    pub name: String,
}

/// Why a request was not carried out. Only `web` turns it into a status code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No such thing (404). The text names it and says where to look.
    #[error("{0}")]
    Unknown(String),
    /// The world has moved on, or another owner holds it (409).
    #[error("{0}")]
    Conflict(String),
    /// Refused, with all faults listed (422).
    #[error("{error}")]
    Refused {
        /// What was refused.
        error: String,
        /// Every fault, with its remedy.
        faults: Vec<String>,
    },
    /// The BMC or the engine does not answer (503).
    #[error("{0}")]
    Unavailable(String),
}

/// Something changed: pages and event streams look again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The node that changed; empty when it is no node's: a lease, a network.
    pub node: String,
}

/// The lab, as the page and the API see it.
pub trait Lab: Send + Sync + 'static {
    /// All nodes, or those of a hostlist.
    fn nodes<'a>(&'a self, hostlist: Option<&'a str>) -> Reply<'a, NodeList>;
    /// One node with timeline, history, facts and the last hour of power.
    fn node<'a>(&'a self, name: &'a str) -> Reply<'a, NodeDetail>;
    /// The boots of a node that are kept.
    fn boots<'a>(&'a self, name: &'a str) -> Reply<'a, BootList>;
    /// One boot of a node with its sightings.
    fn boot<'a>(&'a self, name: &'a str, id: i64) -> Reply<'a, BootDetail>;
    /// The packets of a boot as a pcap file.
    fn boot_packets<'a>(&'a self, name: &'a str, id: i64) -> Reply<'a, Vec<u8>>;
    /// What is wrong with a node's boot.
    fn node_doctor<'a>(&'a self, name: &'a str) -> Reply<'a, NodeDoctor>;
    /// What is wrong with nodes and boot networks.
    fn doctor(&self) -> Reply<'_, LabDoctor>;
    /// Lets a node that was kept out of a boot loop try again.
    fn release_loop<'a>(&'a self, caller: &'a Caller, name: &'a str) -> Reply<'a, LoopReleased>;
    /// Forgets what was learnt of how a node boots.
    fn forget_boot_method<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
    ) -> Reply<'a, BootMethodForgotten>;
    /// The boot networks: how each is served, and what is wrong with it.
    fn networks(&self) -> Reply<'_, NetworkList>;
    /// The last state of each address, of one network and one hardware address where they are given.
    fn leases<'a>(&'a self, network: Option<&'a str>, mac: Option<&'a str>)
    -> Reply<'a, LeaseList>;
    /// The profiles.
    fn profiles(&self) -> Reply<'_, ProfileList>;
    /// What a switch would do. Changes nothing.
    fn preview_switch<'a>(&'a self, request: &'a SwitchRequest) -> Reply<'a, SwitchPreview>;
    /// Starts a switch; refuses without the hash of a preview that still holds.
    fn start_switch<'a>(
        &'a self,
        caller: &'a Caller,
        request: &'a SwitchRequest,
    ) -> Reply<'a, SwitchAccepted>;
    /// Carries out a power verb and reads the state back.
    fn power<'a>(
        &'a self,
        caller: &'a Caller,
        request: &'a PowerRequest,
    ) -> Reply<'a, PowerOutcome>;
    /// Changes from now on. A slow reader loses old ones and looks at everything again.
    fn changes(&self) -> broadcast::Receiver<Changed>;
}
