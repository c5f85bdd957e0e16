//! `volund demo` as a process: it stays while it should, ends when it is told to, and never hangs in between.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, its helpers too"
)]

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

/// How long anything here may take.
const BOUND: Duration = Duration::from_secs(30);

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("volund-stays-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A demo that is killed when the test ends.
struct Demo(Child);

impl Demo {
    fn start(state: &Path, stdout: Stdio) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_volund"));
        command.args(["demo", "--bays", "1", "--listen", "127.0.0.1:0", "--state"]).arg(state);
        let child = command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).spawn();
        Self(child.unwrap())
    }

    fn ended(&mut self) -> ExitStatus {
        until("the demo to end", || self.0.try_wait().unwrap())
    }

    /// What it said. Only after its end.
    fn said(&mut self) -> String {
        let mut text = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    fn terminate(&self) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It has ended already where all is well.
        let _killed = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begun.elapsed() < BOUND, "waited {BOUND:?} for {what}");
        sleep(Duration::from_millis(20));
    }
}

/// The page's address, once the demo is ready.
fn ready(state: &Path) -> String {
    until("demo.env", || {
        let text = fs::read_to_string(state.join("demo.env")).ok()?;
        let url = text.lines().find_map(|line| line.strip_prefix("VOLUND_URL=http://"));
        url.map(str::to_owned)
    })
}

#[test]
fn a_demo_whose_output_nobody_reads_goes_on_and_ends_when_told_to() {
    let folder = Folder::new("pipe");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut demo = Demo::start(&folder.0, writer.into());
    let page = ready(&folder.0);
    std::net::TcpStream::connect(&page).unwrap();
    demo.terminate();
    let status = demo.ended();
    let said = demo.said();
    assert!(status.success(), "{status}: {said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn a_demo_that_fails_after_its_boot_services_began_ends_and_says_why() {
    let folder = Folder::new("fails");
    fs::create_dir(folder.0.join("demo.env")).unwrap();
    let mut demo = Demo::start(&folder.0, Stdio::null());
    let status = demo.ended();
    let said = demo.said();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("demo.env"), "{said}");
}

#[test]
fn a_second_demo_on_the_same_state_is_refused_and_leaves_the_first_alone() {
    let folder = Folder::new("twice");
    let mut first = Demo::start(&folder.0, Stdio::null());
    let page = ready(&folder.0);
    let mut second = Demo::start(&folder.0, Stdio::null());
    let status = second.ended();
    let said = second.said();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("another volund is running on the state in"), "{said}");
    assert_eq!(ready(&folder.0), page, "the first one's access was overwritten");
    first.terminate();
    assert!(first.ended().success());
    let mut again = Demo::start(&folder.0, Stdio::null());
    until("a new address", || (ready(&folder.0) != page).then_some(()));
    again.terminate();
    assert!(again.ended().success());
}

#[test]
fn serve_tells_every_fault_of_its_configuration_and_ends_as_wrong_input() {
    let dir = std::env::temp_dir().join(format!("volund-faults-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("volund.toml"), "schema = 1\n[lab]\nnam = \"x\"\n").unwrap();
    let mut serve = Command::new(env!("CARGO_BIN_EXE_volund"));
    let output = serve.args(["serve", "--config"]).arg(&dir).output().unwrap();
    fs::remove_dir_all(&dir).unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    for fault in ["name is missing", "unknown key \"nam\"; did you mean \"name\"?"] {
        assert!(told.lines().any(|line| line.contains(fault)), "{fault}: {told}");
    }
}
