//! The gate before every destructive verb.
//!
//! A [`Permit`] can only come out of [`Permit::issue`], is taken by value where the verb is carried out, and
//! leaves an [`AuditLine`] behind. Switching on and soft shutdown need none.

use std::fmt;

use crate::{NodeName, Serial, UnixMillis, Uuid};

/// Verbs that can lose work or data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// Hard power off (IPMI Chassis Control 0).
    PowerOff,
    /// Power off and on again (IPMI Chassis Control 2).
    PowerCycle,
    /// Hard reset (IPMI Chassis Control 3).
    Reset,
    /// Give a node a boot answer that writes its disk.
    Install,
}

/// What somebody wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// To which node.
    pub node: NodeName,
    /// What.
    pub verb: Verb,
    /// Disks that lose data, by serial. Empty for power verbs.
    pub disks: Vec<Serial>,
    /// Hash of the plan a person confirmed, if there was one.
    pub plan_hash: Option<String>,
    /// Who ordered it.
    pub by: String,
    /// Until when it may be carried out.
    pub deadline: UnixMillis,
}

/// What the BMC said about the machine it belongs to, beside what the book of record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ObservedIdentity {
    /// System GUID as just read from the BMC, if it tells one.
    pub seen: Option<Uuid>,
    /// System GUID recorded when this BMC was first spoken to.
    pub recorded: Option<Uuid>,
}

/// A node's protection by its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protection {
    /// None.
    Open,
    /// Hands off.
    Protected {
        /// The owner's words.
        reason: String,
    },
}

/// The live ticket an order stands on: an open switch, or an order a person has just confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warrant {
    /// Identity of the switch or order.
    pub id: String,
    /// The node it is for.
    pub node: NodeName,
    /// When it ends.
    pub expires: UnixMillis,
}

/// Why no permit was issued, or why one was not good for what was tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The owner protects the node.
    #[error("{node} is protected: {reason}")]
    Protected {
        /// The node.
        node: NodeName,
        /// The owner's words.
        reason: String,
    },
    /// Another machine answers at this node's BMC address.
    #[error(
        "the BMC of {node} belongs to another machine: it says {seen}, on record is {recorded}; \
         check the address or accept the new machine"
    )]
    WrongMachine {
        /// The node.
        node: NodeName,
        /// What the BMC says now.
        seen: Uuid,
        /// What is on record.
        recorded: Uuid,
    },
    /// A BMC that told its GUID before does not any more.
    #[error("the BMC of {node} no longer says which machine it is; on record is {recorded}")]
    NoIdentity {
        /// The node.
        node: NodeName,
        /// What is on record.
        recorded: Uuid,
    },
    /// The warrant is for another node.
    #[error("order {id} is for {other}, not for {node}")]
    ForeignWarrant {
        /// The warrant.
        id: String,
        /// Whom it is for.
        other: NodeName,
        /// Whom it was used on.
        node: NodeName,
    },
    /// Too late.
    #[error("order {id} for {node} has expired; give it again")]
    Expired {
        /// The warrant.
        id: String,
        /// The node.
        node: NodeName,
    },
    /// The permit names another node or verb.
    #[error("a permit to {permitted} was used to {tried} {node}")]
    WrongUse {
        /// What it allows.
        permitted: Verb,
        /// What was tried.
        tried: Verb,
        /// On which node.
        node: NodeName,
    },
}

/// Permission for one destructive act. Private fields, one constructor.
#[derive(Debug)]
pub struct Permit {
    order: Order,
    warrant: String,
}

/// What is written down when a permit is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLine {
    /// When.
    pub at: UnixMillis,
    /// To which node.
    pub node: NodeName,
    /// What.
    pub verb: Verb,
    /// Who ordered it.
    pub by: String,
    /// The switch or order it stood on.
    pub warrant: String,
    /// Disks named.
    pub disks: Vec<Serial>,
    /// Hash of the confirmed plan.
    pub plan_hash: Option<String>,
}

