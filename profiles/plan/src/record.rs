//! What the engine makes durable. All records of one batch become durable together, before any effect of the
//! batch starts and before any reply of it is sent.

use model::{NodeName, ProfileName, Sighting, UnixMillis, Uuid, agent::Report, permit::AuditLine};

use crate::{Issued, Phase, Switch, SwitchId};

/// One durable fact.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// The state of a switch, whole.
    Switch(Box<Switch>),
    /// A phase was entered, or its reason changed to one worth keeping.
    Transition {
        /// Which switch.
        switch: SwitchId,
        /// Which node.
        node: NodeName,
        /// When.
        at: UnixMillis,
        /// Which phase.
        phase: Phase,
        /// Why, one sentence.
        reason: String,
    },
    /// What a node is to be, and who said so.
    Wish {
        /// Which node.
        node: NodeName,
        /// Which profile.
        profile: ProfileName,
        /// Who.
        by: String,
        /// When.
        at: UnixMillis,
    },
    /// A node has settled in a profile.
    Settled {
        /// Which node.
        node: NodeName,
        /// Which profile.
        profile: ProfileName,
        /// When.
        at: UnixMillis,
    },
    /// A boot answer was given under a ticket, or its state changed.
    Issued(Box<Issued>),
    /// Something was seen on the wire.
    Sighting(Box<Sighting>),
    /// The agent reported the hardware.
    Facts {
        /// Which node.
        node: NodeName,
        /// When.
        at: UnixMillis,
        /// What it said.
        report: Box<Report>,
    },
    /// Power as last read.
    Power {
        /// Which node.
        node: NodeName,
        /// On, off, or no answer.
        on: Option<bool>,
        /// When.
        at: UnixMillis,
    },
    /// What is known of a BMC.
    Bmc {
        /// Which node.
        node: NodeName,
        /// System GUID on record: the first it ever told.
        guid: Option<Uuid>,
        /// Cipher suite in use.
        suite: Option<u8>,
        /// What is wrong with it.
        trouble: Option<String>,
        /// When.
        at: UnixMillis,
    },
    /// A destructive order is about to be carried out, or a secret was refused.
    Audit(AuditLine),
}
