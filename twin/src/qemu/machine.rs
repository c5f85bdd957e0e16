//! Keeps one QEMU machine: starts it, watches it, ends it, and moves its boot order.
//!
//! Power off means: there is no process. A one-shot override is in place before the reset that uses it and is
//! taken back only when no reset came for two seconds, because SeaBIOS resets the machine by itself up to four
//! times right after a reset and QEMU reads the order anew each time.

use std::{
    ffi::OsString,
    io,
    path::Path,
    process::Stdio,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bmc_proto::ipmi::boot_options::{BootDevice, Reach};
use serde_json::json;
use tokio::{
    process::{Child, Command},
    sync::mpsc,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    command::{BootOrder, command_line, disk_file},
    config::{MachineConfig, TwinConfig},
    qmp::{Qmp, QmpError},
};
use crate::{board::BootOverride, log::Log};

/// Without a reset for so long, the boot under an override has begun for good.
const QUIET: Duration = Duration::from_secs(2);
/// Longest wait for QEMU's socket.
const START: Duration = Duration::from_secs(10);
/// Longest wait for QEMU to go after `quit`.
const END: Duration = Duration::from_secs(3);
/// How long a power cycle stays off (IPMI wants at least a second).
const CYCLE: Duration = Duration::from_secs(1);

/// What the board asks of the keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    On,
    Off,
    Reset,
    Cycle,
    SoftOff,
    /// The override was set or cleared.
    Rearm,
}

/// What board and keeper share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// A process runs.
    pub(super) on: AtomicBool,
    /// The guest's driver has taken the network card over since the last reset.
    pub(super) system_up: AtomicBool,
    /// Override in force.
    wanted: Mutex<Option<BootOverride>>,
    pub(super) log: Log,
}

impl Shared {
    pub(super) fn wanted(&self) -> Option<BootOverride> {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_wanted(&self, wanted: Option<BootOverride>) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
    }

    /// What the next boot begins with. Anything but the network means the disk: there is no other device.
    fn order(&self) -> BootOrder {
        match self.wanted() {
            Some(BootOverride { device: BootDevice::Pxe, .. }) => BootOrder::Network,
            _ => BootOrder::Disk,
        }
    }

    fn has_one_shot(&self) -> bool {
        self.wanted().is_some_and(|wanted| wanted.reach == Reach::Once)
    }

    /// Takes a one-shot override back, since a boot has used it; a lasting one stays.
    fn use_one_shot(&self) -> bool {
        let used = self.has_one_shot();
        if used {
            self.set_wanted(None);
        }
        used
    }
}

