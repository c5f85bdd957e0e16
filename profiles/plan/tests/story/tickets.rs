//! Tickets: from where, by whom and how long they are good.

use std::net::Ipv4Addr;

use model::{BootAnswer, Ticket, agent::Order};
use plan::{
    AgentSays, Engine, Input, Phase, Record,
    input::{AgentAnswer, Refused},
};

use super::bench::*;

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
