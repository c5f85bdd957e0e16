//! One boot segment in a network namespace of its own: a bridge, volund, an emulated machine, tcpdump. No uplink.

use std::{
    env,
    fs::{self, File},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{UUID, neighbour, payload};

/// Longest wait for a process to answer.
const READY: Duration = Duration::from_secs(30);

/// The machine of a test, and what is peculiar about the lab it is in.
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) name: &'static str,
    /// As the twin has it: `bios`, `uefi`, `uefi-secure`, `uefi-arm64`.
    pub(crate) firmware: &'static str,
    pub(crate) mac: &'static str,
    /// The address volund's configuration has for it, if it has one.
    pub(crate) address: Option<&'static str>,
    pub(crate) bmc_port: u16,
    /// Lines of its table in the twin's configuration.
    pub(crate) twin: String,
    /// Lines of its table in volund's configuration.
    pub(crate) node: String,
    /// Lines of the network's table.
    pub(crate) network: String,
    /// More tables of the configuration.
    pub(crate) tables: String,
    /// The address a DHCP server gives it that stands beside volund, where there is one.
    pub(crate) neighbour: Option<&'static str>,
    /// More lines of that server's configuration.
    pub(crate) neighbour_lines: &'static str,
    /// Files it cannot do without, beside those every machine needs.
    pub(crate) needs: Vec<PathBuf>,
}

impl Machine {
    /// A machine about which nothing is peculiar.
    pub(crate) fn plain(name: &'static str, firmware: &'static str) -> Self {
        Self {
            name,
            firmware,
            mac: "52:54:00:00:01:01",
            address: Some("192.0.2.11"),
            bmc_port: 6231,
            twin: String::new(),
            node: String::new(),
            network: String::new(),
            tables: String::new(),
            neighbour: None,
            neighbour_lines: "",
            needs: vec![],
        }
    }

    /// The same machine where another server owns the addresses, and gives it this one.
    pub(crate) fn beside(mut self, address: &'static str) -> Self {
        self.network.push_str("dhcp = \"proxy\"\n");
        self.neighbour = Some(address);
        self
    }

    /// How volund's configuration calls its firmware.
    fn boot_mode(&self) -> &'static str {
        if self.firmware == "bios" { "bios" } else { "uefi" }
    }

    /// The address it has on the wire.
    pub(crate) fn address(&self) -> &'static str {
        self.neighbour.or(self.address).expect("a machine has an address of one of the two")
    }

    /// Where the sockets of the segment and of its machines are. A socket's name has at most 107 bytes, and target
    /// folders can be deep.
    pub(crate) fn sockets(&self) -> PathBuf {
        env::temp_dir().join(namespace(self))
    }
}

fn namespace(machine: &Machine) -> String {
    format!("vl-{}-{}", machine.name, std::process::id())
}

/// The segment, with everything that runs in it.
pub(crate) struct Segment {
    namespace: String,
    dir: PathBuf,
    token: String,
    running: Vec<Child>,
    has_neighbour: bool,
}

