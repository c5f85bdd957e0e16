//! A lab made of data: answers what it was given, remembers what it was asked to do.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use api::{
    BmcView, BootDetail, BootList, BootMethodForgotten, BootStage, BootView, BootWayView,
    DiagnosisView, DimmView, DiskView, EnclosureView, FactsView, LabDoctor, LoopReleased, NicView,
    NodeDetail, NodeDoctor, NodeList, NodePreview, NodeView, PhaseEvent, PhaseView, PowerOutcome,
    PowerRequest, PowerResult, PowerState, PowerVerb, ProcessorView, ProfileList, ProfileView,
    Quantity, SightingView, SwitchAccepted, SwitchPreview, SwitchRef, SwitchRequest,
};
use api::{
    DhcpCountersView, FindingView, LeaseList, LeaseView, NetworkList, NetworkView, PoolView,
    PortsView, RivalView,
};
use tokio::sync::broadcast;
use web::lab::{Caller, Changed, Fault, Lab, Reply};

/// 2026-12-12T14:32:06Z: the clock of the fake lab.
pub(crate) const NOW_MS: i64 = 1_797_085_926_000;

/// What the fake lab answers.
pub(crate) struct World {
    pub(crate) nodes: Vec<NodeView>,
    pub(crate) enclosures: Vec<EnclosureView>,
    pub(crate) histories: BTreeMap<String, Vec<PhaseEvent>>,
    pub(crate) timelines: BTreeMap<String, Vec<SightingView>>,
    pub(crate) boots: BTreeMap<String, Vec<BootView>>,
    pub(crate) facts: BTreeMap<String, FactsView>,
    pub(crate) networks: Vec<NetworkView>,
    pub(crate) leases: Vec<LeaseView>,
    pub(crate) powers: BTreeMap<String, Vec<Quantity>>,
    /// Reasons that block a switch, by node.
    pub(crate) blocked: BTreeMap<String, Vec<String>>,
    /// Answers every call while it is set.
    pub(crate) fault: Option<Fault>,
    /// What was ordered, as text, with who ordered it.
    pub(crate) orders: Vec<String>,
}

/// The fake lab.
pub(crate) struct FakeLab {
    pub(crate) world: Mutex<World>,
    changes: broadcast::Sender<Changed>,
}

impl FakeLab {
    /// Sixteen blades in every state, and `outside` nodes without an enclosure.
    pub(crate) fn asgard(outside: u8) -> Arc<Self> {
        let mut nodes: Vec<NodeView> = (1..=16).map(blade).collect();
        nodes.extend((1..=outside).map(machine));
        let mut world = World {
            nodes,
            enclosures: vec![EnclosureView {
                name: "c7000-1".to_owned(),
                model: "HP BladeSystem c7000".to_owned(),
                bays: 16,
            }],
            histories: BTreeMap::new(),
            timelines: BTreeMap::new(),
            boots: BTreeMap::new(),
            facts: BTreeMap::new(),
            networks: vec![network()],
            leases: vec![lease(100, None), lease(111, Some("bld-011"))],
            powers: BTreeMap::new(),
            blocked: BTreeMap::new(),
            fault: None,
            orders: Vec::new(),
        };
        populate(&mut world);
        Arc::new(Self { world: Mutex::new(world), changes: broadcast::channel(64).0 })
    }

    /// Changes what the lab answers from now on; tells no stream.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        change(&mut self.world.lock().unwrap())
    }

    /// Changes a node and tells the streams.
    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut NodeView)) {
        let mut world = self.world.lock().unwrap();
        change(world.nodes.iter_mut().find(|node| node.name == name).unwrap());
        drop(world);
        // No stream may be open.
        let _heard = self.changes.send(Changed { node: name.to_owned() });
    }

    fn answer<T>(&self, make: impl FnOnce(&mut World) -> Result<T, Fault>) -> Reply<'_, T>
    where
        T: Send + 'static,
    {
        let mut world = self.world.lock().unwrap();
        let outcome = match &world.fault {
            Some(fault) => Err(fault.clone()),
            None => make(&mut world),
        };
        Box::pin(std::future::ready(outcome))
    }
}

/// The hash a preview of these nodes has; it changes with their power.
fn hash(nodes: &[NodePreview]) -> String {
    let powers: String = nodes.iter().map(|node| format!("{:?}", node.power)).collect();
    format!("hash-{powers}")
}

