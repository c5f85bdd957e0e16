//! Boot loops: a machine that goes round without getting on is noticed, and kept in a harmless state for a while.
//!
//! A machine in quarantine is to be given its address and no boot file, so that its firmware goes on to the next
//! boot device, and a script that boots the disk where it asks for one. This counts and says who is in quarantine;
//! it answers nothing itself, and forgets everything with the process.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use model::{MacAddr, Sighted, UnixMillis, sighting::DhcpKind};

/// Machines remembered at once; the one longest silent goes first.
const MACHINES: usize = 4_096;
/// Events of one machine that are remembered; no rule counts as many.
const EVENTS: usize = 128;
/// A file fetched again sooner, with no DHCP in between, is no turn: a firmware takes longer to come round, a person
/// who looks whether the server serves does not.
const AT_ONCE: Duration = Duration::from_secs(5);
/// How long a machine is kept out of its loop.
pub const QUARANTINE: Duration = Duration::from_secs(10 * 60);

/// What counts as going round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rule {
    what: Turn,
    /// So often …
    times: u32,
    /// … within this time.
    within: Duration,
}

/// One turn of a circle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// A loader went out whole.
    Loader,
    /// A kernel went out whole.
    Kernel,
    /// A DISCOVER came.
    Discover,
    /// A NAK went out.
    Nak,
}

/// The rules as a table. A chained undionly.kpxe fetches itself twice before it asks for the script; firmware sends
/// at most a DISCOVER a second; a machine whose address was moved hears one NAK, or two. A kernel that is fetched over
/// and over has a minute or more between two turns.
const RULES: [Rule; 4] = [
    Rule { what: Turn::Loader, times: 3, within: Duration::from_secs(180) },
    Rule { what: Turn::Kernel, times: 5, within: Duration::from_secs(20 * 60) },
    Rule { what: Turn::Discover, times: 90, within: Duration::from_secs(60) },
    Rule { what: Turn::Nak, times: 6, within: Duration::from_secs(60) },
];

/// A machine kept out of its loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantine {
    /// Until when.
    pub until: UnixMillis,
    /// What it did over and over: `snponly.efi fetched`.
    pub what: String,
    /// How often.
    pub times: u32,
}

/// Every machine that may be going round.
#[derive(Debug, Default)]
pub struct Loops {
    machines: BTreeMap<MacAddr, Machine>,
    /// The same, longest silent first.
    by_age: BTreeSet<(UnixMillis, MacAddr)>,
}

#[derive(Debug, Default)]
struct Machine {
    last: UnixMillis,
    /// Turns, oldest first, each with what was fetched.
    turns: VecDeque<(UnixMillis, Turn, String)>,
    /// It asked DHCP since the last loader.
    asked: bool,
    quarantine: Option<Quarantine>,
}

impl Loops {
    /// Takes in what was seen of a machine. Gives the quarantine that begins with it, once.
    pub fn saw(&mut self, mac: MacAddr, what: &Sighted, now: UnixMillis) -> Option<Quarantine> {
        match step(what)? {
            Step::GotOn { past } => {
                if let Some(machine) = self.machines.get_mut(&mac) {
                    machine.turns.retain(|(_, turn, _)| !past.contains(turn));
                }
                None
            }
            Step::Turn(turn, what) => {
                let machine = self.machine(mac, now);
                if machine.is_held(now) {
                    return None;
                }
                machine.turn(turn, what, now)
            }
        }
    }

    /// The quarantine a machine is in now, if any.
    #[must_use]
    pub fn quarantined(&self, mac: MacAddr, now: UnixMillis) -> Option<&Quarantine> {
        let machine = self.machines.get(&mac).filter(|machine| machine.is_held(now))?;
        machine.quarantine.as_ref()
    }

    /// Forgets what a machine did: a person says so, or it was switched off or given a new order. Gives whether it
    /// was in quarantine.
    pub fn release(&mut self, mac: MacAddr, now: UnixMillis) -> bool {
        let Some(machine) = self.machines.remove(&mac) else { return false };
        self.by_age.remove(&(machine.last, mac));
        machine.is_held(now)
    }

    /// The record of a machine, made if there is none; the longest silent one goes when there are too many.
    fn machine(&mut self, mac: MacAddr, now: UnixMillis) -> &mut Machine {
        if let Some(machine) = self.machines.get(&mac) {
            self.by_age.remove(&(machine.last, mac));
        } else if self.machines.len() >= MACHINES
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.machines.remove(&oldest);
        }
        self.by_age.insert((now, mac));
        let machine = self.machines.entry(mac).or_default();
        machine.last = now;
        machine
    }
}

