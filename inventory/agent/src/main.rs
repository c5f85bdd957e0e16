//! volund's agent: `/init` of the inspection image. It loads drivers, takes the address it was given, claims
//! its ticket, says what the machine is made of, and does as it is told: wait, reboot, power off.
//!
//! It never writes to a disk, never resolves a name, never acts on a refused ticket, and never ends: process 1
//! that ends takes the kernel with it. When nobody answers for half an hour it switches the machine off.

mod cmdline;
mod collect;
mod console;
mod http;
mod net;
mod session;
mod sys;

use std::{
    fs,
    path::Path,
    process,
    thread::sleep,
    time::{Duration, Instant},
};

use cmdline::Assignment;
use console::say;
use model::agent::Report;
use session::{Ending, World};

/// How long one round of looking for the boot interface lasts before the console says what is missing.
const NIC_ROUND: Duration = Duration::from_secs(15);
/// Rounds of [`NIC_ROUND`] before the machine is switched off: half an hour.
const NIC_ROUNDS: u32 = 120;
/// A cable that is in shows its carrier within this time; after it the claim is tried regardless.
const CARRIER: Duration = Duration::from_secs(10);
/// The list of disks must not change for this long before it is reported.
const DISKS_QUIET: Duration = Duration::from_millis(500);
/// The list of disks is reported after this time even if it still changes.
const DISKS_LIMIT: Duration = Duration::from_secs(5);
/// Between two looks at sysfs.
const LOOK: Duration = Duration::from_millis(50);
/// How long an error that nobody but a person can mend stays on the console before the power goes off.
const SHOWN_MINUTES: u32 = 30;

fn main() {
    if process::id() != 1 {
        say("this is the /init of volund's inspection image; it does nothing on a running system");
        process::exit(2);
    }
    // The profile aborts on panic, and process 1 must not end: the hook never comes back.
    std::panic::set_hook(Box::new(|panic| {
        say(&format!("fault in the agent: {panic}"));
        give_up("the agent met a fault of its own; please report it with the lines above");
    }));
    let ending = live();
    end(ending);
}

/// From the first mount to the last order.
fn live() -> Ending {
    say("volund agent starts");
    for (mount, error) in sys::mount_all() {
        say(&format!("could not mount {mount}: {error}"));
    }
    sys::quiet_kernel();
    load_modules();
    let text = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let assignment = match cmdline::parse(&text) {
        Ok(assignment) => assignment,
        Err(error) => give_up(&format!("the kernel arguments are not what I need: {error}")),
    };
    connect(&assignment);
    let nonce = match sys::random_bytes() {
        Ok(bytes) => model::hex::encode(&bytes),
        Err(error) => give_up(&format!("the kernel gave no random bytes: {error}")),
    };
    session::run(&mut Node { assignment }, &nonce)
}

/// Loads what `/modules.list` names, in its order. A driver without its device is the normal case.
fn load_modules() {
    let started = Instant::now();
    let list = fs::read_to_string("/modules.list").unwrap_or_default();
    let mut loaded = 0_u32;
    for path in list.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match sys::load_module(Path::new(path)) {
            Ok(()) => loaded = loaded.saturating_add(1),
            Err(error) => say(&format!("module {path} did not load: {error}")),
        }
    }
    say(&format!("{loaded} kernel modules loaded in {} ms", started.elapsed().as_millis()));
}

/// Brings up the interface the machine booted from. Comes back only with an address set.
fn connect(assignment: &Assignment) {
    let nic = wait_for_nic(assignment);
    let set = net::configure(nic.index, assignment.address, assignment.prefix, assignment.gateway);
    if let Err(error) = set {
        give_up(&format!("could not set up {}: {error}", nic.name));
    }
    say(&format!("{} {} is {}/{}", nic.name, nic.mac, assignment.address, assignment.prefix));
    if assignment.gateway.is_none() && !assignment.server_is_local() {
        say(&format!(
            "the boot service {} is not in this subnet and volund.gw names no router",
            assignment.server
        ));
    }
    let limit = Instant::now();
    while !net::has_carrier(Path::new("/"), &nic.name) {
        if limit.elapsed() > CARRIER {
            say(&format!("{} has no link; is the cable in? going on regardless", nic.name));
            break;
        }
        sleep(LOOK);
    }
}

fn wait_for_nic(assignment: &Assignment) -> net::BootNic {
    for _ in 0..NIC_ROUNDS {
        let round = Instant::now();
        while round.elapsed() < NIC_ROUND {
            if let Some(nic) = net::find_boot_nic(Path::new("/"), assignment.boot_mac) {
                return nic;
            }
            sleep(LOOK);
        }
        say(&net::why_no_nic(Path::new("/"), assignment.boot_mac));
    }
    give_up("the interface this machine booted from never appeared")
}

/// The machine as the session sees it.
struct Node {
    assignment: Assignment,
}

impl World for Node {
    fn post(&mut self, verb: &str, body: &str) -> Result<http::Reply, http::HttpError> {
        let path = format!("/agent/v1/{verb}");
        http::post(self.assignment.server.into(), &path, &self.assignment.ticket, body)
    }

    fn look(&mut self, nonce: &str) -> Report {
        let root = Path::new("/");
        let (started, mut changed) = (Instant::now(), Instant::now());
        let mut names = collect::disk_names(root);
        while changed.elapsed() < DISKS_QUIET && started.elapsed() < DISKS_LIMIT {
            sleep(LOOK);
            let now = collect::disk_names(root);
            if now != names {
                (names, changed) = (now, Instant::now());
            }
        }
        collect::report(root, nonce)
    }

    fn pause(&mut self, span: Duration) {
        sleep(span);
    }

    fn say(&mut self, line: &str) {
        say(line);
    }
}

/// Carries out how it ended.
fn end(ending: Ending) -> ! {
    match ending {
        Ending::Reboot => {
            say("told to reboot");
            stay(&format!("the kernel would not reboot: {}", sys::reboot()));
        }
        Ending::PowerOff => power_off("told to power off"),
        Ending::Refused { reason } => stay(&format!("refused, so nothing is done here: {reason}")),
        Ending::Unanswered => power_off("nobody answered for half an hour, powering off"),
    }
}

fn power_off(why: &str) -> ! {
    say(why);
    stay(&format!("the kernel would not power off: {}", sys::power_off()))
}

/// Shows `reason` for half an hour, then switches the machine off.
fn give_up(reason: &str) -> ! {
    for _ in 0..SHOWN_MINUTES {
        say(reason);
        sleep(Duration::from_secs(60));
    }
    power_off("nobody came, powering off")
}

/// Stays as it is until a person or the BMC ends it, and says why every ten minutes.
fn stay(reason: &str) -> ! {
    loop {
        say(reason);
        sleep(Duration::from_secs(600));
    }
}
