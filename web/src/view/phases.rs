//! Phases: their words, and the strip of the open or last switch.

use api::{NodeView, PhaseEvent};
use askama::Template;

use super::{
    role::{RoleTag, Standing},
    sentence,
    time::{Clock, duration},
};

/// Phases of a switch that goes well, in order, with the words for them.
const ORDER: [(&str, &str); 8] = [
    ("guarding", "Check guards"),
    ("powering-off", "Power off"),
    ("arming", "Set boot"),
    ("powering-on", "Power on"),
    ("booting", "Boot"),
    ("installing", "Start system"),
    ("verifying", "Verify"),
    ("done", "Done"),
];

/// The words for a phase; one we do not know keeps its name.
pub(crate) fn phase_word(name: &str) -> String {
    let known = ORDER.iter().find(|(key, _)| *key == name);
    match (known, name) {
        (Some((_, word)), _) => (*word).to_owned(),
        (None, "held") => "Held".to_owned(),
        (None, "failed") => "Failed".to_owned(),
        (None, other) => other.replace('-', " "),
    }
}

/// How far a phase is, as `(step, of)`; `None` for phases outside the order.
pub(crate) fn progress(name: &str) -> Option<(usize, usize)> {
    let at = ORDER.iter().position(|(key, _)| *key == name)?;
    Some((at + 1, ORDER.len()))
}

/// One phase of the strip.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// `done`, `now`, `wait`, `fail`.
    pub(crate) state: &'static str,
    /// Icon id; empty for none.
    pub(crate) icon: &'static str,
    /// Word.
    pub(crate) word: String,
    /// Time taken, or until when it waits.
    pub(crate) note: String,
}

/// `#phases`: the open or last switch.
#[derive(Template)]
#[template(path = "phases.html")]
pub(crate) struct Phases {
    pub(crate) phase: String,
    pub(crate) role: &'static str,
    pub(crate) steps: Vec<Step>,
    /// One sentence under the strip, empty when there is nothing to say.
    pub(crate) reason: String,
    pub(crate) remedy: String,
    pub(crate) level: &'static str,
    /// Whether the switch is under way.
    pub(crate) open: bool,
}

impl Phases {
    pub(crate) fn of(node: &NodeView, history: &[PhaseEvent], clock: &Clock) -> Self {
        let standing = Standing::of(node);
        let profile = node.wanted.as_deref().or(node.profile.as_deref());
        Self {
            phase: node.phase.name.clone(),
            role: RoleTag::of_profile(profile).role,
            steps: steps(node, history, clock),
            reason: node.phase.reason.as_deref().map_or_else(String::new, sentence),
            remedy: node.phase.remedy.as_deref().map_or_else(String::new, sentence),
            open: node.phase.open,
            level: if standing.needs_a_person() { "held" } else { "" },
        }
    }
}

fn steps(node: &NodeView, history: &[PhaseEvent], clock: &Clock) -> Vec<Step> {
    let Some(id) = &node.phase.switch_id else { return Vec::new() };
    let mut events: Vec<&PhaseEvent> =
        history.iter().filter(|event| event.switch_id == *id).collect();
    events.sort_by_key(|event| event.at_ms);
    // News within a phase is no new phase.
    events.dedup_by(|later, earlier| later.phase == earlier.phase);
    let ends = events.iter().skip(1).map(|event| Some(event.at_ms)).chain([None]);
    let mut steps: Vec<Step> =
        events.iter().zip(ends).map(|(event, end)| passed(node, event, end, clock)).collect();
    // What was under way when the switch stopped has not been done.
    if let [.., stopped, Step { state: "fail", .. }] = steps.as_mut_slice() {
        (stopped.state, stopped.icon) = ("wait", "");
    }
    if node.phase.open {
        steps.extend(ahead(&node.phase.name));
    }
    steps
}

fn passed(node: &NodeView, event: &PhaseEvent, end: Option<i64>, clock: &Clock) -> Step {
    let (state, icon) = match (event.phase.as_str(), end) {
        ("held" | "failed", _) => ("fail", "r-held"),
        (_, None) if node.phase.open => ("now", "i-run"),
        (_, None | Some(_)) => ("done", "i-check"),
    };
    let note = match (end, state, node.phase.until_ms) {
        (Some(end), _, _) => duration(end.saturating_sub(event.at_ms)),
        // One short line, so that the strip keeps its height when the phase ends.
        (None, "now", Some(until)) => format!("until {}", clock.minute(until)),
        (None, _, _) => clock.second(event.at_ms),
    };
    Step { state, icon, word: phase_word(&event.phase), note }
}

/// What is still to come when all goes well.
fn ahead(now: &str) -> impl Iterator<Item = Step> {
    let next = ORDER.iter().position(|(key, _)| *key == now).map_or(ORDER.len(), |at| at + 1);
    ORDER.iter().skip(next).map(|(_, word)| Step {
        state: "wait",
        icon: "",
        word: (*word).to_owned(),
        note: String::new(),
    })
}