impl World {
    fn find(&self, name: &str) -> Result<NodeView, Fault> {
        let found = self.nodes.iter().find(|node| node.name == name).cloned();
        found.ok_or_else(|| Fault::Unknown(format!("no node is called {name:?}")))
    }

    fn named(&self, hostlist: &str) -> Result<Vec<NodeView>, Fault> {
        let names = model::hostlist::parse(hostlist).map_err(|error| Fault::Refused {
            error: "the hostlist cannot be read".to_owned(),
            faults: vec![error.to_string()],
        })?;
        names.iter().map(|name| self.find(name.as_str())).collect()
    }

    fn preview(&self, request: &SwitchRequest) -> Result<SwitchPreview, Fault> {
        if !profiles().iter().any(|profile| profile.name == request.profile) {
            return Err(Fault::Refused {
                error: format!("no profile is called {:?}", request.profile),
                faults: vec!["choose one of volund profiles".to_owned()],
            });
        }
        let preview = |node: &NodeView| NodePreview {
            node: node.name.clone(),
            from: node.profile.clone(),
            power: node.power,
            steps: vec![
                "Its power is cut, after a request to shut down.".to_owned(),
                format!("It boots {} over the network.", request.profile),
            ],
            blocked: self.blocked.get(&node.name).cloned().unwrap_or_default(),
            destructive: node.power == PowerState::On,
        };
        let nodes: Vec<NodePreview> = self.named(&request.nodes)?.iter().map(preview).collect();
        Ok(SwitchPreview { profile: request.profile.clone(), hash: hash(&nodes), nodes })
    }
}

impl Lab for FakeLab {
    fn nodes<'a>(&'a self, hostlist: Option<&'a str>) -> Reply<'a, NodeList> {
        self.answer(|world| {
            let nodes = match hostlist {
                Some(hostlist) => world.named(hostlist)?,
                None => world.nodes.clone(),
            };
            let enclosures = world.enclosures.clone();
            Ok(NodeList { lab: "asgard".to_owned(), at_ms: NOW_MS, nodes, enclosures })
        })
    }

    fn node<'a>(&'a self, name: &'a str) -> Reply<'a, NodeDetail> {
        self.answer(|world| {
            Ok(NodeDetail {
                node: world.find(name)?,
                facts: world.facts.get(name).cloned(),
                timeline: world.timelines.get(name).cloned().unwrap_or_default(),
                history: world.histories.get(name).cloned().unwrap_or_default(),
                power: world.powers.get(name).cloned().unwrap_or_default(),
                boot_method: vec![BootWayView {
                    what: "loader for x64 UEFI (7)".to_owned(),
                    way: "ipxe.efi".to_owned(),
                    source: "learnt".to_owned(),
                    failed: vec!["snponly.efi".to_owned()],
                }],
            })
        })
    }

    fn boots<'a>(&'a self, name: &'a str) -> Reply<'a, BootList> {
        self.answer(|world| {
            let node = world.find(name)?.name;
            Ok(BootList { node, boots: world.boots.get(name).cloned().unwrap_or_default() })
        })
    }

    fn boot<'a>(&'a self, name: &'a str, id: i64) -> Reply<'a, BootDetail> {
        self.answer(|world| {
            let boots = world.boots.get(name);
            let boot = boots.and_then(|boots| boots.iter().find(|boot| boot.id == id)).cloned();
            let boot = boot.ok_or_else(|| Fault::Unknown(format!("there is no boot {id}")))?;
            let timeline = world.timelines.get(name).cloned().unwrap_or_default();
            Ok(BootDetail { node: name.to_owned(), boot, timeline })
        })
    }

    fn boot_packets<'a>(&'a self, name: &'a str, id: i64) -> Reply<'a, Vec<u8>> {
        self.answer(|world| {
            world.find(name)?;
            Ok(id.to_le_bytes().to_vec())
        })
    }

    fn node_doctor<'a>(&'a self, name: &'a str) -> Reply<'a, NodeDoctor> {
        self.answer(|world| {
            let boots = world.boots.get(name).and_then(|boots| boots.first());
            let diagnoses = boots.map(|boot| boot.diagnoses.clone()).unwrap_or_default();
            Ok(NodeDoctor { node: name.to_owned(), boot: boots.map(|boot| boot.id), diagnoses })
        })
    }

