//! What a person at a node's console may order: little, and never an installer.
//!
//! The wire is not authenticated: whoever can take a node's address at its boot can choose in its name. So a choice is
//! an ordinary wish with all its guards, only for what the configuration offers, only from a boot that has just begun,
//! and once in it. Everything else is refused with the command an operator would give.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use model::{
    BootAnswer, NodeName, ProfileName, RootKind,
    boot::{AttemptId, BootAsk},
};
use plan::{ProfileKind, input::Refused};
use profiles::EngineHandle;

use super::lab::switch_id;
use crate::config::Menu;

/// A boot that began longer ago is none that a person sits in front of: an operating system may be running.
const FRESH: Duration = Duration::from_secs(15 * 60);

/// Takes choices. Clones share it.
#[derive(Clone)]
pub(super) struct Console {
    rules: Option<Menu>,
    engine: EngineHandle,
    /// The last boot of each node in which something was chosen.
    chosen: Arc<Mutex<BTreeMap<NodeName, AttemptId>>>,
}

impl Console {
    /// Takes choices as `rules` allow; without a menu none.
    pub(super) fn new(rules: Option<Menu>, engine: EngineHandle) -> Self {
        Self { rules, engine, chosen: Arc::default() }
    }

    /// What follows from a choice: to wait for the order, or why there is none.
    pub(super) async fn choose(&self, ask: BootAsk, profile: ProfileName) -> BootAnswer {
        match self.order(&ask, &profile).await {
            Ok(()) => BootAnswer::Wait { why: format!("{profile} was ordered from this console") },
            Err(why) => {
                tracing::warn!(node = %ask.node, from = %ask.from, %profile, why, "refused a choice at a console");
                let command = format!("volund switch {} {profile}", ask.node);
                BootAnswer::Local { why: format!("{why}\nan operator can order it: {command}") }
            }
        }
    }

    async fn order(&self, ask: &BootAsk, profile: &ProfileName) -> Result<(), String> {
        self.allows(profile)?;
        let state = self.engine.state(&ask.node).ok_or("it is no known node")?;
        if state.spec.address.is_some_and(|own| own != ask.from) {
            return Err("it asks from an address that is not its own".to_owned());
        }
        let whole = state.last.as_ref().filter(|last| last.attempt == ask.attempt);
        if ask.at.since(ask.attempt.0) > FRESH
            || whole.is_some_and(|last| last.kernel_whole.is_some())
        {
            return Err("this boot is over: choose at the next one".to_owned());
        }
        let preview = self.engine.preview(&ask.node, profile);
        if let Some(blocked) = preview.blocked.into_iter().next() {
            return Err(blocked);
        }
        self.once(ask)?;
        let by = format!("console at {}", ask.from);
        let (node, profile) = (ask.node.clone(), profile.clone());
        tracing::info!(%node, %profile, by, "a profile was chosen at a console");
        match self.engine.wish(node, profile, by, None, switch_id()).await {
            Ok(_) => Ok(()),
            Err(
                Refused::Unknown(why)
                | Refused::Conflict(why)
                | Refused::Forbidden(why)
                | Refused::Unavailable(why),
            ) => Err(why),
        }
    }

    /// Whether the configuration lets anybody at a console order this.
    fn allows(&self, profile: &ProfileName) -> Result<(), String> {
        let rules = self.rules.as_ref().ok_or("no menu is configured")?;
        let spec = self.engine.profiles().get(profile).ok_or("there is no such profile")?;
        let allowed = match spec.kind {
            _ if spec.root == RootKind::Installer => {
                return Err("an installer is never started from a console".to_owned());
            }
            ProfileKind::Inspect => rules.inspect,
            ProfileKind::Linux => rules.profiles,
            ProfileKind::Local => false,
        };
        allowed.then_some(()).ok_or_else(|| "[menu] does not allow it".to_owned())
    }

    /// A second choice in one boot is none of a person's: the first one is being carried out.
    fn once(&self, ask: &BootAsk) -> Result<(), String> {
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        match chosen.insert(ask.node.clone(), ask.attempt) {
            Some(attempt) if attempt == ask.attempt => {
                Err("something was chosen in this boot already".to_owned())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "console_tests.rs"]
mod tests;
