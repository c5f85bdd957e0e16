//! The command line as a process against a server that answers what a test wants: output and exit codes.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, its helpers too"
)]

mod boots;
mod fake;
mod networks;
mod samples;
mod waiting;

use std::{fs, net::TcpListener};

use api::{NodeDetail, PowerOutcome, PowerResult, PowerState, ProfileList, ProfileView};
use serde_json::{Value, json};

use fake::{Fake, Ran, TOKEN, problem, volund};
use samples::{accepted, blade, detail, history, idle, list, preview, varied};

/// A server that takes a switch of bld-003 and bld-004.
fn switching() -> Fake {
    Fake::default().answers("POST /api/v1/switch/preview", 200, &preview(&[])).answers(
        "POST /api/v1/switch",
        200,
        &accepted(),
    )
}

const SWITCH: [&str; 6] =
    ["switch", "bld-[003-004]", "inspect", "--yes", "--wait", "--timeout=20s"];

#[test]
fn nodes_are_a_table_for_people() {
    let ran = Fake::default().answers("GET /api/v1/nodes", 200, &varied()).run(&["nodes"]);
    insta::assert_snapshot!(ran.story());
}

#[test]
fn nodes_are_json_for_scripts_whatever_the_server_adds() {
    let mut answer = serde_json::to_value(varied()).unwrap();
    answer["nodes"][0]["new_in_a_later_version"] = json!(1);
    let fake = Fake::default().answers("GET /api/v1/nodes", 200, &answer);
    let ran = fake.run(&["nodes", "bld-[003,006-010]", "--json"]);
    let printed: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(printed, answer);
    assert_eq!(printed["nodes"][0]["bmc"]["port"], 623);
    assert_eq!(ran.asked, "GET /api/v1/nodes?nodes=bld-%5B003%2C006-010%5D");
    assert_eq!(ran.code, 0);
}

#[test]
fn a_node_is_shown_with_everything_known_of_it() {
    let ran = Fake::default()
        .answers("GET /api/v1/nodes/bld-003", 200, &detail())
        .run(&["node", "bld-003"]);
    insta::assert_snapshot!(ran.story());
}

#[test]
fn a_node_nothing_is_known_of_is_shown_all_the_same() {
    let detail = NodeDetail {
        node: blade(3, idle()),
        facts: None,
        timeline: vec![],
        history: vec![],
        power: vec![],
        boot_method: vec![],
    };
    let ran = Fake::default()
        .answers("GET /api/v1/nodes/bld-003", 200, &detail)
        .run(&["node", "bld-003"]);
    insta::assert_snapshot!(ran.story());
}

#[test]
fn history_is_a_table_newest_first() {
    let ran = Fake::default()
        .answers("GET /api/v1/nodes/bld-003/history", 200, &history())
        .run(&["history", "bld-003"]);
    insta::assert_snapshot!(ran.story());
}

#[test]
fn profiles_are_a_table() {
    let profile = |name: &str, root: &str, about: &str| ProfileView {
        name: name.to_owned(),
        kind: name.to_owned(),
        root: root.to_owned(),
        about: about.to_owned(),
    };
    let profiles = ProfileList {
        profiles: vec![
            profile("inspect", "ram", "Reports the hardware"),
            profile("local", "disk", ""),
        ],
    };
    let ran = Fake::default().answers("GET /api/v1/profiles", 200, &profiles).run(&["profiles"]);
    insta::assert_snapshot!(ran.story());
}

#[test]
fn a_power_verb_that_was_refused_changed_nothing_and_says_so_to_scripts() {
    let busy = PowerResult {
        node: "bld-003".to_owned(),
        power: PowerState::Unknown,
        error: Some("bld-003 is being switched; wait for it".to_owned()),
        refused: true,
    };
    let outcome = PowerOutcome { nodes: vec![busy] };
    let fake = Fake::default().answers("POST /api/v1/power", 200, &outcome);
    assert_eq!(fake.run(&["power", "bld-003", "on"]).code, 3);
}

#[test]
fn a_power_verb_shows_what_was_read_back() {
    let result = |node: &str, power, error: Option<&str>| PowerResult {
        node: node.to_owned(),
        power,
        error: error.map(ToOwned::to_owned),
        refused: false,
    };
    let good = PowerOutcome { nodes: vec![result("bld-003", PowerState::Off, None)] };
    let fake = Fake::default().answers("POST /api/v1/power", 200, &good);
    insta::assert_snapshot!(fake.run(&["power", "bld-003", "off", "--yes"]).story());
    let bad = PowerOutcome {
        nodes: vec![
            result("bld-003", PowerState::On, None),
            result("bld-004", PowerState::Unknown, Some("the BMC does not answer; look at it")),
        ],
    };
    let fake = Fake::default().answers("POST /api/v1/power", 200, &bad);
    insta::assert_snapshot!(fake.run(&["power", "bld-[003-004]", "on"]).story());
}

