//! Chromium through chromedriver: the few W3C WebDriver commands these tests need, as plain JSON over HTTP.
//!
//! Every command is bounded by the client's time-out, every wait by [`PATIENCE`]. A watcher is put into each
//! document before its own script runs; it writes down phases, shifts of the layout and refusals of the CSP.

use std::{
    env,
    fs::{self, File},
    future::Future,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// Longest wait for anything a page is to show. Two busy cores are slow; nothing here takes a third of it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Longest answer of the driver: it waits itself for a page to load.
const COMMAND: Duration = Duration::from_secs(60);
/// How often a condition is asked for.
const LOOK: Duration = Duration::from_millis(20);
/// Key of an element reference, W3C WebDriver section 12.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

const CHROMIUM: &str = "/usr/bin/chromium";
const CHROMEDRIVER: &str = "/usr/bin/chromedriver";

/// Runs in every new document, before the page's own script.
const WATCHER: &str = "
addEventListener('securitypolicyviolation', e => (window.refused ??= []).push(e.blockedURI + ' ' + e.violatedDirective));
window.shift = 0, window.moved = [];
const name = node => node?.id || node?.className || node?.nodeName;
new PerformanceObserver(list => {
  for (const entry of list.getEntries().filter(entry => !entry.hadRecentInput)) {
    window.shift += entry.value;
    window.moved.push(...entry.sources.map(source => name(source.node)));
  }
}).observe({ type: 'layout-shift', buffered: true });
window.passed = [];
function look() {
  const now = document.getElementById('phases')?.dataset.phase;
  if (now && window.passed.at(-1)?.phase !== now) window.passed.push({ phase: now, at: Date.now() });
}
new MutationObserver(look).observe(document, { childList: true, subtree: true, attributes: true });
";

/// What kind of screen, and whether pages may run scripts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) phone: bool,
    pub(crate) scripts: bool,
}

/// A desk.
pub(crate) const DESK: Screen = Screen { width: 1440, height: 900, phone: false, scripts: true };
/// A phone held upright.
pub(crate) const PHONE: Screen = Screen { width: 390, height: 844, phone: true, scripts: true };
/// A desk whose browser runs no script.
pub(crate) const NO_SCRIPT: Screen = Screen { scripts: false, ..DESK };

/// A running Chromium with one page.
pub(crate) struct Browser {
    http: reqwest::Client,
    /// URL of the session.
    session: String,
    screen: Screen,
    folder: PathBuf,
    driver: Child,
}

/// Whether there is a Chromium; without one the tests end here, and fail where CI says they have to run.
pub(crate) fn is_missing() -> bool {
    let missing: Vec<_> =
        [CHROMIUM, CHROMEDRIVER].into_iter().filter(|path| !Path::new(path).exists()).collect();
    if missing.is_empty() {
        return false;
    }
    let text =
        format!("no {}: install the packages chromium and chromium-driver", missing.join(", "));
    assert!(env::var("CI").as_deref() != Ok("true"), "{text}");
    println!("not run: {text}");
    true
}

impl Browser {
    /// Starts driver and browser, with a profile of their own.
    pub(crate) async fn start(screen: Screen) -> Self {
        let folder = env::temp_dir().join(format!("volund-browser-{}", token()));
        fs::create_dir_all(&folder).unwrap();
        let log = File::create(folder.join("chromedriver.log")).unwrap();
        let mut driver = Command::new(CHROMEDRIVER)
            .args(["--port=0", "--allowed-ips=127.0.0.1"])
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let port = told_port(&mut driver);
        let http = reqwest::Client::builder().timeout(COMMAND).no_proxy().build().unwrap();
        let base = format!("http://127.0.0.1:{port}");
        let mut browser = Self { http, session: base, screen, folder, driver };
        let wanted = capabilities(screen, &browser.folder);
        let made =
            browser.post("session", json!({ "capabilities": { "alwaysMatch": wanted } })).await;
        browser.session = format!("{}/session/{}", browser.session, text_of(&made["sessionId"]));
        browser.set_screen(screen).await;
        if screen.scripts {
            let watcher = json!({ "source": WATCHER });
            browser.devtools("Page.addScriptToEvaluateOnNewDocument", watcher).await;
        }
        browser
    }

