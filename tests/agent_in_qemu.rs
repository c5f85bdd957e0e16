//! The agent's image in a real (emulated) machine: QEMU boots the kernel and the initramfs that `volund::image` made,
//! the agent claims, reports and obeys, and the machine is off at the end.
//!
//! Needs `qemu-system-x86_64` and, once, the network for the kernel package; the image's cache is
//! `target/kernel-cache`. The guest's network is QEMU's own (slirp): it reaches this test's server on loopback
//! through 10.0.2.2 and nothing else.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this whole file is a test")]

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use model::agent::{Claim, Claimed, Next, Order, Report};
use volund::image::{self, AgentImage, BuildAgent, KernelSource};

const TICKET: &str = "00112233445566778899aabbccddeeff";
const MAC: &str = "52:54:00:00:03:01";
const SERIAL: &str = "CZ3035A001";
const UUID: &str = "39343536-3831-435a-3334-303359303033";
/// A cold boot under emulation on two busy cores; the goal is a third of it.
const BOOT_LIMIT: Duration = Duration::from_secs(120);

/// One request of the guest: verb and body.
struct Asked {
    verb: String,
    authorized: bool,
    body: String,
    at: Instant,
}

#[test]
fn a_machine_boots_the_image_reports_its_serials_and_powers_off_when_told() {
    let Some(image) = image_or_reason() else { return };
    let folder = Scratch::new("reports");
    let disks = ["VOL-VIRTIO-01", "VOL-SATA-02", "VOL-NVME-03"];
    let files = disks.map(|serial| folder.disk(serial));
    let answers = |verb: &str, nth: usize| match (verb, nth) {
        ("claim", _) => ok(&Claimed { node: "bld-001".into(), order: Order::Report }),
        ("report", _) => ok(&Order::Wait { seconds: 1 }),
        _ => ok(&Order::PowerOff),
    };
    let (port, asked) = serve(answers);
    let started = Instant::now();
    let mut machine = Machine::start(&image, port, &files, &disks);
    let claim = machine.next(&asked, "claim");
    let report = machine.next(&asked, "report");
    let next = machine.next(&asked, "next");
    machine.wait_off();
    let off = started.elapsed();

    let nonce = serde_json::from_str::<Claim>(&claim.body).unwrap().nonce;
    assert_eq!(model::hex::decode(&nonce).unwrap().len(), 16);
    assert!(claim.authorized && report.authorized && next.authorized, "each carries the ticket");
    assert_eq!(serde_json::from_str::<Next>(&next.body).unwrap().nonce, nonce);
    let found: Report = serde_json::from_str(&report.body).unwrap();
    assert_eq!(found.nonce, nonce);
    check_machine(&found, &image);
    check_parts(&found);
    println!(
        "FIGURE agent: initrd {} bytes; power-on to /init {:?}, to claim {:?}, to report {:?}, to off {off:?}; \
         /init to claim {:?}; report {} bytes",
        image.initrd_bytes,
        machine.init_at.unwrap() - started,
        claim.at - started,
        report.at - started,
        claim.at - machine.init_at.unwrap(),
        report.body.len()
    );
}

#[test]
fn a_refused_machine_says_why_and_stays_as_it_is() {
    let Some(image) = image_or_reason() else { return };
    let (port, asked) = serve(|_, _| (409, "this ticket was claimed by another start".to_owned()));
    let mut machine = Machine::start(&image, port, &[], &[]);
    machine.next(&asked, "claim");
    machine.wait_line("refused, so nothing is done here: this ticket was claimed");
    // It neither asks again nor switches itself off: the next thing that happens is our end of it.
    assert!(asked.recv_timeout(Duration::from_secs(3)).is_err());
    assert!(machine.process.try_wait().unwrap().is_none(), "still on");
}

fn check_machine(found: &Report, image: &AgentImage) {
    let dmi = model::hex::decode(&found.dmi).unwrap();
    let holds = |part: &[u8]| dmi.windows(part.len()).any(|window| window == part);
    assert!(holds(SERIAL.as_bytes()), "system serial in the SMBIOS table");
    let uuid: model::Uuid = UUID.parse().unwrap();
    assert!(holds(&uuid.swapped().0), "UUID as SMBIOS has it");
    assert!(model::hex::decode(&found.dmi_entry).unwrap().starts_with(b"_SM"));
    assert!(found.cpuinfo.contains("processor\t: 0") && found.cpuinfo.contains("model name"));
    assert!((150_000..256 * 1024).contains(&found.memory_kib), "{} KiB", found.memory_kib);
    assert_eq!(found.kernel, image.kernel_version);
    assert!(!found.efi, "SeaBIOS");
}