#[test]
fn power_that_does_not_read_as_wanted_is_no_success() {
    let cases = [
        ("soft", PowerState::On, 5),
        ("soft", PowerState::Unknown, 5),
        ("soft", PowerState::Off, 0),
        ("off", PowerState::On, 5),
        ("on", PowerState::Off, 5),
        ("cycle", PowerState::On, 0),
    ];
    for (verb, power, code) in cases {
        let node = PowerResult { node: "bld-003".to_owned(), power, error: None, refused: false };
        let answer = PowerOutcome { nodes: vec![node] };
        let fake = Fake::default().answers("POST /api/v1/power", 200, &answer);
        let ran = fake.run(&["power", "bld-003", verb, "--yes"]);
        assert_eq!(ran.code, code, "{verb} {power:?}");
    }
}

#[test]
fn cutting_power_asks_first_and_refuses_where_nobody_can_be_asked() {
    let fake = Fake::default().answers("GET /api/v1/nodes", 200, &varied());
    let ran = fake.run(&["power", "bld-003", "cycle"]);
    insta::assert_snapshot!(ran.story());
}

#[test]
fn a_switch_says_what_will_happen_and_is_not_done_without_a_yes() {
    let fake = switching().answers("GET /api/v1/nodes", 200, &varied());
    insta::assert_snapshot!(fake.run(&["switch", "bld-[003-004]", "inspect"]).story());
}

#[test]
fn a_confirmed_switch_sends_the_hash_of_its_preview() {
    let ran = switching().run(&["switch", "bld-[003-004]", "inspect", "--yes"]);
    insta::assert_snapshot!(ran.story());
}

#[test]
fn a_blocked_node_blocks_the_whole_switch() {
    let blocked = preview(&["it is protected: 900 GB disks not yet pulled; unprotect it first"]);
    let fake = Fake::default().answers("POST /api/v1/switch/preview", 200, &blocked);
    insta::assert_snapshot!(fake.run(&SWITCH).story());
}

#[test]
fn refusals_list_every_fault_and_have_their_codes() {
    let faults = ["bld-003: no such profile; see volund profiles", "bld-004: held; release it"];
    let cases: [(u16, &[&str], i32); 6] = [
        (422, &faults, 3),
        (409, &[], 3),
        (403, &[], 3),
        (404, &[], 2),
        (503, &[], 1),
        (500, &[], 1),
    ];
    for (status, faults, want) in cases {
        let body = problem("the reason of the server", faults);
        let fake = Fake::default().answers("POST /api/v1/switch/preview", status, &body);
        let ran = fake.run(&SWITCH);
        assert_eq!(ran.code, want, "{status}: {}", ran.story());
        let first = "volund: cannot switch bld-[003-004] to inspect: the reason of the server\n";
        let lines: String = faults.iter().map(|fault| format!("  - {fault}\n")).collect();
        assert_eq!(ran.err, format!("{first}{lines}"));
    }
}

#[test]
fn without_a_token_the_remedy_is_named() {
    let fake = Fake::default();
    let url = fake.serve();
    let ran = Ran::new(volund(&["nodes"], &[("VOLUND_URL", &url)], ""), &url);
    assert_eq!(
        ran.err,
        "volund: cannot list the nodes: URL/ wants an API token\n  \
         set VOLUND_TOKEN, or name a file that holds the token with --token-file; \
         `volund token NAME` makes one\n"
    );
    assert_eq!(ran.code, 3);
    let other = [("VOLUND_URL", url.as_str()), ("VOLUND_TOKEN", "vlnd_of_another_server")];
    let ran = Ran::new(volund(&["nodes"], &other, ""), &url);
    assert!(ran.err.contains("URL/ does not know the API token it was sent"), "{}", ran.err);
    assert_eq!(ran.code, 3);
}

#[test]
fn url_and_token_may_come_from_options() {
    let fake = Fake::default().answers("GET /api/v1/nodes", 200, &list(vec![]));
    let url = fake.serve();
    let file = std::env::temp_dir().join(format!("volund-token-{}", std::process::id()));
    fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let path = file.to_str().unwrap();
    let args = ["nodes", "--url", &url, "--token-file", path];
    let ran = Ran::new(volund(&args, &[("VOLUND_URL", "http://127.0.0.1:1")], ""), &url);
    fs::remove_file(&file).unwrap();
    assert_eq!((ran.out.as_str(), ran.code), ("lab twin has no nodes\n", 0), "{}", ran.err);
}