    fn doctor(&self) -> Reply<'_, LabDoctor> {
        self.answer(|world| {
            let trouble = world.boots.iter().flat_map(|(node, boots)| {
                let first = boots.first().filter(|boot| !boot.diagnoses.is_empty())?;
                let diagnoses = first.diagnoses.clone();
                Some(NodeDoctor { node: node.clone(), boot: Some(first.id), diagnoses })
            });
            Ok(LabDoctor { nodes: trouble.collect(), networks: vec![] })
        })
    }

    fn release_loop<'a>(&'a self, caller: &'a Caller, name: &'a str) -> Reply<'a, LoopReleased> {
        self.answer(|world| {
            let node = world.find(name)?.name;
            world.orders.push(format!("{} releases {node} from its loop", caller.name));
            Ok(LoopReleased { node, was_held: true })
        })
    }

    fn forget_boot_method<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
    ) -> Reply<'a, BootMethodForgotten> {
        self.answer(|world| {
            let node = world.find(name)?.name;
            world.orders.push(format!("{} forgets how {node} boots", caller.name));
            Ok(BootMethodForgotten { node, was_known: true })
        })
    }

    fn networks(&self) -> Reply<'_, NetworkList> {
        self.answer(|world| {
            let networks = world.networks.clone();
            Ok(NetworkList { lab: "asgard".to_owned(), at_ms: NOW_MS, networks })
        })
    }

    fn leases<'a>(
        &'a self,
        network: Option<&'a str>,
        mac: Option<&'a str>,
    ) -> Reply<'a, LeaseList> {
        self.answer(|world| {
            let wanted = |lease: &&LeaseView| {
                network.is_none_or(|network| lease.network == network)
                    && mac.is_none_or(|mac| lease.mac == mac)
            };
            let leases = world.leases.iter().filter(wanted).cloned().collect();
            Ok(LeaseList { lab: "asgard".to_owned(), at_ms: NOW_MS, leases, more: false })
        })
    }

    fn profiles(&self) -> Reply<'_, ProfileList> {
        self.answer(|_| Ok(ProfileList { profiles: profiles() }))
    }

    fn preview_switch<'a>(&'a self, request: &'a SwitchRequest) -> Reply<'a, SwitchPreview> {
        self.answer(|world| world.preview(request))
    }

    fn start_switch<'a>(
        &'a self,
        caller: &'a Caller,
        request: &'a SwitchRequest,
    ) -> Reply<'a, SwitchAccepted> {
        self.answer(|world| {
            let preview = world.preview(request)?;
            if request.confirm.as_ref() != Some(&preview.hash) {
                return Err(Fault::Conflict(
                    "the plan is no longer what was confirmed; look at the new one".to_owned(),
                ));
            }
            let order =
                format!("{} switches {} to {}", caller.name, request.nodes, request.profile);
            world.orders.push(order);
            let switch =
                |node: &NodePreview| SwitchRef { id: "01JE".to_owned(), node: node.node.clone() };
            Ok(SwitchAccepted { switches: preview.nodes.iter().map(switch).collect() })
        })
    }

    fn power<'a>(
        &'a self,
        caller: &'a Caller,
        request: &'a PowerRequest,
    ) -> Reply<'a, PowerOutcome> {
        self.answer(|world| {
            if matches!(request.verb, PowerVerb::Off | PowerVerb::Cycle) && !request.confirmed {
                return Err(Fault::Refused {
                    error: "this verb needs a confirmation".to_owned(),
                    faults: vec!["confirm it".to_owned()],
                });
            }
            let nodes = world.named(&request.nodes)?;
            let order = format!("{} powers {} {:?}", caller.name, request.nodes, request.verb);
            world.orders.push(order);
            let power = match request.verb {
                PowerVerb::On | PowerVerb::Cycle => PowerState::On,
                PowerVerb::Off | PowerVerb::Soft => PowerState::Off,
            };
            let result = |node: &NodeView| PowerResult {
                node: node.name.clone(),
                power,
                error: None,
                refused: false,
            };
            Ok(PowerOutcome { nodes: nodes.iter().map(result).collect() })
        })
    }

    fn changes(&self) -> broadcast::Receiver<Changed> {
        self.changes.subscribe()
    }
}

