//! Input that is wrong and machines that misbehave: each ends in a clear error or a state with reason and remedy, and
//! nobody else notices.

use std::time::{Duration, Instant};

use api::PhaseView;
use model::{BayNumber, MacAddr, Sighted, Uuid};
use plan::Phase;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use twin::{
    board::Board as _,
    chance::Chance,
    dhcp::{Asker, DhcpClient, DhcpError},
    log::Log,
    relay::Relay,
};

use crate::{
    rig::{BOUND, Rig, Setup, Verbs, now_ms, until},
    wire,
};

fn says(phase: &PhaseView, reason: &str, remedy: &str) {
    let has = |text: &Option<String>, part: &str| text.as_ref().is_some_and(|t| t.contains(part));
    assert!(has(&phase.reason, reason) && has(&phase.remedy, remedy), "{phase:?}");
}

#[tokio::test]
async fn what_does_not_exist_is_named_and_nothing_is_begun() {
    let rig = Rig::ready(Setup { bays: 2, ..Setup::default() }).await;
    let cases = [
        (
            "bld-001",
            "debian",
            404,
            "there is no profile debian; there are inspect, install, local, ram",
        ),
        ("bld-009", "inspect", 404, "there is no node \"bld-009\"; `volund nodes` lists them"),
        ("bld-[001-009]", "inspect", 404, "there is no node \"bld-003\""),
        ("bld-[001", "inspect", 422, "\"bld-[001\" is no list of nodes"),
        ("bld-001", "In Spect", 422, "\"In Spect\" is no profile"),
    ];
    for (nodes, profile, status, error) in cases {
        let (got, problem) = rig.try_switch(nodes, profile).await.unwrap_err();
        assert_eq!(got, status, "{problem:?}");
        assert!(problem.error.starts_with(error), "{problem:?}");
    }
    for node in rig.nodes().await.nodes {
        assert_eq!(node.phase.name, "idle", "{}", node.name);
    }
}

#[tokio::test]
async fn a_verb_that_names_no_node_does_not_mean_every_node() {
    let rig = Rig::ready(Setup { bays: 2, ..Setup::default() }).await;
    for nodes in ["", " ", ","] {
        let (status, problem) = rig.try_switch(nodes, "inspect").await.unwrap_err();
        assert_eq!(status, 422, "{problem:?}");
        let (status, problem) = rig.power(nodes, api::PowerVerb::On).await.unwrap_err();
        assert_eq!(status, 422, "{problem:?}");
    }
    for node in rig.nodes().await.nodes {
        assert_eq!((node.phase.name.as_str(), node.power), ("idle", api::PowerState::Off));
    }
}

#[tokio::test]
async fn a_second_switch_of_a_node_is_refused_with_what_it_waits_for() {
    let rig = Rig::ready(Setup { bays: 2, ..Setup::default() }).await;
    rig.blade(1).control.silent(true);
    rig.switch("bld-001", "inspect").await;
    let (status, problem) = rig.try_switch("bld-[001-002]", "local").await.unwrap_err();
    assert_eq!(status, 422);
    assert_eq!(problem.error, "nothing was switched to local");
    assert_eq!(
        problem.faults,
        ["bld-001 is already on its way to inspect (guarding); wait until it ends"]
    );
    rig.blade(1).control.silent(false);
    let node = rig.in_phase("bld-001", Phase::Done).await;
    assert_eq!(node.profile.as_deref(), Some("inspect"));
    assert_eq!(rig.node("bld-002").await.node.phase.name, "idle");
}

#[tokio::test]
async fn a_wrong_bmc_password_is_tried_once_and_holds_the_switch_at_once() {
    let rig = Rig::start(Setup { bays: 2, wrong_password: &[1], ..Setup::default() }).await;
    let refused = rig.node_is("bld-001", "refused", |node| node.bmc.trouble.is_some()).await;
    let trouble = refused.bmc.trouble.unwrap();
    assert!(trouble.contains("ADMIN") && trouble.contains("refused"), "{trouble}");
    rig.switch("bld-[001-002]", "inspect").await;
    let node = rig.in_phase("bld-001", Phase::Held).await;
    says(&node.phase, "(while guarding)", "correct the user or secret of this BMC");
    assert_eq!(node.phase.reason, Some(format!("{trouble} (while guarding)")));
    rig.in_phase("bld-002", Phase::Done).await;
    // BMCs lock accounts: many readings later it still is one attempt.
    rig.sampled("bld-001", now_ms(), 3).await;
    assert_eq!(rig.blade(1).control.open_requests(), 1);
    assert_eq!(Verbs::of(rig.blade(1)), Verbs::default());
}

#[tokio::test]
async fn a_silent_bmc_is_held_after_its_bound_and_delays_nobody_else() {
    let timeouts = r#"bmc = "8s", off_settle = "1s""#;
    let rig = Rig::ready(Setup { bays: 3, timeouts, ..Setup::default() }).await;
    rig.blade(1).control.silent(true);
    let begun = Instant::now();
    rig.switch("bld-[001-003]", "inspect").await;
    let mut slowest = Duration::ZERO;
    let silent = until("two switched blades", BOUND, async || {
        let asked = Instant::now();
        let nodes = rig.nodes().await.nodes;
        slowest = slowest.max(asked.elapsed());
        let done = nodes.iter().filter(|node| node.phase.name == "done").count();
        (done == 2).then(|| nodes.into_iter().find(|node| node.name == "bld-001"))
    })
    .await;
    println!(
        "FIGURE beside a silent BMC: two blades switched {} ms, slowest list {} ms",
        begun.elapsed().as_millis(),
        slowest.as_millis()
    );
    assert_eq!(silent.unwrap().phase.name, "guarding", "the others did not wait for its bound");
    let node = rig.in_phase("bld-001", Phase::Held).await;
    says(&node.phase, "BMC", "check the BMC");
    let at = node.bmc.address;
    let trouble = rig.node_is("bld-001", "in trouble", |node| node.bmc.trouble.is_some()).await;
    assert!(trouble.bmc.trouble.unwrap().contains(&at));
    assert_eq!(Verbs::of(rig.blade(1)), Verbs::default());
}