#[test]
fn a_server_that_is_not_there_has_its_own_code() {
    // Bound and closed again: nobody listens there.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for args in [&["nodes"][..], &["node", "bld-003"], &SWITCH, &["power", "bld-003", "on"]] {
        let ran = Ran::new(volund(args, &[("VOLUND_URL", &url)], ""), &url);
        assert_eq!(ran.code, 6, "{}", ran.story());
        assert!(ran.err.contains("no answer from URL/: Connection refused"), "{}", ran.err);
        assert!(ran.err.contains("start it with `volund serve`"), "{}", ran.err);
    }
}

#[test]
fn an_answer_that_is_none_is_said() {
    let fake = Fake::default().answers("GET /api/v1/nodes", 200, &json!({"hello": 1}));
    let ran = fake.run(&["nodes"]);
    assert!(ran.err.contains("URL/ answered what is no answer: missing field"), "{}", ran.err);
    assert_eq!(ran.code, 1);
}

#[test]
fn wrong_use_is_found_before_anybody_is_asked() {
    let cases: [(&[&str], &str); 9] = [
        (&["nodes", "bld-[003"], "has a bracket without its partner"),
        (&["node", "../../etc"], "is no name"),
        (&["switch", "bld-003", "IN SPECT"], "is no name"),
        (&["switch", "bld-003", "inspect", "--wait", "--timeout", "5"], "a duration is written as"),
        (&["power", "bld-003", "of"], "possible values: on, off, soft, cycle"),
        (&["nodes", "--url", "https://127.0.0.1"], "https needs TLS, which comes with a later"),
        (&["nodes", "--url", "http://u:hunter2@127.0.0.1"], "holds a user or password"),
        (&["nodes", "--token-file", "/nonexistent"], "cannot read the token file /nonexistent"),
        (&["frobnicate"], "unrecognized subcommand"),
    ];
    for (args, want) in cases {
        let ran = Ran::new(volund(args, &[("VOLUND_URL", "http://127.0.0.1:1")], ""), "URL");
        assert!(ran.err.contains(want), "{args:?}: {}", ran.err);
        assert!(!ran.err.contains("hunter2"), "{}", ran.err);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
    }
}

#[test]
fn help_names_every_exit_code() {
    let ran = Ran::new(volund(&["help", "exit-codes"], &[], ""), "URL");
    insta::assert_snapshot!(ran.story());
    let same = Ran::new(volund(&["exit-codes"], &[], ""), "URL");
    assert!(ran.out.contains(same.out.trim_end()), "{}", same.out);
}

#[test]
fn check_lists_faults_or_says_what_is_declared() {
    let root = env!("CARGO_MANIFEST_DIR");
    let good = format!("{root}/examples/asgard");
    let args = ["check", "--config", &good, "--no-secrets", "--no-files"];
    let ran = Ran::new(volund(&args, &[], ""), "URL");
    assert_eq!(ran.out, "lab asgard: 1 network, 1 enclosure, 17 nodes, 4 profiles; no faults\n");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let bad = format!("{root}/src/config/testdata/bad");
    let ran = Ran::new(volund(&["check", "--config", &bad], &[], ""), "URL");
    assert_eq!((ran.out.as_str(), ran.code), ("", 2));
    assert!(ran.err.starts_with("volund.toml:1:10: this file: schema 2"), "{}", ran.err);
    assert!(ran.err.ends_with(" faults\n"), "{}", ran.err);
}

#[test]
fn passwd_makes_a_log_in_that_the_configuration_takes() {
    let ran = Ran::new(volund(&["passwd", "admin"], &[], "correct horse\n"), "URL");
    assert!(ran.out.starts_with("[[operator.users]]\nname = \"admin\"\n"), "{}", ran.out);
    assert!(!ran.out.contains("horse"), "{}", ran.out);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let dir = std::env::temp_dir().join(format!("volund-passwd-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let text = format!("schema = 1\n[lab]\nname = \"a\"\n{}", ran.out);
    fs::write(dir.join("volund.toml"), text).unwrap();
    let path = dir.to_str().unwrap();
    let checked = Ran::new(volund(&["check", "--config", path], &[], ""), "URL");
    fs::remove_dir_all(&dir).unwrap();
    assert_eq!(checked.code, 0, "{}", checked.err);
    let short = Ran::new(volund(&["passwd", "admin"], &[], "short\n"), "URL");
    assert_eq!(short.code, 2, "{}", short.err);
}