impl Machine {
    fn is_held(&self, now: UnixMillis) -> bool {
        // The clock may step back: a quarantine never lasts longer for it.
        self.quarantine.as_ref().is_some_and(|quarantine| {
            now < quarantine.until && quarantine.until.since(now) <= QUARANTINE
        })
    }

    fn turn(&mut self, turn: Turn, what: String, now: UnixMillis) -> Option<Quarantine> {
        let rule = RULES.iter().find(|rule| rule.what == turn)?;
        if turn == Turn::Loader && self.is_same_fetch(&what, now) {
            return None;
        }
        self.asked = turn == Turn::Discover || (self.asked && turn != Turn::Loader);
        let is_fresh = |at: UnixMillis| now >= at && now.since(at) <= rule.within;
        self.turns.retain(|(at, other, _)| *other != turn || is_fresh(*at));
        if self.turns.len() >= EVENTS {
            self.turns.pop_front();
        }
        self.turns.push_back((now, turn, what.clone()));
        let same = |(_, other, name): &&(UnixMillis, Turn, String)| *other == turn && *name == what;
        let times = u32::try_from(self.turns.iter().filter(same).count()).unwrap_or(u32::MAX);
        if times < rule.times {
            return None;
        }
        self.turns.clear();
        let quarantine = Quarantine { until: now.plus(QUARANTINE), what, times };
        self.quarantine = Some(quarantine.clone());
        Some(quarantine)
    }
}

impl Machine {
    /// Whether this fetch of a loader belongs to the turn before it.
    fn is_same_fetch(&self, what: &str, now: UnixMillis) -> bool {
        let mut before = self.turns.iter().rev();
        let last = before.find(|(_, turn, name)| *turn == Turn::Loader && name == what);
        !self.asked && last.is_some_and(|(at, ..)| now >= *at && now.since(*at) < AT_ONCE)
    }
}

/// What a sighting means to a circle.
enum Step {
    Turn(Turn, String),
    /// It got on: these turns were none of a circle.
    GotOn {
        past: &'static [Turn],
    },
}

fn step(what: &Sighted) -> Option<Step> {
    let turn = |turn, what: String| Some(Step::Turn(turn, what));
    match what {
        Sighted::TftpDone { file, .. } if !is_companion(file) => {
            turn(Turn::Loader, format!("{file} fetched"))
        }
        Sighted::HttpDone { method, path, status: 200, .. }
            if method == "GET" && is_loader(path) =>
        {
            turn(Turn::Loader, format!("{path} fetched"))
        }
        Sighted::KernelWhole { path } => turn(Turn::Kernel, format!("{path} fetched")),
        Sighted::DhcpIn { kind: DhcpKind::Discover, .. } => {
            turn(Turn::Discover, "DISCOVER sent".to_owned())
        }
        Sighted::DhcpOut { kind: DhcpKind::Nak, .. } => {
            turn(Turn::Nak, "REQUEST refused".to_owned())
        }
        Sighted::DhcpOut { kind: DhcpKind::Ack, .. } => Some(Step::GotOn { past: &[Turn::Nak] }),
        Sighted::Script { .. } => {
            Some(Step::GotOn { past: &[Turn::Loader, Turn::Discover, Turn::Nak] })
        }
        Sighted::Agent { .. } => {
            let past = &[Turn::Loader, Turn::Kernel, Turn::Discover, Turn::Nak];
            Some(Step::GotOn { past })
        }
        Sighted::DhcpIn { .. }
        | Sighted::DhcpOut { .. }
        | Sighted::DhcpSilent { .. }
        | Sighted::Rival { .. }
        | Sighted::AddressTaken { .. }
        | Sighted::Looped { .. }
        | Sighted::Menu { .. }
        | Sighted::Learnt { .. }
        | Sighted::TftpRead { .. }
        | Sighted::TftpDone { .. }
        | Sighted::TftpProbe { .. }
        | Sighted::TftpFailed { .. }
        | Sighted::HttpDone { .. }
        | Sighted::HttpShort { .. }
        | Sighted::Refused { .. } => None,
    }
}

