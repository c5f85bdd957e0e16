//! The engine: every node's state, and what each input does to it.

mod boot;
mod power;
mod resume;
mod wish;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use model::{
    NodeName, ProfileName, Sighted, Sighting, Ticket, UnixMillis, Uuid,
    boot::{Attempt, BootIntent},
    permit::Protection,
    sighting::DhcpKind,
};

use crate::{
    Cause, Effect, Input, Issued, NodeSpec, Observation, Observed, Phase, ProfileSpec, Record,
    Reply, Specs, StoredScript, Switch,
    step::{Around, Event, Step, step},
};

pub use boot::AGENT_WAIT_S;
pub use power::{POWER_BOUND, PowerOrder};
pub use wish::refuse_wish;

/// A machine that has read off this long is off, not restarting.
const OFF_FOR_GOOD: Duration = Duration::from_secs(8);

/// Turns a profile's templates into a script. Pure, given the configuration; the engine keeps what it made.
pub trait Render: Send {
    /// The script that starts `profile` on `node` under `ticket`.
    ///
    /// # Errors
    /// A sentence that names template, line and remedy.
    fn script(
        &self,
        node: &NodeSpec,
        profile: &ProfileName,
        ticket: &Ticket,
    ) -> Result<StoredScript, String>;
}

/// What the engine knows of one node.
#[derive(Debug, Clone)]
pub struct NodeState {
    /// What the configuration says.
    pub spec: NodeSpec,
    /// The profile it has settled in.
    pub settled: Option<ProfileName>,
    /// Its open or last switch.
    pub switch: Option<Switch>,
    /// The last boot answer under a ticket.
    pub last: Option<Issued>,
    /// Power as last read, and when.
    pub power: Option<(bool, UnixMillis)>,
    /// Since when power has read off without a reading of on between.
    pub off_since: Option<UnixMillis>,
    /// When its payload last spoke.
    pub alive: Option<UnixMillis>,
    /// When volund last ordered it to start outside of a switch.
    pub ordered: Option<UnixMillis>,
    /// System GUID on record for its BMC.
    pub recorded: Option<Uuid>,
    /// System GUID its BMC last told since the start.
    pub told: Option<Uuid>,
    /// Cipher suite in use with its BMC.
    pub suite: Option<u8>,
    /// What is wrong with its BMC.
    pub bmc_trouble: Option<String>,
    /// A power verb that is being carried out.
    pub order: Option<PowerOrder>,
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

impl NodeState {
    /// A node nothing is known of yet.
    #[must_use]
    pub fn new(spec: NodeSpec) -> Self {
        Self {
            spec,
            settled: None,
            switch: None,
            last: None,
            power: None,
            off_since: None,
            alive: None,
            ordered: None,
            recorded: None,
            told: None,
            suite: None,
            bmc_trouble: None,
            order: None,
        }
    }

    /// The open switch.
    #[must_use]
    pub fn open_switch(&self) -> Option<&Switch> {
        self.switch.as_ref().filter(|switch| switch.phase.is_open())
    }

    /// Whether the last switch stopped and waits for a person.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.switch.as_ref().is_some_and(|s| matches!(s.phase, Phase::Held | Phase::Failed))
    }

    /// The last attempt, for the boot table.
    #[must_use]
    pub fn attempt(&self) -> Option<Attempt> {
        let last = self.last.as_ref()?;
        Some(Attempt { id: last.attempt, kernel_whole: last.kernel_whole })
    }

    /// Its protection as a permit asks for it.
    #[must_use]
    pub fn protection(&self) -> Protection {
        match &self.spec.protected {
            Some(reason) => Protection::Protected { reason: reason.clone() },
            None => Protection::Open,
        }
    }

