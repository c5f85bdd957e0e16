//! Whole switches against a small bench in virtual time: a board that does what it is told, or does not.
#![allow(clippy::unwrap_used, reason = "a test's helpers fail by panic")]

use std::net::Ipv4Addr;

use model::{
    BootAnswer, MacAddr, NodeName, ProfileName, RootKind, Sighted, Sighting, Ticket, UnixMillis,
    agent::{Order, Report},
    boot::{AttemptId, BootAsk},
    sighting::DhcpKind,
};
use plan::{
    Act, AgentSays, Bounds, Cause, Effect, Engine, FileOwned, Input, NodeSpec, NodeState,
    Observation, Observed, Output, Phase, ProfileKind, ProfileSpec, Record, Replied, Specs,
    StoredScript, SwitchId, Token, Trouble, TroubleKind,
    engine::Render,
    input::{AgentAnswer, PowerVerb, Refused},
};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 77);

struct Plain;

impl Render for Plain {
    fn script(
        &self,
        _: &NodeSpec,
        profile: &ProfileName,
        ticket: &Ticket,
        at: Ipv4Addr,
    ) -> Result<StoredScript, String> {
        Ok(StoredScript {
            title: profile.to_string(),
            kernel: format!("/i/{profile}/vmlinuz"),
            initrds: vec![],
            args: format!("volund.ticket={} volund.ip={at}", ticket.reveal()),
        })
    }
}

fn name(text: &str) -> NodeName {
    text.parse().unwrap()
}

fn profile(kind: ProfileKind, root: RootKind, text: &str) -> ProfileSpec {
    let calls_back = kind != ProfileKind::Local;
    let name = text.parse().unwrap();
    ProfileSpec { name, kind, root, calls_back, bounds: Bounds::default() }
}

fn specs() -> Specs {
    let profiles = [
        profile(ProfileKind::Inspect, RootKind::Ram, "inspect"),
        profile(ProfileKind::Local, RootKind::Disk, "local"),
        profile(ProfileKind::Linux, RootKind::Installer, "debian"),
        profile(ProfileKind::Linux, RootKind::Ram, "ramdisk"),
    ];
    Specs {
        nodes: [].into(),
        profiles: profiles.into_iter().map(|p| (p.name.clone(), p)).collect(),
    }
}

fn node() -> NodeState {
    NodeState::new(NodeSpec {
        name: name("bld-003"),
        address: Some(ADDRESS),
        efi: false,
        protected: None,
        profiles: ["inspect", "local", "debian", "ramdisk"].map(|p| p.parse().unwrap()).to_vec(),
        bmc: "127.0.0.1:623".to_owned(),
        owned: None,
    })
}

/// One node, its board, and the records that were made durable.
struct Bench {
    engine: Engine,
    now: UnixMillis,
    on: bool,
    obeys_soft: bool,
    ignores_cycle: bool,
    /// Accepts everything, does nothing.
    stuck: bool,
    on_again: Option<UnixMillis>,
    dead_bmc: Option<TroubleKind>,
    acts: Vec<String>,
    records: Vec<Record>,
    replies: Vec<Replied>,
    queue: Vec<Effect>,
    chance: u8,
}

impl Bench {
    fn new(on: bool) -> Self {
        Self::with(node(), on)
    }

    fn with(node: NodeState, on: bool) -> Self {
        Self {
            engine: Engine::new(specs(), vec![node], Box::new(Plain)),
            now: UnixMillis(1_000_000),
            on,
            obeys_soft: true,
            ignores_cycle: false,
            stuck: false,
            on_again: None,
            dead_bmc: None,
            acts: vec![],
            records: vec![],
            replies: vec![],
            queue: vec![],
            chance: 0,
        }
    }

    fn state(&self) -> &NodeState {
        self.engine.node(&name("bld-003")).unwrap()
    }

    fn phase(&self) -> Phase {
        self.state().switch.as_ref().unwrap().phase
    }

    fn input(&mut self, input: Input) {
        self.chance += 1;
        let output = self.engine.handle(input, self.now, [self.chance; 16]);
        self.take(output);
    }

    fn take(&mut self, output: Output) {
        self.records.extend(output.records);
        self.replies.extend(output.replies.into_iter().map(|reply| reply.what));
        self.queue.extend(output.effects);
    }

