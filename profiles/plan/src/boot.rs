//! What a node is told when it boots, and the ticket it is told it under.
//!
//! Inside one attempt the same answer as often as asked; the next attempt spends the ticket; nothing that installs
//! or wipes is ever a settled answer; when unsure, the local disk.

use std::{net::Ipv4Addr, time::Duration};

use model::{
    BootAnswer, BootScript, NodeName, ProfileName, RootKind, Ticket, UnixMillis, boot::AttemptId,
};
use serde::{Deserialize, Serialize};

use crate::{Phase, ProfileSpec, Switch, SwitchId};

/// A reading of power older than this no longer shows that a machine is on: three of the sampler's usual periods.
const POWER_STANDS: Duration = Duration::from_secs(30);
/// A payload that spoke this recently is still running.
pub const ALIVE: Duration = Duration::from_secs(15);
/// A ticket outside of an open switch is good as long as a boot attempt at most: who boots has fetched what it
/// needs by then, and what runs on the node later can read the ticket off its kernel's command line.
pub const TICKET_LIFE: Duration = Duration::from_secs(15 * 60);
/// Times a ticket is renewed because the node came back before its payload can have acted.
pub const MAX_RENEWALS: u8 = 3;

/// A boot answer that was given, with its ticket. Kept, so that a restart of volund repeats it to the letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// The node.
    pub node: NodeName,
    /// The attempt it is good for.
    pub attempt: AttemptId,
    /// The switch it belongs to; `None` for a settled answer.
    pub switch: Option<SwitchId>,
    /// The profile it starts.
    pub profile: ProfileName,
    /// The ticket.
    pub ticket: Ticket,
    /// The address it was given to, and is good from alone.
    pub from: Ipv4Addr,
    /// The script.
    pub script: StoredScript,
    /// Whether the ticket still opens anything.
    pub live: bool,
    /// Nonce of the agent that claimed it.
    pub nonce: Option<String>,
    /// When the kernel of this attempt was fetched whole.
    pub kernel_whole: Option<UnixMillis>,
    /// When the payload reported or called back.
    pub done: Option<UnixMillis>,
    /// When it was given.
    pub at: UnixMillis,
}

/// A [`BootScript`] as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredScript {
    /// Shown on the console.
    pub title: String,
    /// URL path of the kernel.
    pub kernel: String,
    /// URL paths of the initrds.
    pub initrds: Vec<String>,
    /// Kernel arguments, ticket included.
    pub args: String,
}

impl Issued {
    /// Whether the ticket still opens documents and may be claimed: the switch it belongs to is in flight, or its
    /// attempt has begun less than [`TICKET_LIFE`] ago.
    #[must_use]
    pub fn opens(&self, in_flight: Option<&SwitchId>, now: UnixMillis) -> bool {
        let is_young = now.since(self.attempt.0) < TICKET_LIFE;
        let is_ordered = in_flight.is_some() && self.switch.as_ref() == in_flight;
        self.live && (is_ordered || is_young)
    }

    /// The answer as the boot service sends it.
    #[must_use]
    pub fn answer(&self) -> BootAnswer {
        let StoredScript { title, kernel, initrds, args } = self.script.clone();
        let ticket = Some(self.ticket.clone());
        BootAnswer::Kernel(BootScript { title, kernel, initrds, args, ticket })
    }
}

/// What is known when a node asks.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// The attempt it asks in.
    pub attempt: AttemptId,
    /// The moment.
    pub now: UnixMillis,
    /// The open switch, if there is one.
    pub switch: Option<&'a Switch>,
    /// The profile it has settled in.
    pub settled: Option<&'a ProfileSpec>,
    /// The last answer it was given.
    pub last: Option<&'a Issued>,
    /// Power as last read, and when.
    pub power: Option<(bool, UnixMillis)>,
    /// When the running payload last spoke.
    pub alive: Option<UnixMillis>,
    /// When volund last ordered it to restart or start outside of a switch.
    pub ordered: Option<UnixMillis>,
    /// Whether the last switch of this node ended held or failed.
    pub held: bool,
}

