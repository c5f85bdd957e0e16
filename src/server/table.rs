//! The table the boot services answer from, kept in step with the engine.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use model::{
    NodeName, ProfileName,
    boot::{BootEntry, BootIntent, BootTable, BootTraits, DhcpOption},
};
use plan::{Engine, NodeState};

/// Clones share it. The engine's world and what is learnt of machines change it, each its own part, by compare and
/// swap: nothing is locked, readers never wait, and no change is lost.
#[derive(Clone, Default)]
pub(super) struct Table {
    pub(super) current: Arc<ArcSwap<BootTable>>,
    options: Arc<Options>,
}

/// DHCP options by who declares them.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// Of a node.
    pub(super) nodes: BTreeMap<NodeName, Vec<DhcpOption>>,
    /// Of a profile.
    pub(super) profiles: BTreeMap<ProfileName, Vec<DhcpOption>>,
}

impl Options {
    /// The options of a node now: its profile's, with its own in front of them. Its profile is the one it is being
    /// switched to, or else the one it has settled in.
    fn of(&self, state: &NodeState) -> Vec<DhcpOption> {
        let next = state.open_switch().map(|switch| &switch.to.name);
        let profile = next.or(state.settled.as_ref());
        let profile = profile.and_then(|profile| self.profiles.get(profile));
        let own = self.nodes.get(&state.spec.name);
        let both = profile.into_iter().chain(own).flatten();
        let merged: BTreeMap<u8, &DhcpOption> = both.map(|option| (option.code, option)).collect();
        merged.into_values().cloned().collect()
    }
}

impl Table {
    /// An empty table that knows these options.
    pub(super) fn new(options: Options) -> Self {
        Self { options: Arc::new(options), ..Self::default() }
    }

    /// The whole table at a start, each node with what the engine will say of it: until the engine runs, a node
    /// of an open switch asks and waits for it instead of being sent to its own disk.
    pub(super) fn fill(&self, mut table: BootTable, engine: &Engine) {
        for (state, intent) in engine.intents() {
            if let (None, Some(last)) = (state.spec.address, &state.last) {
                table.last_at.insert(last.from, state.spec.name.clone());
            }
            if let Some(entry) = self.changed(&table, state, intent) {
                table.insert(entry);
            }
        }
        self.current.store(Arc::new(table));
    }

    /// Replaces the entries of changed nodes. Most of what the engine tells changes none.
    pub(super) fn apply(&self, changes: &[(NodeState, BootIntent)]) {
        self.change(|table| {
            let changed = changes.iter();
            changed.filter_map(|(state, intent)| self.changed(table, state, *intent)).collect()
        });
    }

    /// Replaces what is peculiar about booting a node.
    pub(super) fn set_traits(
        &self,
        node: &NodeName,
        change: impl FnOnce(BootTraits) -> BootTraits + Clone,
    ) {
        self.change(|table| {
            let old = table.by_node.get(node).map(|old| BootEntry::clone(old));
            let new = old.map(|old| {
                let traits = (change.clone())(old.traits.clone());
                (BootEntry { traits, ..old.clone() }, old)
            });
            new.into_iter().filter(|(new, old)| new != old).map(|(new, _)| new).collect()
        });
    }

    /// Replaces entries. `entries` may be asked again, of a later table, when somebody else was faster.
    fn change(&self, entries: impl Fn(&BootTable) -> Vec<BootEntry>) {
        loop {
            let current = self.current.load_full();
            let entries = entries(&current);
            if entries.is_empty() {
                return;
            }
            let mut table = BootTable::clone(&current);
            entries.into_iter().for_each(|entry| table.insert(entry));
            let before = self.current.compare_and_swap(&current, Arc::new(table));
            if Arc::ptr_eq(&before, &current) {
                return;
            }
        }
    }

    /// The node's entry as it is to be, if that is another one than `table` has.
    fn changed(
        &self,
        table: &BootTable,
        state: &NodeState,
        intent: BootIntent,
    ) -> Option<BootEntry> {
        let old = table.by_node.get(&state.spec.name)?;
        let traits = BootTraits { options: self.options.of(state), ..old.traits.clone() };
        let attempt = state.attempt();
        let new = BootEntry { intent, attempt, traits, ..BootEntry::clone(old) };
        (new != **old).then_some(new)
    }
}

#[cfg(test)]
mod tests {
    use plan::NodeSpec;

    use super::*;

    fn option(code: u8, value: u8) -> DhcpOption {
        DhcpOption { code, value: vec![value] }
    }

    #[test]
    fn a_nodes_own_options_stand_before_those_of_the_profile_it_has() {
        let name: NodeName = "bld-003".parse().unwrap();
        let profile: ProfileName = "worker".parse().unwrap();
        let options = Options {
            nodes: [(name.clone(), vec![option(26, 1)])].into(),
            profiles: [(profile.clone(), vec![option(15, 2), option(26, 2)])].into(),
        };
        let spec = NodeSpec {
            name,
            address: None,
            efi: false,
            protected: None,
            profiles: vec![profile.clone()],
            bmc: String::new(),
            owned: None,
        };
        let mut state = NodeState::new(spec);
        assert_eq!(options.of(&state), [option(26, 1)]);
        state.settled = Some(profile);
        assert_eq!(options.of(&state), [option(15, 2), option(26, 1)]);
    }
}
