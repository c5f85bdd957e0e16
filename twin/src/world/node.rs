//! A simulated node: power, boot order, network boot, and what it then runs, in virtual time.
//!
//! Pure: [`SimNode::wake`] and its siblings take the moment and give what happens next as [`Move`]s. It knows
//! nothing of the engine but the messages that go over the wire.

use std::time::Duration;

use model::{
    BootAnswer, MacAddr, RootKind, Sighted, Ticket, UnixMillis, Uuid,
    agent::{Order, Report},
    sighting::DhcpKind,
};
use plan::{AgentSays, BootTarget, ProfileKind, ProfileSpec, input::AgentAnswer, input::Refused};

use crate::{chance::Chance, hardware::Hardware, smbios};

/// What the node does to the world around it.
#[derive(Debug)]
pub(super) enum Move {
    /// Wakes itself after so long, if its step is still the same.
    Wake(Duration),
    /// Something is seen on the wire.
    Show(Sighted),
    /// Asks for its boot script.
    Ask,
    /// Its agent or payload speaks.
    Say(Ticket, AgentSays),
}

/// What it is doing; every state but `Off`, `Hung` and `DiskSystem` has a wake-up ahead of it.
#[derive(Debug, Clone, PartialEq)]
enum Doing {
    Off,
    Post,
    /// Asks DHCP; so many tries were in vain.
    Dhcp(u8),
    /// Waits for its script; so many tries were in vain.
    Script(u8),
    /// Told to look again later.
    Waits,
    Fetches(Payload),
    Starts(Payload),
    Agent(Payload, AgentStage),
    /// An installer or a live system at work.
    Works(Payload),
    CallsBack(Payload, u8),
    /// Runs from memory.
    RamSystem,
    DiskSystem,
    ShutsDown,
    /// No boot device.
    Hung,
}

#[derive(Debug, Clone, PartialEq)]
struct Payload {
    profile: ProfileSpec,
    ticket: Ticket,
    kernel: String,
    nonce: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentStage {
    Claims(u8),
    Reports(u8),
    Asks(u8),
    Waits,
}

/// What a simulated node is like.
#[derive(Debug, Clone)]
pub struct Habits {
    /// Firmware tries the network first, override or not.
    pub network_first: bool,
    /// A running system does not obey the power button.
    pub ignores_button: bool,
    /// Never asks DHCP: no link.
    pub never_asks_dhcp: bool,
    /// The next so many kernels reset the machine as they start.
    pub boot_loops: u8,
    /// A second machine claims the node's next ticket first.
    pub has_double: bool,
    /// A system is on the disk.
    pub disk_boots: bool,
}

/// What has been done to a node, counted where it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Times power went from off to on.
    pub power_ons: u32,
    /// Times power was cut, not counting shut-downs.
    pub power_cuts: u32,
    /// Times an installer wrote the disk.
    pub installs: u32,
    /// Times a kernel was started.
    pub kernels: u32,
}

/// A simulated node.
#[derive(Debug)]
pub struct SimNode {
    pub(super) hardware: Hardware,
    /// How it behaves; tests change it.
    pub habits: Habits,
    armed: Option<BootTarget>,
    doing: Doing,
    /// Grows with each change of what it does: a wake-up for an older step is stale.
    step: u64,
    /// When the first firmware request of this attempt was made.
    attempt: Option<UnixMillis>,
    counts: Counts,
    log: Vec<(UnixMillis, &'static str)>,
}

/// DHCP tries before firmware goes on: PXE's 0, 4, 8, … seconds for about two minutes.
const DHCP_TRIES: u8 = 30;
/// Tries for an answer before a script or payload is given up.
const ANSWER_TRIES: u8 = 60;
/// Between two tries.
const AGAIN: Duration = Duration::from_secs(4);
/// What a waiting script sleeps.
const WAITS: Duration = Duration::from_secs(30);

impl SimNode {
    pub(super) fn new(hardware: Hardware, on: bool) -> Self {
        let disk_boots = !hardware.disks.is_empty();
        let habits = Habits {
            network_first: false,
            ignores_button: false,
            never_asks_dhcp: false,
            boot_loops: 0,
            has_double: false,
            disk_boots,
        };
        let doing = if on { Doing::DiskSystem } else { Doing::Off };
        Self {
            hardware,
            habits,
            armed: None,
            doing,
            step: 0,
            attempt: None,
            counts: Counts::default(),
            log: Vec::new(),
        }
    }