impl Permit {
    /// Checks identity, protection, warrant and time.
    ///
    /// # Errors
    /// The first [`Refusal`] that applies, protection first.
    pub fn issue(
        order: Order,
        identity: ObservedIdentity,
        protection: &Protection,
        warrant: &Warrant,
        now: UnixMillis,
    ) -> Result<Self, Refusal> {
        let node = order.node.clone();
        if let Protection::Protected { reason } = protection {
            return Err(Refusal::Protected { node, reason: reason.clone() });
        }
        if warrant.node != order.node {
            let (id, other) = (warrant.id.clone(), warrant.node.clone());
            return Err(Refusal::ForeignWarrant { id, other, node });
        }
        if now >= warrant.expires || now >= order.deadline {
            return Err(Refusal::Expired { id: warrant.id.clone(), node });
        }
        match (identity.seen, identity.recorded) {
            (Some(seen), Some(recorded)) if !seen.same_machine(recorded) => {
                return Err(Refusal::WrongMachine { node, seen, recorded });
            }
            (None, Some(recorded)) => return Err(Refusal::NoIdentity { node, recorded }),
            (Some(_), Some(_) | None) | (None, None) => (),
        }
        Ok(Self { order, warrant: warrant.id.clone() })
    }

    /// Uses the permit up for `verb` on `node` at `now`.
    ///
    /// # Errors
    /// When it was issued for something else, or its deadline has passed.
    pub fn spend(self, node: &NodeName, verb: Verb, now: UnixMillis) -> Result<AuditLine, Refusal> {
        if self.order.node != *node || self.order.verb != verb {
            let permitted = self.order.verb;
            return Err(Refusal::WrongUse { permitted, tried: verb, node: node.clone() });
        }
        if now >= self.order.deadline {
            return Err(Refusal::Expired { id: self.warrant, node: node.clone() });
        }
        let Order { node, verb, disks, plan_hash, by, deadline: _ } = self.order;
        Ok(AuditLine { at: now, node, verb, by, warrant: self.warrant, disks, plan_hash })
    }

    /// The node it is for.
    #[must_use]
    pub fn node(&self) -> &NodeName {
        &self.order.node
    }

    /// What it allows.
    #[must_use]
    pub fn verb(&self) -> Verb {
        self.order.verb
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PowerOff => "power off",
            Self::PowerCycle => "power cycle",
            Self::Reset => "reset",
            Self::Install => "install",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            node: "bld-003".parse().unwrap(),
            verb: Verb::PowerOff,
            disks: vec![],
            plan_hash: None,
            by: "anna".to_owned(),
            deadline: UnixMillis(2_000),
        }
    }

    fn warrant(node: &str) -> Warrant {
        Warrant { id: "sw1".to_owned(), node: node.parse().unwrap(), expires: UnixMillis(1_500) }
    }

    #[test]
    fn a_permit_needs_identity_an_open_node_and_a_live_warrant() {
        let (mine, other) = (Uuid([1; 16]), Uuid([2; 16]));
        let closed = Protection::Protected { reason: "permanent Talos".to_owned() };
        let good = ObservedIdentity { seen: Some(mine), recorded: Some(mine) };
        let unknown = ObservedIdentity { seen: Some(mine), recorded: None };
        let wrong = ObservedIdentity { seen: Some(other), recorded: Some(mine) };
        let mute = ObservedIdentity { seen: None, recorded: Some(mine) };
        let cases = [
            ("all in order", good, &Protection::Open, "bld-003", 1_000, true),
            ("first contact", unknown, &Protection::Open, "bld-003", 1_000, true),
            ("protected", good, &closed, "bld-003", 1_000, false),
            ("another machine", wrong, &Protection::Open, "bld-003", 1_000, false),
            ("identity gone", mute, &Protection::Open, "bld-003", 1_000, false),
            ("warrant of another node", good, &Protection::Open, "bld-004", 1_000, false),
            ("warrant over", good, &Protection::Open, "bld-003", 1_500, false),
        ];
        for (name, identity, protection, node, now, want) in cases {
            let issued =
                Permit::issue(order(), identity, protection, &warrant(node), UnixMillis(now));
            assert_eq!(issued.is_ok(), want, "{name}: {issued:?}");
        }
    }

    #[test]
    fn a_permit_is_good_for_its_own_verb_and_node_only() {
        let issue = || {
            let identity = ObservedIdentity::default();
            let warrant = warrant("bld-003");
            Permit::issue(order(), identity, &Protection::Open, &warrant, UnixMillis(1)).unwrap()
        };
        let node: NodeName = "bld-003".parse().unwrap();
        let other: NodeName = "bld-004".parse().unwrap();
        assert!(issue().spend(&node, Verb::Reset, UnixMillis(2)).is_err());
        assert!(issue().spend(&other, Verb::PowerOff, UnixMillis(2)).is_err());
        assert!(issue().spend(&node, Verb::PowerOff, UnixMillis(2_000)).is_err());
        let line = issue().spend(&node, Verb::PowerOff, UnixMillis(2)).unwrap();
        assert_eq!((line.by.as_str(), line.warrant.as_str()), ("anna", "sw1"));
    }
}
