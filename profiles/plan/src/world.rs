//! The world the engine acts in, and the loop around it.

use std::{future::Future, time::Duration};

use model::{UnixMillis, boot::BootIntent};

use crate::{Effect, Engine, Input, NodeState, Record, Reply};

/// Records could not be made durable. Nothing of the batch may take effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("could not make {records} records durable: {why}")]
pub struct PersistError {
    /// How many.
    pub records: usize,
    /// Why, without secrets.
    pub why: String,
    /// Whether trying again cannot help: the record contradicts what is stored.
    pub lasting: bool,
}

/// Time between two tries to make a batch durable.
const PERSIST_AGAIN: Duration = Duration::from_secs(1);

/// Why the loop ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// The world ended: shutdown, or the end of a simulation.
    WorldEnded,
    /// A batch can never be made durable; the state in memory is no longer the state on record.
    NotDurable(PersistError),
}

/// What the engine needs of the world. Two exist: the server's, and the twin's in virtual time.
pub trait World {
    /// The moment.
    fn now(&self) -> UnixMillis;
    /// 16 bytes of chance, for tickets.
    fn chance(&mut self) -> [u8; 16];
    /// Makes a batch durable, whole or not at all.
    fn persist(
        &mut self,
        batch: Vec<Record>,
    ) -> impl Future<Output = Result<(), PersistError>> + Send;
    /// Waits until `moment`, taking no inputs: senders wait. `false` when the world ends meanwhile. Called while
    /// a batch cannot be made durable, with the reason.
    fn wait(&mut self, moment: UnixMillis, why: &PersistError)
    -> impl Future<Output = bool> + Send;
    /// Begins to carry out an effect. Its observation comes back through [`World::next`], exactly once.
    fn start(&mut self, effect: Effect);
    /// Sends an answer to whoever waits; a caller that has gone is no error.
    fn reply(&mut self, reply: Reply);
    /// Nodes that changed, and what the boot services are to assume of each from now on.
    fn publish(&mut self, changes: Vec<(NodeState, BootIntent)>);
    /// Waits for inputs, until `deadline` at most (then an empty batch). `None` ends the loop.
    fn next(
        &mut self,
        deadline: Option<UnixMillis>,
    ) -> impl Future<Output = Option<Vec<Input>>> + Send;
}

/// Runs the engine until its world ends. One batch at a time: decide, persist, then publish, act and answer.
pub async fn run<W: World>(engine: &mut Engine, world: &mut W) -> Stopped {
    let mut inputs = Vec::new();
    let mut output = engine.resume(world.now());
    loop {
        for input in inputs.drain(..) {
            let chance = world.chance();
            output.extend(engine.handle(input, world.now(), chance));
        }
        output.extend(engine.tick(world.now()));
        if let Err(stopped) = keep(std::mem::take(&mut output.records), world).await {
            return stopped;
        }
        let changes = engine.take_changes();
        if !changes.is_empty() {
            world.publish(changes);
        }
        output.effects.drain(..).for_each(|effect| world.start(effect));
        output.replies.drain(..).for_each(|reply| world.reply(reply));
        match world.next(engine.deadline()).await {
            Some(batch) => inputs = batch,
            None => return Stopped::WorldEnded,
        }
    }
}

/// Makes a batch durable, however long the disk takes: a full one stops switches, not the engine.
async fn keep<W: World>(batch: Vec<Record>, world: &mut W) -> Result<(), Stopped> {
    if batch.is_empty() {
        return Ok(());
    }
    loop {
        match world.persist(batch.clone()).await {
            Ok(()) => return Ok(()),
            Err(error) if error.lasting => return Err(Stopped::NotDurable(error)),
            Err(error) => {
                let again = world.now().plus(PERSIST_AGAIN);
                if !world.wait(again, &error).await {
                    return Err(Stopped::WorldEnded);
                }
            }
        }
    }
}
