//! `switch --wait`: it ends when every switch has, and says how.

use api::PhaseEvent;

use crate::{
    SWITCH,
    samples::{blade, idle, list, phase},
    switching,
};

/// The same with no patience.
const SHORT: [&str; 6] = ["switch", "bld-[003-004]", "inspect", "--yes", "--wait", "--timeout=1s"];

#[test]
fn waiting_ends_as_the_worst_node_ends() {
    let ours = |bay: u8, name: &str| {
        blade(bay, phase(&format!("01J{bay}"), name, &format!("{name} for a reason"), None))
    };
    let cases = [
        ("done", "done", 0),
        ("done", "failed", 1),
        ("held", "failed", 1),
        ("held", "done", 4),
        ("done", "booting", 5),
        ("held", "booting", 4),
    ];
    for (three, four, want) in cases {
        let fake = switching()
            .answers("GET /api/v1/nodes", 200, &list(vec![ours(3, "guarding"), ours(4, "arming")]))
            .answers("GET /api/v1/nodes", 200, &list(vec![ours(3, three), ours(4, four)]));
        let patience = if four == "booting" { &SHORT } else { &SWITCH };
        let ran = fake.run(patience);
        assert_eq!(ran.code, want, "{three} and {four}: {}", ran.story());
        let shown = ran.out.contains(&format!("bld-003  {three}: {three} for a reason"));
        assert!(shown, "{}", ran.story());
        assert_eq!(ran.out.matches("bld-003  guarding").count(), 1, "said once");
        assert_eq!(ran.err.contains("time is up"), four == "booting", "{}", ran.story());
    }
}

#[test]
fn a_switch_that_another_one_followed_ends_as_its_history_says() {
    let ours = || blade(4, phase("01J4", "done", "done", None));
    let first = list(vec![blade(3, phase("01J3", "arming", "waits", None)), ours()]);
    let other = blade(3, phase("01JX", "arming", "by somebody else", None));
    let second = list(vec![other, ours()]);
    for (end, want) in [("done", 0), ("held", 4), ("booting", 1)] {
        let event = |switch: &str, at_ms, phase: &str| PhaseEvent {
            switch_id: switch.to_owned(),
            at_ms,
            profile: "inspect".to_owned(),
            phase: phase.to_owned(),
            reason: String::new(),
            by: "admin".to_owned(),
        };
        let past = [event("01JX", 3, "arming"), event("01J3", 2, end), event("01J3", 1, "arming")];
        let ran = switching()
            .answers("GET /api/v1/nodes", 200, &first)
            .answers("GET /api/v1/nodes", 200, &second)
            .answers("GET /api/v1/nodes/bld-003/history", 200, &past)
            .run(&SWITCH);
        let said = format!("bld-003  {end}; another switch took its place");
        assert!(ran.out.contains(&said), "{}", ran.story());
        assert_eq!(ran.code, want, "{}", ran.story());
    }
}

#[test]
fn the_end_of_an_older_switch_is_not_taken_for_ours() {
    let done = |bay: u8, id: &str| blade(bay, phase(id, "done", "done", None));
    let fake = switching()
        .answers("GET /api/v1/nodes", 200, &list(vec![done(3, "01J0"), blade(4, idle())]))
        .answers("GET /api/v1/nodes", 200, &list(vec![done(3, "01J3"), done(4, "01J4")]));
    let ran = fake.run(&SWITCH);
    assert_eq!(ran.code, 0, "{}", ran.story());
}

#[test]
fn waiting_outlives_a_restart_of_the_server() {
    let done = |bay: u8| blade(bay, phase(&format!("01J{bay}"), "done", "done", None));
    let running = |bay: u8| blade(bay, phase(&format!("01J{bay}"), "booting", "waits", None));
    let fake = switching()
        .answers("GET /api/v1/nodes", 200, &list(vec![running(3), running(4)]))
        // Dropped without an answer, as a server that is killed does.
        .answers("GET /api/v1/nodes", 0, &())
        .answers("GET /api/v1/nodes", 200, &list(vec![done(3), done(4)]));
    let ran = fake.run(&SWITCH);
    assert!(ran.err.contains("waiting for the server"), "{}", ran.story());
    assert_eq!(ran.code, 0, "{}", ran.story());
}

#[test]
fn a_server_that_never_comes_back_ends_the_wait_as_unreachable() {
    let running = |bay: u8| blade(bay, phase(&format!("01J{bay}"), "booting", "waits", None));
    let fake = switching()
        .answers("GET /api/v1/nodes", 200, &list(vec![running(3), running(4)]))
        .answers("GET /api/v1/nodes", 0, &());
    let ran = fake.run(&SHORT);
    assert_eq!(ran.code, 6, "{}", ran.story());
}
