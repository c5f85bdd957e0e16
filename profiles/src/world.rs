//! The server's world: a database, BMCs, and callers that wait.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError},
    time::{Duration, SystemTime},
};

use inventory::{StoreError, Writer};
use model::{NodeName, ProfileName, UnixMillis, boot::BootIntent};
use plan::{
    Effect, Input, NodeState, Observation, PersistError, ProfileSpec, Record, Reply, World,
};
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinSet},
};
use tokio_util::sync::CancellationToken;

use crate::{
    EngineHandle,
    acts::{Boards, carry_out},
    handle::{QUEUE, Shared},
    journal,
};

/// Inputs taken in one batch; their records are committed together.
const BATCH: usize = 256;
/// Longest sleep where no switch is under way and nothing comes in.
const IDLE: Duration = Duration::from_hours(1);

/// Told of changed nodes after they are durable: the boot table is rebuilt there.
pub type OnChange = Box<dyn FnMut(&[(NodeState, BootIntent)]) + Send>;

/// What the world is made of.
pub struct Wiring {
    /// The book's writer.
    pub writer: Writer,
    /// BMCs by node.
    pub boards: Boards,
    /// The profiles, for the handle.
    pub profiles: BTreeMap<ProfileName, ProfileSpec>,
    /// Told of changed nodes.
    pub on_change: OnChange,
    /// Ends it.
    pub stop: CancellationToken,
}

/// The server's world.
pub struct LiveWorld {
    writer: Writer,
    boards: Boards,
    on_change: OnChange,
    stop: CancellationToken,
    inputs: mpsc::Receiver<Input>,
    observations: mpsc::Sender<Input>,
    shared: Arc<Shared>,
    effects: JoinSet<()>,
}

/// Wall-clock time, as records have it.
#[must_use]
pub fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl LiveWorld {
    /// A world, and the handle to speak to the engine that will run in it.
    #[must_use]
    pub fn new(wiring: Wiring) -> (Self, EngineHandle) {
        let Wiring { writer, boards, profiles, on_change, stop } = wiring;
        let (sender, inputs) = mpsc::channel(QUEUE);
        let observations = sender.clone();
        let (handle, shared) = EngineHandle::new(sender, profiles);
        let effects = JoinSet::new();
        let world = Self { writer, boards, on_change, stop, inputs, observations, shared, effects };
        (world, handle)
    }
}

impl World for LiveWorld {
    fn now(&self) -> UnixMillis {
        now()
    }

    fn chance(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the kernel's random source answers once it is seeded");
        bytes
    }

    async fn persist(&mut self, batch: Vec<Record>) -> Result<(), PersistError> {
        let records = batch.len();
        let rows: Result<Vec<_>, _> = batch.into_iter().map(journal::to_row).collect();
        let rows = rows.map_err(|why| PersistError { records, why, lasting: true })?;
        self.writer.submit(rows).await.map_err(|error| {
            let source = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            let why = format!("{error}{}", source.unwrap_or_default());
            let lasting = matches!(
                error,
                StoreError::Conflict { .. } | StoreError::Encode { .. } | StoreError::Stopped
            );
            PersistError { records, why, lasting }
        })
    }

    async fn wait(&mut self, moment: UnixMillis, why: &PersistError) -> bool {
        tracing::error!(error = %why, "nothing is switched until this is kept; trying again");
        let pause = tokio::time::sleep(moment.since(now()));
        self.stop.run_until_cancelled(pause).await.is_some()
    }

    fn start(&mut self, effect: Effect) {
        let Effect { node, cause, act, not_before } = effect;
        let delay: Duration = not_before.since(now());
        let board = self.boards.get(&node).cloned();
        let observations = self.observations.clone();
        self.effects.spawn(async move {
            tokio::time::sleep(delay).await;
            let what = carry_out(board, &node, act).await;
            let observation = Input::Observed(Observation { node, cause, what });
            if observations.send(observation).await.is_err() {
                tracing::debug!("the engine has stopped before an observation came back");
            }
        });
    }

    fn reply(&mut self, reply: Reply) {
        let mut waiting = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = waiting.remove(&reply.token) {
            // A caller that has gone does not want the answer any more.
            drop(sender.send(reply.what));
        }
    }

    fn publish(&mut self, changes: Vec<(NodeState, BootIntent)>) {
        (self.on_change)(&changes);
        let mut states = self.shared.states.write().unwrap_or_else(PoisonError::into_inner);
        for (state, _) in changes {
            let name: NodeName = state.spec.name.clone();
            states.insert(name.clone(), state);
            // Nobody listening is no error.
            drop(self.shared.changes.send(name));
        }
    }

    async fn next(&mut self, deadline: Option<UnixMillis>) -> Option<Vec<Input>> {
        let wait = tokio::time::sleep(deadline.map_or(IDLE, |at| at.since(now())));
        tokio::pin!(wait);
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                Some(ended) = self.effects.join_next() => must_not_break(ended),
                count = self.inputs.recv_many(&mut batch, BATCH) => return (count > 0).then_some(batch),
                () = &mut wait => return Some(batch),
            }
        }
    }
}

/// An effect that broke gives no observation, and its node would wait for it for ever: this ends the engine, and
/// with it the server.
fn must_not_break(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}
