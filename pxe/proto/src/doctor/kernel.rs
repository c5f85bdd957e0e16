//! Rules about what follows a whole kernel.

use std::time::Duration;

use model::{Sighted, sighting::DhcpKind};

use super::{
    Confidence::{Certain, Possible},
    Found, Rule, Story, found,
};
use crate::story;

/// A kernel that runs and its agent have spoken by then, on slow hardware too.
const SPEAKS: Duration = Duration::from_secs(120);

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "agent-refused",
        confidence: Certain,
        remedy: "look at the reason: a ticket is good once, for its node and its address; then switch again",
        finds: refused,
    },
    Rule {
        id: "agent-unreachable",
        confidence: Possible,
        remedy: "see that TCP from the node to volund's boot port is not filtered, and look at its console",
        finds: unreachable,
    },
    Rule {
        id: "kernel-silent",
        confidence: Possible,
        remedy: "look at its console for a kernel panic or a missing driver of network card or disk; an argument \
                 `console=` may be missing, and with several network cards BOOTIF must name the one it booted from",
        finds: silent,
    },
];

/// The kernel was fetched whole and somebody waits for the system to speak.
fn whole(story: &Story<'_>) -> Option<usize> {
    let (place, ()) =
        story.last(|what| matches!(what, Sighted::KernelWhole { .. }).then_some(()))?;
    let awaited = story.facts.awaited.is_some() && !story.spoke();
    awaited.then_some(place)
}

fn refused(story: &Story<'_>) -> Option<Found> {
    let kernel = whole(story)?;
    let (place, why) = story.last(|what| match what {
        Sighted::Refused { why } => Some(why.clone()),
        Sighted::HttpDone { path, status: 400.., .. } if story::is_payload(path) => {
            Some(what.to_string())
        }
        _ => None,
    })?;
    let text = format!("its system started, and what it said was refused: {why}");
    if place > kernel { found(text, vec![place]) } else { None }
}

/// An operating system asked for an address after the kernel: it runs, and its network card works.
fn unreachable(story: &Story<'_>) -> Option<Found> {
    let kernel = whole(story).filter(|_| story.is_quiet(SPEAKS))?;
    let asked = story.places(|what| match what {
        Sighted::DhcpIn { kind: DhcpKind::Discover | DhcpKind::Request, client, .. } => {
            client.is_empty()
        }
        _ => false,
    });
    let (place, text) = (
        asked.into_iter().find(|place| *place > kernel)?,
        "its system runs and has an address, and says nothing to volund",
    );
    found(text, vec![kernel, place])
}

fn silent(story: &Story<'_>) -> Option<Found> {
    let kernel = whole(story).filter(|_| story.is_quiet(SPEAKS))?;
    found("it fetched its kernel whole, and nothing came after it", vec![kernel])
}
