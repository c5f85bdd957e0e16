//! A modelled blade: power, firmware, what it boots, and the faults a test can give it.
//!
//! The board side ([`Board`]) answers at once from shared state; one task a blade lives through what follows.
//! The task learns of power through a `watch` channel: only the latest state counts, so there is no queue that
//! could fill. A power change drops whatever the machine was doing, sockets included, in the middle.

mod firmware;
mod payload;
#[cfg(test)]
mod tests;

pub use payload::DONE_ARG;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bmc_proto::ipmi::boot_options::Reach;
use model::{BayNumber, NodeName};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    board::{Board, BootOverride},
    chance::Chance,
    draw::{Draw, Stage},
    hardware::Hardware,
    log::Log,
    relay::Port,
};

/// How fast a blade lives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Power-on self test, shortest.
    pub post: Duration,
    /// At most so much longer, by the seed.
    pub post_spread: Duration,
    /// How long a foreign system takes to install or start before it calls back.
    pub install: Duration,
    /// From the press of the power button to power off, when a system runs.
    pub soft_off: Duration,
    /// Scale of the waits that protocols and scripts prescribe: DHCP retries, `sleep`, "ask again in".
    pub scale: f64,
}

impl Default for Pace {
    /// The pace of the demo: a real blade takes two minutes for its self test, a person watching should not.
    fn default() -> Self {
        Self {
            post: Duration::from_millis(400),
            post_spread: Duration::from_millis(200),
            install: Duration::from_secs(2),
            soft_off: Duration::from_millis(300),
            scale: 1.0,
        }
    }
}

impl Pace {
    fn scaled(&self, seconds: u32) -> Duration {
        Duration::from_secs_f64(f64::from(seconds) * self.scale)
    }
}

/// Where the boot services are; known only after they were bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootServices {
    /// The DHCP server, as the relay reaches it.
    pub dhcp: SocketAddr,
    /// TFTP port at the address DHCP names. 69 on a real network.
    pub tftp_port: u16,
}

/// What a blade is made of.
#[derive(Debug, Clone)]
pub struct BladeSpec {
    /// Its name, for logs.
    pub name: NodeName,
    /// Its bay.
    pub bay: BayNumber,
    /// Its parts.
    pub hardware: Hardware,
    /// The address it is expected to be given; it lives on loopback only.
    pub address: Ipv4Addr,
    /// A system is on its first disk.
    pub disk_boots: bool,
    /// Seed of its spreads and curves.
    pub seed: u64,
    /// How fast it lives.
    pub pace: Pace,
}

/// A handle to a blade; cloning gives another handle to the same one.
#[derive(Debug, Clone)]
pub struct Blade(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    spec: BladeSpec,
    power: watch::Sender<Power>,
    wanted: Mutex<Option<BootOverride>>,
    stage: AtomicU8,
    faults: Faults,
    disk_boots: AtomicBool,
    bytes: AtomicU64,
    log: Log,
    draw: Draw,
    since: Instant,
}

/// Faults; each is set through a method of [`Blade`].
#[derive(Debug, Default)]
struct Faults {
    never_asks_dhcp: AtomicBool,
    truncate_downloads: AtomicU32,
    lose_agent_answers: AtomicU32,
    boot_loops: AtomicU32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Power {
    on: bool,
    /// Grows with every switch-on, reset and switch-off: another epoch is another run.
    epoch: u64,
    /// Off, and to be switched on again after a moment.
    cycling: bool,
    /// Presses of the soft power button.
    presses: u64,
}

/// How a run of the machine ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Off,
    Reset,
}

/// A power cycle stays off for so long, times the pace's scale; IPMI asks for a second at least.
const CYCLE_S: u32 = 1;

