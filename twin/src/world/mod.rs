//! The simulated world: `plan::World` in virtual time, seeded, with a disk that loses its unsynced tail.
//!
//! Nothing waits: the next thing on the agenda happens, and the clock jumps to it. The engine's process can be
//! killed at any call it makes into the world; nodes and their management controllers live on meanwhile, as
//! real ones do. Same seed, same story.

mod bmc;
mod calls;
mod journal;
mod node;
mod people;

use std::{
    collections::{BTreeMap, VecDeque},
    net::Ipv4Addr,
    time::Duration,
};

use model::{
    BayNumber, NodeName, ProfileName, Sighted, Sighting, Ticket, UnixMillis,
    boot::{AttemptId, BootAsk, BootIntent},
};
use plan::{
    AgentSays, Effect, Engine, Input, NodeSpec, Replied, Specs, Stopped, StoredScript, Token,
    engine::Render,
};

pub use bmc::BmcFaults;
pub use journal::Journal;
use node::Move;
pub use node::{Counts, Habits, SimNode};
use people::Person;

use crate::{chance::Chance, hardware::Hardware};

/// When the engine's process dies: at which of its calls into the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    /// Calls that still go through.
    pub after: u64,
    /// Should that call be a `persist`: whether the batch was already synced.
    pub synced: bool,
    /// How long until the process is started again.
    pub down: Duration,
}

/// Something that is going to happen.
#[derive(Debug)]
enum Happening {
    /// A node wakes up, if its step is still this one.
    Wake(NodeName, u64),
    /// An effect reaches its BMC; belongs to one life of the process.
    Send(u64, Effect),
    /// Something reaches the process; belongs to one life of it.
    Arrive(u64, Input),
    /// A person asks, and asks again until answered.
    Person(Person),
}

/// Who waits for a reply.
#[derive(Debug, Clone)]
enum Waiter {
    Node(NodeName),
    Person(usize),
}

/// How a simulated life of all processes ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// No wish is open and no switch is in flight.
    Settled,
    /// The time was up.
    TimeUp,
}

/// The world.
pub struct SimWorld {
    now: UnixMillis,
    chance: Chance,
    agenda: BTreeMap<(UnixMillis, u64), Happening>,
    sequence: u64,
    specs: Specs,
    nodes: BTreeMap<NodeName, SimNode>,
    faults: BTreeMap<NodeName, BmcFaults>,
    intents: BTreeMap<NodeName, BootIntent>,
    journal: Journal,
    waiters: BTreeMap<u64, Waiter>,
    people: Vec<(Person, Option<Replied>)>,
    next_token: u64,
    arrived: VecDeque<Input>,
    /// Which life of the process this is.
    life: u64,
    up: bool,
    calls: u64,
    crash: Option<Crash>,
    horizon: UnixMillis,
}

/// Renders what a simulated node understands: the profile's name in the kernel's path.
struct SimRender;

impl Render for SimRender {
    fn script(
        &self,
        _node: &NodeSpec,
        profile: &ProfileName,
        ticket: &Ticket,
        _at: Ipv4Addr,
    ) -> Result<StoredScript, String> {
        Ok(StoredScript {
            title: format!("starts {profile}"),
            kernel: kernel_of(profile),
            initrds: vec![format!("/i/{profile}/initrd")],
            args: format!("volund.ticket={}", ticket.reveal()),
        })
    }
}

fn kernel_of(profile: &ProfileName) -> String {
    format!("/i/{profile}/vmlinuz")
}

