//! A bay of an enclosure's front: one link, one sentence, one watt.

use api::{NodeView, PowerState};
use askama::Template;

use super::{
    Clock, Figure, RoleTag, cut,
    flight::stage_word,
    id_part, node_href,
    phases::{phase_word, progress},
    role::{Standing, power_word},
    sentence,
};

/// Full length of the watt bar.
const FULL_WATTS: f64 = 250.0;

/// A bay with a node in it.
#[derive(Template)]
#[template(path = "bay.html")]
pub(crate) struct Bay {
    pub(crate) id: String,
    pub(crate) number: u8,
    pub(crate) name: String,
    pub(crate) href: String,
    pub(crate) label: String,
    pub(crate) role: &'static str,
    /// Role before the switch, while one is under way.
    pub(crate) from: Option<&'static str>,
    pub(crate) word: String,
    pub(crate) state: &'static str,
    pub(crate) phase: String,
    pub(crate) power: &'static str,
    pub(crate) sub: String,
    pub(crate) progress: Option<(usize, usize)>,
    pub(crate) seen: String,
    pub(crate) figure: Figure,
    pub(crate) bar: Option<Bar>,
    pub(crate) protected: bool,
    pub(crate) pickable: bool,
}

/// A watt bar, in per cent of its length.
pub(crate) struct Bar {
    pub(crate) class: &'static str,
    pub(crate) value: String,
    pub(crate) margin_from: String,
    pub(crate) margin: String,
}

impl Bay {
    pub(crate) fn of(node: &NodeView, number: u8, clock: &Clock) -> Self {
        let standing = Standing::of(node);
        let tag = RoleTag::of_node(node);
        let figure = Figure::of(&node.watts);
        let from = (standing == Standing::Switching)
            .then(|| RoleTag::of_profile(node.profile.as_deref()).role);
        Self {
            id: format!("bay-{}", id_part(&node.name)),
            number,
            name: node.name.clone(),
            href: node_href(&node.name),
            label: label(node, number, standing, &tag, &figure),
            role: tag.role,
            from,
            word: tag.word,
            state: standing.name(),
            phase: node.phase.name.clone(),
            power: power_word(node.power),
            sub: sub(node, standing),
            progress: progress(&node.phase.name).filter(|_| standing == Standing::Switching),
            seen: node.last_sighting.as_ref().map_or_else(String::new, |seen| {
                format!("{} {}", stage_word(seen), clock.minute(seen.at_ms))
            }),
            bar: Bar::of(node),
            figure,
            protected: node.protected.is_some(),
            pickable: !node.phase.open && node.protected.is_none(),
        }
    }
}

impl Bar {
    fn of(node: &NodeView) -> Option<Self> {
        let value = node.watts.value.filter(|value| value.is_finite() && *value >= 0.0)?;
        let margin = node.watts.margin.unwrap_or(0.0).max(0.0);
        let share = |watts: f64| 100.0 * watts.clamp(0.0, FULL_WATTS) / FULL_WATTS;
        let from = share(value - margin);
        let estimate = node.watts.kind.as_deref() == Some("estimate");
        Some(Self {
            class: if estimate { "wbar-est" } else { "wbar-v" },
            value: format!("{from:.1}%"),
            margin_from: format!("{from:.1}%"),
            margin: format!("{:.1}%", share(value + margin) - from),
        })
    }
}

/// The line under the role.
fn sub(node: &NodeView, standing: Standing) -> String {
    let reason = || cut(&sentence(node.phase.reason.as_deref().unwrap_or_default()), 60);
    match standing {
        Standing::Switching => phase_word(&node.phase.name),
        Standing::Held | Standing::Failed => reason(),
        Standing::Silent => {
            node.bmc.trouble.as_deref().map_or_else(|| "power unknown".to_owned(), |t| cut(t, 60))
        }
        Standing::Off => node.profile.clone().unwrap_or_default(),
        Standing::On => String::new(),
    }
}

/// The whole bay as one sentence for those who hear it.
fn label(
    node: &NodeView,
    number: u8,
    standing: Standing,
    tag: &RoleTag,
    figure: &Figure,
) -> String {
    let power = match node.power {
        PowerState::On => "On",
        PowerState::Off => "Off",
        PowerState::Unknown => "Power unknown",
    };
    let reason = node.phase.reason.as_deref().unwrap_or("no reason given");
    let what = match standing {
        Standing::Switching => {
            let from = RoleTag::of_profile(node.profile.as_deref()).word;
            let phase = phase_word(&node.phase.name).to_lowercase();
            format!("Switching from {from} to {}, {phase}. {power}", tag.word)
        }
        Standing::Held | Standing::Failed => format!("{}: {reason}. Needs you", tag.word),
        Standing::Off => "Off".to_owned(),
        Standing::On | Standing::Silent => format!("{power}, {}", tag.word),
    };
    let protected =
        node.protected.as_deref().map_or_else(String::new, |why| format!(" Protected: {why}."));
    format!("Bay {number}, {}. {what}.{protected} {}.", node.name, figure.spoken())
}