    /// Carries out what is queued until nothing is left or `limit` of virtual time has passed.
    fn settle(&mut self, limit_s: i64) {
        let end = self.now.0 + limit_s * 1_000;
        while self.queue.first().is_some_and(|effect| effect.not_before.0 <= end) {
            self.step();
        }
    }

    /// Carries out the first effect that is queued.
    fn step(&mut self) {
        let effect = self.queue.remove(0);
        self.now = self.now.max(effect.not_before);
        let what = self.act(&effect.act);
        let (node, cause) = (effect.node, effect.cause);
        self.input(Input::Observed(Observation { node, cause, what }));
    }

    fn act(&mut self, act: &Act) -> Observed {
        let trouble = self.dead_bmc.map(|kind| Trouble { kind, text: "the BMC is out".to_owned() });
        if let Some(trouble) = trouble {
            return match act {
                Act::ReadPower => Observed::Power(Err(trouble)),
                Act::Arm { .. } => Observed::Armed(Err(trouble)),
                Act::SoftOff | Act::PowerOn | Act::Permitted(_) => Observed::Accepted(Err(trouble)),
            };
        }
        if self.stuck && *act != Act::ReadPower {
            return Observed::Accepted(Ok(()));
        }
        match act {
            Act::ReadPower => {
                self.on |= self.on_again.is_some_and(|at| at <= self.now);
                return Observed::Power(Ok(self.on));
            }
            Act::Arm { target, .. } => {
                self.acts.push(format!("arm {target:?}"));
                return Observed::Armed(Ok(vec![]));
            }
            Act::SoftOff => {
                self.acts.push("soft".to_owned());
                self.on &= !self.obeys_soft;
            }
            Act::PowerOn => {
                self.acts.push("on".to_owned());
                self.on = true;
            }
            Act::Permitted(permission) => {
                self.acts.push(permission.order.verb.to_string());
                self.on &= permission.order.verb != model::Verb::PowerOff;
                if permission.order.verb == model::Verb::PowerCycle && !self.ignores_cycle {
                    self.on = false;
                    self.on_again = Some(UnixMillis(self.now.0 + 1_000));
                }
            }
        }
        Observed::Accepted(Ok(()))
    }

    fn wish(&mut self, profile: &str) {
        let id = SwitchId(format!("sw-{}", self.chance));
        let (node, profile) = (name("bld-003"), profile.parse().unwrap());
        let (by, plan_hash) = ("anna".to_owned(), None);
        self.input(Input::Wish { token: Token(1), node, profile, by, plan_hash, id });
    }

    fn sighted(&mut self, attempt: UnixMillis, what: Sighted) {
        let (node, mac) = (Some(name("bld-003")), Some(MacAddr([2, 0, 0, 0, 0, 3])));
        let sighting =
            Sighting { at: self.now, node, mac, peer: Some(ADDRESS), attempt: Some(attempt), what };
        self.input(Input::Sighted(sighting));
    }

    fn dhcp(&mut self, attempt: UnixMillis) {
        let client = "x86 BIOS (0)".to_owned();
        self.sighted(
            attempt,
            Sighted::DhcpIn { kind: DhcpKind::Discover, xid: 1, client, relay: None, proxy: false },
        );
    }

    fn kernel(&mut self, attempt: UnixMillis) {
        self.sighted(attempt, Sighted::KernelWhole { path: "/i/inspect/vmlinuz".to_owned() });
    }

