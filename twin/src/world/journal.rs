//! The simulated disk: what was synced survives a crash, what was only written does not.

use std::collections::{BTreeMap, BTreeSet};

use model::NodeName;
use plan::{NodeSpec, NodeState, Record};

/// An append-only journal in memory.
#[derive(Debug, Default)]
pub struct Journal {
    durable: Vec<Record>,
    tail: Vec<Record>,
    /// Nodes whose newest durable switch is open.
    open: BTreeSet<NodeName>,
}

impl Journal {
    /// Everything that survived so far, oldest first.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.durable
    }

    pub(super) fn write(&mut self, batch: Vec<Record>) {
        self.tail.extend(batch);
    }

    pub(super) fn sync(&mut self) {
        for record in &self.tail {
            let Record::Switch(switch) = record else { continue };
            if switch.phase.is_open() {
                self.open.insert(switch.node.clone());
            } else {
                self.open.remove(&switch.node);
            }
        }
        self.durable.append(&mut self.tail);
    }

    /// Whether a switch is in flight, as far as the disk knows.
    pub(super) fn has_open_switch(&self) -> bool {
        !self.open.is_empty()
    }

    /// The machine lost power: the unsynced tail is gone.
    pub(super) fn crash(&mut self) {
        self.tail.clear();
    }

    /// The nodes as a process that starts now would find them.
    #[must_use]
    pub fn nodes(&self, specs: &BTreeMap<NodeName, NodeSpec>) -> Vec<NodeState> {
        let fresh = specs.values().map(|spec| (spec.name.clone(), NodeState::new(spec.clone())));
        let mut nodes: BTreeMap<NodeName, NodeState> = fresh.collect();
        for record in &self.durable {
            apply(&mut nodes, record);
        }
        nodes.into_values().collect()
    }
}

/// Folds one record in, as the book of record does: the newest of each kind counts.
fn apply(nodes: &mut BTreeMap<NodeName, NodeState>, record: &Record) {
    match record {
        Record::Switch(switch) => with(nodes, &switch.node, |state| {
            let newer = |old: &plan::Switch| old.id != switch.id || old.version < switch.version;
            if state.switch.as_ref().is_none_or(newer) {
                state.switch = Some((**switch).clone());
            }
        }),
        Record::Settled { node, profile, .. } => {
            with(nodes, node, |state| state.settled = Some(profile.clone()));
        }
        Record::Issued(issued) => {
            with(nodes, &issued.node, |state| state.last = Some((**issued).clone()));
        }
        Record::Power { node, on, at } => {
            with(nodes, node, |state| state.power = on.map(|on| (on, *at)));
        }
        Record::Bmc { node, guid, suite, trouble, .. } => with(nodes, node, |state| {
            state.recorded = *guid;
            state.suite = *suite;
            state.bmc_trouble.clone_from(trouble);
        }),
        // History and facts: nothing the engine decides by.
        Record::Transition { .. }
        | Record::Wish { .. }
        | Record::Sighting(_)
        | Record::Facts { .. }
        | Record::Audit(_) => (),
    }
}

fn with(
    nodes: &mut BTreeMap<NodeName, NodeState>,
    node: &NodeName,
    change: impl FnOnce(&mut NodeState),
) {
    if let Some(state) = nodes.get_mut(node) {
        change(state);
    }
}
