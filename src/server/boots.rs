//! Boots of a node as the API shows them: told from the book, with what the doctor says and where packets are kept.

use std::collections::BTreeSet;

use api::{BootDetail, BootList, BootStage, BootView, LoopReleased};
use model::{NodeName, Sighting, UnixMillis};
use pxe_proto::{doctor::Facts, story};
use web::lab::{Caller, Fault};

use super::{doctor, lab::LiveLab, views};

/// Sightings shown of a boot; the rest is left out in the middle of nothing that matters: an agent that waits.
const SHOWN: u32 = 2_000;

impl LiveLab {
    pub(super) async fn boot_list(&self, name: &str) -> Result<BootList, Fault> {
        let node = self.get(name)?.name.clone();
        let boots =
            inventory::sighting::boots(&self.store, &node).await.map_err(super::lab::store)?;
        let packets = self.packets.boots(&node);
        let facts = self.facts(&node, false).await?;
        // All but the last are over.
        let over = (1..boots.len()).map(|_| true).chain([false]);
        let view = |(seen, is_over): (&Vec<Sighting>, bool)| {
            boot_view(seen, &facts_of(&facts, is_over), &packets)
        };
        let mut boots: Vec<BootView> = boots.iter().zip(over).filter_map(view).collect();
        boots.reverse();
        Ok(BootList { node: node.to_string(), boots })
    }

    pub(super) async fn boot_detail(&self, name: &str, id: i64) -> Result<BootDetail, Fault> {
        let node = self.get(name)?.name.clone();
        let seen = inventory::sighting::of_attempt(&self.store, &node, UnixMillis(id), SHOWN);
        let seen = seen.await.map_err(super::lab::store)?;
        let last = inventory::sighting::last_boot(&self.store, &node).await;
        let is_over = last.map_err(super::lab::store)?.is_some_and(|last| last.0 > id);
        let packets = self.packets.boots(&node);
        let facts = facts_of(&self.facts(&node, false).await?, is_over);
        let boot = boot_view(&seen, &facts, &packets).ok_or_else(|| no_boot(&node, id))?;
        let timeline = seen.iter().map(views::sighting).collect();
        Ok(BootDetail { node: node.to_string(), boot, timeline })
    }

    pub(super) async fn boot_file(&self, name: &str, id: i64) -> Result<Vec<u8>, Fault> {
        let node = self.get(name)?.name.clone();
        let (files, of) = (self.packets.clone(), node.clone());
        let read = tokio::task::spawn_blocking(move || files.read(&of, UnixMillis(id))).await;
        match read {
            Ok(Ok(Some(bytes))) => Ok(bytes),
            Ok(Ok(None)) => {
                let text = format!(
                    "no packets are kept of boot {id} of {node}; `volund boots {node}` says of which"
                );
                Err(Fault::Unknown(text))
            }
            Ok(Err(error)) => {
                tracing::error!(%node, id, %error, "packets of a boot cannot be read");
                Err(Fault::Unavailable(
                    "the packets cannot be read; look at volund's log".to_owned(),
                ))
            }
            Err(error) => {
                tracing::error!(%node, id, %error, "reading the packets of a boot broke");
                Err(Fault::Unavailable(
                    "the packets cannot be read; look at volund's log".to_owned(),
                ))
            }
        }
    }

    pub(super) fn release(&self, caller: &Caller, name: &str) -> Result<LoopReleased, Fault> {
        let node = self.get(name)?;
        let was_held = self.loops.release(&node.macs);
        tracing::info!(node = %node.name, by = caller.name, was_held, "released from its boot loop");
        Ok(LoopReleased { node: node.name.to_string(), was_held })
    }
}

/// What is known of a node, for a boot that is over or not: nothing waits for one that is.
fn facts_of(facts: &Facts, is_over: bool) -> Facts {
    let awaited = facts.awaited.filter(|_| !is_over);
    Facts { is_over, awaited, ..facts.clone() }
}

/// One boot of these sightings; `None` when there are none.
fn boot_view(seen: &[Sighting], facts: &Facts, packets: &BTreeSet<UnixMillis>) -> Option<BootView> {
    let boot = story::tell(seen, facts.is_over, facts.now)?;
    let stage = |stage: &story::Stage| BootStage {
        name: stage.name.to_string(),
        from_ms: stage.from.0,
        to_ms: stage.to.0,
    };
    Some(BootView {
        id: boot.id.0,
        from_ms: boot.from.0,
        to_ms: boot.to.0,
        outcome: boot.outcome.word().to_owned(),
        text: boot.outcome.to_string(),
        stages: boot.stages.iter().map(stage).collect(),
        diagnoses: doctor::diagnosed(seen, facts),
        packets: packets.contains(&boot.id),
    })
}

fn no_boot(node: &NodeName, id: i64) -> Fault {
    Fault::Unknown(format!(
        "{node} has no boot {id}; `volund boots {node}` lists those that are kept"
    ))
}