impl SimWorld {
    /// A world of `specs`, all nodes off, beginning at a fixed moment. Nodes get the hardware of the bays, in
    /// the order of their names.
    #[must_use]
    pub fn new(specs: Specs, seed: u64) -> Self {
        let bays = (1..=64_u8).cycle().filter_map(|bay| BayNumber::new(bay).ok());
        let nodes = specs.nodes.keys().zip(bays);
        let nodes =
            nodes.map(|(name, bay)| (name.clone(), SimNode::new(Hardware::of_bay(0, bay), false)));
        Self {
            now: UnixMillis(1_764_547_200_000),
            chance: Chance::new(seed, 0),
            agenda: BTreeMap::new(),
            sequence: 0,
            nodes: nodes.collect(),
            faults: BTreeMap::new(),
            intents: BTreeMap::new(),
            journal: Journal::default(),
            waiters: BTreeMap::new(),
            people: Vec::new(),
            next_token: 1,
            arrived: VecDeque::new(),
            life: 0,
            up: false,
            calls: 0,
            crash: None,
            horizon: UnixMillis(i64::MAX),
            specs,
        }
    }

    /// The virtual moment.
    #[must_use]
    pub fn moment(&self) -> UnixMillis {
        self.now
    }

    /// A node.
    #[must_use]
    pub fn node(&self, name: &NodeName) -> Option<&SimNode> {
        self.nodes.get(name)
    }

    /// A node, to change its habits.
    pub fn node_mut(&mut self, name: &NodeName) -> Option<&mut SimNode> {
        self.nodes.get_mut(name)
    }

    /// Puts a running system on a node before the story begins.
    pub fn start_running(&mut self, name: &NodeName) {
        if let Some(node) = self.nodes.get_mut(name) {
            *node = SimNode::new(node.hardware.clone(), true);
            node.habits.disk_boots = true;
        }
    }

    /// Faults of a node's management controller.
    pub fn faults_mut(&mut self, name: &NodeName) -> &mut BmcFaults {
        self.faults.entry(name.clone()).or_default()
    }

    /// What survived on the disk.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Calls the engine has made into the world so far: the places where it can be killed.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Kills the engine's process once.
    pub fn crash_once(&mut self, crash: Crash) {
        self.crash = Some(crash);
    }

    /// Runs the engine, again after each crash, until everything is settled or `limit` of virtual time is over.
    /// An error to persist that no crash explains cannot come up: this disk is never full.
    pub async fn live(&mut self, limit: Duration) -> Ended {
        self.horizon = self.now.plus(limit);
        loop {
            let profiles = self.specs.profiles.clone();
            let specs = Specs { nodes: BTreeMap::new(), profiles };
            let nodes = self.journal.nodes(&self.specs.nodes);
            let mut engine = Engine::new(specs, nodes, Box::new(SimRender));
            self.life += 1;
            self.up = true;
            let stopped = plan::run(&mut engine, self).await;
            match stopped {
                Stopped::WorldEnded if self.up => {
                    self.up = false;
                    let over = self.horizon <= self.now;
                    return if over { Ended::TimeUp } else { Ended::Settled };
                }
                Stopped::WorldEnded | Stopped::NotDurable(_) => self.stay_down(),
            }
        }
    }

    /// The process is gone; the world goes on without it.
    fn stay_down(&mut self) {
        self.journal.crash();
        self.waiters.clear();
        self.arrived.clear();
        let down = self.crash.take().map_or(Duration::ZERO, |crash| crash.down);
        let until = self.now.plus(down);
        while self.happen(until) {}
        self.arrived.clear();
        self.now = self.now.max(until);
    }

    /// Counts a call of the engine; false when the process is dead.
    fn call(&mut self) -> bool {
        self.calls += 1;
        if self.crash.is_some_and(|crash| crash.after < self.calls) {
            self.up = false;
        }
        self.up
    }

    fn schedule(&mut self, after: Duration, what: Happening) {
        self.schedule_at(self.now.plus(after), what);
    }

    fn schedule_at(&mut self, at: UnixMillis, what: Happening) {
        self.sequence += 1;
        self.agenda.insert((at, self.sequence), what);
    }

