//! SIGKILL in each phase: volund starts again, the switch ends well, and nothing is done to a machine twice.
//!
//! A command that was recorded and then not sent is the one case left out: ADR 0010 says what follows from it. Each
//! case therefore waits until the twin has counted the command before it kills.

use std::{
    future::Future,
    thread,
    time::{Duration, Instant},
};

use api::PhaseEvent;
use bmc_proto::ipmi::chassis::ChassisControl;
use plan::Phase;
use tokio::task::JoinSet;
use twin::{Lab, blade::Pace, board::Board as _};

use crate::rig::{BOUND, QUICK, Rig, Setup, Verbs, now_ms, until};

/// What happens, and the test of it.
type Case = (&'static str, fn());

/// The cases of a phase. A phase nobody wrote a case for does not compile.
fn cases(phase: Phase) -> Vec<Case> {
    match phase {
        Phase::Guarding => vec![("a silent BMC", || run(guarding()))],
        Phase::PoweringOff => vec![
            ("a slow shutdown", || run(shutting_down())),
            ("a power cut the BMC does not show yet", || run(cutting())),
        ],
        Phase::Arming => vec![("the rest before power-on", || run(arming()))],
        Phase::PoweringOn => vec![("a BMC that says off", || run(powering_on()))],
        Phase::Booting => vec![
            ("a slow self test", || run(booting_before_dhcp())),
            ("a kernel that does not come through", || run(booting_with_script())),
        ],
        Phase::Installing => vec![("a payload at work", || run(installing()))],
        Phase::Verifying => vec![("a BMC silent at the end", || run(verifying()))],
        Phase::Done => vec![("done", || run(done()))],
        Phase::Held => vec![("held", || run(held()))],
        Phase::Failed => vec![("failed", || run(failed()))],
    }
}

/// Each case has a runtime of its own.
fn run(case: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(case);
}

#[test]
fn killed_in_any_phase_volund_ends_the_switch_well_and_acts_on_no_machine_twice() {
    let begun = Instant::now();
    let cases = Phase::ALL.into_iter().flat_map(|phase| {
        cases(phase).into_iter().map(move |(name, case)| {
            let thread = thread::Builder::new().name(format!("killed while {phase}: {name}"));
            thread.spawn(case).unwrap()
        })
    });
    let cases: Vec<_> = cases.collect();
    let count = cases.len();
    let mut wrong = Vec::new();
    for case in cases {
        let name = case.thread().name().unwrap_or_default().to_owned();
        if case.join().is_err() {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}\nwhat went wrong stands above");
    let phases = Phase::ALL.len();
    println!("FIGURE {count} kills in {phases} phases {} ms", begun.elapsed().as_millis());
}

/// The nodes of most cases: bay 1 is to be inspected, bay 3 gets an installer that must run once only.
const INSPECTED: &str = "bld-001";
const INSTALLED: &str = "bld-003";

/// A switch from a running disk: a shutdown and a power-on.
const OFF_AND_ON: Verbs = Verbs { on: 1, soft: 1, off: 0, other: 0 };
/// A switch of a machine that was off.
const ON: Verbs = Verbs { on: 1, soft: 0, off: 0, other: 0 };

fn setup(pace: Pace) -> Setup {
    Setup { bays: 3, pace, ..Setup::default() }
}

/// A lab whose bays 1 and 3 run what is on their disks.
async fn running(setup: Setup) -> Rig {
    let rig = Rig::ready(setup).await;
    for bay in [1, 3] {
        rig.blade(bay).blade.power_on();
        rig.step(bay, "disk boot", 1).await;
    }
    rig
}

async fn begin(rig: &Rig) {
    rig.switch(INSPECTED, "inspect").await;
    rig.switch(INSTALLED, "install").await;
}

async fn both_in(rig: &Rig, phase: Phase) {
    for node in [INSPECTED, INSTALLED] {
        rig.in_phase(node, phase).await;
    }
}

/// When the fault ends.
enum Ends {
    /// While volund is away.
    Meanwhile,
    /// After the new volund has read power several times: what it would do twice it has done twice by then.
    WhenReadAgain,
}

/// Kills volund while the nodes are in `phase`, starts it again, ends the fault, and looks how the switches end.
async fn killed(rig: &mut Rig, phase: Phase, ends: Ends, lift: impl FnOnce(&Lab), want: &[Verbs]) {
    rig.kill().await;
    let at = now_ms();
    match ends {
        Ends::Meanwhile => {
            lift(&rig.lab);
            rig.serve().await;
        }
        Ends::WhenReadAgain => {
            rig.serve().await;
            rig.sampled(INSPECTED, at, 3).await;
            rig.sampled(INSTALLED, at, 3).await;
            lift(&rig.lab);
        }
    }
    for (bay, node) in [(1, INSPECTED), (3, INSTALLED)] {
        rig.in_phase(node, Phase::Done).await;
        let detail = rig.node(node).await;
        let told = || format!("{node}, killed at {at}\n{}", rig.story(&detail));
        let history: Vec<&PhaseEvent> = detail.history.iter().rev().collect();
        let before = history.iter().rfind(|event| event.at_ms <= at).unwrap();
        assert_eq!(before.phase, phase.name(), "{}", told());
        let order = |event: &&PhaseEvent| Phase::ALL.iter().position(|p| p.name() == event.phase);
        assert!(history.iter().map(order).is_sorted(), "a phase came back: {}", told());
        let blade = rig.blade(bay);
        let verbs = Verbs::of(blade);
        assert!(want.contains(&verbs), "{verbs:?} is none of {want:?}: {}", told());
        let log = blade.blade.log();
        let once: &[&str] = match bay {
            1 => &["kernel"],
            _ => &["kernel", "linux started", "linux done"],
        };
        for step in once {
            assert_eq!(log.count(step), 1, "{step}: {}", told());
        }
        let refused = log.steps().into_iter().find(|step| step.contains("refused"));
        assert_eq!(refused, None, "{}", told());
        let whole = detail.timeline.iter().filter(|seen| seen.kind == "kernel-whole").count();
        assert_eq!((detail.facts.is_some(), whole), (bay == 1, 1), "{}", told());
    }
}

async fn guarding() {
    let mut rig = running(setup(QUICK)).await;
    silence(&rig.lab, true);
    begin(&rig).await;
    both_in(&rig, Phase::Guarding).await;
    killed(&mut rig, Phase::Guarding, Ends::Meanwhile, |lab| silence(lab, false), &[OFF_AND_ON])
        .await;
}

fn silence(lab: &Lab, on: bool) {
    lab.blades.iter().for_each(|blade| blade.control.silent(on));
}

async fn counted(rig: &Rig, verb: ChassisControl) {
    for bay in [1, 3] {
        let control = &rig.blade(bay).control;
        let what = format!("{verb} of bay {bay}");
        until(&what, BOUND, async || (control.control_count(verb) > 0).then_some(())).await;
    }
}

async fn shutting_down() {
    let pace = Pace { soft_off: Duration::from_secs(1), ..QUICK };
    let mut rig = running(setup(pace)).await;
    begin(&rig).await;
    counted(&rig, ChassisControl::SoftOff).await;
    // The request may be made again: nobody knows whether it went out, and asking twice harms nobody.
    let asked_again = Verbs { soft: 2, ..OFF_AND_ON };
    killed(&mut rig, Phase::PoweringOff, Ends::Meanwhile, |_| (), &[OFF_AND_ON, asked_again]).await;
}

/// Machines that stand in their firmware hear no power button; their BMCs go on saying "on" after the cut.
async fn cutting() {
    let mut rig = Rig::ready(setup(QUICK)).await;
    for bay in [1, 3] {
        let blade = &rig.blade(bay).blade;
        blade.set_disk_boots(false);
        blade.never_asks_dhcp(true);
        blade.power_on();
        rig.step(bay, "no boot device", 1).await;
        rig.blade(bay).control.lie_about_power(Some(true));
    }
    begin(&rig).await;
    counted(&rig, ChassisControl::Off).await;
    let lift = |lab: &Lab| {
        for blade in &lab.blades {
            blade.blade.never_asks_dhcp(false);
            blade.control.lie_about_power(None);
        }
    };
    let want = Verbs { on: 1, soft: 1, off: 1, other: 0 };
    killed(&mut rig, Phase::PoweringOff, Ends::WhenReadAgain, lift, &[want]).await;
}

async fn arming() {
    let timeouts = r#"soft_off = "2s", off_settle = "3s", acts_after = "1s""#;
    let mut rig = running(Setup { timeouts, ..setup(QUICK) }).await;
    begin(&rig).await;
    both_in(&rig, Phase::Arming).await;
    killed(&mut rig, Phase::Arming, Ends::Meanwhile, |_| (), &[OFF_AND_ON]).await;
    for node in [INSPECTED, INSTALLED] {
        let history = rig.node(node).await.history;
        let at =
            |phase: Phase| history.iter().find(|event| event.phase == phase.name()).unwrap().at_ms;
        let rest = at(Phase::PoweringOn) - at(Phase::Arming);
        assert!(rest >= 3_000, "{node} rested {rest} ms: the kill took the rest from it");
    }
}

/// A self test that lasts longer than volund is away: nobody hears what a machine asks meanwhile.
const SLOW_POST: Pace = Pace { post: Duration::from_secs(6), ..QUICK };

async fn powering_on() {
    let mut rig = Rig::ready(setup(SLOW_POST)).await;
    rig.lab.blades.iter().for_each(|blade| blade.control.lie_about_power(Some(false)));
    begin(&rig).await;
    counted(&rig, ChassisControl::On).await;
    let lift = |lab: &Lab| lab.blades.iter().for_each(|b| b.control.lie_about_power(None));
    killed(&mut rig, Phase::PoweringOn, Ends::WhenReadAgain, lift, &[ON]).await;
}

async fn booting_before_dhcp() {
    let mut rig = Rig::ready(setup(SLOW_POST)).await;
    begin(&rig).await;
    both_in(&rig, Phase::Booting).await;
    killed(&mut rig, Phase::Booting, Ends::Meanwhile, |_| (), &[ON]).await;
}

/// Kernels break off half way: the script was given out and tries again. Large ones, so that the server notices.
async fn booting_with_script() {
    let mut rig = Rig::ready(Setup { kernel_bytes: 12 << 20, ..setup(QUICK) }).await;
    for bay in [1, 3] {
        rig.blade(bay).blade.truncate_download(1_000);
    }
    begin(&rig).await;
    for bay in [1, 3] {
        rig.step(bay, "http kernel failed", 1).await;
    }
    both_in(&rig, Phase::Booting).await;
    let lift = |lab: &Lab| lab.blades.iter().for_each(|blade| blade.blade.truncate_download(0));
    killed(&mut rig, Phase::Booting, Ends::Meanwhile, lift, &[ON]).await;
}

/// The installer takes its time; the agent lost the answer to its claim and asks again after a pause.
const SLOW_PAYLOAD: Pace = Pace { install: Duration::from_secs(4), scale: 4.0, ..QUICK };

async fn payload_at_work() -> Rig {
    let rig = Rig::ready(setup(SLOW_PAYLOAD)).await;
    rig.blade(1).blade.lose_next_agent_answer();
    begin(&rig).await;
    rig.step(1, "answer lost", 1).await;
    rig.step(3, "linux started", 1).await;
    both_in(&rig, Phase::Installing).await;
    rig
}

async fn installing() {
    let mut rig = payload_at_work().await;
    killed(&mut rig, Phase::Installing, Ends::Meanwhile, |_| (), &[ON]).await;
    let claims = rig.blade(1).blade.log().count("agent claim");
    assert!(claims >= 2, "the claim was repeated: {claims}");
}

async fn verifying() {
    let mut rig = payload_at_work().await;
    silence(&rig.lab, true);
    both_in(&rig, Phase::Verifying).await;
    killed(&mut rig, Phase::Verifying, Ends::Meanwhile, |lab| silence(lab, false), &[ON]).await;
}

/// Kills volund after the end of a switch, and looks that it starts as it stopped and does nothing.
async fn rests(rig: &mut Rig, phase: Phase, change: impl AsyncFnOnce(&Rig)) {
    let seen = |rig: &Rig| -> Vec<(Verbs, Vec<String>)> {
        let blades = rig.lab.blades.iter();
        blades.map(|blade| (Verbs::of(blade), blade.blade.log().steps())).collect()
    };
    rig.kill().await;
    change(rig).await;
    // The agent's own questions ("what next?") go on: a blade that is off asks nothing.
    let (before, at) = (seen(rig), now_ms());
    rig.serve().await;
    rig.sampled(INSPECTED, at, 3).await;
    let after = rig.node(INSPECTED).await;
    assert_eq!(after.node.phase.name, phase.name(), "{}", rig.story(&after));
    assert!(!after.node.phase.open);
    assert!(after.history.iter().all(|event| event.at_ms <= at), "{}", rig.story(&after));
    assert_eq!(seen(rig), before, "{}", rig.story(&after));
}

async fn done() {
    let mut rig = running(setup(QUICK)).await;
    rig.switch(INSPECTED, "local").await;
    rig.in_phase(INSPECTED, Phase::Done).await;
    rests(&mut rig, Phase::Done, async |_| ()).await;
    let node = rig.node(INSPECTED).await.node;
    assert_eq!(node.profile.as_deref(), Some("local"));
    assert_eq!(Verbs::of(rig.blade(1)), OFF_AND_ON);
}

/// A lab whose first node is held, since it never asks DHCP.
async fn one_held() -> Rig {
    let timeouts = r#"post = "1s", off_settle = "1s""#;
    let rig = Rig::ready(Setup { timeouts, ..Setup::default() }).await;
    rig.blade(1).blade.never_asks_dhcp(true);
    rig.switch(INSPECTED, "inspect").await;
    rig.in_phase(INSPECTED, Phase::Held).await;
    rig
}

async fn held() {
    let mut rig = one_held().await;
    let before = rig.node(INSPECTED).await.node.phase;
    rests(&mut rig, Phase::Held, async |_| ()).await;
    assert_eq!(rig.node(INSPECTED).await.node.phase, before, "reason and remedy stay");
    // A person looks after it and switches again.
    rig.blade(1).blade.never_asks_dhcp(false);
    rig.switch(INSPECTED, "inspect").await;
    rig.in_phase(INSPECTED, Phase::Done).await;
}

/// No step of today's engine fails a switch; what stands so in the book is left alone all the same.
async fn failed() {
    let mut rig = one_held().await;
    rests(&mut rig, Phase::Failed, async |rig| {
        let book = rig.book().await;
        let mut tasks = JoinSet::new();
        let writer = inventory::Writer::start(&book, &mut tasks).await.unwrap();
        let mut row = inventory::switch::last_per_node(&book).await.unwrap().remove(0);
        let mut switch: plan::Switch = serde_json::from_str(&row.state_json).unwrap();
        switch.phase = Phase::Failed;
        switch.version += 1;
        row.state_json = serde_json::to_string(&switch).unwrap();
        row.phase = switch.phase.name().to_owned();
        row.version = switch.version;
        writer.submit(vec![inventory::Record::Switch(row)]).await.unwrap();
        drop(writer);
        while tasks.join_next().await.is_some() {}
        book.close().await;
    })
    .await;
}