impl Segment {
    /// Everything up; `None` where this machine cannot (never in CI: there it fails).
    pub(crate) fn up(machine: &Machine) -> Option<Self> {
        if let Some(missing) = missing(machine) {
            assert!(env::var("CI").as_deref() != Ok("true"), "{missing}");
            println!("not tried: {missing}");
            return None;
        }
        let namespace = namespace(machine);
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&namespace);
        let _old = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("config")).unwrap();
        let has_neighbour = machine.neighbour.is_some();
        let token = String::new();
        let mut segment = Self { namespace, dir, token, running: vec![], has_neighbour };
        segment.network();
        segment.configure(machine);
        let capture = segment.dir.join("capture.pcap");
        segment.start(
            "tcpdump",
            &[
                "-i",
                "br0",
                "--immediate-mode",
                "-U",
                "-s",
                "0",
                "-w",
                capture.to_str().unwrap(),
                FILTER,
            ],
        );
        segment.wait(|segment| {
            fs::read_to_string(segment.log("tcpdump")).unwrap().contains("listening on")
        });
        if let Some(address) = machine.neighbour {
            let Self { namespace, dir, running, .. } = &mut segment;
            running.push(neighbour::start(namespace, dir, machine, address));
        }
        let volund = env!("CARGO_BIN_EXE_volund");
        let (config, twin) = (segment.dir.join("config"), segment.dir.join("twin.toml"));
        segment.start(volund, &["twin", "--config", twin.to_str().unwrap()]);
        segment.start(volund, &["serve", "--config", config.to_str().unwrap()]);
        segment.wait(|segment| segment.run(&["nodes"]).status.success());
        Some(segment)
    }

    fn network(&self) {
        let namespace = self.namespace.as_str();
        must(Command::new("ip").args(["netns", "add", namespace]));
        let bridge = "link add br0 type bridge forward_delay 0 stp_state 0 mcast_snooping 0";
        for line in [
            "link set lo up",
            bridge,
            "link set br0 up",
            "addr add 192.0.2.1/24 dev br0",
            "tuntap add dev tap0 mode tap",
            "link set tap0 master br0 up",
        ] {
            must(Command::new("ip").args(["-n", namespace]).args(line.split(' ')));
        }
    }

    fn configure(&mut self, machine: &Machine) {
        let made =
            Command::new(env!("CARGO_BIN_EXE_volund")).args(["token", "test"]).output().unwrap();
        self.token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        let operator = String::from_utf8(made.stderr).unwrap();
        let operator = operator.lines().take(3).collect::<Vec<_>>().join("\n");
        let image = payload::agent_image();
        let live = payload::live_initrd(image, &self.dir);
        let (dir, name) = (self.dir.display(), machine.name);
        let secret = self.dir.join("bmc.password");
        fs::write(&secret, "quiet-raven-7").unwrap();
        fs::set_permissions(secret, fs::Permissions::from_mode(0o600)).unwrap();
        let (kernel, initrd, live) =
            (image.kernel.display(), image.initrd.display(), live.display());
        let Machine { mac, address, bmc_port, firmware, node, network, tables, .. } = machine;
        let boot_mode = machine.boot_mode();
        let address = address.map(|address| format!("address = {address:?}")).unwrap_or_default();
        let lab = format!(
            r#"schema = 1
[lab]
name = "qemu"
state_dir = "{dir}/state"
[operator]
listen = "127.0.0.1:8443"
{operator}
[[network]]
name = "boot"
interface = "br0"
subnet = "192.0.2.0/24"
server = "192.0.2.1"
{network}
[agent]
kernel = "{kernel}"
initrd = "{initrd}"
args = "console=ttyS0"
[profile.inspect]
kind = "inspect"
timeouts = {{ soft_off = "10s", off_settle = "1s" }}
[profile.live]
kind = "linux"
about = "A foreign Linux in memory"
root = "ram"
kernel = "{kernel}"
initrd = ["{live}"]
args = "console=ttyS0 rdinit=/live done={{{{ volund.done }}}}"
timeouts = {{ soft_off = "10s", off_settle = "1s" }}
[[node]]
name = "{name}"
macs = ["{mac}"]
{address}
boot_mode = "{boot_mode}"
bmc = {{ kind = "ipmi", address = "127.0.0.1", port = {bmc_port}, user = "volund", secret = "file:{dir}/bmc.password" }}
{node}
{tables}
"#
        );
        fs::write(self.dir.join("config/volund.toml"), lab).unwrap();
        let (sockets, more) = (machine.sockets(), &machine.twin);
        let twin = format!(
            r#"state_dir = "{sockets}"
user = "volund"
password = "quiet-raven-7"
[[machines]]
name = "{name}"
firmware = "{firmware}"
mac = "{mac}"
tap = "tap0"
uuid = "{UUID}"
serial = "SN-{name}"
memory_mib = 512
disks = [{{ serial = "DISK-{name}", size_mib = 16 }}]
bmc = {{ address = "127.0.0.1", port = {bmc_port} }}
{more}
"#,
            sockets = sockets.display(),
        );
        fs::write(self.dir.join("twin.toml"), twin).unwrap();
    }

    fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, program]);
        command.env("VOLUND_URL", "http://127.0.0.1:8443").env("VOLUND_TOKEN", &self.token);
        command
    }

    fn log(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.log"))
    }

    fn start(&mut self, program: &str, args: &[&str]) {
        let name = if program == "tcpdump" { "tcpdump" } else { args[0] };
        let log = File::create(self.log(name)).unwrap();
        let mut command = self.inside(program);
        command.args(args).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.running.push(command.spawn().unwrap());
    }

    fn wait(&mut self, ready: impl Fn(&Self) -> bool) {
        let end = Instant::now() + READY;
        while !ready(self) {
            assert!(Instant::now() < end, "not ready in time:\n{}", self.logs());
            for child in &mut self.running {
                assert!(child.try_wait().unwrap().is_none(), "a process has ended");
            }
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }

    fn logs(&self) -> String {
        let logs = ["tcpdump", "dnsmasq", "twin", "serve"].map(|name| {
            let text = fs::read_to_string(self.log(name)).unwrap_or_default();
            format!("--- {name}\n{text}\n")
        });
        logs.concat()
    }

    fn run(&self, args: &[&str]) -> Output {
        self.inside(env!("CARGO_BIN_EXE_volund")).args(args).output().unwrap()
    }

    /// Runs the command line; it has to succeed.
    pub(crate) fn volund(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "volund {args:?}: {text}{complaint}\n{}\n{}{}",
            String::from_utf8_lossy(&self.run(&["node", args[1]]).stdout),
            self.logs(),
            self.consoles(),
        );
        text
    }

    fn consoles(&self) -> String {
        let sockets = env::temp_dir().join(&self.namespace);
        let mut text = String::new();
        for machine in fs::read_dir(sockets).into_iter().flatten().flatten() {
            for file in fs::read_dir(machine.path()).into_iter().flatten().flatten() {
                if file.path().extension().is_some_and(|extension| extension == "log") {
                    let console = fs::read(file.path()).unwrap_or_default();
                    let console = String::from_utf8_lossy(&console).into_owned();
                    let tail: Vec<&str> = console.lines().rev().take(60).collect();
                    text.extend(tail.into_iter().rev().map(|line| format!("{line}\n")));
                }
            }
        }
        format!("--- console\n{text}")
    }

    /// Waits until the machine's console shows a text.
    pub(crate) fn console_shows(&self, name: &str, text: &str, bound: Duration) {
        let console = env::temp_dir().join(&self.namespace).join(name).join("serial.log");
        let end = Instant::now() + bound;
        loop {
            let shown = fs::read(&console).unwrap_or_default();
            if String::from_utf8_lossy(&shown).contains(text) {
                return;
            }
            assert!(Instant::now() < end, "no {text:?} in time:\n{}", self.consoles());
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }

    /// Its JSON output.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.volund(args)).unwrap()
    }

    /// Ends everything; gives the folder and the capture.
    pub(crate) fn down(mut self) -> (PathBuf, PathBuf) {
        self.end();
        let dir = self.dir.clone();
        (dir.clone(), dir.join("capture.pcap"))
    }

    fn end(&mut self) {
        // `ip netns exec` becomes its program, so the child is the program itself.
        for child in self.running.iter_mut().rev() {
            let pid = child.id().to_string();
            let _told = Command::new("kill").args(["-INT", &pid]).status();
            let end = Instant::now() + Duration::from_secs(15);
            while child.try_wait().is_ok_and(|status| status.is_none()) {
                if Instant::now() > end {
                    let _killed = child.kill();
                    break;
                }
                std::thread::park_timeout(Duration::from_millis(50));
            }
            let _reaped = child.wait();
        }
        self.running.clear();
        if self.has_neighbour {
            neighbour::remove(&self.namespace);
        }
        let mut gone = Command::new("ip");
        // A second time there is nothing to remove.
        let _gone = gone.args(["netns", "del", &self.namespace]).stderr(Stdio::null()).status();
        let _sockets = fs::remove_dir_all(env::temp_dir().join(&self.namespace));
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.end();
    }
}

