//! Switches: who may start one, and what ends it.

use model::{ProfileName, RootKind, UnixMillis};
use plan::{
    Cause, FileOwned, Input, NodeSpec, Observation, Observed, Phase, ProfileKind, Replied, Specs,
    SwitchId, input::Refused,
};

use super::bench::*;

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
