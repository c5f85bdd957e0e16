use std::net::Ipv4Addr;

use model::RootKind;
use plan::{Bounds, NodeState, Phase, ProfileKind, ProfileSpec, Record};

use super::*;

const LIMIT: Duration = Duration::from_secs(3 * 3600);

fn name(text: &str) -> NodeName {
    text.parse().unwrap()
}

fn profile(text: &str) -> ProfileName {
    text.parse().unwrap()
}

fn specs(nodes: u8) -> Specs {
    let make = |text: &str, kind, root| ProfileSpec {
        name: profile(text),
        kind,
        root,
        calls_back: kind != ProfileKind::Local,
        bounds: Bounds::default(),
    };
    let profiles = [
        make("inspect", ProfileKind::Inspect, RootKind::Ram),
        make("local", ProfileKind::Local, RootKind::Disk),
        make("debian", ProfileKind::Linux, RootKind::Installer),
        make("ramdisk", ProfileKind::Linux, RootKind::Ram),
    ];
    let nodes = (1..=nodes).map(|number| NodeSpec {
        name: name(&format!("bld-{number:03}")),
        address: Some(Ipv4Addr::new(192, 0, 2, 10 + number)),
        efi: false,
        protected: None,
        profiles: ["inspect", "local", "debian", "ramdisk"].map(profile).to_vec(),
        bmc: format!("192.0.2.{}:623", 100 + number),
        owned: None,
    });
    Specs {
        nodes: nodes.map(|spec| (spec.name.clone(), spec)).collect(),
        profiles: profiles.into_iter().map(|p| (p.name.clone(), p)).collect(),
    }
}

fn state(world: &SimWorld, node: &str) -> NodeState {
    let nodes = world.journal().nodes(&specs(16).nodes);
    nodes.into_iter().find(|state| state.spec.name == name(node)).unwrap()
}

fn phase(world: &SimWorld, node: &str) -> Phase {
    state(world, node).switch.unwrap().phase
}

/// One node, off or running, on its way to a profile; the crash, if any, happens on that way.
async fn story(seed: u64, to: &str, running: bool, crash: Option<Crash>) -> SimWorld {
    let mut world = SimWorld::new(specs(1), seed);
    let node = name("bld-001");
    if running {
        world.start_running(&node);
    }
    // A machine that tries the network at every start is the harder case for installers.
    world.node_mut(&node).unwrap().habits.network_first = true;
    if let Some(crash) = crash {
        world.crash_once(crash);
    }
    world.wish(&node, &profile(to), Duration::from_secs(1));
    assert_eq!(world.live(LIMIT).await, Ended::Settled, "{to}, {crash:?}");
    world
}

#[tokio::test]
async fn a_switch_ends_done_in_virtual_time_and_the_same_seed_tells_the_same_story() {
    for to in ["inspect", "debian", "ramdisk", "local"] {
        let world = story(7, to, false, None).await;
        assert_eq!(phase(&world, "bld-001"), Phase::Done, "{to}");
        let again = story(7, to, false, None).await;
        assert_eq!(world.journal().records(), again.journal().records(), "{to}");
        let other = story(8, to, false, None).await;
        assert_ne!(world.journal().records(), other.journal().records(), "{to}");
    }
}

/// Kills the engine at every single call it makes, before and after the sync, and looks at the end.
#[tokio::test]
async fn killed_at_any_moment_a_switch_ends_done_with_one_power_on_and_one_install() {
    for (to, running) in
        [("inspect", true), ("debian", false), ("debian", true), ("ramdisk", false)]
    {
        let undisturbed = story(7, to, running, None).await;
        for after in 0..undisturbed.calls() {
            for synced in [false, true] {
                let crash = Crash { after, synced, down: Duration::from_secs(3) };
                let world = story(7, to, running, Some(crash)).await;
                let node = world.node(&name("bld-001")).unwrap();
                let told = format!("{to} {crash:?}: {:?}", node.log());
                assert_eq!(phase(&world, "bld-001"), Phase::Done, "{told}");
                assert_eq!(node.counts().power_ons, 1, "{told}");
                // A request to shut down that died with the process is made again; nothing is cut.
                assert_eq!(node.counts().power_cuts, 0, "{told}");
                assert_eq!(node.counts().installs, u32::from(to == "debian"), "{told}");
                assert_eq!(node.counts().kernels, 1, "{told}");
            }
        }
    }
}

