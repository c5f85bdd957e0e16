//! The command line as a process against a server that answers what a test wants: output and exit codes.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, its helpers too"
)]

use std::{
    collections::{HashMap, VecDeque},
    fs,
    io::Write,
    net::TcpListener,
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use api::{
    BmcView, DimmView, DiskView, FactsView, NicView, NodeDetail, NodeList, NodePreview, NodeView,
    PhaseEvent, PhaseView, PowerOutcome, PowerResult, PowerState, Problem, ProcessorView,
    ProfileList, ProfileView, Quantity, SightingView, SwitchAccepted, SwitchPreview, SwitchRef,
};
use axum::{
    Router,
    body::{Bytes, to_bytes},
    extract::Request,
    http::{StatusCode, header},
    response::IntoResponse,
};
use serde::Serialize;
use serde_json::{Value, json};

const TOKEN: &str = "vlnd_0123456789abcdef";
/// 2026-11-30 13:20:00 UTC.
const NOW: i64 = 1_796_044_800_000;

type Answers = HashMap<String, VecDeque<(u16, Vec<u8>)>>;

/// A server that gives prepared answers, the last one of each kind for ever, and notes what it was asked.
#[derive(Clone, Default)]
struct Fake {
    answers: Arc<Mutex<Answers>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// Prepares the next answer to `request`, such as `GET /api/v1/nodes`.
    fn answers(self, request: &str, status: u16, body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body).unwrap();
        let mut answers = self.answers.lock().unwrap();
        answers.entry(request.to_owned()).or_default().push_back((status, body));
        drop(answers);
        self
    }

    /// Serves on a free port of the loopback; returns its URL.
    fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let fake = self.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let app = Router::new().fallback(move |request| fake.clone().answer(request));
                axum::serve(listener, app).await.unwrap();
            });
        });
        url
    }

    async fn answer(self, request: Request) -> impl IntoResponse {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, 65_536).await.unwrap();
        let token = parts.headers.get(header::AUTHORIZATION);
        let known = token.is_some_and(|token| token == &format!("Bearer {TOKEN}"));
        let text = format!("{} {} {}", parts.method, parts.uri, String::from_utf8_lossy(&body));
        self.asked.lock().unwrap().push(text.trim().to_owned());
        let json = [(header::CONTENT_TYPE, "application/json")];
        if !known {
            let problem = problem("log in, or send an API token", &[]);
            return (StatusCode::UNAUTHORIZED, json, Bytes::from(problem.to_string()));
        }
        let key = format!("{} {}", parts.method, parts.uri.path());
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = answers.get_mut(&key).unwrap_or_else(|| panic!("nobody prepared {key}"));
        let (status, body) = match queue.len() {
            1 => queue[0].clone(),
            _ => queue.pop_front().unwrap(),
        };
        drop(answers);
        assert_ne!(status, 0, "the test wants this connection dropped: a panic does it");
        (StatusCode::from_u16(status).unwrap(), json, Bytes::from(body))
    }

    /// Runs `volund ARGS` against it.
    fn run(&self, args: &[&str]) -> Ran {
        let url = self.serve();
        let output = volund(args, &[("VOLUND_URL", &url), ("VOLUND_TOKEN", TOKEN)], "");
        let asked = self.asked.lock().unwrap().join("\n");
        Ran { asked, ..Ran::new(output, &url) }
    }
}

/// What came of a process.
struct Ran {
    code: i32,
    out: String,
    err: String,
    asked: String,
}

impl Ran {
    fn new(output: Output, url: &str) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap().replace(url, "URL");
        let (out, err) = (text(output.stdout), text(output.stderr));
        assert!(!out.contains(TOKEN) && !err.contains(TOKEN), "the token was shown");
        Self { code: output.status.code().unwrap(), out, err, asked: String::new() }
    }

    /// All of it, for a snapshot.
    fn story(&self) -> String {
        let Self { code, out, err, asked } = self;
        format!("{out}--- stderr\n{err}--- asked\n{asked}\n--- exit {code}")
    }
}

