//! What the engine wants done, and what is seen of it.

use model::{
    NodeName, UnixMillis, Uuid,
    permit::{AuditLine, Order, Protection, Warrant},
};

use crate::{SwitchId, Token};

/// On whose behalf an effect is carried out; its observation goes back there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// A switch.
    Switch(SwitchId),
    /// A power verb somebody waits for.
    Order(Token),
}

/// One thing to do at one node's BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The node.
    pub node: NodeName,
    /// On whose behalf.
    pub cause: Cause,
    /// What.
    pub act: Act,
    /// Not before this moment; polls use it.
    pub not_before: UnixMillis,
}

/// Verbs of the engine towards a BMC. All but the permitted ones bear repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Chassis status.
    ReadPower,
    /// Soft shutdown by ACPI.
    SoftOff,
    /// Switch on.
    PowerOn,
    /// Boot device for the next start.
    Arm {
        /// From where.
        target: BootTarget,
        /// UEFI or BIOS.
        efi: bool,
    },
    /// A destructive verb; the world reads the BMC's identity and issues the permit from this.
    Permitted(Box<Permission>),
}

/// Everything a permit is issued from, save the identity that is read at the moment of use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// The order.
    pub order: Order,
    /// What it stands on.
    pub warrant: Warrant,
    /// The node's protection.
    pub protection: Protection,
    /// System GUID on record.
    pub recorded: Option<Uuid>,
}

/// From where the next start boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootTarget {
    /// Network, once.
    Network,
    /// Disk, once.
    Disk,
}

/// What was seen of an effect. Every effect gives exactly one, within the bound of its verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The node.
    pub node: NodeName,
    /// On whose behalf.
    pub cause: Cause,
    /// What was seen.
    pub what: Observed,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observed {
    /// Chassis status: on or not.
    Power(Result<bool, Trouble>),
    /// The boot device was set and read back; the texts name bits the BMC lost.
    Armed(Result<Vec<String>, Trouble>),
    /// A command was accepted. That proves nothing: power is read afterwards.
    Accepted(Result<(), Trouble>),
}

/// What went wrong at a BMC, sorted by what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What can be done.
    pub kind: TroubleKind,
    /// What happened, a sentence without full stop, no credential in it.
    pub text: String,
}

/// Kinds of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TroubleKind {
    /// No answer, or busy: try again within the bound.
    Silent,
    /// Login refused: never tried again by itself, BMCs lock accounts.
    Login,
    /// The BMC refused the command.
    Refused,
    /// No permit: wrong machine, protected, expired.
    NotPermitted,
}

impl Permission {
    /// The line that is written down before this is carried out.
    #[must_use]
    pub fn audit(&self, now: UnixMillis) -> AuditLine {
        let Order { node, verb, disks, plan_hash, by, deadline: _ } = self.order.clone();
        AuditLine { at: now, node, verb, by, warrant: self.warrant.id.clone(), disks, plan_hash }
    }
}

impl Trouble {
    /// Whether trying again may help.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        self.kind == TroubleKind::Silent
    }

    /// What a person can do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self.kind {
            TroubleKind::Silent => {
                "check the BMC's cable and address, or restart the BMC; then switch again"
            }
            TroubleKind::Login => {
                "correct the user or secret of this BMC in the configuration; then switch again"
            }
            TroubleKind::Refused => {
                "look at the BMC's own log; it does not do what was asked of it"
            }
            TroubleKind::NotPermitted => "settle what the reason names; then switch again",
        }
    }
}