/// A network with nothing wrong.
pub(crate) fn network() -> NetworkView {
    NetworkView {
        name: "boot".to_owned(),
        mode: "full".to_owned(),
        subnet: "192.0.2.0/24".to_owned(),
        server: "192.0.2.10".to_owned(),
        interface: Some("eth1".to_owned()),
        router: None,
        ports: PortsView { dhcp: Some(67), proxy: Some(4011), tftp: 69, http: 8067 },
        nodes: 18,
        pool: Some(PoolView {
            first: "192.0.2.200".to_owned(),
            last: "192.0.2.249".to_owned(),
            size: 50,
            bound: 3,
            taken: 0,
        }),
        dhcp: DhcpCountersView {
            heard: 420,
            offers: 120,
            acks: 118,
            naks: 1,
            late_acks: 0,
            dropped_discovers: 0,
            dropped_requests: 0,
        },
        rivals: vec![],
        findings: vec![],
    }
}

pub(crate) fn rival(file: Option<&str>) -> RivalView {
    RivalView {
        server: "192.0.2.1".to_owned(),
        mac: Some("02:5a:10:00:00:01".to_owned()),
        file: file.map(ToOwned::to_owned),
        at_ms: NOW_MS - 60_000,
    }
}

pub(crate) fn finding() -> FindingView {
    FindingView {
        what: "the neighbour table of this machine holds 1,024 entries".to_owned(),
        remedy: "raise net.ipv4.neigh.default.gc_thresh3".to_owned(),
    }
}

pub(crate) fn lease(last: u8, node: Option<&str>) -> LeaseView {
    LeaseView {
        network: "boot".to_owned(),
        address: format!("192.0.2.{last}"),
        mac: format!("02:5a:10:00:00:{last:02x}"),
        node: node.map(ToOwned::to_owned),
        state: "bound".to_owned(),
        since_ms: NOW_MS - 60_000,
        until_ms: NOW_MS + 60_000,
        host_name: "pi".to_owned(),
        location: Some("192.0.2.254 eth1/7".to_owned()),
    }
}

fn profiles() -> Vec<ProfileView> {
    let profile = |name: &str, kind: &str, root: &str, about: &str| ProfileView {
        name: name.to_owned(),
        kind: kind.to_owned(),
        root: root.to_owned(),
        about: about.to_owned(),
    };
    vec![
        profile("inspect", "inspect", "ram", "Reports its hardware, then waits. Touches no disk."),
        profile("local", "local", "disk", "Boots what is on its own disk."),
        profile("slurm-debian", "linux", "ram", "Debian 13 in memory, for Slurm."),
        profile("talos-worker", "linux", "disk", "Talos Linux from its own disk."),
    ]
}

pub(crate) fn reading(value: f64, ago_ms: i64) -> Quantity {
    Quantity {
        value: Some(value),
        unit: "W".to_owned(),
        margin: Some(value * 0.05),
        source: Some("DCMI".to_owned()),
        kind: Some("blade input".to_owned()),
        from_ms: Some(NOW_MS - ago_ms - 10_000),
        to_ms: Some(NOW_MS - ago_ms),
        text: format!("{value:.0} W ±5 % (DCMI, blade input)"),
        absent: None,
    }
}

pub(crate) fn no_reading(why: &str) -> Quantity {
    Quantity {
        value: None,
        unit: "W".to_owned(),
        margin: None,
        source: None,
        kind: None,
        from_ms: None,
        to_ms: None,
        text: "–".to_owned(),
        absent: Some(why.to_owned()),
    }
}

pub(crate) fn seen(ago_ms: i64, kind: &str, text: &str) -> SightingView {
    SightingView {
        at_ms: NOW_MS - ago_ms,
        attempt_ms: Some(NOW_MS - 60_000),
        kind: kind.to_owned(),
        text: text.to_owned(),
        detail: serde_json::Value::Null,
    }
}

fn phase(name: &str, open: bool) -> PhaseView {
    PhaseView {
        name: name.to_owned(),
        open,
        switch_id: None,
        since_ms: None,
        until_ms: None,
        reason: None,
        remedy: None,
    }
}

fn named(name: String, address: String) -> NodeView {
    NodeView {
        name,
        enclosure: None,
        bay: None,
        macs: vec!["00:00:5e:00:53:0b".to_owned()],
        bmc: BmcView {
            kind: "ipmi".to_owned(),
            address: "192.0.2.31".to_owned(),
            port: 623,
            suite: Some(17),
            trouble: None,
        },
        address,
        power: PowerState::On,
        power_at_ms: Some(NOW_MS - 4_000),
        profile: Some("inspect".to_owned()),
        wanted: None,
        phase: phase("done", false),
        watts: reading(67.0, 4_000),
        last_sighting: Some(seen(3_600_000, "agent", "agent: done")),
        protected: None,
        profiles: profiles().into_iter().map(|profile| profile.name).collect(),
    }
}

