//! How the rest of the program speaks to the engine.

use std::{
    collections::{BTreeMap, HashMap},
    net::Ipv4Addr,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use model::{BootAnswer, NodeName, ProfileName, Sighting, Ticket, UnixMillis, boot::BootAsk};
use plan::{
    AgentSays, Input, NodeState, ProfileSpec, Replied, SwitchId, Token,
    input::{AgentAnswer, DocumentGrant, PowerVerb, Refused},
    preview::{Preview, preview},
};
use tokio::sync::{broadcast, mpsc, oneshot};

/// Inputs that may wait for the engine. When it is full, senders wait: nothing is lost.
pub(crate) const QUEUE: usize = 1_024;
/// Changes a slow listener may miss before it has to look at everything again.
const CHANGES: usize = 256;

/// What handle and world share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) waiting: Mutex<HashMap<Token, oneshot::Sender<Replied>>>,
    pub(crate) states: RwLock<BTreeMap<NodeName, NodeState>>,
    pub(crate) changes: broadcast::Sender<NodeName>,
    profiles: BTreeMap<ProfileName, ProfileSpec>,
    tokens: AtomicU64,
}

/// Speaks to the engine. Clones share it.
#[derive(Debug, Clone)]
pub struct EngineHandle {
    inputs: mpsc::Sender<Input>,
    shared: Arc<Shared>,
}

/// The engine has ended; volund is stopping or must be restarted.
const GONE: &str = "the switch engine has stopped; restart volund and look at its log";

impl EngineHandle {
    pub(crate) fn new(
        inputs: mpsc::Sender<Input>,
        profiles: BTreeMap<ProfileName, ProfileSpec>,
    ) -> (Self, Arc<Shared>) {
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            states: RwLock::default(),
            changes: broadcast::channel(CHANGES).0,
            profiles,
            tokens: AtomicU64::new(1),
        });
        (Self { inputs, shared: Arc::clone(&shared) }, shared)
    }

    /// The node as it stands now.
    #[must_use]
    pub fn state(&self, node: &NodeName) -> Option<NodeState> {
        self.shared.states.read().unwrap_or_else(PoisonError::into_inner).get(node).cloned()
    }

    /// All nodes as they stand now, by name.
    #[must_use]
    pub fn states(&self) -> Vec<NodeState> {
        let states = self.shared.states.read().unwrap_or_else(PoisonError::into_inner);
        states.values().cloned().collect()
    }

    /// The profiles.
    #[must_use]
    pub fn profiles(&self) -> &BTreeMap<ProfileName, ProfileSpec> {
        &self.shared.profiles
    }

    /// Names of nodes that change, from now on.
    #[must_use]
    pub fn changes(&self) -> broadcast::Receiver<NodeName> {
        self.shared.changes.subscribe()
    }

    /// What a switch would do. Changes nothing.
    #[must_use]
    pub fn preview(&self, node: &NodeName, profile: &ProfileName) -> Preview {
        preview(&self.shared.profiles, self.state(node).as_ref(), node, profile)
    }

    /// Starts a switch.
    ///
    /// # Errors
    /// [`Refused`] when it may not be.
    pub async fn wish(
        &self,
        node: NodeName,
        profile: ProfileName,
        by: String,
        plan_hash: Option<String>,
        id: SwitchId,
    ) -> Result<SwitchId, Refused> {
        let input = |token| Input::Wish { token, node, profile, by, plan_hash, id };
        match self.ask(input).await {
            Some(Replied::Switch(answer)) => answer,
            other => Err(unexpected(other)),
        }
    }

    /// Carries out a power verb; gives power as read back.
    ///
    /// # Errors
    /// [`Refused`] when it may not be, or the BMC could not be made to.
    pub async fn power(
        &self,
        node: NodeName,
        verb: PowerVerb,
        by: String,
    ) -> Result<Option<bool>, Refused> {
        match self.ask(|token| Input::Power { token, node, verb, by }).await {
            Some(Replied::Power(answer)) => answer,
            other => Err(unexpected(other)),
        }
    }

    /// What a node is to boot.
    pub async fn boot(&self, ask: BootAsk) -> BootAnswer {
        match self.ask(|token| Input::Asked { token, ask }).await {
            Some(Replied::Boot(answer)) => answer,
            _ => BootAnswer::Local { why: GONE.to_owned() },
        }
    }

    /// Permission to render a document.
    ///
    /// # Errors
    /// [`Refused`] when the ticket does not open it.
    pub async fn document(
        &self,
        ticket: Ticket,
        name: String,
        from: Ipv4Addr,
    ) -> Result<DocumentGrant, Refused> {
        match self.ask(|token| Input::Document { token, ticket, name, from }).await {
            Some(Replied::Document(answer)) => answer,
            other => Err(unexpected(other)),
        }
    }

    /// An agent or payload speaks.
    ///
    /// # Errors
    /// [`Refused`] when its ticket is not good.
    pub async fn agent(
        &self,
        ticket: Ticket,
        from: Ipv4Addr,
        says: AgentSays,
    ) -> Result<AgentAnswer, Refused> {
        match self.ask(|token| Input::Agent { token, ticket, from, says }).await {
            Some(Replied::Agent(answer)) => answer,
            other => Err(unexpected(other)),
        }
    }

    /// Something was seen on the wire.
    pub async fn sighted(&self, sighting: Sighting) {
        self.tell(Input::Sighted(sighting)).await;
    }

    /// Power was read, or could not be.
    pub async fn power_seen(&self, node: NodeName, on: Option<bool>, at: UnixMillis) {
        self.tell(Input::PowerSeen { node, on, at }).await;
    }

    /// Tells the engine something nobody waits for. An engine that has stopped has no use for it.
    pub async fn tell(&self, input: Input) {
        if self.inputs.send(input).await.is_err() {
            tracing::debug!("the engine has stopped");
        }
    }

    async fn ask(&self, input: impl FnOnce(Token) -> Input) -> Option<Replied> {
        let token = Token(self.shared.tokens.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = oneshot::channel();
        self.waiting().insert(token, sender);
        let _place = Place { handle: self, token };
        self.inputs.send(input(token)).await.ok()?;
        receiver.await.ok()
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<Token, oneshot::Sender<Replied>>> {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller's place among those who wait; given up with its future, whatever ends that.
struct Place<'a> {
    handle: &'a EngineHandle,
    token: Token,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.handle.waiting().remove(&self.token);
    }
}

fn unexpected(other: Option<Replied>) -> Refused {
    if let Some(other) = other {
        tracing::error!(?other, "an answer of another kind");
    }
    Refused::Unavailable(GONE.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_caller_that_gave_up_leaves_nothing_behind() {
        let (sender, mut inputs) = mpsc::channel(1);
        let (handle, shared) = EngineHandle::new(sender, BTreeMap::new());
        let power = || handle.power("bld-003".parse().unwrap(), PowerVerb::On, "anna".to_owned());
        // One is in the queue, the other waits for room in it: the engine takes neither.
        for _ in 0..2 {
            let soon = std::time::Duration::from_millis(1);
            assert!(tokio::time::timeout(soon, power()).await.is_err());
        }
        assert_eq!(shared.waiting.lock().unwrap().len(), 0);
        assert!(matches!(inputs.recv().await, Some(Input::Power { .. })));
    }
}