#[tokio::test]
async fn a_node_that_never_asks_dhcp_is_held_with_what_may_be_wrong() {
    let timeouts = r#"post = "2s", off_settle = "1s""#;
    let rig = Rig::ready(Setup { timeouts, ..Setup::default() }).await;
    rig.blade(1).blade.never_asks_dhcp(true);
    rig.switch("bld-001", "inspect").await;
    let node = rig.in_phase("bld-001", Phase::Held).await;
    let reason = "no DHCP within 2 s of power-on: POST hang, boot order or uplink";
    says(&node.phase, reason, "check its boot order and the port of its boot NIC");
    assert_eq!(node.profile, None);
    assert!(rig.node("bld-001").await.timeline.is_empty());
}

#[tokio::test]
async fn a_download_cut_short_stands_in_the_timeline_and_is_tried_again() {
    let rig = Rig::ready(Setup { kernel_bytes: 12 << 20, ..Setup::default() }).await;
    rig.blade(1).blade.truncate_download(1);
    rig.switch("bld-001", "inspect").await;
    rig.in_phase("bld-001", Phase::Done).await;
    let detail = rig.node("bld-001").await;
    let of = 12 << 20;
    let short = detail.timeline.iter().find(|seen| seen.kind == "http-short");
    let short = short.unwrap_or_else(|| panic!("{}", rig.story(&detail)));
    assert!(short.text.starts_with("HTTP /i/inspect/kernel cut short"), "{}", short.text);
    assert!(short.text.ends_with(&format!("of {of} bytes")), "{}", short.text);
    let log = rig.blade(1).blade.log();
    assert_eq!((log.count("http kernel failed"), log.count("kernel")), (1, 1));
}

#[tokio::test]
async fn a_foreign_and_a_used_ticket_open_nothing() {
    let rig = Rig::ready(Setup { bays: 2, ..Setup::default() }).await;
    let (own, other) = (rig.blade(1).address, rig.blade(2).address);
    rig.switch("bld-001", "inspect").await;
    rig.in_phase("bld-001", Phase::Done).await;
    let ticket = wire::ticket(&wire::script(&rig, own).await);
    let unknown = "0123456789abcdef0123456789abcdef";
    let cases = [
        ("nobody's", own, unknown, 403, "unknown or belongs to an earlier boot"),
        ("another node's", other, ticket.as_str(), 403, "is not good from"),
        ("claimed already", own, ticket.as_str(), 409, "a second machine claimed"),
        ("no ticket", own, "12", 401, "Ticket"),
    ];
    for (name, from, ticket, status, why) in cases {
        let (got, text) = wire::claim(&rig, from, ticket, "ff").await;
        assert_eq!(got, status, "{name}: {text}");
        assert!(text.contains(why), "{name}: {text}");
    }
    for target in [format!("/t/{unknown}/motd"), format!("/t/{unknown}/done")] {
        assert_eq!(wire::get(&rig, own, &target).await.status, 403, "{target}");
    }
    assert_eq!(wire::get(&rig, own, "/t/12/motd").await.status, 404);
    let node = rig.node("bld-001").await.node;
    assert_eq!((node.phase.name.as_str(), node.profile.as_deref()), ("done", Some("inspect")));

    // An installer's ticket is spent when its switch is done.
    rig.switch("bld-002", "install").await;
    rig.step(2, "linux started", 1).await;
    let ticket = wire::ticket(&wire::script(&rig, other).await);
    rig.in_phase("bld-002", Phase::Done).await;
    let (status, text) = wire::claim(&rig, other, &ticket, "ff").await;
    assert_eq!(status, 409, "{text}");
    assert!(text.contains("the ticket of bld-002 is spent"), "{text}");
}

#[tokio::test]
async fn a_machine_nobody_knows_gets_no_answer_and_is_noted() {
    let rig = Rig::ready(Setup::default()).await;
    let stranger: MacAddr = "9c:8e:99:ff:ff:01".parse().unwrap();
    let (_server, receiver) = watch::channel(Some(rig.dhcp_port()));
    let mut relay = Relay::bind(rig.stray_address(), receiver).await.unwrap();
    let mut port = relay.port(BayNumber::new(9).unwrap());
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.run(stop.clone()));
    let log = Log::default();
    let (uuid, asker, scale) = (Uuid([7; 16]), Asker::Rom, 0.05);
    let mut client = DhcpClient { port: &mut port, mac: stranger, uuid, asker, scale, log: &log };
    assert_eq!(client.run(&mut Chance::new(1, 1)).await, Err(DhcpError::NoOffer));
    assert_eq!(log.count("dhcp discover"), 4);
    let script = wire::get(&rig, rig.stray_address(), "/boot.ipxe").await;
    assert_eq!(script.status, 404);

    let book = rig.book().await;
    let noted = until("sighting", BOUND, async || {
        let seen = inventory::sighting::latest(&book, None, 20).await.unwrap();
        seen.into_iter().find(|seen| seen.mac == Some(stranger))
    })
    .await;
    let Sighted::DhcpSilent { why } = &noted.what else { panic!("{noted:?}") };
    let want = format!("machine {stranger} is not known: no answer to its DISCOVER");
    assert!(why.starts_with(&want), "{why}");
    book.close().await;
    stop.cancel();
    running.await.unwrap();
    assert!(!rig.blade(1).blade.power());
}
