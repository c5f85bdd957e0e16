//! What reaches the engine from outside, and what it answers.

use std::net::Ipv4Addr;

use model::{
    BootAnswer, NodeName, ProfileName, Sighting, Ticket, UnixMillis, Uuid,
    agent::{Claimed, Order, Report},
    boot::BootAsk,
};

use crate::{Observation, SwitchId};

/// Names a caller that waits for a [`Reply`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Somebody wants a node in another profile. Answered by [`Replied::Switch`].
    Wish {
        /// Who waits.
        token: Token,
        /// Which node.
        node: NodeName,
        /// Which profile.
        profile: ProfileName,
        /// Who asked.
        by: String,
        /// Hash of the preview that was confirmed.
        plan_hash: Option<String>,
        /// Identity the switch is to have, made by the caller (it holds chance).
        id: SwitchId,
    },
    /// Somebody used a power verb. Answered by [`Replied::Power`].
    Power {
        /// Who waits.
        token: Token,
        /// Which node.
        node: NodeName,
        /// Which verb.
        verb: PowerVerb,
        /// Who asked.
        by: String,
    },
    /// An effect was carried out, or not.
    Observed(Observation),
    /// A node asks what to boot. Answered by [`Replied::Boot`].
    Asked {
        /// Who waits.
        token: Token,
        /// The question.
        ask: BootAsk,
    },
    /// Something asks for a document under a ticket. Answered by [`Replied::Document`].
    Document {
        /// Who waits.
        token: Token,
        /// The ticket.
        ticket: Ticket,
        /// Name of the document.
        name: String,
        /// From where.
        from: Ipv4Addr,
    },
    /// The agent or a payload speaks. Answered by [`Replied::Agent`].
    Agent {
        /// Who waits.
        token: Token,
        /// The ticket.
        ticket: Ticket,
        /// From where.
        from: Ipv4Addr,
        /// What it says.
        says: AgentSays,
    },
    /// Something was seen on the wire.
    Sighted(Sighting),
    /// A BMC was spoken to, or tried in vain: what is known of it changed.
    BmcSeen {
        /// Which node.
        node: NodeName,
        /// System GUID it tells.
        guid: Option<Uuid>,
        /// Cipher suite in use.
        suite: Option<u8>,
        /// What is wrong with it.
        trouble: Option<String>,
        /// When.
        at: UnixMillis,
    },
    /// The sampler read a BMC: power, or `None` when it did not answer.
    PowerSeen {
        /// Which node.
        node: NodeName,
        /// On, off, or no answer.
        on: Option<bool>,
        /// When.
        at: UnixMillis,
    },
}

/// Power verbs a person may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerVerb {
    /// Switch on.
    On,
    /// Hard off; needs a permit.
    Off,
    /// Soft shutdown.
    Soft,
    /// Power cycle; needs a permit.
    Cycle,
}

/// What an agent or payload says.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentSays {
    /// It takes the ticket.
    Claim {
        /// Its nonce.
        nonce: String,
    },
    /// It reports the hardware.
    Report(Box<Report>),
    /// It asks what to do next.
    Next {
        /// Its nonce.
        nonce: String,
    },
    /// A foreign payload says it is done.
    Done,
}

/// The answer to an input that carried a [`Token`]; sent only after its records are durable.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Who waits.
    pub token: Token,
    /// The answer.
    pub what: Replied,
}

/// Answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Replied {
    /// To [`Input::Wish`].
    Switch(Result<SwitchId, Refused>),
    /// To [`Input::Power`]: power as read back.
    Power(Result<Option<bool>, Refused>),
    /// To [`Input::Asked`].
    Boot(BootAnswer),
    /// To [`Input::Document`]: render this document of this profile for this node.
    Document(Result<DocumentGrant, Refused>),
    /// To [`Input::Agent`].
    Agent(Result<AgentAnswer, Refused>),
}

/// Permission to render one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentGrant {
    /// For which node.
    pub node: NodeName,
    /// Of which profile.
    pub profile: ProfileName,
    /// Which one.
    pub name: String,
    /// The ticket it is asked under.
    pub ticket: Ticket,
    /// The address it goes to: the one the ticket was given to.
    pub from: Ipv4Addr,
}

/// What the agent hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentAnswer {
    /// To a claim.
    Claimed(Claimed),
    /// To a report or next.
    Order(Order),
    /// To done.
    Thanks,
}

/// Why something is not done, sorted by what a caller can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// There is no such thing.
    Unknown(String),
    /// Something else holds it, or it has been used.
    Conflict(String),
    /// It may not be.
    Forbidden(String),
    /// The BMC could not be made to.
    Unavailable(String),
}
