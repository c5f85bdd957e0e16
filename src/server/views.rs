//! Engine, book and samples as the API shows them. Pure translation.

use api::{
    BmcView, BootWayView, FactsView, NodeView, PhaseEvent, PhaseView, PowerState, ProfileView,
    Quantity, SightingView,
};
use inventory::{FactsRow, HistoryRow};
use model::{
    RootKind, Sighting,
    power::{NoReading, PowerSample},
};
use plan::{NodeState, ProfileKind, ProfileSpec};

use super::learning::{Source, Way};
use crate::config::{Config, Node};

/// What a node's row is made of.
pub(super) struct Row<'a> {
    pub(super) config: &'a Config,
    pub(super) node: &'a Node,
    pub(super) state: &'a NodeState,
    pub(super) sample: PowerSample,
    pub(super) last: Option<&'a Sighting>,
}

pub(super) fn node(row: &Row<'_>) -> NodeView {
    let Row { config, node, state, sample, last } = row;
    let settled = state.settled.as_ref().map(ToString::to_string);
    let wish = state.open_switch().map(|switch| switch.to.name.to_string());
    let assigned = config.assigned.get(&node.name).map(|assigned| assigned.profile.to_string());
    NodeView {
        name: node.name.to_string(),
        enclosure: node.seat.as_ref().map(|seat| seat.enclosure.to_string()),
        bay: node.seat.as_ref().map(|seat| seat.bay.get()),
        macs: node.macs.iter().map(ToString::to_string).collect(),
        address: node.address.map(|address| address.to_string()).unwrap_or_default(),
        bmc: BmcView {
            kind: "ipmi".to_owned(),
            address: node.bmc.address.ip().to_string(),
            port: node.bmc.address.port(),
            suite: state.suite,
            trouble: state.bmc_trouble.clone(),
        },
        power: power_state(state.power.map(|(on, _)| on)),
        power_at_ms: state.power.map(|(_, at)| at.0),
        wanted: wish.or(assigned).filter(|wanted| Some(wanted) != settled.as_ref()),
        profile: settled,
        phase: phase(state),
        watts: watts(state, *sample),
        last_sighting: last.map(sighting),
        protected: state.spec.protected.clone(),
        profiles: node.profiles.iter().map(ToString::to_string).collect(),
    }
}

pub(super) fn power_state(on: Option<bool>) -> PowerState {
    match on {
        Some(true) => PowerState::On,
        Some(false) => PowerState::Off,
        None => PowerState::Unknown,
    }
}

/// The draw of a node. A meter that says nothing while the node is off is worth its own words: what a machine
/// draws on standby is not known then, and not zero.
fn watts(state: &NodeState, sample: PowerSample) -> Quantity {
    let off = state.power.is_some_and(|(on, _)| !on);
    let mut quantity = quantity(sample);
    if off && sample == Err(NoReading::MeterSaysNone) {
        quantity.absent = Some("no standby reading while it is off".to_owned());
    }
    quantity
}

fn phase(state: &NodeState) -> PhaseView {
    let Some(switch) = &state.switch else {
        return PhaseView {
            name: "idle".to_owned(),
            open: false,
            switch_id: None,
            since_ms: None,
            until_ms: None,
            reason: None,
            remedy: None,
        };
    };
    let open = switch.phase.is_open();
    PhaseView {
        name: switch.phase.name().to_owned(),
        open,
        switch_id: Some(switch.id.0.clone()),
        since_ms: Some(switch.since.0),
        until_ms: open.then_some(switch.until.0),
        reason: Some(switch.reason.clone()),
        remedy: switch.remedy.clone(),
    }
}

/// A sample as a quantity. A value is rounded to what its margin allows only in `text`.
pub(super) fn quantity(sample: PowerSample) -> Quantity {
    let nothing = Quantity {
        value: None,
        unit: "W".to_owned(),
        margin: None,
        source: None,
        kind: None,
        from_ms: None,
        to_ms: None,
        text: "–".to_owned(),
        absent: None,
    };
    match sample {
        Ok(reading) => Quantity {
            value: Some(reading.watts.0),
            margin: Some(reading.margin.0),
            source: Some(reading.source.to_string()),
            kind: Some(reading.kind.to_string()),
            from_ms: Some(reading.from.0),
            to_ms: Some(reading.to.0),
            text: reading.to_string(),
            ..nothing
        },
        Err(why) => Quantity { absent: Some(why.to_string()), ..nothing },
    }
}

pub(super) fn sighting(sighting: &Sighting) -> SightingView {
    let detail = serde_json::to_value(&sighting.what).unwrap_or_default();
    SightingView {
        at_ms: sighting.at.0,
        attempt_ms: sighting.attempt.map(|attempt| attempt.0),
        kind: detail.get("type").and_then(|kind| kind.as_str()).unwrap_or_default().to_owned(),
        text: sighting.what.to_string(),
        detail,
    }
}

pub(super) fn way(way: Way) -> BootWayView {
    let source = match way.source {
        Source::Configured => "configured",
        Source::Learnt => "learnt",
        Source::OfModel => "model",
        Source::Default => "default",
    };
    let Way { what, way, failed, .. } = way;
    BootWayView { what, way, source: source.to_owned(), failed }
}

pub(super) fn event(row: HistoryRow) -> PhaseEvent {
    let HistoryRow { transition, profile, by } = row;
    PhaseEvent {
        switch_id: transition.switch_id,
        at_ms: transition.at.0,
        profile: profile.to_string(),
        phase: transition.phase,
        reason: transition.reason,
        by,
    }
}

/// The parsed report. Its JSON has the names of [`FactsView`]; what a later version added is left out.
pub(super) fn facts(row: &FactsRow) -> Option<FactsView> {
    let mut value: serde_json::Value = serde_json::from_str(&row.facts.json).ok()?;
    value.as_object_mut()?.insert("at_ms".to_owned(), row.facts.at.0.into());
    serde_json::from_value(value).ok()
}

pub(super) fn profile(spec: &ProfileSpec, about: &str) -> ProfileView {
    let kind = match spec.kind {
        ProfileKind::Inspect => "inspect",
        ProfileKind::Local => "local",
        ProfileKind::Linux => "linux",
    };
    let root = match spec.root {
        RootKind::Disk => "disk",
        RootKind::Ram => "ram",
        RootKind::Installer => "installer",
    };
    ProfileView {
        name: spec.name.to_string(),
        kind: kind.to_owned(),
        root: root.to_owned(),
        about: about.to_owned(),
    }
}
