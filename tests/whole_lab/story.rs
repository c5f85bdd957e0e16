//! What a node is told in one boot attempt and in the next, and who may use a ticket.

use std::{
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use plan::Phase;
use twin::{blade::Pace, board::Board as _};

use crate::{
    rig::{BOUND, QUICK, Rig, Setup, Verbs, now_ms, until},
    wire,
};

/// The last boot script a node was given, as its timeline has it.
async fn last_script(rig: &Rig, node: &str) -> String {
    let timeline = rig.node(node).await.timeline;
    let script = timeline.into_iter().rfind(|seen| seen.kind == "script");
    script.map(|seen| seen.text).unwrap_or_default()
}

async fn told(rig: &Rig, node: &str, text: &str) {
    let what = format!("boot script with {text:?}");
    until(&what, BOUND, async || last_script(rig, node).await.contains(text).then_some(())).await;
}

#[tokio::test]
async fn five_fetches_in_one_attempt_are_equal_and_an_attempt_after_a_whole_kernel_boots_locally() {
    let pace = Pace { install: Duration::from_secs(30), ..QUICK };
    let mut rig = Rig::ready(Setup { kernel_bytes: 12 << 20, pace, ..Setup::default() }).await;
    let (blade, address) = (rig.blade(1).blade.clone(), rig.blade(1).address);
    blade.set_disk_boots(false);
    blade.truncate_download(1_000);
    rig.switch("bld-001", "install").await;
    rig.step(1, "http kernel failed", 1).await;
    let first = wire::get(&rig, address, "/boot.ipxe").await;
    for fetch in 2..=5 {
        if fetch == 4 {
            rig.kill().await;
            rig.serve().await;
        }
        let again = wire::get(&rig, address, "/boot.ipxe").await;
        assert_eq!((again.status, &again.body), (200, &first.body), "fetch {fetch}");
    }
    let ticket = wire::ticket(&String::from_utf8(first.body).unwrap());
    let attempts = |detail: api::NodeDetail| {
        let mut attempts: Vec<_> =
            detail.timeline.iter().filter_map(|seen| seen.attempt_ms).collect();
        attempts.dedup();
        attempts
    };
    let [first_attempt] = attempts(rig.node("bld-001").await)[..] else { panic!("one attempt") };

    blade.truncate_download(0);
    rig.step(1, "linux started", 1).await;
    rig.in_phase("bld-001", Phase::Installing).await;
    let timeline = rig.node("bld-001").await.timeline;
    let whole = timeline.iter().find(|seen| seen.kind == "kernel-whole").unwrap().at_ms;
    // The installer has had time to act: `acts_after` is a second.
    until("second of work", BOUND, async || (now_ms() > whole + 1_100).then_some(())).await;
    blade.reset();
    told(&rig, "bld-001", "local boot (the ticket of this switch to install is spent)").await;
    let [second_attempt] = attempts(rig.node("bld-001").await)[..] else { panic!("one attempt") };
    assert!(second_attempt > first_attempt);
    assert_eq!(blade.log().count("linux started"), 1);
    let (status, text) = wire::claim(&rig, address, &ticket, "00").await;
    assert_eq!(status, 409, "{text}");
    assert!(text.contains("the ticket of bld-001 is spent"), "{text}");
}

/// The node's second boot asked DHCP, then volund was killed; its script is asked of the new one.
#[tokio::test]
async fn a_kill_between_dhcp_and_script_of_the_next_boot_installs_nothing_twice() {
    let pace = Pace { install: Duration::from_secs(30), ..QUICK };
    let mut rig = Rig::ready(Setup { pace, ..Setup::default() }).await;
    let address = rig.blade(1).address;
    rig.switch("bld-001", "install").await;
    rig.step(1, "linux started", 1).await;
    rig.in_phase("bld-001", Phase::Installing).await;
    let begun = now_ms();
    until("second of work", BOUND, async || (now_ms() > begun + 1_100).then_some(())).await;
    rig.kill().await;
    rig.serve().await;
    for _ in 0..2 {
        let script = wire::script(&rig, address).await;
        assert!(
            script.contains("local boot: the ticket of this switch to install is spent"),
            "{script}"
        );
    }
    rig.in_phase("bld-001", Phase::Installing).await;
}

#[tokio::test]
async fn a_ram_profile_boots_again_by_itself_under_a_ticket_of_its_own() {
    // Long enough for volund to see that it is on.
    let pace = Pace { post: Duration::from_millis(1_500), ..QUICK };
    let mut rig = Rig::ready(Setup { bays: 2, pace, ..Setup::default() }).await;
    let (own, other) = (rig.blade(1).address, rig.blade(2).address);
    rig.blade(1).blade.set_disk_boots(false);
    rig.switch("bld-001", "ram").await;
    let settled = rig.in_phase("bld-001", Phase::Done).await;
    let first = wire::ticket(&wire::script(&rig, own).await);
    only_from(&rig, &first, own, &[other, rig.stray_address()]).await;

    // Its system spoke a moment ago and nobody ordered a restart: something is odd, so it has to wait.
    rig.blade(1).blade.reset();
    told(&rig, "bld-001", "wait (the system that runs there spoke").await;
    rig.blade(1).blade.power_off();
    // A new volund knows of no running system there.
    rig.kill().await;
    rig.serve().await;
    rig.sampled("bld-001", now_ms(), 1).await;
    rig.blade(1).blade.power_on();
    rig.node_is("bld-001", "on", |node| node.power == api::PowerState::On).await;
    rig.step(1, "linux done", 2).await;
    let second = wire::ticket(&wire::script(&rig, own).await);
    assert_ne!(first, second);
    only_from(&rig, &second, own, &[other, rig.stray_address()]).await;
    let spent = wire::get(&rig, own, &format!("/t/{first}/motd")).await;
    assert_eq!(spent.status, 403);

    let node = rig.node("bld-001").await.node;
    assert_eq!((node.profile.as_deref(), &node.phase), (Some("ram"), &settled.phase));
    let verbs = Verbs { on: 1, ..Verbs::default() };
    assert_eq!(Verbs::of(rig.blade(1)), verbs, "volund only answered");
}

/// The document of a ticket comes to one address alone.
async fn only_from(rig: &Rig, ticket: &str, own: Ipv4Addr, others: &[Ipv4Addr]) {
    let path = format!("/t/{ticket}/motd");
    for other in others {
        let refused = wire::get(rig, *other, &path).await;
        let text = String::from_utf8(refused.body).unwrap();
        assert_eq!((refused.status, text.as_str()), (403, "refused\n"), "from {other}");
    }
    let given = wire::get(rig, own, &path).await;
    let text = String::from_utf8(given.body).unwrap();
    assert_eq!((given.status, text.as_str()), (200, "bld-001 in bay 1"));
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_made_again_and_accepted() {
    let rig = Rig::ready(Setup::default()).await;
    rig.blade(1).blade.lose_next_agent_answer();
    rig.switch("bld-001", "inspect").await;
    rig.in_phase("bld-001", Phase::Done).await;
    let log = rig.blade(1).blade.log();
    assert_eq!((log.count("answer lost"), log.count("agent claim")), (1, 2));
    let facts = rig.node("bld-001").await.facts.unwrap();
    assert_eq!(facts.serial.as_deref(), Some(rig.blade(1).serial.as_str()));
}

#[tokio::test]
async fn a_claim_with_a_second_nonce_is_refused_and_the_switch_held() {
    let pace = Pace { scale: 8.0, ..QUICK };
    let rig = Rig::ready(Setup { pace, ..Setup::default() }).await;
    rig.blade(1).blade.lose_next_agent_answer();
    rig.switch("bld-001", "inspect").await;
    rig.step(1, "answer lost", 1).await;
    rig.in_phase("bld-001", Phase::Installing).await;
    let address = rig.blade(1).address;
    let ticket = wire::ticket(&wire::script(&rig, address).await);
    let (status, text) = wire::claim(&rig, address, &ticket, "a second nonce").await;
    assert_eq!(status, 409, "{text}");
    let node = rig.in_phase("bld-001", Phase::Held).await;
    let reason = node.phase.reason.unwrap();
    assert_eq!(reason, "a second machine claimed the ticket of bld-001 (while installing)");
    assert!(node.phase.remedy.unwrap().contains("find out which machine"));
    assert_eq!(node.profile, None);
}

#[tokio::test]
async fn a_kernel_that_never_starts_is_a_boot_loop_and_held() {
    let timeouts = r#"off_settle = "1s", acts_after = "10s""#;
    let rig = Rig::ready(Setup { timeouts, ..Setup::default() }).await;
    rig.blade(1).blade.set_disk_boots(false);
    rig.blade(1).blade.boot_loop(100);
    rig.switch("bld-001", "install").await;
    let node = rig.in_phase("bld-001", Phase::Held).await;
    let reason = node.phase.reason.unwrap();
    assert!(reason.starts_with("boot loop: it fetched its kernel 4 times"), "{reason}");
    assert_eq!(rig.blade(1).blade.log().count("kernel"), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_blades_are_switched_at_once() {
    let rig = Rig::ready(Setup { bays: 16, kernel_bytes: 4 << 20, ..Setup::default() }).await;
    let begun = Instant::now();
    rig.switch("bld-[001-016]", "inspect").await;
    let done = || async {
        let nodes = rig.nodes().await.nodes;
        nodes.iter().all(|node| node.phase.name == "done").then_some(nodes)
    };
    let nodes = until("sixteen switched blades", BOUND, async || done().await).await;
    println!("FIGURE 16 blades switched at once {} ms", begun.elapsed().as_millis());
    assert_eq!(nodes.len(), 16);
    for (node, blade) in nodes.iter().zip(&rig.lab.blades) {
        assert_eq!(node.name, blade.name.as_str());
        assert_eq!(node.profile.as_deref(), Some("inspect"));
        let verbs = Verbs { on: 1, ..Verbs::default() };
        assert_eq!(Verbs::of(blade), verbs, "{}", node.name);
        let facts = rig.node(&node.name).await.facts.unwrap();
        assert_eq!(facts.serial.as_deref(), Some(blade.serial.as_str()), "{}", node.name);
    }
}