    async fn set_screen(&self, Screen { width, height, phone, .. }: Screen) {
        let metrics = json!({ "width": width, "height": height, "mobile": phone,
                              "deviceScaleFactor": if phone { 2 } else { 1 } });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
        if phone {
            self.devtools("Emulation.setTouchEmulationEnabled", json!({ "enabled": true })).await;
        }
        self.prefer("light").await;
    }

    /// What the system's setting for the colour scheme says.
    pub(crate) async fn prefer(&self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": features })).await;
    }

    pub(crate) async fn open(&self, url: &str) {
        self.post("url", json!({ "url": url })).await;
    }

    pub(crate) async fn reload(&self) {
        self.post("refresh", json!({})).await;
    }

    pub(crate) async fn url(&self) -> String {
        text_of(&self.get("url").await)
    }

    /// Presses what `css` finds, where a pointer would press it; fails when something lies over it.
    pub(crate) async fn press(&self, css: &str) {
        let element = self.find(css).await;
        self.post(&format!("element/{element}/click"), json!({})).await;
    }

    /// Types as a keyboard does.
    pub(crate) async fn type_into(&self, css: &str, text: &str) {
        let element = self.find(css).await;
        self.post(&format!("element/{element}/value"), json!({ "text": text })).await;
    }

    /// The text a person reads there.
    pub(crate) async fn text(&self, css: &str) -> String {
        let element = self.find(css).await;
        text_of(&self.get(&format!("element/{element}/text")).await)
    }

    pub(crate) async fn attribute(&self, css: &str, name: &str) -> String {
        let element = self.find(css).await;
        text_of(&self.get(&format!("element/{element}/attribute/{name}")).await)
    }

    pub(crate) async fn count(&self, css: &str) -> usize {
        let found = self.post("elements", by(css)).await;
        found.as_array().unwrap().len()
    }

    /// What `script` returns.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.post("execute/sync", json!({ "script": script, "args": [] })).await
    }

    /// Asks for `script` until it is true.
    pub(crate) async fn wait_true(&self, what: &str, script: &str) {
        wait_for(what, async || (self.run(script).await == true).then_some(())).await;
    }

    /// The page as it is, down to its end or that of the window, in `target/tmp/NAME.png`.
    pub(crate) async fn save_picture(&self, name: &str) {
        let Screen { width, height, .. } = self.screen;
        let foot = "return document.querySelector('.foot')?.getBoundingClientRect().bottom";
        let end = self.run(foot).await.as_f64().filter(|end| *end > 0.0).unwrap_or(f64::MAX);
        let clip = json!({ "x": 0, "y": 0, "width": width, "scale": 1,
                           "height": end.min(f64::from(height)) });
        let wanted = json!({ "format": "png", "clip": clip, "optimizeForSpeed": false });
        let shot = self.devtools("Page.captureScreenshot", wanted).await;
        let bytes = decode_base64(shot["data"].as_str().unwrap());
        fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.png")), bytes)
            .unwrap();
    }

    /// Lines of the browser's console since the last call, news of the loading of pages left out.
    pub(crate) async fn console(&self) -> Vec<String> {
        let lines = self.post("se/log", json!({ "type": "browser" })).await;
        let line = |entry: &Value| format!("{} {}", entry["level"], entry["message"]);
        lines.as_array().unwrap().iter().map(line).collect()
    }

    /// URLs that pages asked for since the last call.
    pub(crate) async fn asked(&self) -> Vec<String> {
        let lines = self.post("se/log", json!({ "type": "performance" })).await;
        let url = |entry: &Value| {
            let event: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let sent = event["message"]["method"] == "Network.requestWillBeSent";
            let url = event["message"]["params"]["request"]["url"].as_str()?;
            sent.then(|| url.to_owned())
        };
        lines.as_array().unwrap().iter().filter_map(url).collect()
    }

    async fn find(&self, css: &str) -> String {
        text_of(&self.post("element", by(css)).await[ELEMENT])
    }

    async fn devtools(&self, command: &str, params: Value) -> Value {
        self.post("goog/cdp/execute", json!({ "cmd": command, "params": params })).await
    }

    async fn get(&self, path: &str) -> Value {
        self.send(path, self.http.get(format!("{}/{path}", self.session))).await
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let shown = format!("{path} {body}");
        self.send(&shown, self.http.post(format!("{}/{path}", self.session)).json(&body)).await
    }

    async fn send(&self, shown: &str, request: reqwest::RequestBuilder) -> Value {
        let answer = request.send().await.unwrap_or_else(|error| panic!("{shown}: {error:?}"));
        let status = answer.status();
        let body: Value = answer.json().await.unwrap();
        assert!(
            status.is_success(),
            "{shown}: {} {}",
            body["value"]["error"],
            body["value"]["message"]
        );
        body["value"].clone()
    }

    /// Closes page and browser. Blocks, so that it can be done while a failed test is taken down.
    fn close(&self) -> std::io::Result<()> {
        let (_, rest) = self.session.split_once("//").unwrap_or_default();
        let (host, path) = rest.split_once('/').unwrap_or_default();
        let mut stream = TcpStream::connect(host)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "DELETE /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
        // The driver keeps the connection open; that it answers is enough.
        stream.read(&mut [0; 512]).map(drop)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let closed = self.close();
        drop(self.driver.kill());
        drop(self.driver.wait());
        drop(fs::remove_dir_all(&self.folder));
        assert!(closed.is_ok() || thread::panicking(), "the browser does not close: {closed:?}");
    }
}

