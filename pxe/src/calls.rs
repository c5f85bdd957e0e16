//! Questions of the boot services to the engine.

use std::net::Ipv4Addr;

use model::{BootAnswer, ProfileName, Ticket, boot::BootAsk};
use tokio::sync::oneshot;

/// One question. Its `reply` may be dropped: that counts as no answer.
#[derive(Debug)]
pub enum BootCall {
    /// What is a node to boot in this attempt? Answer within 2 s, else it boots its disk.
    Boot {
        /// The question.
        ask: BootAsk,
        /// The answer, equal for every repetition inside one attempt.
        reply: oneshot::Sender<BootAnswer>,
    },
    /// A person at the console of `ask.node` chose a profile from the menu. Answer within 2 s, else the menu says so
    /// and the disk is booted. The engine may refuse, and never starts an installer by this.
    Choose {
        /// Who asks, in which attempt.
        ask: BootAsk,
        /// The profile chosen.
        profile: ProfileName,
        /// What to do now: mostly to wait for the switch that was ordered, or the reason it was not.
        reply: oneshot::Sender<BootAnswer>,
    },
    /// A document of a ticket is fetched: `GET /t/TICKET/NAME`. Answer within 5 s.
    Document {
        /// The ticket in the path.
        ticket: Ticket,
        /// What follows it, without a leading slash.
        name: String,
        /// Who asks. The engine holds it against the ticket's node.
        from: Ipv4Addr,
        /// The document, or why it is not given.
        reply: oneshot::Sender<Result<Document, Refused>>,
    },
    /// The agent speaks: `POST /agent/v1/VERB`, or a payload says `done`: `/t/TICKET/done`. Answer within 5 s.
    Agent {
        /// The ticket of `Authorization: Ticket …`, or of the path.
        ticket: Ticket,
        /// What it says.
        verb: String,
        /// Who says it.
        from: Ipv4Addr,
        /// The message, unread.
        body: Vec<u8>,
        /// The answer, passed on as it is.
        reply: oneshot::Sender<AgentReply>,
    },
}

/// A generated document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Media type, such as `text/plain; charset=utf-8`.
    pub content_type: String,
    /// The text.
    pub bytes: Vec<u8>,
}

/// Why something is not given. It goes into the timeline, not to whoever asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// One sentence for a person.
    pub why: String,
}

/// An answer to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentReply {
    /// HTTP status code.
    pub status: u16,
    /// JSON.
    pub body: Vec<u8>,
}