    /// Lets the next thing happen, if it is due by `until`.
    fn happen(&mut self, until: UnixMillis) -> bool {
        let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= until) else {
            return false;
        };
        let ((at, _), what) = entry.remove_entry();
        self.now = self.now.max(at);
        match what {
            Happening::Wake(name, step) => {
                let now = self.now;
                let node = self.nodes.get_mut(&name).filter(|node| node.step() == step);
                if let Some(node) = node {
                    let moves = node.wake(now, &mut self.chance);
                    self.make(&name, moves);
                }
            }
            Happening::Send(life, effect) if self.up && life == self.life => self.carry_out(effect),
            Happening::Arrive(life, input) if self.up && life == self.life => {
                self.arrived.push_back(input);
            }
            // Sent by, or on its way to, a process that is no more.
            Happening::Send(..) | Happening::Arrive(..) => (),
            Happening::Person(person) => self.ask(person),
        }
        true
    }

    fn token(&mut self, waiter: Waiter) -> Token {
        let token = self.next_token;
        self.next_token += 1;
        self.waiters.insert(token, waiter);
        Token(token)
    }

    /// What a node does to its surroundings. Boot services live in the same process: dead with it.
    fn make(&mut self, name: &NodeName, moves: Vec<Move>) {
        for one in moves {
            match one {
                Move::Wake(after) => {
                    let step = self.nodes.get(name).map_or(0, SimNode::step);
                    self.schedule(after, Happening::Wake(name.clone(), step));
                }
                Move::Show(_) | Move::Ask | Move::Say(..) if !self.up => (),
                Move::Show(what) => self.show(name, what),
                Move::Ask => self.ask_script(name),
                Move::Say(ticket, says) => self.say(name, ticket, says),
            }
        }
    }

    fn show(&mut self, name: &NodeName, what: Sighted) {
        let Some(node) = self.nodes.get(name) else { return };
        let asks = matches!(what, Sighted::DhcpIn { .. });
        let address = self.specs.nodes.get(name).and_then(|spec| spec.address);
        let sighting = Sighting {
            at: self.now,
            node: Some(name.clone()),
            mac: Some(node.mac()),
            peer: address,
            attempt: node.attempt(),
            what,
        };
        self.arrived.push_back(Input::Sighted(sighting));
        if asks {
            let loader = self.intents.get(name) != Some(&BootIntent::NoBootFile);
            let now = self.now;
            let moves = self.nodes.get_mut(name).map(|node| node.leased(now, loader));
            self.make(name, moves.unwrap_or_default());
        }
    }

    fn ask_script(&mut self, name: &NodeName) {
        let now = self.now;
        if self.intents.get(name) == Some(&BootIntent::Local) {
            let answer = model::BootAnswer::Local { why: "boots its own disk".to_owned() };
            let node = self.nodes.get_mut(name);
            let moves = node.map(|node| node.script(now, answer, None, &mut self.chance));
            return self.make(name, moves.unwrap_or_default());
        }
        let asked = self.nodes.get(name).zip(self.specs.nodes.get(name));
        let Some((node, spec)) = asked else { return };
        let (mac, Some(from)) = (node.mac(), spec.address) else { return };
        let attempt = AttemptId(node.attempt().unwrap_or(now));
        let token = self.token(Waiter::Node(name.clone()));
        let ask = BootAsk { node: name.clone(), mac, from, attempt, at: now };
        self.arrived.push_back(Input::Asked { token, ask });
    }

    fn say(&mut self, name: &NodeName, ticket: Ticket, says: AgentSays) {
        let Some(from) = self.specs.nodes.get(name).and_then(|spec| spec.address) else { return };
        let token = self.token(Waiter::Node(name.clone()));
        self.arrived.push_back(Input::Agent { token, ticket, from, says });
    }

    /// Nobody waits and no switch is on its way.
    fn is_settled(&self) -> bool {
        self.people.iter().all(|(_, answer)| answer.is_some()) && !self.journal.has_open_switch()
    }
}

#[cfg(test)]
mod tests;