fn machine(number: u8) -> NodeView {
    let mut node = named(format!("oden-{number}"), format!("192.0.2.{}", 200 + number));
    node.profile = None;
    node.phase = phase("idle", false);
    node.watts = no_reading("the BMC has no power meter");
    node
}

fn blade(bay: u8) -> NodeView {
    let mut node = named(format!("bld-{bay:03}"), format!("192.0.2.{}", 100 + bay));
    node.enclosure = Some("c7000-1".to_owned());
    node.bay = Some(bay);
    node.watts = reading(60.0 + 4.0 * f64::from(bay), 4_000);
    match bay {
        1 | 14 => {
            node.power = PowerState::Off;
            node.watts = no_reading("below what the meter can tell");
        }
        7 => {
            node.power = PowerState::Off;
            node.watts = no_reading("below what the meter can tell");
            node.protected = Some("two disks to pull before 20 Dec".to_owned());
        }
        2 | 4 | 9 | 12 => node.profile = Some("slurm-debian".to_owned()),
        3 | 6 | 10 => node.profile = Some("talos-worker".to_owned()),
        5 => node.profile = Some("local".to_owned()),
        8 => {
            node.power = PowerState::Unknown;
            node.bmc.trouble = Some("no answer since 14:28; asked 3 times in 20 s".to_owned());
            node.watts = no_reading("the BMC does not answer");
        }
        11 | 13 => switching(&mut node, bay),
        16 => held(&mut node),
        _ => (),
    }
    node
}

fn switching(node: &mut NodeView, bay: u8) {
    node.wanted = Some("slurm-debian".to_owned());
    node.phase = PhaseView {
        switch_id: Some(format!("01JE{bay}")),
        since_ms: Some(NOW_MS - 52_000),
        until_ms: Some(NOW_MS + 300_000),
        reason: Some("Waits for DHCP, loader, script and kernel.".to_owned()),
        ..phase(if bay == 11 { "booting" } else { "powering-on" }, true)
    };
    node.last_sighting = Some(seen(9_000, "dhcp-out", "DHCP ACK 192.0.2.111"));
    if bay == 13 {
        node.power = PowerState::Off;
        node.watts = no_reading("not read yet");
    }
}

fn held(node: &mut NodeView) {
    node.wanted = Some("slurm-debian".to_owned());
    node.phase = PhaseView {
        switch_id: Some("01JE16".to_owned()),
        since_ms: Some(NOW_MS - 360_000),
        reason: Some("No DHCP request came within 8 min after power on.".to_owned()),
        remedy: Some("Reseat the blade, or check switch 1 port 16.".to_owned()),
        ..phase("held", false)
    };
}

fn event(id: &str, ago_ms: i64, phase: &str, reason: &str) -> PhaseEvent {
    PhaseEvent {
        switch_id: id.to_owned(),
        at_ms: NOW_MS - ago_ms,
        profile: "slurm-debian".to_owned(),
        phase: phase.to_owned(),
        reason: reason.to_owned(),
        by: "smith".to_owned(),
    }
}

fn populate(world: &mut World) {
    world.histories.insert(
        "bld-011".to_owned(),
        vec![
            event("01JE11", 52_000, "booting", "power reads on"),
            event("01JE11", 54_000, "powering-on", "boot device reads back network"),
            event("01JE11", 55_000, "arming", "power reads off"),
            event("01JE11", 197_000, "powering-off", "the BMC answers and is the right one"),
            event("01JE11", 198_000, "guarding", "asked for by smith"),
            event("01JD11", 86_400_000, "done", "the agent called back"),
            event("01JD11", 86_800_000, "guarding", "asked for by token ci"),
        ],
    );
    world.histories.insert(
        "bld-016".to_owned(),
        vec![
            event("01JE16", 360_000, "held", "no DHCP request within 8 min"),
            event("01JE16", 840_000, "powering-on", "boot device reads back network"),
            event("01JE16", 842_000, "guarding", "asked for by smith"),
        ],
    );
    world.timelines.insert("bld-011".to_owned(), timeline());
    world.boots.insert("bld-011".to_owned(), vec![boot()]);
    world.facts.insert("bld-011".to_owned(), facts());
    for name in ["bld-011", "bld-002"] {
        world.powers.insert(name.to_owned(), hour());
    }
}