/// What to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The local disk.
    Local(String),
    /// Stay, look again.
    Wait(String),
    /// The last answer again, word for word.
    Repeat,
    /// A new answer under a new ticket.
    Issue {
        /// Starting this profile.
        profile: ProfileName,
        /// For this switch, or settled.
        switch: Option<SwitchId>,
        /// Whether an earlier ticket of this switch is renewed.
        renewal: bool,
    },
    /// The local disk, and the switch is held: it came back too often.
    Loop(String),
}

/// Decides. Pure, total.
#[must_use]
pub fn decide(asking: Asking<'_>) -> Verdict {
    match asking.switch {
        Some(switch) if switch.phase.is_open() => in_flight(asking, switch),
        Some(_) | None => settled(asking),
    }
}

fn in_flight(asking: Asking<'_>, switch: &Switch) -> Verdict {
    if !switch.to.boots_network() {
        return Verdict::Local(format!("{} boots its own disk", switch.to.name));
    }
    match switch.phase {
        Phase::Guarding | Phase::PoweringOff | Phase::Arming => {
            return Verdict::Wait(format!("a switch to {} is about to restart it", switch.to.name));
        }
        Phase::PoweringOn | Phase::Booting | Phase::Installing | Phase::Verifying => (),
        Phase::Done | Phase::Held | Phase::Failed => return settled(asking),
    }
    let issue = |renewal| Verdict::Issue {
        profile: switch.to.name.clone(),
        switch: Some(switch.id.clone()),
        renewal,
    };
    let Some(last) = asking.last.filter(|last| last.switch.as_ref() == Some(&switch.id)) else {
        return issue(false);
    };
    if last.attempt == asking.attempt {
        return if last.live { Verdict::Repeat } else { spent(switch) };
    }
    let too_soon = |whole| asking.now.since(whole) < switch.to.bounds.acts_after;
    let acted = last.nonce.is_some() || last.done.is_some();
    // Without a whole kernel on record nobody knows what ran: spent, the safe side.
    if acted || !last.live || !last.kernel_whole.is_some_and(too_soon) {
        return spent(switch);
    }
    if switch.renewals < MAX_RENEWALS {
        return issue(true);
    }
    let times = u32::from(MAX_RENEWALS) + 1;
    Verdict::Loop(format!("boot loop: it fetched its kernel {times} times and came straight back"))
}

fn spent(switch: &Switch) -> Verdict {
    Verdict::Local(format!("the ticket of this switch to {} is spent", switch.to.name))
}

fn settled(asking: Asking<'_>) -> Verdict {
    let Some(profile) = asking.settled else {
        return Verdict::Local("it has no profile".to_owned());
    };
    if asking.held {
        return Verdict::Local("its last switch is held".to_owned());
    }
    match profile.root {
        RootKind::Disk | RootKind::Installer => {
            Verdict::Local(format!("{} boots its own disk", profile.name))
        }
        RootKind::Ram => ram_again(asking, profile),
    }
}

/// A RAM profile boots again by itself: its kernel and a ticket of its own for this attempt.
fn ram_again(asking: Asking<'_>, profile: &ProfileSpec) -> Verdict {
    let last = asking.last.filter(|last| last.profile == profile.name);
    if let Some(last) = last.filter(|last| last.attempt == asking.attempt) {
        return if last.live {
            Verdict::Repeat
        } else {
            Verdict::Local("its ticket is spent".into())
        };
    }
    let ordered = asking.ordered.is_some_and(|at| last.is_none_or(|last| at > last.at));
    if !ordered {
        match asking.power {
            Some((true, read)) if asking.now.since(read) < POWER_STANDS => (),
            Some(_) | None => {
                return Verdict::Wait("its BMC does not confirm that it is on".to_owned());
            }
        }
        if let Some(spoke) = asking.alive.filter(|at| asking.now.since(*at) < ALIVE) {
            let ago = asking.now.since(spoke).as_secs();
            return Verdict::Wait(format!("the system that runs there spoke {ago} s ago"));
        }
    }
    let min_boot = profile.bounds.min_boot;
    if last.is_some_and(|last| last.switch.is_none() && asking.now.since(last.at) < min_boot) {
        return Verdict::Wait(format!(
            "it started less than {} s ago; waits before starting again",
            min_boot.as_secs()
        ));
    }
    Verdict::Issue { profile: profile.name.clone(), switch: None, renewal: false }
}