fn check_parts(found: &Report) {
    let disk = |serial: &str| {
        let wanted = |disk: &&model::agent::DiskFacts| disk.serial.as_deref() == Some(serial);
        found.disks.iter().find(wanted).unwrap_or_else(|| panic!("{serial}: {:#?}", found.disks))
    };
    assert_eq!(
        (disk("VOL-VIRTIO-01").name.as_str(), disk("VOL-VIRTIO-01").bytes),
        ("vda", 8 << 20)
    );
    assert_eq!((disk("VOL-SATA-02").name.as_str(), disk("VOL-SATA-02").bytes), ("sda", 8 << 20));
    assert_eq!(disk("VOL-SATA-02").model.as_deref(), Some("QEMU HARDDISK"));
    assert_eq!(
        (disk("VOL-NVME-03").name.as_str(), disk("VOL-NVME-03").bytes),
        ("nvme0n1", 8 << 20)
    );
    assert_eq!(found.disks.len(), 3, "{:#?}", found.disks);
    let [boot, other] = found.nics.as_slice() else { panic!("two interfaces: {:#?}", found.nics) };
    let (boot, other) = if boot.mac.to_string() == MAC { (boot, other) } else { (other, boot) };
    assert_eq!(boot.mac.to_string(), MAC);
    assert_eq!((boot.driver.as_deref(), boot.pci.as_deref()), (Some("e1000"), Some("8086:100e")));
    assert_eq!(boot.speed_mbit, Some(1000));
    assert_eq!(
        (other.driver.as_deref(), other.pci.as_deref()),
        (Some("virtio_net"), Some("1af4:1000"))
    );
}

static IMAGE: OnceLock<Option<AgentImage>> = OnceLock::new();

/// The image, built once a process, or `None` with the reason printed where this machine cannot have it. In CI
/// there is no such reason.
fn image_or_reason() -> Option<AgentImage> {
    IMAGE.get_or_init(build_image).clone()
}