    /// Whether power is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.doing != Doing::Off
    }

    /// What was done to it.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What it did, in order.
    #[must_use]
    pub fn log(&self) -> &[(UnixMillis, &'static str)] {
        &self.log
    }

    pub(super) fn step(&self) -> u64 {
        self.step
    }

    pub(super) fn attempt(&self) -> Option<UnixMillis> {
        self.attempt
    }

    pub(super) fn mac(&self) -> MacAddr {
        let [mac, ..] = self.hardware.macs;
        mac
    }

    pub(super) fn guid(&self) -> Uuid {
        self.hardware.uuid
    }

    pub(super) fn arm(&mut self, target: BootTarget) {
        self.armed = Some(target);
    }

    pub(super) fn power_on(&mut self, now: UnixMillis, chance: &mut Chance) -> Vec<Move> {
        if self.is_on() {
            return vec![];
        }
        self.counts.power_ons += 1;
        self.note(now, "power on");
        self.restart(chance)
    }

    pub(super) fn power_cut(&mut self, now: UnixMillis) {
        if self.is_on() {
            self.counts.power_cuts += 1;
            self.note(now, "power cut");
            self.go(Doing::Off);
        }
    }

    pub(super) fn reset(&mut self, now: UnixMillis, chance: &mut Chance) -> Vec<Move> {
        if !self.is_on() {
            return vec![];
        }
        self.note(now, "reset");
        self.restart(chance)
    }

    pub(super) fn button(&mut self) -> Vec<Move> {
        let listens = match self.doing {
            Doing::RamSystem | Doing::DiskSystem | Doing::Agent(..) | Doing::Works(_) => true,
            Doing::CallsBack(..) => true,
            Doing::Off
            | Doing::Post
            | Doing::Dhcp(_)
            | Doing::Script(_)
            | Doing::Waits
            | Doing::Fetches(_)
            | Doing::Starts(_)
            | Doing::ShutsDown
            | Doing::Hung => false,
        };
        if !listens || self.habits.ignores_button {
            return vec![];
        }
        self.go(Doing::ShutsDown);
        vec![Move::Wake(Duration::from_secs(12))]
    }

    fn restart(&mut self, chance: &mut Chance) -> Vec<Move> {
        self.go(Doing::Post);
        self.attempt = None;
        let seconds = 60.0 + 60.0 * chance.unit();
        vec![Move::Wake(Duration::from_secs_f64(seconds))]
    }

    fn go(&mut self, doing: Doing) {
        self.doing = doing;
        self.step += 1;
    }

    fn note(&mut self, now: UnixMillis, what: &'static str) {
        self.log.push((now, what));
    }

    /// The wake-up it asked for has come.
    pub(super) fn wake(&mut self, now: UnixMillis, chance: &mut Chance) -> Vec<Move> {
        match self.doing.clone() {
            Doing::Off | Doing::DiskSystem | Doing::RamSystem | Doing::Hung => vec![],
            Doing::Post => self.choose_device(now),
            Doing::Dhcp(tries) => self.ask_dhcp(now, tries),
            Doing::Script(tries) => self.ask_script(now, tries),
            Doing::Waits => self.ask_script(now, 0),
            Doing::Fetches(payload) => self.fetched(payload),
            Doing::Starts(payload) => self.started(now, payload, chance),
            Doing::Agent(payload, stage) => self.agent(now, payload, stage),
            Doing::Works(payload) => self.worked(now, payload),
            Doing::CallsBack(payload, tries) => self.call_back(payload, tries),
            Doing::ShutsDown => {
                self.note(now, "shut down");
                self.go(Doing::Off);
                vec![]
            }
        }
    }

    fn choose_device(&mut self, now: UnixMillis) -> Vec<Move> {
        let network = match self.armed.take() {
            Some(BootTarget::Network) => true,
            Some(BootTarget::Disk) => false,
            None => self.habits.network_first || !self.habits.disk_boots,
        };
        if network && !self.habits.never_asks_dhcp {
            return self.ask_dhcp(now, 0);
        }
        self.boot_disk(now)
    }

    fn boot_disk(&mut self, now: UnixMillis) -> Vec<Move> {
        if self.habits.disk_boots {
            self.note(now, "disk boot");
            self.go(Doing::DiskSystem);
        } else {
            self.note(now, "no boot device");
            self.go(Doing::Hung);
        }
        vec![]
    }

    /// Asks; what the boot service makes of it comes back through [`SimNode::leased`].
    fn ask_dhcp(&mut self, now: UnixMillis, tries: u8) -> Vec<Move> {
        if tries == DHCP_TRIES {
            return self.boot_disk(now);
        }
        self.attempt.get_or_insert(now);
        self.go(Doing::Dhcp(tries + 1));
        let client = "x86 BIOS (0)".to_owned();
        let discover =
            Sighted::DhcpIn { kind: DhcpKind::Discover, xid: 1, client, relay: None, proxy: false };
        vec![Move::Wake(AGAIN), Move::Show(discover)]
    }

    /// The boot service answered the DHCP request: with a loader, or without.
    pub(super) fn leased(&mut self, now: UnixMillis, loader: bool) -> Vec<Move> {
        match (&self.doing, loader) {
            (Doing::Dhcp(_), true) => {
                self.go(Doing::Waits);
                vec![Move::Wake(Duration::from_secs(2))]
            }
            (Doing::Dhcp(_), false) => self.boot_disk(now),
            _ => vec![],
        }
    }

    fn ask_script(&mut self, now: UnixMillis, tries: u8) -> Vec<Move> {
        if tries == ANSWER_TRIES {
            return self.boot_disk(now);
        }
        self.go(Doing::Script(tries + 1));
        vec![Move::Wake(AGAIN), Move::Ask]
    }

    /// The boot script. `profile` is what its kernel belongs to.
    pub(super) fn script(
        &mut self,
        now: UnixMillis,
        answer: BootAnswer,
        profile: Option<&ProfileSpec>,
        chance: &mut Chance,
    ) -> Vec<Move> {
        if !matches!(self.doing, Doing::Script(_)) {
            return vec![];
        }
        match (answer, profile) {
            (BootAnswer::Kernel(script), Some(profile)) => {
                let Some(ticket) = script.ticket else { return self.boot_disk(now) };
                let nonce = model::hex::encode(&chance.bytes());
                let (profile, kernel) = (profile.clone(), script.kernel);
                self.go(Doing::Fetches(Payload { profile, ticket, kernel, nonce }));
                vec![Move::Wake(Duration::from_secs(3))]
            }
            (BootAnswer::Wait { .. }, _) => {
                self.go(Doing::Waits);
                vec![Move::Wake(WAITS)]
            }
            (BootAnswer::Local { .. } | BootAnswer::Kernel(_), _) => self.boot_disk(now),
        }
    }

    fn fetched(&mut self, payload: Payload) -> Vec<Move> {
        let path = payload.kernel.clone();
        self.go(Doing::Starts(payload));
        vec![Move::Wake(Duration::from_secs(4)), Move::Show(Sighted::KernelWhole { path })]
    }

    fn started(&mut self, now: UnixMillis, payload: Payload, chance: &mut Chance) -> Vec<Move> {
        self.counts.kernels += 1;
        self.note(now, "kernel");
        if let Some(less) = self.habits.boot_loops.checked_sub(1) {
            self.habits.boot_loops = less;
            // A panic at once: shorter than any self test, so that the loop is seen as one.
            self.go(Doing::Post);
            self.attempt = None;
            self.armed = Some(BootTarget::Network);
            return vec![Move::Wake(Duration::from_secs_f64(1.0 + chance.unit()))];
        }
        match payload.profile.kind {
            ProfileKind::Inspect => {
                let double = std::mem::replace(&mut self.habits.has_double, false);
                let mut moves = self.agent(now, payload.clone(), AgentStage::Claims(0));
                if double {
                    let nonce = model::hex::encode(&chance.bytes());
                    moves.insert(0, Move::Say(payload.ticket, AgentSays::Claim { nonce }));
                }
                moves
            }
            ProfileKind::Linux | ProfileKind::Local => {
                self.go(Doing::Works(payload));
                vec![Move::Wake(Duration::from_secs_f64(60.0 + 120.0 * chance.unit()))]
            }
        }
    }

    fn agent(&mut self, now: UnixMillis, payload: Payload, stage: AgentStage) -> Vec<Move> {
        let nonce = payload.nonce.clone();
        let (stage, says) = match stage {
            AgentStage::Claims(ANSWER_TRIES)
            | AgentStage::Reports(ANSWER_TRIES)
            | AgentStage::Asks(ANSWER_TRIES) => {
                self.note(now, "agent gives up");
                self.go(Doing::Off);
                return vec![];
            }
            AgentStage::Claims(tries) => {
                (AgentStage::Claims(tries + 1), AgentSays::Claim { nonce })
            }
            AgentStage::Reports(tries) => {
                let report = self.report(nonce);
                (AgentStage::Reports(tries + 1), AgentSays::Report(Box::new(report)))
            }
            AgentStage::Asks(tries) => (AgentStage::Asks(tries + 1), AgentSays::Next { nonce }),
            AgentStage::Waits => (AgentStage::Asks(1), AgentSays::Next { nonce }),
        };
        let ticket = payload.ticket.clone();
        self.go(Doing::Agent(payload, stage));
        vec![Move::Wake(AGAIN), Move::Say(ticket, says)]
    }

    fn report(&self, nonce: String) -> Report {
        let (table, entry) = smbios::build(&self.hardware);
        Report {
            nonce,
            dmi: model::hex::encode(&table),
            dmi_entry: model::hex::encode(&entry),
            cpuinfo: self.hardware.cpuinfo(),
            memory_kib: self.hardware.memory_kib(),
            efi: false,
            kernel: "6.1.0-twin-amd64".to_owned(),
            disks: self.hardware.disk_facts(),
            nics: self.hardware.nic_facts(),
        }
    }

    /// The work of a foreign system is done: an installer has written the disk.
    fn worked(&mut self, now: UnixMillis, payload: Payload) -> Vec<Move> {
        if payload.profile.root == RootKind::Installer {
            self.counts.installs += 1;
            self.habits.disk_boots = true;
            self.note(now, "disk written");
        }
        if payload.profile.calls_back {
            return self.call_back(payload, 0);
        }
        self.go(Doing::RamSystem);
        vec![]
    }

    fn call_back(&mut self, payload: Payload, tries: u8) -> Vec<Move> {
        if tries == ANSWER_TRIES {
            self.go(Doing::RamSystem);
            return vec![];
        }
        let ticket = payload.ticket.clone();
        self.go(Doing::CallsBack(payload, tries + 1));
        vec![Move::Wake(AGAIN), Move::Say(ticket, AgentSays::Done)]
    }

    /// The server answered the agent or payload.
    pub(super) fn heard(
        &mut self,
        now: UnixMillis,
        answer: Result<AgentAnswer, Refused>,
        chance: &mut Chance,
    ) -> Vec<Move> {
        match (self.doing.clone(), answer) {
            (Doing::Agent(payload, stage), Ok(answer)) => {
                let order = match (answer, stage) {
                    (AgentAnswer::Claimed(claimed), AgentStage::Claims(_)) => claimed.order,
                    (AgentAnswer::Order(order), AgentStage::Reports(_) | AgentStage::Asks(_)) => {
                        order
                    }
                    // An answer to a question it has given up.
                    _ => return vec![],
                };
                self.obey(now, payload, &order, chance)
            }
            (Doing::CallsBack(payload, _), Ok(_)) => {
                self.note(now, "called back");
                self.go(Doing::RamSystem);
                let installer = payload.profile.root == RootKind::Installer;
                if installer { self.reset(now, chance) } else { vec![] }
            }
            (Doing::Agent(..) | Doing::CallsBack(..), Err(_)) => {
                self.note(now, "refused");
                self.go(Doing::RamSystem);
                vec![]
            }
            _ => vec![],
        }
    }

    fn obey(
        &mut self,
        now: UnixMillis,
        payload: Payload,
        order: &Order,
        chance: &mut Chance,
    ) -> Vec<Move> {
        match order {
            Order::Report => self.agent(now, payload, AgentStage::Reports(0)),
            Order::Wait { seconds } => {
                self.go(Doing::Agent(payload, AgentStage::Waits));
                vec![Move::Wake(Duration::from_secs(u64::from(*seconds)))]
            }
            Order::Reboot => self.reset(now, chance),
            Order::PowerOff => {
                self.note(now, "agent powers off");
                self.go(Doing::Off);
                vec![]
            }
        }
    }
}