    fn ask_from(&mut self, from: Ipv4Addr, attempt: UnixMillis) -> BootAnswer {
        let (node, mac) = (name("bld-003"), MacAddr([2, 0, 0, 0, 0, 3]));
        let ask = BootAsk { node, mac, from, attempt: AttemptId(attempt), at: self.now };
        self.input(Input::Asked { token: Token(2), ask });
        match self.replies.pop() {
            Some(Replied::Boot(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    fn ask(&mut self, attempt: UnixMillis) -> BootAnswer {
        self.ask_from(ADDRESS, attempt)
    }

    fn agent(
        &mut self,
        ticket: &Ticket,
        from: Ipv4Addr,
        says: AgentSays,
    ) -> Result<AgentAnswer, Refused> {
        self.input(Input::Agent { token: Token(3), ticket: ticket.clone(), from, says });
        match self.replies.pop() {
            Some(Replied::Agent(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    fn document(&mut self, ticket: &Ticket, from: Ipv4Addr) -> bool {
        let (ticket, name) = (ticket.clone(), "user-data".to_owned());
        self.input(Input::Document { token: Token(4), ticket, name, from });
        match self.replies.pop() {
            Some(Replied::Document(answer)) => answer.is_ok(),
            other => panic!("{other:?}"),
        }
    }

    fn pass(&mut self, seconds: i64) {
        self.now = UnixMillis(self.now.0 + seconds * 1_000);
        let output = self.engine.tick(self.now);
        self.take(output);
    }
}

fn ticket(answer: &BootAnswer) -> Ticket {
    match answer {
        BootAnswer::Kernel(script) => script.ticket.clone().unwrap(),
        other => panic!("{other:?}"),
    }
}

fn is_local(answer: &BootAnswer) -> bool {
    matches!(answer, BootAnswer::Local { .. })
}

fn report(nonce: &str) -> Report {
    Report {
        nonce: nonce.to_owned(),
        dmi: String::new(),
        dmi_entry: String::new(),
        cpuinfo: String::new(),
        memory_kib: 0,
        efi: false,
        kernel: String::new(),
        disks: vec![],
        nics: vec![],
    }
}

fn claim(nonce: &str) -> AgentSays {
    AgentSays::Claim { nonce: nonce.to_owned() }
}

/// Up to the moment its kernel is whole; gives the attempt and the ticket.
fn booted(bench: &mut Bench, profile: &str) -> (UnixMillis, Ticket) {
    bench.wish(profile);
    bench.settle(30);
    assert_eq!(bench.phase(), Phase::Booting);
    let attempt = bench.now;
    bench.dhcp(attempt);
    let ticket = ticket(&bench.ask(attempt));
    bench.kernel(attempt);
    assert_eq!(bench.phase(), Phase::Installing);
    (attempt, ticket)
}

#[test]
fn a_blade_that_is_off_is_armed_then_switched_on_and_ends_done_when_its_agent_reported() {
    let mut bench = Bench::new(false);
    let (_, ticket) = booted(&mut bench, "inspect");
    let claimed = bench.agent(&ticket, ADDRESS, claim("n1")).unwrap();
    assert!(matches!(claimed, AgentAnswer::Claimed(_)));
    bench.agent(&ticket, ADDRESS, AgentSays::Report(Box::new(report("n1")))).unwrap();
    bench.settle(10);
    assert_eq!(bench.phase(), Phase::Done);
    assert_eq!(bench.acts, ["arm Network", "on"]);
    assert_eq!(bench.state().settled.as_ref().unwrap().as_str(), "inspect");
    assert!(bench.records.iter().any(|record| matches!(record, Record::Facts { .. })));
}

#[test]
fn a_running_blade_is_asked_to_shut_down_and_cut_only_when_it_does_not() {
    for (obeys, want) in [
        (true, vec!["soft", "arm Network", "on"]),
        (false, vec!["soft", "power off", "arm Network", "on"]),
    ] {
        let mut bench = Bench::new(true);
        bench.obeys_soft = obeys;
        bench.wish("inspect");
        bench.settle(200);
        assert_eq!(bench.phase(), Phase::Booting);
        assert_eq!(bench.acts, want);
        let audited = bench.records.iter().any(|record| matches!(record, Record::Audit(_)));
        assert_eq!(audited, !obeys, "power is cut with an audit line, and only then");
    }
}

#[test]
fn a_boot_device_set_long_before_power_on_is_set_again() {
    // Field case 26: the BMC falls silent between the two, or volund was down.
    let mut bench = Bench::new(false);
    bench.wish("inspect");
    while bench.phase() != Phase::PoweringOn {
        bench.step();
    }
    assert_eq!(bench.acts, ["arm Network"]);
    bench.dead_bmc = Some(TroubleKind::Silent);
    bench.settle(50);
    bench.dead_bmc = None;
    bench.settle(5);
    assert_eq!(bench.acts, ["arm Network", "arm Network", "on"]);
    assert_eq!(bench.phase(), Phase::Booting);
}

#[test]
fn a_silent_bmc_is_tried_until_its_bound_then_the_switch_is_held_with_the_reason() {
    let mut bench = Bench::new(false);
    bench.dead_bmc = Some(TroubleKind::Silent);
    bench.wish("inspect");
    bench.settle(300);
    let switch = bench.state().switch.clone().unwrap();
    assert_eq!(switch.phase, Phase::Held);
    assert_eq!(switch.reason, "the BMC is out (while guarding)");
    assert!(switch.remedy.unwrap().contains("cable"));
    assert!(bench.now.since(switch.created).as_secs() >= 60);
}

#[test]
fn a_cut_that_got_no_answer_is_not_called_a_cut() {
    let mut bench = Bench::new(true);
    bench.obeys_soft = false;
    bench.wish("inspect");
    while !matches!(bench.queue.first().unwrap().act, Act::Permitted(_)) {
        bench.step();
    }
    bench.dead_bmc = Some(TroubleKind::Silent);
    bench.step();
    bench.dead_bmc = None;
    bench.settle(200);
    let switch = bench.state().switch.clone().unwrap();
    assert_eq!(
        switch.reason,
        "the BMC is out; power still reads on 30 s later (while powering-off)"
    );
}

#[test]
fn a_wrong_bmc_password_holds_at_once_and_is_not_tried_again() {
    let mut bench = Bench::new(false);
    bench.dead_bmc = Some(TroubleKind::Login);
    bench.wish("inspect");
    bench.settle(300);
    assert_eq!(bench.phase(), Phase::Held);
    assert_eq!(bench.now, UnixMillis(1_000_000), "no second try");
}

#[test]
fn a_node_that_never_asks_dhcp_is_held_and_the_reason_names_what_to_look_at() {
    let mut bench = Bench::new(false);
    bench.wish("inspect");
    bench.settle(30);
    bench.pass(8 * 60);
    let switch = bench.state().switch.clone().unwrap();
    assert_eq!(switch.phase, Phase::Held);
    insta::assert_snapshot!(
        switch.reason,
        @"no DHCP within 480 s of power-on: POST hang, boot order or uplink (while booting)"
    );
}

#[test]
fn inside_one_attempt_five_fetches_get_one_answer_and_a_restart_does_not_change_it() {
    let mut bench = Bench::new(false);
    bench.wish("inspect");
    bench.settle(30);
    let attempt = bench.now;
    let first = bench.ask(attempt);
    for _ in 0..4 {
        assert_eq!(bench.ask(attempt), first);
    }
    // volund is killed and comes back with what was durable.
    let mut state = node();
    let issued = bench.records.iter().rev().find_map(|record| match record {
        Record::Issued(issued) => Some((**issued).clone()),
        _ => None,
    });
    state.last = issued;
    state.switch = bench.state().switch.clone();
    let mut again = Bench::with(state, true);
    again.now = bench.now;
    assert_eq!(again.ask(attempt), first);
}

#[test]
fn a_second_attempt_after_a_whole_kernel_boots_locally_and_the_ticket_stays_spent() {
    let mut bench = Bench::new(false);
    let (attempt, ticket) = booted(&mut bench, "debian");
    bench.pass(60);
    let second = bench.now;
    assert!(is_local(&bench.ask(second)));
    assert!(is_local(&bench.ask(second)));
    assert!(is_local(&bench.ask(attempt)), "the old attempt does not come back either");
    assert!(bench.agent(&ticket, ADDRESS, claim("late")).is_err());
    // The installed system calls back with it all the same: that is how an installer ends.
    bench.agent(&ticket, ADDRESS, AgentSays::Done).unwrap();
    bench.settle(10);
    assert_eq!(bench.phase(), Phase::Done);
}

#[test]
fn a_node_that_comes_straight_back_is_given_three_more_tickets_then_held_as_a_loop() {
    let mut bench = Bench::new(false);
    let (_, first) = booted(&mut bench, "debian");
    let mut seen = vec![first];
    for _ in 0..3 {
        bench.pass(2);
        let attempt = bench.now;
        let next = ticket(&bench.ask(attempt));
        assert!(!seen.contains(&next), "a renewed ticket is a new secret");
        seen.push(next);
        bench.kernel(attempt);
    }
    bench.pass(2);
    let attempt = bench.now;
    assert!(is_local(&bench.ask(attempt)));
    let switch = bench.state().switch.clone().unwrap();
    assert_eq!(switch.phase, Phase::Held);
    assert!(switch.reason.starts_with("boot loop"), "{}", switch.reason);
}

#[test]
fn the_same_nonce_may_claim_again_and_a_second_machine_holds_the_switch() {
    let mut bench = Bench::new(false);
    let (_, ticket) = booted(&mut bench, "inspect");
    let first = bench.agent(&ticket, ADDRESS, claim("n1"));
    assert_eq!(bench.agent(&ticket, ADDRESS, claim("n1")), first);
    assert!(matches!(bench.agent(&ticket, ADDRESS, claim("n2")), Err(Refused::Conflict(_))));
    assert_eq!(bench.phase(), Phase::Held);
}

#[test]
fn a_ticket_is_good_from_the_nodes_own_address_only() {
    let mut bench = Bench::new(false);
    let (attempt, ticket) = booted(&mut bench, "inspect");
    let foreign = Ipv4Addr::new(192, 0, 2, 99);
    assert!(is_local(&bench.ask_from(foreign, attempt)));
    assert!(matches!(bench.agent(&ticket, foreign, claim("n1")), Err(Refused::Forbidden(_))));
    let made_up = Ticket::from_random([0xee; 16]);
    assert!(matches!(bench.agent(&made_up, ADDRESS, claim("n1")), Err(Refused::Forbidden(_))));
    assert_eq!(bench.phase(), Phase::Installing, "a stranger cannot disturb a switch");
}

#[test]
fn where_another_server_gives_the_addresses_a_ticket_is_good_where_it_was_given() {
    let mut bench = Bench::new(false);
    let mut learns = node();
    learns.spec.address = None;
    bench.engine = Engine::new(specs(), vec![learns], Box::new(Plain));
    bench.wish("inspect");
    bench.settle(30);
    let attempt = bench.now;
    bench.dhcp(attempt);
    let [rom, ipxe, laptop] = [50, 51, 200].map(|last| Ipv4Addr::new(192, 0, 2, last));
    let told = |answer: &BootAnswer| match answer {
        BootAnswer::Kernel(script) => script.args.clone(),
        other => panic!("{other:?}"),
    };
    let first = bench.ask_from(rom, attempt);
    assert!(told(&first).ends_with("volund.ip=192.0.2.50"), "{first:?}");
    let moved = bench.ask_from(ipxe, attempt);
    assert!(told(&moved).ends_with("volund.ip=192.0.2.51"), "{moved:?}");
    let ticket = ticket(&moved);
    for stranger in [rom, laptop] {
        assert!(matches!(bench.agent(&ticket, stranger, claim("n1")), Err(Refused::Forbidden(_))));
    }
    bench.agent(&ticket, ipxe, claim("n1")).unwrap();
    assert!(is_local(&bench.ask_from(laptop, attempt)), "the boot has begun elsewhere");
    bench.agent(&ticket, ipxe, AgentSays::Report(Box::new(report("n1")))).unwrap();
}

#[test]
fn a_ticket_opens_nothing_two_days_after_its_switch() {
    // Field case 63: whoever reads it off the kernel's command line later gets neither secrets nor a say.
    let mut bench = Bench::new(false);
    let (_, ticket) = booted(&mut bench, "ramdisk");
    let laptop = Ipv4Addr::new(192, 0, 2, 200);
    assert!(bench.document(&ticket, ADDRESS) && bench.document(&ticket, ADDRESS));
    assert!(!bench.document(&ticket, laptop));
    bench.agent(&ticket, ADDRESS, AgentSays::Done).unwrap();
    bench.settle(10);
    assert_eq!(bench.phase(), Phase::Done);
    assert!(bench.document(&ticket, ADDRESS), "the boot may still be fetching");
    bench.pass(20 * 60);
    assert!(!bench.document(&ticket, ADDRESS), "its attempt is over");
    bench.pass(2 * 24 * 3600);
    assert!(!bench.document(&ticket, ADDRESS));
    assert!(bench.agent(&ticket, ADDRESS, claim("late")).is_err());
}

#[test]
fn a_slow_boot_keeps_its_ticket_as_long_as_its_switch_is_in_flight() {
    let mut specs = specs();
    let debian = specs.profiles.get_mut("debian").unwrap();
    debian.bounds.ready = std::time::Duration::from_secs(40 * 60);
    let mut bench = Bench::new(false);
    bench.engine = Engine::new(specs, vec![node()], Box::new(Plain));
    let (_, ticket) = booted(&mut bench, "debian");
    bench.pass(16 * 60);
    assert_eq!(bench.phase(), Phase::Installing);
    assert!(bench.document(&ticket, ADDRESS));
}

/// A node settled in a RAM profile, its ticket of the switch used up.
fn settled_in_ram() -> (Bench, UnixMillis) {
    let mut bench = Bench::new(false);
    let (attempt, ticket) = booted(&mut bench, "ramdisk");
    bench.agent(&ticket, ADDRESS, AgentSays::Done).unwrap();
    bench.settle(10);
    assert_eq!(bench.phase(), Phase::Done);
    (bench, attempt)
}

#[test]
fn a_ram_profile_boots_again_by_itself_with_a_secret_of_its_own() {
    let (mut bench, attempt) = settled_in_ram();
    let first = ticket(&bench.ask(attempt));
    bench.pass(300);
    let second = bench.now;
    let unsure = bench.ask(second);
    assert!(matches!(unsure, BootAnswer::Wait { .. }), "power was read too long ago: {unsure:?}");
    // The question itself has power read: however seldom the sampler does, the next one is answered.
    bench.settle(10);
    let again = bench.ask(second);
    assert_ne!(ticket(&again), first);
    assert_eq!(bench.ask(second), again);
    assert_eq!(bench.phase(), Phase::Done, "no switch was needed");
}

#[test]
fn a_ram_profile_whose_system_still_speaks_is_not_started_a_second_time() {
    let (mut bench, attempt) = settled_in_ram();
    let ticket = ticket(&bench.ask(attempt));
    bench.pass(300);
    bench.agent(&ticket, ADDRESS, AgentSays::Done).unwrap();
    let (at, node) = (bench.now, name("bld-003"));
    bench.input(Input::PowerSeen { node, on: Some(true), at });
    bench.pass(3);
    let now = bench.now;
    assert!(matches!(bench.ask(now), BootAnswer::Wait { .. }));
}

/// The bench after a restart of volund with another configuration.
fn restarted(mut bench: Bench, change: impl FnOnce(&mut Specs, &mut NodeSpec)) -> Bench {
    let mut state = bench.state().clone();
    let mut specs = specs();
    change(&mut specs, &mut state.spec);
    bench.engine = Engine::new(specs, vec![state], Box::new(Plain));
    bench.queue.clear();
    let output = bench.engine.resume(bench.now);
    bench.take(output);
    bench
}

#[test]
fn a_switch_does_not_go_on_when_the_configuration_changed_under_it() {
    type Change = fn(&mut Specs, &mut NodeSpec);
    let cases: [(&str, Change); 4] = [
        ("was protected: Hel's", |_, node| node.protected = Some("Hel's".to_owned())),
        ("taken out of what bld-003 may be", |_, node| node.profiles.clear()),
        ("profile ramdisk was removed", |specs, _| {
            specs.profiles.remove::<ProfileName>(&"ramdisk".parse().unwrap());
        }),
        ("became one of another kind", |specs, _| {
            let changed = profile(ProfileKind::Linux, RootKind::Installer, "ramdisk");
            specs.profiles.insert(changed.name.clone(), changed);
        }),
    ];
    for (reason, change) in cases {
        let mut bench = Bench::new(true);
        bench.wish("ramdisk");
        bench.acts.clear();
        let mut bench = restarted(bench, change);
        assert_eq!(bench.phase(), Phase::Held, "{reason}");
        let said = &bench.state().switch.as_ref().unwrap().reason;
        assert!(said.contains(reason), "{said}");
        bench.settle(600);
        assert_eq!(bench.acts, [""; 0], "{reason}");
        let attempt = bench.now;
        assert!(is_local(&bench.ask(attempt)), "{reason}");
    }
    let mut bench = Bench::new(false);
    bench.wish("ramdisk");
    let mut bench = restarted(bench, |_, _| ());
    bench.settle(60);
    assert_eq!(bench.phase(), Phase::Booting, "unchanged, it goes on");
}

#[test]
fn an_installer_is_given_by_permit_and_its_audit_line_is_durable_with_the_answer() {
    let mut bench = Bench::new(false);
    bench.wish("debian");
    bench.settle(60);
    bench.records.clear();
    let attempt = bench.now;
    assert!(matches!(bench.ask(attempt), BootAnswer::Kernel(_)));
    let audits = |bench: &Bench| -> Vec<String> {
        let lines = bench.records.iter().filter_map(|record| match record {
            Record::Audit(line) => Some(format!("{} {} by {}", line.verb, line.node, line.by)),
            _ => None,
        });
        lines.collect()
    };
    assert_eq!(audits(&bench), ["install bld-003 by anna"]);
    assert!(matches!(bench.ask(attempt), BootAnswer::Kernel(_)));
    assert_eq!(audits(&bench).len(), 1, "a repeated answer is no second permit");

    let mut bench = Bench::new(false);
    bench.wish("ramdisk");
    bench.settle(60);
    let attempt = bench.now;
    assert!(matches!(bench.ask(attempt), BootAnswer::Kernel(_)));
    assert_eq!(audits(&bench), [""; 0], "what writes no disk needs none");

    let mut bench = Bench::new(false);
    bench.wish("debian");
    bench.settle(60);
    for first in ["39343536", "39343537"] {
        let guid = format!("{first}-3831-435a-3334-303359303033").parse().ok();
        let (node, at) = (name("bld-003"), bench.now);
        bench.input(Input::BmcSeen { node, guid, suite: None, trouble: None, at });
    }
    let attempt = bench.now;
    assert!(is_local(&bench.ask(attempt)), "the BMC belongs to another machine by now");
    assert_eq!(bench.phase(), Phase::Held);
}

#[test]
fn a_power_verb_that_had_no_effect_is_no_success() {
    for (verb, on) in [(PowerVerb::Off, true), (PowerVerb::On, false)] {
        let mut bench = Bench::new(on);
        bench.stuck = true;
        let (node, by) = (name("bld-003"), "anna".to_owned());
        bench.input(Input::Power { token: Token(5), node, verb, by });
        bench.settle(60);
        match bench.replies.pop() {
            Some(Replied::Power(Err(Refused::Unavailable(text)))) => {
                assert!(text.contains("power still reads"), "{text}");
            }
            other => panic!("{verb:?}: {other:?}"),
        }
    }
}

#[test]
fn a_held_or_unknown_node_boots_its_own_disk() {
    let mut bench = Bench::new(true);
    let now = bench.now;
    assert!(is_local(&bench.ask(now)));
    let (mut bench, _) = settled_in_ram();
    bench.dead_bmc = Some(TroubleKind::Login);
    bench.wish("inspect");
    bench.settle(30);
    assert_eq!(bench.phase(), Phase::Held);
    bench.pass(300);
    let now = bench.now;
    assert!(is_local(&bench.ask(now)));
}

#[test]
fn two_switches_on_one_node_are_one_switch_and_one_refusal() {
    let mut bench = Bench::new(false);
    bench.wish("inspect");
    bench.wish("local");
    let refused = bench.replies.pop();
    let Some(Replied::Switch(Err(Refused::Conflict(text)))) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(text, "bld-003 is already on its way to inspect (guarding); wait until it ends");
}

#[test]
fn a_node_owned_by_a_file_is_switched_to_what_the_file_says_and_to_nothing_else() {
    let mut state = node();
    let profile = "local".parse().unwrap();
    state.spec.owned = Some(FileOwned { place: "lab.toml:41".to_owned(), profile });
    let mut bench = Bench::with(state, false);
    bench.wish("inspect");
    let refused = bench.replies.pop();
    let Some(Replied::Switch(Err(Refused::Conflict(text)))) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(text, "the profile of bld-003 is owned by lab.toml:41 (local): change it there");
    bench.wish("local");
    bench.settle(60);
    assert_eq!(bench.phase(), Phase::Done);
}

#[test]
fn a_cycle_that_nobody_saw_happen_is_no_success() {
    let mut bench = Bench::new(true);
    bench.ignores_cycle = true;
    let (node, by) = (name("bld-003"), "anna".to_owned());
    bench.input(Input::Power { token: Token(7), node, verb: PowerVerb::Cycle, by });
    bench.settle(60);
    let Some(Replied::Power(Err(Refused::Unavailable(text)))) = bench.replies.pop() else {
        panic!()
    };
    assert!(text.contains("never read off"), "{text}");
}

#[test]
fn a_renewed_ticket_leaves_the_one_before_it_dead_on_record() {
    let mut bench = Bench::new(false);
    let (_, first) = booted(&mut bench, "debian");
    bench.pass(2);
    let attempt = bench.now;
    bench.ask(attempt);
    let dead = bench.records.iter().any(
        |record| matches!(record, Record::Issued(issued) if issued.ticket == first && !issued.live),
    );
    assert!(dead);
}

#[test]
fn an_agent_is_told_to_power_off_when_a_switch_wants_its_node() {
    let mut bench = Bench::new(false);
    let (_, ticket) = booted(&mut bench, "inspect");
    bench.agent(&ticket, ADDRESS, claim("n1")).unwrap();
    bench.agent(&ticket, ADDRESS, AgentSays::Report(Box::new(report("n1")))).unwrap();
    bench.settle(10);
    bench.obeys_soft = false;
    bench.wish("local");
    bench.settle(3);
    assert_eq!(bench.phase(), Phase::PoweringOff);
    let next = bench.agent(&ticket, ADDRESS, AgentSays::Next { nonce: "n1".to_owned() });
    assert_eq!(next, Ok(AgentAnswer::Order(Order::PowerOff)));
    bench.on = false;
    bench.settle(60);
    assert_eq!(bench.phase(), Phase::Done);
    assert!(!bench.acts.contains(&"power off".to_owned()), "it was never cut");
}

#[test]
fn power_verbs_answer_with_power_as_read_back() {
    let cases = [
        (false, PowerVerb::On, true, vec!["on"]),
        (true, PowerVerb::Off, false, vec!["power off"]),
        (true, PowerVerb::Soft, false, vec!["soft"]),
        (true, PowerVerb::Cycle, true, vec!["power cycle"]),
        (false, PowerVerb::Cycle, true, vec!["on"]),
        (false, PowerVerb::Off, false, vec![]),
    ];
    for (on, verb, want, acts) in cases {
        let mut bench = Bench::new(on);
        let (node, by) = (name("bld-003"), "anna".to_owned());
        bench.input(Input::Power { token: Token(7), node, verb, by });
        bench.settle(60);
        assert_eq!(bench.replies.pop(), Some(Replied::Power(Ok(Some(want)))), "{verb:?}");
        assert_eq!(bench.acts, acts, "{verb:?}");
    }
}

#[test]
fn a_soft_shutdown_that_is_ignored_answers_that_power_is_still_on() {
    let mut bench = Bench::new(true);
    bench.obeys_soft = false;
    let (node, by) = (name("bld-003"), "anna".to_owned());
    bench.input(Input::Power { token: Token(7), node, verb: PowerVerb::Soft, by });
    bench.settle(60);
    assert_eq!(bench.replies.pop(), Some(Replied::Power(Ok(Some(true)))));
}

#[test]
fn a_machine_that_loses_power_while_it_boots_is_held_at_the_second_reading() {
    let mut bench = Bench::new(false);
    booted(&mut bench, "inspect");
    for (wait, want) in [(5, Phase::Installing), (10, Phase::Held)] {
        bench.pass(wait);
        let (at, node) = (bench.now, name("bld-003"));
        bench.input(Input::PowerSeen { node, on: Some(false), at });
        assert_eq!(bench.phase(), want);
    }
    let reason = bench.state().switch.clone().unwrap().reason;
    assert_eq!(reason, "power has read off for 10 s (while installing)");
}

#[test]
fn a_cut_that_died_with_the_process_is_made_and_one_that_was_made_is_not_repeated() {
    for cut_was_made in [false, true] {
        let mut bench = Bench::new(true);
        bench.obeys_soft = false;
        bench.wish("local");
        while bench.acts != ["soft"]
            || !matches!(bench.queue.first().unwrap().act, Act::Permitted(_))
        {
            bench.step();
        }
        bench.queue.clear();
        let mut state = bench.state().clone();
        state.power = None;
        let mut again = Bench::with(state, !cut_was_made);
        again.now = bench.now;
        let resumed = again.engine.resume(again.now);
        again.take(resumed);
        again.obeys_soft = false;
        again.settle(300);
        assert_eq!(again.phase(), Phase::Done);
        let cuts = again.acts.iter().filter(|act| *act == "power off").count();
        assert_eq!(cuts, usize::from(!cut_was_made));
    }
}

#[test]
fn a_switch_nobody_has_waited_for_any_more_does_not_start_by_itself() {
    let mut bench = Bench::new(true);
    bench.wish("local");
    let mut again = Bench::with(bench.state().clone(), true);
    again.now = UnixMillis(bench.now.0 + 5 * 3_600_000);
    let resumed = again.engine.resume(again.now);
    again.take(resumed);
    again.settle(300);
    assert_eq!((again.phase(), again.acts.len()), (Phase::Held, 0));
}

#[test]
fn a_late_observation_of_an_ended_switch_changes_nothing() {
    let mut bench = Bench::new(false);
    bench.wish("inspect");
    bench.settle(30);
    let before = bench.state().switch.clone();
    let (node, cause) = (name("bld-003"), Cause::Switch(SwitchId("another".to_owned())));
    bench.input(Input::Observed(Observation { node, cause, what: Observed::Power(Ok(false)) }));
    assert_eq!(bench.state().switch, before);
}
