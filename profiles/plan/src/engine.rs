//! The engine: every node's state, and what each input does to it.

mod boot;
mod node;
mod power;
mod resume;
mod seen;
mod wish;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

use model::{NodeName, ProfileName, Ticket, UnixMillis, boot::BootIntent};

use crate::{
    Act, Cause, Effect, Input, NodeSpec, ProfileSpec, Record, Reply, Specs, StoredScript, Switch,
    step::{Event, Step, step},
};

pub use boot::AGENT_WAIT_S;
pub use node::NodeState;
pub use power::{POWER_BOUND, PowerOrder};
pub use wish::refuse_wish;

/// Turns a profile's templates into a script. Pure, given the configuration; the engine keeps what it made.
pub trait Render: Send {
    /// The script that starts `profile` on `node`, which is at the address `at`, under `ticket`.
    ///
    /// # Errors
    /// A sentence that names template, line and remedy.
    fn script(
        &self,
        node: &NodeSpec,
        profile: &ProfileName,
        ticket: &Ticket,
        at: Ipv4Addr,
    ) -> Result<StoredScript, String>;
}

/// What one input gives.
#[derive(Debug, Default)]
pub struct Output {
    /// To be made durable first.
    pub records: Vec<Record>,
    /// To be carried out then.
    pub effects: Vec<Effect>,
    /// To be sent then.
    pub replies: Vec<Reply>,
}

/// All nodes, and the rules.
pub struct Engine {
    pub(crate) profiles: BTreeMap<ProfileName, ProfileSpec>,
    pub(crate) nodes: BTreeMap<NodeName, NodeState>,
    pub(crate) render: Box<dyn Render>,
    pub(crate) touched: BTreeSet<NodeName>,
}

impl Output {
    /// Appends `other`.
    pub fn extend(&mut self, other: Self) {
        self.records.extend(other.records);
        self.effects.extend(other.effects);
        self.replies.extend(other.replies);
    }
}

impl Engine {
    /// An engine over nodes as the database remembers them.
    #[must_use]
    pub fn new(specs: Specs, nodes: Vec<NodeState>, render: Box<dyn Render>) -> Self {
        let nodes: BTreeMap<NodeName, NodeState> =
            nodes.into_iter().map(|node| (node.spec.name.clone(), node)).collect();
        let touched = nodes.keys().cloned().collect();
        Self { profiles: specs.profiles, nodes, render, touched }
    }

    /// One node.
    #[must_use]
    pub fn node(&self, name: &NodeName) -> Option<&NodeState> {
        self.nodes.get(name)
    }

    /// The profiles.
    #[must_use]
    pub fn profiles(&self) -> &BTreeMap<ProfileName, ProfileSpec> {
        &self.profiles
    }

    /// Lets time pass for every switch whose bound is over.
    pub fn tick(&mut self, now: UnixMillis) -> Output {
        let mut output = Output::default();
        for node in self.open_nodes() {
            self.advance(&node, Event::Tick, now, &mut output);
        }
        output
    }

    /// When [`Engine::tick`] has to be called at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<UnixMillis> {
        self.nodes.values().filter_map(NodeState::open_switch).map(|switch| switch.until).min()
    }

    fn open_nodes(&self) -> Vec<NodeName> {
        let open = self.nodes.values().filter(|node| node.open_switch().is_some());
        open.map(|node| node.spec.name.clone()).collect()
    }

    /// Takes one input. `chance` makes the ticket, should one be issued.
    pub fn handle(&mut self, input: Input, now: UnixMillis, chance: [u8; 16]) -> Output {
        let mut output = Output::default();
        match input {
            Input::Wish { token, node, profile, by, plan_hash, id } => {
                let wish = wish::Wish { node, profile, by, plan_hash, id };
                self.wish(token, wish, now, &mut output);
            }
            Input::Power { token, node, verb, by } => {
                self.power_verb(token, &node, verb, &by, now, &mut output);
            }
            Input::Observed(observation) => self.observed(observation, now, &mut output),
            Input::Asked { token, ask } => self.asked(token, &ask, now, chance, &mut output),
            Input::Document { token, ticket, name, from } => {
                self.document(token, &ticket, name, from, now, &mut output);
            }
            Input::Agent { token, ticket, from, says } => {
                self.agent(token, &ticket, from, says, now, &mut output);
            }
            Input::Sighted(sighting) => self.sighted(sighting, now, &mut output),
            Input::BmcSeen { node, guid, suite, trouble, at } => {
                self.bmc_seen(node, guid, suite, trouble, at, &mut output);
            }
            Input::PowerSeen { node, on, at } => self.power_seen(node, on, at, &mut output),
        }
        output
    }

    /// One step of a node's open switch, with its records and effects.
    pub(crate) fn advance(
        &mut self,
        node: &NodeName,
        event: Event,
        now: UnixMillis,
        output: &mut Output,
    ) {
        self.touched.insert(node.clone());
        let Some(state) = self.nodes.get_mut(node) else { return };
        let around = state.around(now);
        let Some(switch) = state.switch.as_mut() else { return };
        let before = switch.clone();
        let Step { due, moved } = step(switch, event, &around);
        if *switch != before {
            switch.version += 1;
            output.records.push(Record::Switch(Box::new(switch.clone())));
        }
        if moved {
            output.records.push(transition(switch, now));
        }
        for due in due {
            if let Act::Permitted(permission) = &due.act {
                output.records.push(Record::Audit(permission.audit(now)));
            }
            let cause = Cause::Switch(switch.id.clone());
            let (act, not_before) = (due.act, due.not_before);
            output.effects.push(Effect { node: node.clone(), cause, act, not_before });
        }
        let (was, is) = (before.phase, switch.phase);
        if was != is && !is.is_open() {
            state.close(now, output);
        }
    }

    /// What the boot services are to assume of each node as it stands.
    pub fn intents(&self) -> impl Iterator<Item = (&NodeState, BootIntent)> {
        self.nodes.values().map(|state| (state, state.intent(&self.profiles)))
    }

    /// Nodes that were touched since the last call, with what the boot services are to assume of each.
    pub fn take_changes(&mut self) -> Vec<(NodeState, BootIntent)> {
        let changed = std::mem::take(&mut self.touched);
        let states = changed.iter().filter_map(|name| self.nodes.get(name));
        states.map(|state| (state.clone(), state.intent(&self.profiles))).collect()
    }
}

/// The history row of a switch as it stands.
pub(crate) fn transition(switch: &Switch, at: UnixMillis) -> Record {
    let (id, node) = (switch.id.clone(), switch.node.clone());
    Record::Transition { switch: id, node, at, phase: switch.phase, reason: switch.reason.clone() }
}