impl Blade {
    /// A blade that is off. Nothing happens until [`Blade::run`] is polled.
    #[must_use]
    pub fn new(spec: BladeSpec) -> Self {
        let power = Power { on: false, epoch: 0, cycling: false, presses: 0 };
        Self(Arc::new(Inner {
            power: watch::Sender::new(power),
            wanted: Mutex::new(None),
            stage: AtomicU8::new(0),
            faults: Faults::default(),
            disk_boots: AtomicBool::new(spec.disk_boots),
            bytes: AtomicU64::new(0),
            log: Log::default(),
            draw: Draw::new(spec.seed, spec.bay.get()),
            since: Instant::now(),
            spec,
        }))
    }

    /// What it did, in order.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.0.log
    }

    /// What it is made of.
    #[must_use]
    pub fn spec(&self) -> &BladeSpec {
        &self.0.spec
    }

    /// Bytes it fetched over TFTP and HTTP, whole files only.
    #[must_use]
    pub fn bytes_fetched(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Puts a system on the first disk, or takes it away.
    pub fn set_disk_boots(&self, boots: bool) {
        self.0.disk_boots.store(boots, Ordering::Relaxed);
    }

    /// Fault: the network port has no link, until called with false.
    pub fn never_asks_dhcp(&self, fault: bool) {
        self.0.faults.never_asks_dhcp.store(fault, Ordering::Relaxed);
    }

    /// Fault: the next `times` downloads of a kernel or initrd break off half way.
    pub fn truncate_download(&self, times: u32) {
        self.0.faults.truncate_downloads.store(times, Ordering::Relaxed);
    }

    /// Fault: the answer to the agent's next question is lost on the way.
    pub fn lose_next_agent_answer(&self) {
        self.0.faults.lose_agent_answers.store(1, Ordering::Relaxed);
    }

    /// Fault: the next `times` kernels reset the machine as soon as they start.
    pub fn boot_loop(&self, times: u32) {
        self.0.faults.boot_loops.store(times, Ordering::Relaxed);
    }

    /// Lives until `stop` fires. `port` is its place at the relay, `services` where to boot from.
    pub async fn run(
        self,
        mut port: Port,
        services: watch::Receiver<Option<BootServices>>,
        stop: CancellationToken,
    ) {
        let mut power = self.0.power.subscribe();
        let mut chance = Chance::new(self.0.spec.seed, u64::from(self.0.spec.bay.get()));
        loop {
            let state = *power.borrow_and_update();
            let mut machine = Machine {
                blade: &self.0,
                port: &mut port,
                services: services.clone(),
                chance: &mut chance,
                power: power.clone(),
            };
            let end = tokio::select! {
                () = stop.cancelled() => return,
                () = another_epoch(&mut power, state.epoch) => None,
                end = machine.live(state) => Some(end),
            };
            if let Some(end) = end {
                self.0.ended(state, end);
            }
            self.0.set_stage(Stage::Off);
        }
    }
}

/// Comes back when the power state belongs to another epoch.
async fn another_epoch(power: &mut watch::Receiver<Power>, epoch: u64) {
    // The sender lives as long as the blade, which this task holds.
    let _closed = power.wait_for(|now| now.epoch != epoch).await;
}

/// Comes back when the soft power button was pressed once more.
async fn pressed(power: &mut watch::Receiver<Power>, before: u64) {
    let _closed = power.wait_for(|now| now.presses != before).await;
}

/// One run of the machine: from a change of power to the next.
struct Machine<'a> {
    blade: &'a Inner,
    port: &'a mut Port,
    services: watch::Receiver<Option<BootServices>>,
    chance: &'a mut Chance,
    power: watch::Receiver<Power>,
}

impl Machine<'_> {
    /// Everything the machine does in this state of power.
    async fn live(&mut self, state: Power) -> End {
        match (state.on, state.cycling) {
            (true, _) => self.boot().await,
            (false, true) => {
                tokio::time::sleep(self.blade.spec.pace.scaled(CYCLE_S)).await;
                End::Reset
            }
            (false, false) => std::future::pending().await,
        }
    }
}

