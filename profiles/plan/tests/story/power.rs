//! Power: what a switch and a verb do to it, and what counts as done.

use model::UnixMillis;
use plan::{
    Act, AgentSays, Input, Phase, Record, Replied, Token, TroubleKind,
    input::{AgentAnswer, PowerVerb, Refused},
};

use super::bench::*;

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