fn build_image() -> Option<AgentImage> {
    let qemu = Command::new("qemu-system-x86_64").arg("--version").output();
    if let Err(error) = qemu {
        return not_here(&format!(
            "qemu-system-x86_64 (Debian: qemu-system-x86) does not run: {error}"
        ));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = Command::new("sh").arg(root.join("tests/build-agent.sh")).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let out_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("agent-image");
    let build = BuildAgent {
        out_dir,
        kernel: KernelSource::Package { cache: root.join("target/kernel-cache") },
        agent_binary: root.join("target/agent/x86_64-unknown-linux-gnu/agent/agent"),
        modules: image::DEFAULT_MODULES.map(str::to_owned).into(),
        required_modules: vec!["e1000".into(), "virtio_net".into()],
        firmware: None,
    };
    match image::build_agent(&build) {
        Ok(image) => Some(image),
        Err(error @ image::ImageError::Package { .. }) => not_here(&error.to_string()),
        Err(error) => panic!("{error}: {:?}", std::error::Error::source(&error)),
    }
}

fn not_here(reason: &str) -> Option<AgentImage> {
    assert!(env::var("CI").as_deref() != Ok("true"), "{reason}");
    println!("not tried: {reason}");
    None
}

fn ok(answer: &impl serde::Serialize) -> (u16, String) {
    (200, serde_json::to_string(answer).unwrap())
}

/// Answers POSTs on a port of loopback until the test ends; `answers` gets the verb and how often it came before.
fn serve(
    answers: impl Fn(&str, usize) -> (u16, String) + Send + 'static,
) -> (u16, Receiver<Asked>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // A handful of requests a test; full would stop the guest, which the test's own bound would show.
    let (sender, receiver) = mpsc::sync_channel(64);
    thread::spawn(move || {
        let mut before: Vec<String> = vec![];
        for stream in listener.incoming() {
            let Some(asked) = read_request(stream.as_ref().unwrap()) else { continue };
            let nth = before.iter().filter(|verb| **verb == asked.verb).count();
            before.push(asked.verb.clone());
            let (status, body) = answers(&asked.verb, nth);
            let length = body.len();
            let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n");
            stream.unwrap().write_all(format!("{head}{body}").as_bytes()).unwrap();
            if sender.send(asked).is_err() {
                return;
            }
        }
    });
    (port, receiver)
}

fn read_request(stream: &TcpStream) -> Option<Asked> {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let verb = line.strip_prefix("POST /agent/v1/")?.split_once(' ')?.0.to_owned();
    let (mut length, mut authorized) = (0, false);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        match header.trim().split_once(": ") {
            Some(("Content-Length", value)) => length = value.parse().ok()?,
            Some(("Authorization", value)) => authorized = value == format!("Ticket {TICKET}"),
            Some(_) => (),
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { verb, authorized, body: String::from_utf8(body).ok()?, at: Instant::now() })
}

/// A QEMU process; gone when dropped.
struct Machine {
    process: Child,
    lines: Receiver<(Instant, String)>,
    console: Vec<String>,
    deadline: Instant,
    /// When the agent's first line came.
    init_at: Option<Instant>,
}

impl Machine {
    fn start(image: &AgentImage, port: u16, files: &[PathBuf], serials: &[&str]) -> Self {
        let append = format!(
            "console=ttyS0 volund.url=http://10.0.2.2:{port} volund.ticket={TICKET} \
             volund.ip=10.0.2.15/24 BOOTIF=01-{}",
            MAC.replace(':', "-")
        );
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max", "-m", "256", "-machine", "q35"]);
        qemu.args(["-nodefaults", "-vga", "none", "-display", "none", "-serial", "stdio"]);
        qemu.args(["-no-reboot", "-kernel"]).arg(&image.kernel);
        qemu.arg("-initrd").arg(&image.initrd).args(["-append", &append]);
        qemu.args(["-smbios", &format!("type=1,manufacturer=HP,serial={SERIAL},uuid={UUID}")]);
        // The interface that is not the boot one comes first, so that taking the first would fail.
        qemu.args(["-device", "virtio-net-pci,romfile=,disable-modern=on,mac=52:54:00:00:03:99"]);
        qemu.args(["-netdev", "user,id=lan", "-device"]);
        qemu.arg(format!("e1000,netdev=lan,romfile=,mac={MAC}"));
        let models = ["virtio-blk-pci", "ide-hd", "nvme"];
        for ((file, serial), model) in files.iter().zip(serials).zip(models) {
            let name = file.display();
            qemu.args(["-drive", &format!("file={name},format=raw,if=none,id={serial}")]);
            qemu.args(["-device", &format!("{model},drive={serial},serial={serial}")]);
        }
        let mut process = qemu
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        // Unbounded, because a reader that stops would stop the guest; a boot has some hundred lines.
        let (sender, lines) = mpsc::channel();
        let console = process.stdout.take().unwrap();
        thread::spawn(move || forward(console, &sender));
        let deadline = Instant::now() + BOOT_LIMIT;
        Self { process, lines, console: vec![], deadline, init_at: None }
    }

    /// The guest's next request, which has to be `verb`.
    fn next(&mut self, asked: &Receiver<Asked>, verb: &str) -> Asked {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let asked = asked.recv_timeout(left);
        self.drain();
        let asked =
            asked.unwrap_or_else(|_| panic!("no {verb} came:\n{}", self.console.join("\n")));
        assert_eq!(asked.verb, verb, "{}", self.console.join("\n"));
        asked
    }

    fn wait_line(&mut self, text: &str) {
        while !self.console.iter().any(|line| line.contains(text)) {
            let left = self.deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.heard(line),
                Err(_) => panic!("{text:?} never came:\n{}", self.console.join("\n")),
            }
        }
    }

    /// The console ends when QEMU does, and QEMU when the guest powers off.
    fn wait_off(&mut self) {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.heard(line),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(_) => panic!("it did not power off:\n{}", self.console.join("\n")),
            }
        }
        assert!(self.process.wait().unwrap().success());
        let text = self.console.join("\n");
        assert!(text.contains("told to power off"), "{text}");
    }

    fn drain(&mut self) {
        while let Ok(line) = self.lines.try_recv() {
            self.heard(line);
        }
    }

    fn heard(&mut self, (at, line): (Instant, String)) {
        if line.contains("volund agent starts") {
            self.init_at = Some(at);
        }
        let own = line.contains("volund [");
        assert!(!own || !line.contains(TICKET), "the agent shows its ticket: {line}");
        self.console.push(line);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// Sends each line of the console on, with the moment it came.
fn forward(console: impl Read, sender: &Sender<(Instant, String)>) {
    let mut console = BufReader::new(console);
    let mut line = Vec::new();
    while console.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        if sender.send((Instant::now(), text)).is_err() {
            return;
        }
    }
}

/// A folder of this test run's own for disk images.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("agent-{name}"));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// An empty disk of 8 MiB.
    fn disk(&self, name: &str) -> PathBuf {
        let path = self.0.join(format!("{name}.raw"));
        fs::File::create(&path).unwrap().set_len(8 << 20).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _left_behind = fs::remove_dir_all(&self.0);
    }
}