fn capabilities(screen: Screen, folder: &Path) -> Value {
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let size = format!("--window-size={},{}", screen.width, screen.height);
    let mut options = json!({
        "binary": CHROMIUM,
        "args": [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--hide-scrollbars", profile, size,
        ],
    });
    if !screen.scripts {
        options["prefs"] = json!({ "profile.managed_default_content_settings.javascript": 2 });
    }
    json!({
        "browserName": "chrome",
        "goog:chromeOptions": options,
        "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
    })
}

/// The port the driver took, from its first lines.
fn told_port(driver: &mut Child) -> u16 {
    let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let (tell, told) = mpsc::sync_channel(1);
    thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let port = line.strip_suffix('.').and_then(|line| line.rsplit_once("on port "));
            if let Some(port) = port.and_then(|(_, port)| port.parse().ok()) {
                // Only the first is waited for; later lines are read so that the pipe never fills.
                tell.try_send(port).ok();
            }
        }
    });
    told.recv_timeout(PATIENCE).expect("chromedriver says where it listens")
}

/// Asks until there is an answer, not longer than [`PATIENCE`].
pub(crate) async fn wait_for<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut ask: impl FnMut() -> F,
) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < end, "waited {PATIENCE:?} in vain: {what}");
        tokio::time::sleep(LOOK).await;
    }
}

fn by(css: &str) -> Value {
    json!({ "using": "css selector", "value": css })
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Eight random letters, so that folders of tests do not meet.
pub(crate) fn token() -> String {
    let mut chance = [0; 4];
    getrandom::fill(&mut chance).unwrap();
    model::hex::encode(&chance)
}

/// RFC 4648, section 4; the driver's pictures come so.
fn decode_base64(text: &str) -> Vec<u8> {
    let six = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Vec<u8> = text.bytes().filter_map(six).collect();
    let group = |four: &[u8]| {
        let bits = four.iter().fold(0_u32, |bits, digit| bits << 6 | u32::from(*digit));
        let [_, bytes @ ..] = (bits << (6 * (4 - four.len()))).to_be_bytes();
        bytes.into_iter().take(four.len() - 1)
    };
    digits.chunks(4).flat_map(group).collect()
}
