//! Lets machines out of a boot-loop quarantine when the world has changed for them: a new order, or power switched.

use std::{collections::BTreeMap, sync::Arc};

use model::NodeName;
use plan::{NodeState, SwitchId};
use profiles::EngineHandle;
use pxe::BootLoops;
use tokio::sync::broadcast::error::RecvError;

use crate::config::Config;

/// What a node's loop belongs to: its order, and its power since then.
type Standing = (Option<SwitchId>, Option<bool>);

/// Follows the engine until it is gone.
pub(super) async fn follow(engine: EngineHandle, config: Arc<Config>, loops: BootLoops) {
    let mut changes = engine.changes();
    let mut known = engine.states().iter().map(standing).collect();
    loop {
        let changed: Vec<NodeState> = match changes.recv().await {
            Ok(node) => engine.state(&node).into_iter().collect(),
            // Changes came faster than they were read: all nodes are looked at.
            Err(RecvError::Lagged(_)) => engine.states(),
            Err(RecvError::Closed) => return,
        };
        for node in moved(&mut known, &changed) {
            let macs = config.nodes.get(node.as_str()).map_or(&[][..], |node| &node.macs);
            if loops.release(macs) {
                tracing::info!(%node, "let out of its boot loop: it has a new order or its power was switched");
            }
        }
    }
}

fn standing(state: &NodeState) -> (NodeName, Standing) {
    let switch = state.switch.as_ref().map(|switch| switch.id.clone());
    (state.spec.name.clone(), (switch, state.power.map(|(on, _)| on)))
}

/// Nodes for which the world has changed. That nobody can read a node's power for a while is no change.
fn moved(known: &mut BTreeMap<NodeName, Standing>, states: &[NodeState]) -> Vec<NodeName> {
    let is_moved = |state: &NodeState| {
        let (node, (switch, on)) = standing(state);
        let (old_switch, old_on) = known.get(&node).cloned().unwrap_or_default();
        known.insert(node.clone(), (switch.clone(), on.or(old_on)));
        let switched = on.is_some() && old_on.is_some() && on != old_on;
        (switch != old_switch || switched).then_some(node)
    };
    states.iter().filter_map(is_moved).collect()
}
