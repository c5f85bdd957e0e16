//! The table the boot services answer from, kept in step with the engine.

use std::sync::Arc;

use arc_swap::ArcSwap;
use model::{
    NodeName,
    boot::{BootEntry, BootIntent, BootTable},
};
use plan::{Engine, NodeState};

/// Clones share it. The engine's world alone replaces it, so nothing is locked; readers never wait.
#[derive(Clone, Default)]
pub(super) struct Table {
    pub(super) current: Arc<ArcSwap<BootTable>>,
}

impl Table {
    /// The whole table at a start, each node with what the engine will say of it: until the engine runs, a node
    /// of an open switch asks and waits for it instead of being sent to its own disk.
    pub(super) fn fill(&self, mut table: BootTable, engine: &Engine) {
        for (state, intent) in engine.intents() {
            if let Some(entry) = changed(&table, state, intent) {
                table.insert(entry);
            }
        }
        self.current.store(Arc::new(table));
    }

    /// Replaces the entries of changed nodes. Most of what the engine tells changes none.
    pub(super) fn apply(&self, changes: &[(NodeState, BootIntent)]) {
        let current = self.current.load();
        let entries: Vec<BootEntry> = changes
            .iter()
            .filter_map(|(state, intent)| changed(&current, state, *intent))
            .collect();
        if entries.is_empty() {
            return;
        }
        let mut table = BootTable::clone(&current);
        entries.into_iter().for_each(|entry| table.insert(entry));
        self.current.store(Arc::new(table));
    }
}

/// The node's entry as it is to be, if that is another one than `table` has.
fn changed(table: &BootTable, state: &NodeState, intent: BootIntent) -> Option<BootEntry> {
    let node: &NodeName = &state.spec.name;
    let old = table.by_node.get(node)?;
    let new = BootEntry { intent, attempt: state.attempt(), ..BootEntry::clone(old) };
    (new != **old).then_some(new)
}