fn boot() -> BootView {
    let stage = |name: &str, from_ms, to_ms| BootStage {
        name: name.to_owned(),
        from_ms: NOW_MS - from_ms,
        to_ms: NOW_MS - to_ms,
    };
    BootView {
        id: NOW_MS - 21_000,
        from_ms: NOW_MS - 21_000,
        to_ms: NOW_MS - 9_000,
        outcome: "failed".to_owned(),
        text: "failed after kernel".to_owned(),
        stages: vec![stage("firmware DHCP", 21_000, 18_900), stage("script", 12_500, 12_500)],
        diagnoses: vec![DiagnosisView {
            id: "kernel-silent".to_owned(),
            cause: "it fetched its kernel whole, and nothing came after it".to_owned(),
            remedy: "look at its console".to_owned(),
            confidence: "possible".to_owned(),
            evidence: vec!["kernel /files/vmlinuz fetched whole".to_owned()],
        }],
        packets: true,
    }
}

fn timeline() -> Vec<SightingView> {
    vec![
        seen(21_000, "dhcp-in", "DHCP DISCOVER from x86 BIOS (0) through 127.0.7.1, bay 11"),
        seen(20_900, "dhcp-out", "DHCP OFFER 192.0.2.111, boot file undionly.kpxe"),
        seen(19_000, "dhcp-in", "DHCP REQUEST from x86 BIOS (0)"),
        seen(18_900, "dhcp-out", "DHCP ACK 192.0.2.111, boot file undionly.kpxe"),
        seen(18_500, "tftp-read", "TFTP read undionly.kpxe"),
        seen(17_900, "tftp-done", "TFTP sent undionly.kpxe, 88123 bytes in 600 ms"),
        seen(14_000, "dhcp-in", "DHCP DISCOVER from iPXE"),
        seen(13_900, "dhcp-out", "DHCP OFFER 192.0.2.111"),
        seen(12_500, "script", "boot script: slurm-debian"),
        seen(9_800, "http-done", "HTTP GET /files/vmlinuz 200, 8100000 bytes in 300 ms"),
        seen(9_000, "kernel-whole", "kernel /files/vmlinuz fetched whole"),
    ]
}

fn hour() -> Vec<Quantity> {
    let reading_at = |number: i64| {
        let ago = (359 - number) * 10_000;
        let wobble = f64::from(u8::try_from((number * 7) % 11).unwrap());
        match number {
            0..250 => reading(92.0 + wobble, ago),
            250..262 => no_reading("not read"),
            262..275 => reading(140.0 - wobble, ago),
            _ => reading(67.0 + wobble / 3.0, ago),
        }
    };
    (0..360).map(reading_at).collect()
}

fn facts() -> FactsView {
    FactsView {
        at_ms: NOW_MS - 86_400_000,
        product: Some("HP ProLiant BL460c Gen8".to_owned()),
        serial: Some("VLDBL00011".to_owned()),
        uuid: Some("30313436-3631-4c56-4442-4c3030303131".to_owned()),
        firmware: Some("I31 07/02/2013".to_owned()),
        efi: false,
        processors: ["Proc 1", "Proc 2"].map(processor).to_vec(),
        memory_mib: Some(8_192),
        dimms: (1..=8).map(dimm).collect(),
        disks: vec![DiskView {
            name: "sda".to_owned(),
            bytes: 300_000_000_000,
            model: Some("EG0300FBVFL".to_owned()),
            serial: Some("VLDSAS1101".to_owned()),
        }],
        nics: vec![NicView {
            name: "eth0".to_owned(),
            mac: "00:00:5e:00:53:0b".to_owned(),
            driver: Some("be2net".to_owned()),
            speed_mbit: Some(1_000),
        }],
        warnings: vec!["the table ends 3 bytes early".to_owned()],
    }
}

fn processor(socket: &str) -> ProcessorView {
    ProcessorView {
        socket: socket.to_owned(),
        model: Some("Intel(R) Xeon(R) CPU E5-2650 0 @ 2.00GHz".to_owned()),
        cores: Some(8),
        threads: Some(16),
    }
}

fn dimm(number: u8) -> DimmView {
    let full = number <= 4;
    DimmView {
        slot: format!("PROC 1 DIMM {number}"),
        mib: full.then_some(2_048),
        part: full.then(|| "RAM-009".to_owned()),
        serial: None,
    }
}