fn volund(args: &[&str], variables: &[(&str, &str)], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_volund"))
        .args(args)
        .env_clear()
        .env("TZ", "UTC")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn problem(error: &str, faults: &[&str]) -> Value {
    let faults = faults.iter().map(|fault| (*fault).to_owned()).collect();
    serde_json::to_value(Problem { error: error.to_owned(), faults }).unwrap()
}

fn watts(value: Option<f64>, text: &str, absent: Option<&str>) -> Quantity {
    let known = |text: &str| value.map(|_| text.to_owned());
    Quantity {
        value,
        unit: "W".to_owned(),
        margin: value.map(|value| value * 0.05),
        source: known("DCMI"),
        kind: known("blade input"),
        from_ms: Some(NOW - 1_000),
        to_ms: Some(NOW),
        text: text.to_owned(),
        absent: absent.map(ToOwned::to_owned),
    }
}

fn idle() -> PhaseView {
    PhaseView {
        name: "idle".to_owned(),
        open: false,
        switch_id: None,
        since_ms: None,
        until_ms: None,
        reason: None,
        remedy: None,
    }
}

/// Phase `name` of switch `id`.
fn phase(id: &str, name: &str, reason: &str, remedy: Option<&str>) -> PhaseView {
    PhaseView {
        name: name.to_owned(),
        open: !matches!(name, "done" | "held" | "failed"),
        switch_id: Some(id.to_owned()),
        since_ms: Some(NOW - 60_000),
        until_ms: Some(NOW + 300_000),
        reason: Some(reason.to_owned()),
        remedy: remedy.map(ToOwned::to_owned),
    }
}

/// A blade in bay `bay`, on, settled in `local`.
fn blade(bay: u8, phase: PhaseView) -> NodeView {
    NodeView {
        name: format!("bld-{bay:03}"),
        enclosure: Some("c7000-1".to_owned()),
        bay: Some(bay),
        macs: vec![format!("9c:8e:99:00:{bay:02}:01")],
        address: format!("192.0.2.{}", 10 + bay),
        bmc: BmcView {
            kind: "ipmi".to_owned(),
            address: format!("203.0.113.{bay}"),
            port: 623,
            suite: Some(17),
            trouble: None,
        },
        power: PowerState::On,
        power_at_ms: Some(NOW - 5_000),
        profile: Some("local".to_owned()),
        wanted: None,
        phase,
        watts: watts(Some(67.0), "67 W ±5 % (DCMI, blade input)", None),
        last_sighting: Some(sighting(NOW - 90_000, "DHCP ACK 192.0.2.13")),
        protected: None,
        profiles: vec!["inspect".to_owned(), "local".to_owned()],
    }
}

fn sighting(at_ms: i64, text: &str) -> SightingView {
    SightingView {
        at_ms,
        attempt_ms: None,
        kind: "dhcp-out".to_owned(),
        text: text.to_owned(),
        detail: json!({}),
    }
}

fn list(nodes: Vec<NodeView>) -> NodeList {
    NodeList { lab: "twin".to_owned(), at_ms: NOW, nodes, enclosures: vec![] }
}

/// Blades in all the states a list shows.
fn varied() -> NodeList {
    let mut off = blade(4, idle());
    off.power = PowerState::Off;
    off.watts = watts(None, "–", Some("not read yet"));
    off.last_sighting = None;
    off.profile = None;
    off.protected = Some("900 GB disks not yet pulled".to_owned());
    let mut booting = blade(6, phase("01J6", "booting", "waits for DHCP", None));
    booting.wanted = Some("inspect".to_owned());
    let mut held = blade(7, phase("01J7", "held", "no DHCP within 8 min", None));
    held.power = PowerState::Unknown;
    held.bmc.trouble = Some("no answer since 12:00".to_owned());
    let mut loose = blade(9, idle());
    loose.name = "oden".to_owned();
    loose.enclosure = None;
    loose.bay = None;
    list(vec![blade(3, idle()), off, booting, held, loose])
}

fn detail() -> NodeDetail {
    NodeDetail {
        node: blade(3, phase("01J3", "held", "no DHCP within 8 min", Some("look at its console"))),
        facts: Some(FactsView {
            at_ms: NOW - 3_600_000,
            product: Some("HP ProLiant BL460c Gen8".to_owned()),
            serial: Some("CZ3403YL03".to_owned()),
            uuid: None,
            firmware: Some("I31".to_owned()),
            efi: false,
            processors: vec![ProcessorView {
                socket: "Proc 1".to_owned(),
                model: Some("Xeon E5-2620".to_owned()),
                cores: Some(6),
                threads: None,
            }],
            memory_mib: Some(32_768),
            dimms: vec![
                DimmView {
                    slot: "1A".to_owned(),
                    mib: Some(4_096),
                    part: Some("M393\u{1b}[2J".to_owned()),
                    serial: None,
                },
                DimmView { slot: "2A".to_owned(), mib: None, part: None, serial: None },
            ],
            disks: vec![DiskView {
                name: "sda".to_owned(),
                bytes: 300_000_000_000,
                model: Some("EG0300".to_owned()),
                serial: Some("6SE1AAA".to_owned()),
            }],
            nics: vec![NicView {
                name: "eno1".to_owned(),
                mac: "9c:8e:99:00:03:01".to_owned(),
                driver: Some("be2net".to_owned()),
                speed_mbit: Some(1_000),
            }],
            warnings: vec!["DIMM 3A has no size".to_owned()],
        }),
        timeline: vec![
            sighting(NOW - 65_000, "DHCP DISCOVER from x86 BIOS (0)"),
            sighting(NOW - 64_000, "DHCP OFFER 192.0.2.13, boot file undionly.kpxe"),
        ],
        history: history(),
        power: vec![
            watts(Some(67.0), "67 W ±5 % (DCMI, blade input)", None),
            watts(None, "–", Some("the BMC does not answer")),
        ],
    }
}

fn history() -> Vec<PhaseEvent> {
    let event = |at_ms, phase: &str, reason: &str| PhaseEvent {
        switch_id: "01J3".to_owned(),
        at_ms,
        profile: "inspect".to_owned(),
        phase: phase.to_owned(),
        reason: reason.to_owned(),
        by: "admin".to_owned(),
    };
    vec![
        event(NOW - 60_000, "held", "no DHCP within 8 min"),
        event(NOW - 600_000, "booting", "power is on"),
    ]
}

fn preview(blocked: &[&str]) -> SwitchPreview {
    let node = |name: &str, blocked: &[&str]| NodePreview {
        node: name.to_owned(),
        from: Some("local".to_owned()),
        power: PowerState::On,
        steps: vec!["shut down".to_owned(), "boot the agent over the network".to_owned()],
        blocked: blocked.iter().map(|why| (*why).to_owned()).collect(),
        destructive: true,
    };
    SwitchPreview {
        profile: "inspect".to_owned(),
        nodes: vec![node("bld-003", &[]), node("bld-004", blocked)],
        hash: "c0ffee".to_owned(),
    }
}

fn accepted() -> SwitchAccepted {
    let switch = |id: &str, node: &str| SwitchRef { id: id.to_owned(), node: node.to_owned() };
    SwitchAccepted { switches: vec![switch("01J3", "bld-003"), switch("01J4", "bld-004")] }
}

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
/// The same with no patience.
const SHORT: [&str; 6] = ["switch", "bld-[003-004]", "inspect", "--yes", "--wait", "--timeout=1s"];

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
fn a_power_verb_shows_what_was_read_back() {
    let result = |node: &str, power, error: Option<&str>| PowerResult {
        node: node.to_owned(),
        power,
        error: error.map(ToOwned::to_owned),
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
        let node = PowerResult { node: "bld-003".to_owned(), power, error: None };
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
        let ran = fake.run(&SHORT);
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
        "volund: cannot list the nodes: log in, or send an API token\n  \
         set VOLUND_TOKEN, or name a file that holds the token with --token-file\n"
    );
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
