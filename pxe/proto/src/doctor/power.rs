//! Rules about machines that say nothing at all.

use super::{
    Confidence::{Certain, Likely, Possible},
    Found, Rule, Story, found, seconds,
};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "off",
        confidence: Certain,
        remedy: "switch it on, and look at the BMC's log if it does not stay on",
        finds: off,
    },
    Rule {
        id: "unknown-mac",
        confidence: Likely,
        remedy: "if its network card was replaced, write the new MAC into the configuration",
        finds: stranger,
    },
    Rule {
        id: "stuck-in-post",
        confidence: Possible,
        remedy: "look at its console (memory training, a key to be pressed, an option ROM); if it booted its disk \
                 instead, put the network first in its boot order",
        finds: post,
    },
    Rule {
        id: "no-dhcp",
        confidence: Possible,
        remedy: "look at cable and link of the boot network card, the VLAN of its switch port, and whether network \
                 boot is on in its firmware and first in its boot order",
        finds: no_dhcp,
    },
];

/// Nothing was heard of it although somebody waits for it.
fn silence(story: &Story<'_>) -> bool {
    story.seen.is_empty() && story.facts.awaited.is_some()
}

fn off(story: &Story<'_>) -> Option<Found> {
    let power = story.facts.power.filter(|power| !power.is_on && silence(story))?;
    let span = story.facts.now.since(power.since.max(story.facts.awaited?));
    // A moment off belongs to a restart.
    let is = span.as_secs() >= 10;
    if is { found(format!("its power has read off for {}", seconds(span)), vec![]) } else { None }
}

/// On for longer than its POST takes, in seconds for a sentence.
fn late(story: &Story<'_>) -> Option<String> {
    let power = story.facts.power.filter(|power| power.is_on && silence(story))?;
    let span = story.facts.now.since(power.since);
    (span >= story.facts.post_limit).then(|| seconds(span))
}

fn stranger(story: &Story<'_>) -> Option<Found> {
    let on = late(story)?;
    let [stranger] = story.facts.strangers.as_slice() else { return None };
    let text = format!(
        "it has been on for {on} and was not heard, while a machine nobody knows, {stranger}, asks for an address"
    );
    found(text, vec![])
}

fn post(story: &Story<'_>) -> Option<Found> {
    let on = late(story).filter(|_| story.facts.heard_before)?;
    let text = format!(
        "it has been on for {on} and was not heard, although it booted here before: it is stuck in POST, or boots something else"
    );
    found(text, vec![])
}

fn no_dhcp(story: &Story<'_>) -> Option<Found> {
    let on = late(story).filter(|_| !story.facts.heard_before)?;
    found(format!("it has been on for {on} and was never heard on the boot network"), vec![])
}
