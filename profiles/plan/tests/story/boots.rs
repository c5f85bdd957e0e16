//! Boots: what a node is told, attempt by attempt.

use model::{BootAnswer, Sighted, UnixMillis};
use plan::{AgentSays, Engine, Input, Phase, Record, TroubleKind};

use super::bench::*;

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
fn a_machine_that_is_kept_out_of_a_loop_holds_the_switch_that_waits_for_it() {
    let looped = || Sighted::Looped { what: "snponly.efi fetched".to_owned(), times: 3 };
    let mut bench = Bench::new(false);
    bench.sighted(UnixMillis(1), looped());
    assert!(bench.state().switch.is_none(), "nobody waits for it");
    bench.wish("inspect");
    bench.settle(60);
    assert_eq!(bench.phase(), Phase::Booting);
    let attempt = bench.now;
    bench.dhcp(attempt);
    bench.sighted(attempt, looped());
    assert_eq!(bench.phase(), Phase::Held);
    let switch = bench.state().switch.as_ref().unwrap();
    assert!(
        switch.reason.starts_with("boot loop: snponly.efi fetched 3 times"),
        "{}",
        switch.reason
    );
    assert!(switch.remedy.as_ref().unwrap().contains("console"));
}