/// A system runs: `work`, until the power button is pressed.
async fn system(
    blade: &Inner,
    mut power: watch::Receiver<Power>,
    work: impl Future<Output = End>,
) -> End {
    let before = power.borrow_and_update().presses;
    tokio::select! {
        end = work => end,
        () = pressed(&mut power, before) => {
            blade.log.step("soft off");
            tokio::time::sleep(blade.spec.pace.soft_off).await;
            End::Off
        }
    }
}

impl Inner {
    /// Changes power; `change` says whether there is anything to change.
    fn switch(&self, step: &str, change: impl FnOnce(&mut Power) -> bool) {
        self.power.send_if_modified(|power| {
            let changed = change(power);
            if changed {
                power.epoch += 1;
                self.log.step(step);
            }
            changed
        });
    }

    /// The run of `state` ended by itself, unless something else changed power at the same moment.
    fn ended(&self, state: Power, end: End) {
        let step = match (end, state.on) {
            (End::Off, _) => "power off",
            (End::Reset, true) => "restart",
            (End::Reset, false) => "power on",
        };
        self.switch(step, |power| {
            if power.epoch != state.epoch {
                return false;
            }
            power.on = end == End::Reset;
            power.cycling = false;
            true
        });
    }

    fn set_stage(&self, stage: Stage) {
        let number = match stage {
            Stage::Off => 0,
            Stage::Firmware => 1,
            Stage::Idle => 2,
            Stage::Busy => 3,
        };
        self.stage.store(number, Ordering::Relaxed);
    }

    fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Relaxed) {
            1 => Stage::Firmware,
            2 => Stage::Idle,
            3 => Stage::Busy,
            _ => Stage::Off,
        }
    }

    fn wanted(&self) -> Option<BootOverride> {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_wanted(&self, wanted: Option<BootOverride>) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
    }

    /// What firmware is told to boot from; a one-shot override is used up by that.
    fn use_override(&self) -> Option<BootOverride> {
        let wanted = self.wanted()?;
        if wanted.reach == Reach::Once {
            self.set_wanted(None);
        }
        Some(wanted)
    }
}

/// Takes one from a fault's count; false when none is left.
fn strikes(count: &AtomicU32) -> bool {
    let less = |left: u32| left.checked_sub(1);
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
}

impl Board for Blade {
    fn power(&self) -> bool {
        self.0.power.borrow().on
    }

    fn power_on(&self) {
        self.0.switch("power on", |power| {
            let changes = !power.on;
            (power.on, power.cycling) = (true, false);
            changes
        });
    }

    fn power_off(&self) {
        self.0.switch("power off", |power| {
            let changes = power.on || power.cycling;
            (power.on, power.cycling) = (false, false);
            changes
        });
    }

    fn reset(&self) {
        self.0.switch("reset", |power| power.on);
    }

    fn power_cycle(&self) {
        self.0.switch("power cycle", |power| {
            let changes = power.on;
            if changes {
                (power.on, power.cycling) = (false, true);
            }
            changes
        });
    }

    fn soft_off(&self) {
        // No new epoch: whoever runs may listen, and firmware does not.
        self.0.power.send_if_modified(|power| {
            power.presses += 1;
            power.on
        });
    }

    fn set_boot_override(&self, wanted: Option<BootOverride>) {
        self.0.set_wanted(wanted);
    }

    fn boot_override(&self) -> Option<BootOverride> {
        self.0.wanted()
    }

    fn watts(&self) -> Option<u16> {
        // The stage is the task's; power is the truth.
        let stage = match (self.power(), self.0.stage()) {
            (false, _) => Stage::Off,
            (true, Stage::Off) => Stage::Firmware,
            (true, stage) => stage,
        };
        self.0.draw.whole_watts(stage, self.0.since.elapsed())
    }

    fn guid(&self) -> [u8; 16] {
        self.0.spec.hardware.uuid.swapped().0
    }
}