#[tokio::test]
async fn what_was_not_synced_is_lost_and_what_was_is_not() {
    let mut world = SimWorld::new(specs(1), 1);
    world.journal.write(vec![Record::Settled {
        node: name("bld-001"),
        profile: profile("local"),
        at: UnixMillis(1),
    }]);
    world.journal.crash();
    assert_eq!(state(&world, "bld-001").settled, None);
    world.journal.write(vec![Record::Settled {
        node: name("bld-001"),
        profile: profile("debian"),
        at: UnixMillis(2),
    }]);
    world.journal.sync();
    world.journal.crash();
    assert_eq!(state(&world, "bld-001").settled, Some(profile("debian")));
}

#[tokio::test]
async fn faults_end_in_a_held_switch_with_a_reason_or_are_overcome() {
    type Fault = fn(&mut SimWorld, &NodeName);
    let cases: [(&str, Fault, Phase, &str); 6] = [
        ("no link", |world, node| habits(world, node).never_asks_dhcp = true, Phase::Held, "DHCP"),
        ("boot loop", |world, node| habits(world, node).boot_loops = 9, Phase::Held, "boot loop"),
        (
            "double",
            |world, node| habits(world, node).has_double = true,
            Phase::Held,
            "second machine",
        ),
        ("login", |world, node| world.faults_mut(node).refuses_login = true, Phase::Held, "login"),
        ("silence passes", silent_for_30_s, Phase::Done, ""),
        ("deaf once", |world, node| world.faults_mut(node).ignores_power_on = 1, Phase::Done, ""),
    ];
    for (case, fault, want, why) in cases {
        let mut world = SimWorld::new(specs(1), 5);
        let node = name("bld-001");
        fault(&mut world, &node);
        world.wish(&node, &profile("inspect"), Duration::ZERO);
        assert_eq!(world.live(LIMIT).await, Ended::Settled, "{case}");
        let switch = state(&world, "bld-001").switch.unwrap();
        assert_eq!(switch.phase, want, "{case}: {}", switch.reason);
        assert!(switch.reason.contains(why), "{case}: {}", switch.reason);
    }
}

fn habits<'a>(world: &'a mut SimWorld, node: &NodeName) -> &'a mut Habits {
    &mut world.node_mut(node).unwrap().habits
}

fn silent_for_30_s(world: &mut SimWorld, node: &NodeName) {
    let until = world.moment().plus(Duration::from_secs(30));
    world.faults_mut(node).silent_until = Some(until);
}

#[tokio::test]
async fn a_system_that_ignores_the_button_is_cut_by_permit_once() {
    let mut world = SimWorld::new(specs(1), 5);
    let node = name("bld-001");
    world.start_running(&node);
    habits(&mut world, &node).ignores_button = true;
    world.wish(&node, &profile("ramdisk"), Duration::ZERO);
    assert_eq!(world.live(LIMIT).await, Ended::Settled);
    let counts = world.node(&node).unwrap().counts();
    assert_eq!((counts.power_cuts, counts.power_ons), (1, 1));
    let audited = world.journal().records().iter().filter(|r| matches!(r, Record::Audit(_)));
    assert_eq!(audited.count(), 1);
}

#[tokio::test]
async fn sixteen_nodes_switch_twice_while_the_engine_dies_again_and_again() {
    for seed in 0..8 {
        let mut world = SimWorld::new(specs(16), seed);
        let mut chance = Chance::new(seed, 99);
        for number in 1..=16_u64 {
            let node = name(&format!("bld-{number:03}"));
            world.wish(&node, &profile("inspect"), Duration::from_secs(chance.next_u64() % 60));
        }
        let after = chance.next_u64() % 400;
        world.crash_once(Crash { after, synced: seed % 2 == 0, down: Duration::from_secs(2) });
        assert_eq!(world.live(LIMIT).await, Ended::Settled);
        for number in 1..=16_u64 {
            let node = name(&format!("bld-{number:03}"));
            let to = if number % 2 == 0 { "debian" } else { "ramdisk" };
            world.wish(&node, &profile(to), Duration::from_secs(chance.next_u64() % 60));
        }
        let after = world.calls() + chance.next_u64() % 400;
        world.crash_once(Crash { after, synced: seed % 2 == 1, down: Duration::from_secs(4) });
        assert_eq!(world.live(LIMIT).await, Ended::Settled);
        for number in 1..=16_u64 {
            let text = format!("bld-{number:03}");
            assert_eq!(phase(&world, &text), Phase::Done, "seed {seed}, {text}");
            let counts = world.node(&name(&text)).unwrap().counts();
            assert_eq!(counts.installs, u32::from(number % 2 == 0), "seed {seed}, {text}");
            assert_eq!(counts.power_ons, 2, "seed {seed}, {text}");
        }
    }
}
