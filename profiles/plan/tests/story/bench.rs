//! One node, its board, and what people ask of it, in time the test gives.

use std::net::Ipv4Addr;

use model::{
    BootAnswer, MacAddr, NodeName, ProfileName, RootKind, Sighted, Sighting, Ticket, UnixMillis,
    agent::Report,
    boot::{AttemptId, BootAsk},
    sighting::DhcpKind,
};
use plan::{
    Act, AgentSays, Bounds, Effect, Engine, Input, NodeSpec, NodeState, Observation, Observed,
    Output, Phase, ProfileKind, ProfileSpec, Record, Replied, Specs, StoredScript, SwitchId, Token,
    Trouble, TroubleKind,
    engine::Render,
    input::{AgentAnswer, Refused},
};

pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 77);

pub(crate) struct Plain;

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

pub(crate) fn name(text: &str) -> NodeName {
    text.parse().unwrap()
}

pub(crate) fn profile(kind: ProfileKind, root: RootKind, text: &str) -> ProfileSpec {
    let calls_back = kind != ProfileKind::Local;
    let name = text.parse().unwrap();
    ProfileSpec { name, kind, root, calls_back, bounds: Bounds::default() }
}

pub(crate) fn specs() -> Specs {
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

pub(crate) fn node() -> NodeState {
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
pub(crate) struct Bench {
    pub(crate) engine: Engine,
    pub(crate) now: UnixMillis,
    pub(crate) on: bool,
    pub(crate) obeys_soft: bool,
    pub(crate) ignores_cycle: bool,
    /// Accepts everything, does nothing.
    pub(crate) stuck: bool,
    on_again: Option<UnixMillis>,
    pub(crate) dead_bmc: Option<TroubleKind>,
    pub(crate) acts: Vec<String>,
    pub(crate) records: Vec<Record>,
    pub(crate) replies: Vec<Replied>,
    pub(crate) queue: Vec<Effect>,
    pub(crate) chance: u8,
}

impl Bench {
    pub(crate) fn new(on: bool) -> Self {
        Self::with(node(), on)
    }

    pub(crate) fn with(node: NodeState, on: bool) -> Self {
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

    pub(crate) fn state(&self) -> &NodeState {
        self.engine.node(&name("bld-003")).unwrap()
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state().switch.as_ref().unwrap().phase
    }

    pub(crate) fn input(&mut self, input: Input) {
        self.chance += 1;
        let output = self.engine.handle(input, self.now, [self.chance; 16]);
        self.take(output);
    }

    pub(crate) fn take(&mut self, output: Output) {
        self.records.extend(output.records);
        self.replies.extend(output.replies.into_iter().map(|reply| reply.what));
        self.queue.extend(output.effects);
    }

    /// Carries out what is queued until nothing is left or `limit` of virtual time has passed.
    pub(crate) fn settle(&mut self, limit_s: i64) {
        let end = self.now.0 + limit_s * 1_000;
        while self.queue.first().is_some_and(|effect| effect.not_before.0 <= end) {
            self.step();
        }
    }

    /// Carries out the first effect that is queued.
    pub(crate) fn step(&mut self) {
        let effect = self.queue.remove(0);
        self.now = self.now.max(effect.not_before);
        let what = self.act(&effect.act);
        let (node, cause) = (effect.node, effect.cause);
        self.input(Input::Observed(Observation { node, cause, what }));
    }

    pub(crate) fn act(&mut self, act: &Act) -> Observed {
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

    pub(crate) fn wish(&mut self, profile: &str) {
        let id = SwitchId(format!("sw-{}", self.chance));
        let (node, profile) = (name("bld-003"), profile.parse().unwrap());
        let (by, plan_hash) = ("anna".to_owned(), None);
        self.input(Input::Wish { token: Token(1), node, profile, by, plan_hash, id });
    }

    pub(crate) fn sighted(&mut self, attempt: UnixMillis, what: Sighted) {
        let (node, mac) = (Some(name("bld-003")), Some(MacAddr([2, 0, 0, 0, 0, 3])));
        let sighting =
            Sighting { at: self.now, node, mac, peer: Some(ADDRESS), attempt: Some(attempt), what };
        self.input(Input::Sighted(sighting));
    }

    pub(crate) fn dhcp(&mut self, attempt: UnixMillis) {
        let client = "x86 BIOS (0)".to_owned();
        self.sighted(
            attempt,
            Sighted::DhcpIn { kind: DhcpKind::Discover, xid: 1, client, relay: None, proxy: false },
        );
    }

    pub(crate) fn kernel(&mut self, attempt: UnixMillis) {
        self.sighted(attempt, Sighted::KernelWhole { path: "/i/inspect/vmlinuz".to_owned() });
    }

    pub(crate) fn ask_from(&mut self, from: Ipv4Addr, attempt: UnixMillis) -> BootAnswer {
        let (node, mac) = (name("bld-003"), MacAddr([2, 0, 0, 0, 0, 3]));
        let ask = BootAsk { node, mac, from, attempt: AttemptId(attempt), at: self.now };
        self.input(Input::Asked { token: Token(2), ask });
        match self.replies.pop() {
            Some(Replied::Boot(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn ask(&mut self, attempt: UnixMillis) -> BootAnswer {
        self.ask_from(ADDRESS, attempt)
    }

    pub(crate) fn agent(
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

    pub(crate) fn document(&mut self, ticket: &Ticket, from: Ipv4Addr) -> bool {
        let (ticket, name) = (ticket.clone(), "user-data".to_owned());
        self.input(Input::Document { token: Token(4), ticket, name, from });
        match self.replies.pop() {
            Some(Replied::Document(answer)) => answer.is_ok(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now = UnixMillis(self.now.0 + seconds * 1_000);
        let output = self.engine.tick(self.now);
        self.take(output);
    }
}

pub(crate) fn ticket(answer: &BootAnswer) -> Ticket {
    match answer {
        BootAnswer::Kernel(script) => script.ticket.clone().unwrap(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn is_local(answer: &BootAnswer) -> bool {
    matches!(answer, BootAnswer::Local { .. })
}

pub(crate) fn report(nonce: &str) -> Report {
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

pub(crate) fn claim(nonce: &str) -> AgentSays {
    AgentSays::Claim { nonce: nonce.to_owned() }
}

/// Up to the moment its kernel is whole; gives the attempt and the ticket.
pub(crate) fn booted(bench: &mut Bench, profile: &str) -> (UnixMillis, Ticket) {
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

/// A node settled in a RAM profile, its ticket of the switch used up.
pub(crate) fn settled_in_ram() -> (Bench, UnixMillis) {
    let mut bench = Bench::new(false);
    let (attempt, ticket) = booted(&mut bench, "ramdisk");
    bench.agent(&ticket, ADDRESS, AgentSays::Done).unwrap();
    bench.settle(10);
    assert_eq!(bench.phase(), Phase::Done);
    (bench, attempt)
}

/// The bench after a restart of volund with another configuration.
pub(crate) fn restarted(mut bench: Bench, change: impl FnOnce(&mut Specs, &mut NodeSpec)) -> Bench {
    let mut state = bench.state().clone();
    let mut specs = specs();
    change(&mut specs, &mut state.spec);
    bench.engine = Engine::new(specs, vec![state], Box::new(Plain));
    bench.queue.clear();
    let output = bench.engine.resume(bench.now);
    bench.take(output);
    bench
}