/// Why a machine did not start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("could not prepare {0}")]
    Prepare(String, #[source] io::Error),
    #[error("{0} has {1} bytes, the configuration says {2}: remove it or correct size_mib")]
    DiskSize(String, u64, u64),
    #[error("could not start {0}")]
    Spawn(String, #[source] io::Error),
    #[error("QEMU ended at once: {0}")]
    Ended(String),
    #[error("QEMU gave no QMP connection")]
    Qmp(#[source] QmpError),
}

/// The keeper of one machine.
pub(super) struct Keeper {
    pub(super) config: Arc<TwinConfig>,
    pub(super) machine: MachineConfig,
    pub(super) shared: Arc<Shared>,
    pub(super) running: Option<Running>,
    /// When the disk becomes first again.
    pub(super) give_back: Option<Instant>,
}

/// A machine that is on.
pub(super) struct Running {
    child: Child,
    qmp: Qmp,
}

enum Next {
    Stop,
    Order(Order),
    Event(String),
    Ended,
    Quiet,
}

impl Keeper {
    pub(super) async fn run(mut self, mut orders: mpsc::Receiver<Order>, stop: CancellationToken) {
        loop {
            match self.wait(&mut orders, &stop).await {
                Next::Stop => return self.off().await,
                Next::Order(order) => self.obey(order).await,
                Next::Event(event) => self.note(&event),
                Next::Ended => self.off().await,
                Next::Quiet => self.give_order_back().await,
            }
        }
    }

    async fn wait(&mut self, orders: &mut mpsc::Receiver<Order>, stop: &CancellationToken) -> Next {
        let give_back = self.give_back;
        let Some(Running { child, qmp }) = &mut self.running else {
            return tokio::select! {
                () = stop.cancelled() => Next::Stop,
                order = orders.recv() => order.map_or(Next::Stop, Next::Order),
            };
        };
        tokio::select! {
            () = stop.cancelled() => Next::Stop,
            order = orders.recv() => order.map_or(Next::Stop, Next::Order),
            event = qmp.event() => event.map_or(Next::Ended, Next::Event),
            _ = child.wait() => Next::Ended,
            () = sleep_until(give_back.unwrap_or_else(Instant::now)), if give_back.is_some() => Next::Quiet,
        }
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::On => self.on().await,
            Order::Off => self.off().await,
            Order::Cycle => {
                self.off().await;
                sleep(CYCLE).await;
                self.on().await;
            }
            Order::Reset => self.tell("reset", "system_reset").await,
            Order::SoftOff => self.tell("soft off", "system_powerdown").await,
            Order::Rearm => {
                // A boot under an override that has just begun must not lose it: it is taken back later.
                if self.give_back.is_none() || self.shared.wanted().is_some() {
                    self.set_order(self.shared.order()).await;
                }
            }
        }
    }

    async fn tell(&mut self, step: &str, command: &'static str) {
        let Some(running) = &mut self.running else { return };
        self.shared.log.step(step);
        if let Err(error) = running.qmp.execute(command, json!({})).await {
            tracing::warn!(machine = %self.machine.name, error = %error, "QMP command failed");
        }
    }

    async fn on(&mut self) {
        if self.running.is_some() {
            return;
        }
        let order = self.shared.order();
        match start(&self.config, &self.machine, order).await {
            Ok(running) => {
                self.running = Some(running);
                self.give_back = self.shared.use_one_shot().then(|| Instant::now() + QUIET);
                self.shared.system_up.store(false, Ordering::Relaxed);
                self.shared.on.store(true, Ordering::Release);
                self.shared.log.step(format!("power on, {order:?} first"));
            }
            Err(error) => {
                let chain = chain(&error);
                tracing::error!(machine = %self.machine.name, error = %chain, "machine did not start");
                self.shared.log.step(format!("start failed: {chain}"));
            }
        }
    }

    async fn off(&mut self) {
        let Some(Running { mut child, mut qmp }) = self.running.take() else { return };
        self.give_back = None;
        // Refusal and silence end the same way: killed below.
        let _asked = qmp.execute("quit", json!({})).await;
        if timeout(END, child.wait()).await.is_err()
            && let Err(error) = child.kill().await
        {
            tracing::warn!(machine = %self.machine.name, %error, "QEMU could not be killed");
        }
        self.shared.on.store(false, Ordering::Release);
        self.shared.system_up.store(false, Ordering::Relaxed);
        self.shared.log.step("power off");
    }

    fn note(&mut self, event: &str) {
        match event {
            "RESET" => {
                self.shared.log.step("machine reset");
                self.shared.system_up.store(false, Ordering::Relaxed);
                if self.shared.use_one_shot() || self.give_back.is_some() {
                    self.give_back = Some(Instant::now() + QUIET);
                }
            }
            "SHUTDOWN" => self.shared.log.step("machine shut down"),
            "NIC_RX_FILTER_CHANGED" => self.shared.system_up.store(true, Ordering::Relaxed),
            _ => (),
        }
    }

    /// The next boot is in the usual order again, unless another one-shot override came meanwhile.
    async fn give_order_back(&mut self) {
        self.give_back = None;
        if !self.shared.has_one_shot() {
            self.set_order(self.shared.order()).await;
        }
    }

    async fn set_order(&mut self, order: BootOrder) {
        let Some(running) = &mut self.running else { return };
        let index = order.nic_index();
        let path = "/machine/peripheral/nic0";
        let arguments = json!({ "path": path, "property": "bootindex", "value": index });
        match running.qmp.execute("qom-set", arguments).await {
            Ok(_) => self.shared.log.step(format!("next boot: {order:?} first")),
            Err(error) => {
                tracing::warn!(machine = %self.machine.name, %error, "boot order could not be set");
            }
        }
    }
}

async fn start(
    config: &TwinConfig,
    machine: &MachineConfig,
    order: BootOrder,
) -> Result<Running, StartError> {
    prepare(config, machine).await?;
    let words = command_line(config, machine, order);
    let mut child = spawn(&words, &config.folder(&machine.name))?;
    let socket = config.socket(&machine.name);
    let deadline = Instant::now() + START;
    loop {
        match Qmp::connect(&socket).await {
            Ok(qmp) => return Ok(Running { child, qmp }),
            Err(error) if deadline <= Instant::now() => return Err(StartError::Qmp(error)),
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
        if let Ok(Some(status)) = child.try_wait() {
            let log = config.folder(&machine.name).join("qemu.log");
            let said = tokio::fs::read_to_string(log).await.unwrap_or_default();
            let last = said.lines().next_back().unwrap_or_default();
            return Err(StartError::Ended(format!("{status}: {last}")));
        }
    }
}

fn spawn(words: &[OsString], folder: &Path) -> Result<Child, StartError> {
    let (program, arguments) = words.split_first().expect("a command line has a program");
    let name = program.to_string_lossy().into_owned();
    let failed = |error| StartError::Spawn(name.clone(), error);
    let log = std::fs::File::create(folder.join("qemu.log")).map_err(failed)?;
    let errors = log.try_clone().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(log).stderr(errors).kill_on_drop(true);
    command.spawn().map_err(failed)
}

/// Folder, disks, firmware variables. What is there already is kept: a machine's disk survives everything.
async fn prepare(config: &TwinConfig, machine: &MachineConfig) -> Result<(), StartError> {
    let folder = config.folder(&machine.name);
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error| StartError::Prepare(path, error)
    };
    tokio::fs::create_dir_all(&folder).await.map_err(failed(&folder))?;
    for (number, disk) in machine.disks.iter().enumerate() {
        let path = disk_file(&folder, number);
        let want = u64::from(disk.size_mib) * 1024 * 1024;
        make_disk(&path, want).await?;
    }
    let vars = folder.join("vars.fd");
    if let Some(flash) = config.flash(machine.firmware)
        && !vars.exists()
    {
        tokio::fs::copy(flash.vars, &vars).await.map_err(failed(&vars))?;
    }
    match tokio::fs::remove_file(config.socket(&machine.name)).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&folder)(error)),
        _ => Ok(()),
    }
}

async fn make_disk(path: &Path, want: u64) -> Result<(), StartError> {
    let shown = || path.display().to_string();
    let failed = |error| StartError::Prepare(shown(), error);
    let mut options = tokio::fs::OpenOptions::new();
    options.create(true).write(true).truncate(false);
    let file = options.open(path).await.map_err(failed)?;
    let have = file.metadata().await.map_err(failed)?.len();
    match have {
        0 => file.set_len(want).await.map_err(failed),
        _ if have == want => Ok(()),
        _ => Err(StartError::DiskSize(shown(), have, want)),
    }
}

/// An error with its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
