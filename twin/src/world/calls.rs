//! The world as the engine sees it. Each call is a place where its process can be killed.

use std::{
    future::{Future, ready},
    time::Duration,
};

use model::{UnixMillis, boot::BootIntent};
use plan::{Effect, Input, NodeState, PersistError, Record, Replied, Reply, World};

use super::{Happening, SimWorld, Waiter, kernel_of};

impl World for SimWorld {
    fn now(&self) -> UnixMillis {
        self.now
    }

    fn chance(&mut self) -> [u8; 16] {
        self.chance.bytes()
    }

    fn persist(
        &mut self,
        batch: Vec<Record>,
    ) -> impl Future<Output = Result<(), PersistError>> + Send {
        let records = batch.len();
        let before = self.up;
        let alive = self.call();
        let synced = self.crash.is_some_and(|crash| crash.synced);
        if before {
            self.journal.write(batch);
        }
        if alive || (before && synced) {
            self.journal.sync();
        }
        let why = "the process was killed".to_owned();
        ready(if alive { Ok(()) } else { Err(PersistError { records, why, lasting: true }) })
    }

    /// Nothing here fails for a while: a world that is killed ends.
    fn wait(
        &mut self,
        _moment: UnixMillis,
        _why: &PersistError,
    ) -> impl Future<Output = bool> + Send {
        ready(false)
    }

    fn start(&mut self, effect: Effect) {
        if self.call() {
            let wait = Duration::from_millis(5 + self.chance.next_u64() % 50);
            let at = self.now.plus(wait).max(effect.not_before);
            self.schedule_at(at, Happening::Send(self.life, effect));
        }
    }

    fn reply(&mut self, reply: Reply) {
        if !self.call() {
            return;
        }
        let now = self.now;
        match (self.waiters.remove(&reply.token.0), reply.what) {
            (Some(Waiter::Person(number)), what) => self.answered(number, what),
            (Some(Waiter::Node(name)), Replied::Boot(answer)) => {
                let profile = match &answer {
                    model::BootAnswer::Kernel(script) => {
                        let profiles = &self.specs.profiles;
                        profiles.values().find(|one| kernel_of(&one.name) == script.kernel)
                    }
                    model::BootAnswer::Local { .. } | model::BootAnswer::Wait { .. } => None,
                };
                let node = self.nodes.get_mut(&name);
                let moves = node.map(|node| node.script(now, answer, profile, &mut self.chance));
                self.make(&name, moves.unwrap_or_default());
            }
            (Some(Waiter::Node(name)), Replied::Agent(answer)) => {
                let node = self.nodes.get_mut(&name);
                let moves = node.map(|node| node.heard(now, answer, &mut self.chance));
                self.make(&name, moves.unwrap_or_default());
            }
            (Some(Waiter::Node(_)) | None, _) => (),
        }
    }

    fn publish(&mut self, intents: Vec<(NodeState, BootIntent)>) {
        if self.call() {
            let named = intents.into_iter().map(|(state, intent)| (state.spec.name, intent));
            self.intents.extend(named);
        }
    }

    fn next(
        &mut self,
        deadline: Option<UnixMillis>,
    ) -> impl Future<Output = Option<Vec<Input>>> + Send {
        ready(self.gather(deadline))
    }
}

impl SimWorld {
    fn gather(&mut self, deadline: Option<UnixMillis>) -> Option<Vec<Input>> {
        if !self.call() {
            return None;
        }
        let until = deadline.unwrap_or(self.horizon).min(self.horizon);
        while self.arrived.is_empty() {
            if self.is_settled() || self.horizon <= self.now {
                return None;
            }
            if !self.happen(until) {
                self.now = self.now.max(until);
                break;
            }
        }
        Some(self.arrived.drain(..).collect())
    }
}