/// Files a loader fetches besides: the configurations of GRUB and PXELINUX, their modules, iPXE's own script.
pub(crate) fn is_companion(file: &str) -> bool {
    let base = file.rsplit(['/', '\\']).next().unwrap_or(file).to_ascii_lowercase();
    let endings = [".cfg", ".lst", ".ipxe", ".c32", ".mod", ".sys"];
    endings.iter().any(|ending| base.ends_with(ending))
        || base.starts_with("grub.cfg")
        || ["revocations", "shim_certificate"].iter().any(|start| base.starts_with(start))
        || file.contains("pxelinux.cfg/")
}

/// A loader of UEFI HTTP boot, by its name: kernels and initrds are fetched by HTTP as well.
pub(crate) fn is_loader(path: &str) -> bool {
    path.to_ascii_lowercase().ends_with(".efi")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAC: MacAddr = MacAddr([0x9c, 0x8e, 0x99, 0, 3, 1]);

    fn at(seconds: i64) -> UnixMillis {
        UnixMillis(seconds * 1_000)
    }

    fn loader(file: &str) -> Sighted {
        Sighted::TftpDone { file: file.to_owned(), bytes: 70_000, millis: 40 }
    }

    fn script() -> Sighted {
        Sighted::Script { what: "inspect".to_owned() }
    }

    fn discover() -> Sighted {
        let (kind, client) = (DhcpKind::Discover, "x86 BIOS (0)".to_owned());
        Sighted::DhcpIn { kind, xid: 1, client, relay: None, proxy: false }
    }

    fn kernel() -> Sighted {
        Sighted::KernelWhole { path: "/i/inspect/vmlinuz".to_owned() }
    }

    /// When each of these began a quarantine, by its place.
    fn run(events: &[(i64, Sighted)]) -> Vec<usize> {
        let mut loops = Loops::default();
        let began = |(place, (second, what)): (usize, &(i64, Sighted))| {
            loops.saw(MAC, what, at(*second)).map(|_| place)
        };
        events.iter().enumerate().filter_map(began).collect()
    }

    #[test]
    fn a_loader_fetched_three_times_without_a_script_is_a_loop() {
        let events = [0, 20, 40, 60].map(|second| (second, loader("snponly.efi")));
        assert_eq!(run(&events), [2]);
        let mut loops = Loops::default();
        let begun = events.iter().find_map(|(second, what)| loops.saw(MAC, what, at(*second)));
        let want = Quarantine { until: at(640), what: "snponly.efi fetched".to_owned(), times: 3 };
        assert_eq!(begun, Some(want.clone()));
        assert_eq!(loops.quarantined(MAC, at(41)), Some(&want));
        assert_eq!(loops.quarantined(MAC, at(640)), None, "it ends by itself");
        assert_eq!(loops.quarantined(MacAddr([2; 6]), at(41)), None, "another machine");
    }

    #[test]
    fn the_undionly_chain_loads_itself_twice_and_is_no_loop() {
        let boot = [
            (0, discover()),
            (1, loader("undionly.kpxe")),
            (3, discover()),
            (4, loader("undionly.kpxe")),
            (6, discover()),
            (7, script()),
            (20, kernel()),
        ];
        let again = boot.clone().map(|(second, what)| (second + 60, what));
        assert_eq!(run(&[boot, again].concat()), Vec::<usize>::new());
    }

    #[test]
    fn downloads_one_after_the_other_are_no_loop_and_a_quick_firmware_is_one() {
        let looks: Vec<_> = (0..20).map(|n| (n / 4, loader("snponly.efi"))).collect();
        assert_eq!(run(&looks), Vec::<usize>::new(), "nobody asked DHCP in between");
        let quick: Vec<_> =
            (0..3).flat_map(|n| [(n, discover()), (n, loader("snponly.efi"))]).collect();
        assert_eq!(run(&quick), [5]);
    }

    #[test]
    fn slow_turns_different_loaders_and_their_companions_are_no_loop() {
        let slow: Vec<_> = (0..9).map(|n| (n * 100, loader("snponly.efi"))).collect();
        let ladder = ["snponly.efi", "ipxe.efi", "shimx64.efi", "grubx64.efi"];
        let ladder: Vec<_> = ladder.iter().map(|name| (0, loader(name))).collect();
        let files = ["grub/grub.cfg", "autoexec.ipxe", "pxelinux.cfg/default", "ldlinux.c32"];
        let files: Vec<_> = (0..4).flat_map(|n| files.map(|name| (n, loader(name)))).collect();
        let probe = Sighted::TftpProbe { file: "snponly.efi".to_owned() };
        let probes: Vec<_> = (0..9).map(|n| (n, probe.clone())).collect();
        for events in [slow, ladder, files, probes] {
            assert_eq!(run(&events), Vec::<usize>::new(), "{events:?}");
        }
    }

    #[test]
    fn a_kernel_fetched_five_times_without_a_word_of_its_agent_is_a_loop() {
        let boots: Vec<_> =
            (0..6).flat_map(|n| [(n * 90, script()), (n * 90 + 5, kernel())]).collect();
        assert_eq!(run(&boots), [9]);
        let agent = Sighted::Agent { verb: "claim".to_owned() };
        let heard: Vec<_> =
            (0..9).flat_map(|n| [(n * 90, kernel()), (n * 90 + 5, agent.clone())]).collect();
        assert_eq!(run(&heard), Vec::<usize>::new());
    }

    #[test]
    fn storms_of_discovers_and_refused_requests_are_loops() {
        let storm: Vec<_> = (0..100).map(|n| (n / 4, discover())).collect();
        assert_eq!(run(&storm), [89]);
        let patient: Vec<_> = (0..500).map(|n| (n, discover())).collect();
        assert_eq!(run(&patient), Vec::<usize>::new(), "one a second");
        let out = |kind| Sighted::DhcpOut { kind, xid: 1, address: [0; 4].into(), file: None };
        let naks: Vec<_> = (0..6).map(|n| (n, out(DhcpKind::Nak))).collect();
        assert_eq!(run(&naks), [5]);
        let moved: Vec<_> = (0..30)
            .map(|n| (n, out(if n % 2 == 0 { DhcpKind::Nak } else { DhcpKind::Ack })))
            .collect();
        assert_eq!(run(&moved), Vec::<usize>::new());
    }

    #[test]
    fn a_released_machine_begins_anew_and_may_be_caught_again() {
        let mut loops = Loops::default();
        let turns = |loops: &mut Loops, from: i64| {
            let fetches = [from, from + 5, from + 10].map(at);
            fetches.iter().filter_map(|at| loops.saw(MAC, &loader("a.efi"), *at)).count()
        };
        assert_eq!(turns(&mut loops, 0), 1);
        assert_eq!(turns(&mut loops, 15), 0, "in quarantine nothing is counted");
        assert!(loops.release(MAC, at(26)) && !loops.release(MAC, at(27)));
        assert_eq!(loops.quarantined(MAC, at(28)), None);
        assert_eq!(turns(&mut loops, 30), 1);
        assert_eq!(turns(&mut loops, 2_000), 1, "after it has ended");
    }

    #[test]
    fn a_clock_that_steps_back_does_not_hold_a_machine_longer() {
        let mut loops = Loops::default();
        for second in [10_000, 10_005, 10_010] {
            loops.saw(MAC, &loader("a.efi"), at(second));
        }
        assert!(loops.quarantined(MAC, at(10_011)).is_some());
        assert_eq!(loops.quarantined(MAC, at(50)), None);
    }

    #[test]
    fn a_flood_of_invented_machines_is_forgotten() {
        let mut loops = Loops::default();
        for n in 0..10_000_u32 {
            let [a, b, c, d] = n.to_be_bytes();
            loops.saw(MacAddr([2, 0, a, b, c, d]), &discover(), at(i64::from(n)));
        }
        assert_eq!((loops.machines.len(), loops.by_age.len()), (MACHINES, MACHINES));
    }

    proptest! {
        #[test]
        fn the_table_stays_in_step_with_itself(
            events in prop::collection::vec((0..6_u8, 0..5_u8, -50..3_000_i64), 0..300)
        ) {
            let mut loops = Loops::default();
            for (who, what, second) in events {
                let (mac, now) = (MacAddr([2, 0, 0, 0, 0, who]), at(second));
                let what = match what {
                    0 => discover(),
                    1 => loader("a.efi"),
                    2 => kernel(),
                    3 => script(),
                    _ => {
                        loops.release(mac, now);
                        prop_assert_eq!(loops.quarantined(mac, now), None);
                        continue;
                    }
                };
                if let Some(begun) = loops.saw(mac, &what, now) {
                    prop_assert_eq!(loops.quarantined(mac, now), Some(&begun));
                }
                prop_assert_eq!(loops.machines.len(), loops.by_age.len());
                prop_assert!(loops.machines.values().all(|one| one.turns.len() <= EVENTS));
            }
        }
    }
}