    pub(crate) fn around(&self, now: UnixMillis) -> Around {
        Around { now, protection: self.protection(), recorded: self.recorded }
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

    /// The nodes, for views.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeState> {
        self.nodes.values()
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

    fn observed(&mut self, observation: Observation, now: UnixMillis, output: &mut Output) {
        let Observation { node, cause, what } = observation;
        if let Observed::Power(reading) = &what {
            self.power_seen(node.clone(), reading.as_ref().ok().copied(), now, output);
        }
        match cause {
            Cause::Switch(id) => {
                let open = self.nodes.get(&node).and_then(NodeState::open_switch);
                if open.is_some_and(|switch| switch.id == id) {
                    self.advance(&node, Event::Observed(what), now, output);
                }
            }
            Cause::Order(token) => self.order_observed(&node, token, what, now, output),
        }
    }

    fn power_seen(
        &mut self,
        node: NodeName,
        on: Option<bool>,
        at: UnixMillis,
        output: &mut Output,
    ) {
        self.touched.insert(node.clone());
        let Some(state) = self.nodes.get_mut(&node) else { return };
        let before = state.power.map(|(on, _)| on);
        state.power = on.map(|on| (on, at));
        state.off_since = match on {
            Some(false) => state.off_since.or(Some(at)),
            Some(true) | None => None,
        };
        if before != on {
            output.records.push(Record::Power { node: node.clone(), on, at });
        }
        self.lost_power(&node, at, output);
    }

    /// A machine that was switched on and has read off for a while will not ask DHCP, nor call back.
    fn lost_power(&mut self, node: &NodeName, at: UnixMillis, output: &mut Output) {
        let Some(state) = self.nodes.get(node) else { return };
        let waits = state
            .open_switch()
            .filter(|switch| matches!(switch.phase, Phase::Booting | Phase::Installing));
        let Some((switch, off)) = waits.zip(state.off_since) else { return };
        // One reading may be the moment between off and on of a restart.
        if at.since(off.max(switch.since)) < OFF_FOR_GOOD {
            return;
        }
        let reason = format!("power has read off for {} s", at.since(off).as_secs());
        let remedy = "look at the machine and its BMC's log: it lost power or was switched off; then switch again";
        self.advance(node, Event::Hold { reason, remedy: remedy.to_owned() }, at, output);
    }

    /// The first GUID a BMC tells is the one on record; a later one never replaces it by itself.
    fn bmc_seen(
        &mut self,
        node: NodeName,
        guid: Option<Uuid>,
        suite: Option<u8>,
        trouble: Option<String>,
        at: UnixMillis,
        output: &mut Output,
    ) {
        let Some(state) = self.nodes.get_mut(&node) else { return };
        let guid = guid.filter(|guid| !guid.is_junk());
        state.told = guid.or(state.told);
        state.recorded = state.recorded.or(guid);
        state.suite = suite.or(state.suite);
        state.bmc_trouble.clone_from(&trouble);
        let (guid, suite) = (state.recorded, state.suite);
        self.touched.insert(node.clone());
        output.records.push(Record::Bmc { node, guid, suite, trouble, at });
    }

    fn sighted(&mut self, sighting: Sighting, now: UnixMillis, output: &mut Output) {
        let node = sighting.node.clone();
        let event =
            match &sighting.what {
                Sighted::DhcpIn {
                    kind: DhcpKind::Discover | DhcpKind::Request, client, ..
                } if !client.is_empty() => Some(Event::DhcpSeen),
                Sighted::KernelWhole { .. } => Some(Event::KernelWhole),
                Sighted::DhcpIn { .. }
                | Sighted::DhcpOut { .. }
                | Sighted::DhcpSilent { .. }
                | Sighted::TftpRead { .. }
                | Sighted::TftpDone { .. }
                | Sighted::TftpProbe { .. }
                | Sighted::TftpFailed { .. }
                | Sighted::HttpDone { .. }
                | Sighted::HttpShort { .. }
                | Sighted::Script { .. }
                | Sighted::Refused { .. }
                | Sighted::Agent { .. } => None,
            };
        if event == Some(Event::KernelWhole) {
            self.kernel_whole(&sighting, output);
        }
        output.records.push(Record::Sighting(Box::new(sighting)));
        self.touched.extend(node.clone());
        if let (Some(node), Some(event)) = (node, event) {
            self.advance(&node, event, now, output);
        }
    }

    fn kernel_whole(&mut self, sighting: &Sighting, output: &mut Output) {
        let state = sighting.node.as_ref().and_then(|node| self.nodes.get_mut(node));
        let last = state.and_then(|state| state.last.as_mut());
        if let Some(last) = last.filter(|last| Some(last.attempt.0) == sighting.attempt)
            && last.kernel_whole.is_none()
        {
            last.kernel_whole = Some(sighting.at);
            output.records.push(Record::Issued(Box::new(last.clone())));
        }
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
            if let crate::Act::Permitted(permission) = &due.act {
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

    /// Nodes that were touched since the last call, with what the boot services are to assume of each.
    pub fn take_changes(&mut self) -> Vec<(NodeState, BootIntent)> {
        let changed = std::mem::take(&mut self.touched);
        let states = changed.iter().filter_map(|name| self.nodes.get(name));
        states.map(|state| (state.clone(), state.intent(&self.profiles))).collect()
    }
}

impl NodeState {
    /// A switch has just ended: settle the node or not, and close its ticket where nothing may use it again.
    fn close(&mut self, now: UnixMillis, output: &mut Output) {
        let Some(switch) = &self.switch else { return };
        let ended_well = switch.phase == Phase::Done;
        if ended_well {
            let (node, profile) = (switch.node.clone(), switch.to.name.clone());
            self.settled = Some(profile.clone());
            output.records.push(Record::Settled { node, profile, at: now });
        }
        let keep = ended_well && switch.to.root == model::RootKind::Ram;
        let mine = |last: &&mut Issued| last.switch.as_ref() == Some(&switch.id);
        if let Some(last) = self.last.as_mut().filter(mine)
            && !keep
            && std::mem::replace(&mut last.live, false)
        {
            output.records.push(Record::Issued(Box::new(last.clone())));
        }
    }

    fn intent(&self, profiles: &BTreeMap<ProfileName, ProfileSpec>) -> BootIntent {
        if let Some(switch) = self.open_switch() {
            return if switch.to.boots_network() { BootIntent::Ask } else { BootIntent::Local };
        }
        let settled = self.settled.as_ref().and_then(|name| profiles.get(name));
        match settled {
            Some(profile) if profile.root == model::RootKind::Ram && !self.is_held() => {
                BootIntent::Ask
            }
            Some(_) | None => BootIntent::Local,
        }
    }
}

/// The history row of a switch as it stands.
pub(crate) fn transition(switch: &Switch, at: UnixMillis) -> Record {
    let (id, node) = (switch.id.clone(), switch.node.clone());
    Record::Transition { switch: id, node, at, phase: switch.phase, reason: switch.reason.clone() }
}
