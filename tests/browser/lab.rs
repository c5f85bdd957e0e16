//! `volund demo` as a child process, its API as a witness, and what happens to a lab that no page can do.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use bmc::{Bmc, BmcAddress, Login, Options, PowerState, Secret};
use serde_json::{Value, json};

use crate::driver::{PATIENCE, token, wait_for};

/// Longest wait for an answer of the demo.
const ANSWER: Duration = Duration::from_secs(20);

/// A running demo. It is ended, and its state removed, when this is dropped.
pub(crate) struct Demo {
    /// Address of the page.
    pub(crate) url: String,
    pub(crate) password: String,
    /// What the demo says itself of the time to be ready.
    pub(crate) told_ready: String,
    /// From the start of the process to its last line of welcome.
    pub(crate) ready: Duration,
    api_token: String,
    bmc_user: String,
    bmc_password: String,
    http: reqwest::Client,
    state: PathBuf,
    child: Child,
}

impl Demo {
    /// Starts the program, 16 bays, and reads what it tells a person and a script.
    pub(crate) fn start() -> Self {
        let state = std::env::temp_dir().join(format!("volund-browser-demo-{}", token()));
        let begun = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_volund"))
            .args(["demo", "--listen", "127.0.0.1:0", "--state"])
            .arg(&state)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let welcome = read_welcome(&mut child);
        let ready = begun.elapsed();
        let env = fs::read_to_string(state.join("demo.env")).unwrap();
        let setting = |name: &str| {
            let line = env.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.unwrap_or_else(|| panic!("demo.env has no {name}:\n{env}")).to_owned()
        };
        Self {
            url: setting("VOLUND_URL"),
            password: after(&welcome, "operator / "),
            told_ready: after(&welcome, "(ready in ").trim_end_matches(')').to_owned(),
            ready,
            api_token: setting("VOLUND_TOKEN"),
            bmc_user: setting("VOLUND_DEMO_BMC_USER"),
            bmc_password: setting("VOLUND_DEMO_BMC_PASSWORD"),
            http: reqwest::Client::builder().timeout(ANSWER).no_proxy().build().unwrap(),
            state,
            child,
        }
    }

    /// A node as the API tells it.
    pub(crate) async fn node(&self, name: &str) -> Value {
        let url = format!("{}/api/v1/nodes/{name}", self.url);
        answer(self.http.get(url).bearer_auth(&self.api_token)).await
    }

    /// Switches through the API, as a script would.
    pub(crate) async fn switch(&self, nodes: &str, profile: &str) {
        let mut wish = json!({ "nodes": nodes, "profile": profile });
        let preview = self.post("switch/preview", &wish).await;
        wish["confirm"] = preview["hash"].clone();
        self.post("switch", &wish).await;
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let url = format!("{}/api/v1/{path}", self.url);
        answer(self.http.post(url).bearer_auth(&self.api_token).json(body)).await
    }

    /// Waits for a phase.
    pub(crate) async fn wait_phase(&self, node: &str, phase: &str) {
        let asked =
            async || (self.node(node).await["node"]["phase"]["name"] == phase).then_some(());
        wait_for(&format!("{node} in phase {phase}"), asked).await;
    }

    /// A client of our own to the node's BMC, beside the server's: a second witness of its power.
    pub(crate) async fn bmc(&self, node: &str) -> Bmc {
        let node = self.node(node).await;
        let host: IpAddr = node["node"]["bmc"]["address"].as_str().unwrap().parse().unwrap();
        let port = u16::try_from(node["node"]["bmc"]["port"].as_u64().unwrap()).unwrap();
        let secret = Secret::new(self.bmc_password.clone().into_bytes());
        let login = Login::new(&self.bmc_user, secret).unwrap();
        Bmc::new(BmcAddress { host, port }, login, Options::default())
    }

    /// A machine that took the address of `node` claims its ticket, twice, as two starts of an agent would: the
    /// switch has to be held. The node has to be in its installer, so that there is time for it.
    pub(crate) async fn intrude(&self, node: &str) {
        self.wait_phase(node, "installing").await;
        let seen = self.node(node).await;
        let address: Ipv4Addr = seen["node"]["address"].as_str().unwrap().parse().unwrap();
        let script_url = script_url(&seen["timeline"]);
        let http = reqwest::Client::builder().local_address(IpAddr::V4(address)).no_proxy();
        let http = http.timeout(ANSWER).build().unwrap();
        let script = http.get(&script_url).send().await.unwrap().text().await.unwrap();
        let ticket = after(&script, "/t/");
        let ticket = ticket.split('/').next().unwrap();
        let (base, _) = script_url.rsplit_once('/').unwrap();
        let mut answers = Vec::new();
        for nonce in ["00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100"] {
            let claim =
                http.post(format!("{base}/agent/v1/claim")).json(&json!({ "nonce": nonce }));
            let claim = claim.header("Authorization", format!("Ticket {ticket}"));
            answers.push(claim.send().await.unwrap().status().as_u16());
        }
        assert_eq!(answers, [200, 409], "the first nonce owns the ticket");
        self.wait_phase(node, "held").await;
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let interrupt = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let ended = interrupt.is_ok_and(|status| status.success()) && has_ended(&mut self.child);
        if !ended {
            drop(self.child.kill());
            drop(self.child.wait());
        }
        drop(fs::remove_dir_all(&self.state));
        assert!(
            ended || thread::panicking(),
            "the demo does not end by Ctrl-C within {PATIENCE:?}"
        );
    }
}

/// Polls the BMC until it reads on; when that was.
pub(crate) async fn wait_power_on(bmc: &Bmc) -> Instant {
    let asked = async || {
        let power = bmc.power_status().await.unwrap();
        (power == PowerState::On).then(Instant::now)
    };
    wait_for("power reads on", asked).await
}

fn has_ended(child: &mut Child) -> bool {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        match child.try_wait() {
            Ok(None) => thread::sleep(Duration::from_millis(10)),
            Ok(Some(_)) => return true,
            Err(_) => return false,
        }
    }
    false
}

/// Everything up to the line on Ctrl-C. Later output is read and dropped.
fn read_welcome(child: &mut Child) -> String {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let (tell, told) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut welcome = String::new();
        for line in lines.by_ref() {
            welcome += &format!("{line}\n");
            if line.contains("Ctrl-C") {
                break;
            }
        }
        drop(tell.send(welcome));
        lines.for_each(drop);
    });
    told.recv_timeout(PATIENCE).expect("the demo says that it is ready")
}

async fn answer(request: reqwest::RequestBuilder) -> Value {
    let answer = request.send().await.unwrap();
    let (status, url) = (answer.status(), answer.url().clone());
    let body: Value = answer.json().await.unwrap();
    assert!(status.is_success(), "{url}: {status} {body}");
    body
}

/// Where iPXE was told to find its script.
fn script_url(timeline: &Value) -> String {
    let files =
        timeline.as_array().unwrap().iter().filter_map(|seen| seen["detail"]["file"].as_str());
    let script = files.clone().find(|file| file.contains("/boot.ipxe"));
    script.expect("iPXE was told its script").split('?').next().unwrap().to_owned()
}

/// The rest of the line after `mark`.
fn after(text: &str, mark: &str) -> String {
    let found = text.lines().find_map(|line| line.split_once(mark));
    found.unwrap_or_else(|| panic!("no {mark:?} in:\n{text}")).1.trim().to_owned()
}