const FILTER: &str = "udp port 67 or udp port 68 or udp port 69 or udp port 4011 or tcp port 8067";

/// What this machine lacks, if something.
fn missing(machine: &Machine) -> Option<String> {
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout != b"0\n" {
        return Some("network namespaces and port 67 need root".to_owned());
    }
    let files = [
        "/usr/bin/qemu-system-x86_64",
        "/usr/bin/tcpdump",
        "/usr/share/OVMF/OVMF_CODE_4M.fd",
        "/usr/lib/ipxe/snponly.efi",
        "/usr/lib/ipxe/undionly.kpxe",
        "/usr/lib/ipxe/qemu/pxe-virtio.rom",
        "/bin/busybox",
        "/usr/bin/cpio",
    ];
    let files = files.map(PathBuf::from).into_iter();
    let dnsmasq = machine.neighbour.map(|_| PathBuf::from("/usr/sbin/dnsmasq"));
    let files = files.chain(machine.needs.iter().cloned()).chain(dnsmasq);
    let missing: Vec<PathBuf> = files.filter(|file| !file.exists()).collect();
    let remedy = "run tests/packages.sh, and for the nightly rows tests/nightly/firmware-files.sh";
    (!missing.is_empty()).then(|| format!("missing {missing:?}: {remedy}"))
}

/// Runs a command that has to succeed.
pub(crate) fn must(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
