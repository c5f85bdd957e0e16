//! One segment made of network namespaces: a bridge, hosts on it, foreign programs in them, and our server in the
//! test's own process. No uplink: nothing here reaches a real network.

use std::{
    env,
    fs::{self, File},
    net::Ipv4Addr,
    os::fd::AsFd as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use model::{
    BootEntry, BootIntent, BootTable, ClientArch, MacAddr, Sighting,
    boot::{BootNetwork, BootTraits, DhcpMode, Loaders, Pool},
};
use pxe::{
    LeaseSink, Listener, NetworkStatus, PacketSink, PxeConfig, PxeServer, SightingSink, Sinks,
    Status,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::{runtime::Runtime, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// Longest wait for anything.
pub(crate) const BOUND: Duration = Duration::from_secs(40);
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(crate) const NODE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 13);
pub(crate) const NODE_MAC: &str = "02:5a:10:00:00:03";
pub(crate) const STRANGER_MAC: &str = "02:5a:20:00:00:01";

/// A segment and what runs on it; gone when dropped.
pub(crate) struct Segment {
    name: String,
    pub(crate) dir: PathBuf,
    hosts: Vec<String>,
    running: Vec<Child>,
}

impl Segment {
    /// A bridge and the server's host on it; `None` where this machine cannot (never in CI: there it fails).
    pub(crate) fn up(name: &str, programs: &[&str]) -> Option<Self> {
        if let Some(missing) = missing(programs) {
            assert!(env::var("CI").as_deref() != Ok("true"), "{missing}");
            println!("not tried: {missing}");
            return None;
        }
        let name = format!("vd-{name}-{}", std::process::id());
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&name);
        let _old = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let mut segment = Self { name, dir, hosts: vec![], running: vec![] };
        segment.namespace("lan");
        segment.ip("lan", "link add br0 type bridge forward_delay 0 stp_state 0 mcast_snooping 0");
        segment.ip("lan", "link set br0 up");
        segment.host("srv", None, Some("192.0.2.1/24"));
        Some(segment)
    }

    /// Adds a host with `eth0` on the segment.
    pub(crate) fn host(&mut self, host: &str, mac: Option<&str>, address: Option<&str>) {
        self.namespace(host);
        let peer = self.host_name(host);
        self.ip("lan", &format!("link add to-{host} type veth peer name eth0 netns {peer}"));
        self.ip("lan", &format!("link set to-{host} master br0 up"));
        self.interface(host, "eth0", mac, address);
    }

    /// A cable of its own between two hosts.
    pub(crate) fn cable(&self, one: (&str, &str, Option<&str>), other: (&str, &str, &str)) {
        let (peer, name, mac) = (self.host_name(other.0), other.1, other.2);
        self.ip(one.0, &format!("link add {} type veth peer name {name} netns {peer}", one.1));
        self.interface(one.0, one.1, None, one.2);
        self.interface(other.0, name, Some(mac), None);
    }

    fn interface(&self, host: &str, name: &str, mac: Option<&str>, address: Option<&str>) {
        if let Some(mac) = mac {
            self.ip(host, &format!("link set {name} address {mac}"));
        }
        self.ip(host, &format!("link set {name} up"));
        if let Some(address) = address {
            self.ip(host, &format!("addr add {address} dev {name}"));
        }
        // A veth leaves checksums unfinished, and clients on packet sockets drop such datagrams.
        must(&mut self.command(host, "ethtool", &["-K", name, "tx", "off"]));
    }

    /// Adds a host without any interface.
    pub(crate) fn namespace(&mut self, host: &str) {
        let name = self.host_name(host);
        must(Command::new("ip").args(["netns", "add", &name]));
        self.hosts.push(host.to_owned());
        self.ip(host, "link set lo up");
    }

    pub(crate) fn ip(&self, host: &str, line: &str) {
        must(Command::new("ip").args(["-n", &self.host_name(host)]).args(line.split(' ')));
    }

    pub(crate) fn host_name(&self, host: &str) -> String {
        format!("{}-{host}", self.name)
    }

    /// A program in a host.
    pub(crate) fn command(&self, host: &str, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.host_name(host), program]).args(args);
        command.stdin(Stdio::null()).current_dir(&self.dir);
        command
    }

    /// Runs a program to its end, within the bound; its output and errors.
    pub(crate) fn run(&self, host: &str, program: &str, args: &[&str]) -> String {
        let bound = BOUND.as_secs().to_string();
        let args = [&[&bound, program], args].concat();
        let Output { stdout, stderr, .. } = self.command(host, "timeout", &args).output().unwrap();
        String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned()
    }

    /// Starts a program; its output and errors go into the file given back.
    pub(crate) fn start(&mut self, host: &str, program: &str, args: &[&str]) -> PathBuf {
        let base = Path::new(program).file_name().unwrap().to_string_lossy().into_owned();
        let log = self.dir.join(format!("{host}-{base}-{}.log", self.running.len()));
        let file = File::create(&log).unwrap();
        let mut command = self.command(host, program, args);
        command.stdout(file.try_clone().unwrap()).stderr(file);
        self.running.push(command.spawn().unwrap());
        log
    }

    /// Ends what was started last, without warning.
    pub(crate) fn kill_last(&mut self) {
        let mut child = self.running.pop().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Records what a host sends and hears, one line a packet, with hardware addresses.
    pub(crate) fn listen(&mut self, host: &str, filter: &str) -> PathBuf {
        let args = ["-i", "eth0", "-l", "-n", "-e", "--immediate-mode", filter];
        let log = self.start(host, "tcpdump", &args);
        until("tcpdump", || {
            fs::read_to_string(&log).unwrap().contains("listening on").then_some(())
        });
        log
    }

    /// Moves this thread, and those it starts from here on, into a host.
    pub(crate) fn enter(&self, host: &str) {
        let path = Path::new("/var/run/netns").join(self.host_name(host));
        let namespace = File::open(path).unwrap();
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        for child in &mut self.running {
            let _gone = child.kill();
            let _gone = child.wait();
        }
        for host in &self.hosts {
            let name = self.host_name(host);
            // A client that went into the background is of this namespace alone.
            let left = Command::new("ip").args(["netns", "pids", &name]).output();
            let left = left.map(|output| output.stdout).unwrap_or_default();
            for pid in String::from_utf8_lossy(&left).split_whitespace() {
                if pid != std::process::id().to_string() {
                    let _gone = Command::new("kill").args(["-9", pid]).output();
                }
            }
            let _gone = Command::new("ip").args(["netns", "del", &name]).output();
        }
        if !thread::panicking() {
            let _gone = fs::remove_dir_all(&self.dir);
        }
    }
}

/// Why this machine cannot, if it cannot.
fn missing(programs: &[&str]) -> Option<String> {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    if !is_root {
        return Some("network namespaces need root".to_owned());
    }
    let found = |program: &&&str| {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
        !folders.into_iter().any(|folder| folder.join(program).exists())
    };
    let all = [&["ip", "ethtool", "timeout"], programs].concat();
    all.iter().find(found).map(|program| format!("{program} is missing: see tests/packages.txt"))
}

fn must(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Waits until there is something, within the bound.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + BOUND;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "never: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Our server, in the host this thread is in.
pub(crate) struct Server {
    pub(crate) table: Arc<ArcSwap<BootTable>>,
    pub(crate) sightings: SightingSink,
    pub(crate) leases: LeaseSink,
    pub(crate) packets: PacketSink,
    status: Status,
    stop: CancellationToken,
    _tasks: JoinSet<()>,
    runtime: Option<Runtime>,
}

impl Server {
    pub(crate) fn start(config: &PxeConfig, mode: DhcpMode) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let table = Arc::new(ArcSwap::from_pointee(first_table(mode)));
        let (calls, _nobody) = tokio::sync::mpsc::channel(1);
        let (sightings, leases, packets) =
            (SightingSink::new(10_000), LeaseSink::new(10_000), PacketSink::new(10_000));
        let sinks = Sinks {
            sightings: sightings.clone(),
            leases: leases.clone(),
            packets: packets.clone(),
        };
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let started = runtime.block_on(async {
            PxeServer::start(config, Arc::clone(&table), calls, sinks, &mut tasks, stop.clone())
        });
        let mut started = started.unwrap();
        assert!(started.bound.remove(0).proxy.is_some());
        let status = started.status;
        let runtime = Some(runtime);
        Self { table, sightings, leases, packets, status, stop, _tasks: tasks, runtime }
    }

    /// What is known of the network.
    pub(crate) fn network(&self) -> NetworkStatus {
        self.status.networks().remove(0)
    }

    /// The first sighting that fits, within the bound; those before it are gone.
    pub(crate) fn sighted(&self, what: &str, fits: impl Fn(&Sighting) -> bool) -> Sighting {
        until(what, || {
            while let Some(sighting) = self.sightings.try_recv() {
                if fits(&sighting) {
                    return Some(sighting);
                }
            }
            None
        })
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut BootTable)) {
        let mut table = (**self.table.load()).clone();
        change(&mut table);
        self.table.store(Arc::new(table));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(BOUND);
        }
    }
}

/// Our server on `eth0`, with the ports of the real world for DHCP.
pub(crate) fn config(lease_log: Option<PathBuf>) -> PxeConfig {
    let listener = Listener {
        server: SERVER,
        interface: Some("eth0".to_owned()),
        dhcp_port: Some(67),
        proxy_port: Some(4011),
        advertises: false,
        checks_conflicts: false,
        tftp_port: 0,
        tftp_wrap: pxe::Wrap::Zero,
        http_port: 0,
    };
    PxeConfig { lease_log, ..PxeConfig::new(vec![listener]) }
}

/// The pool of the tests.
pub(crate) const POOL: DhcpMode = DhcpMode::Full(Pool {
    first: Ipv4Addr::new(192, 0, 2, 100),
    last: Ipv4Addr::new(192, 0, 2, 149),
});

/// One network and one node on it.
fn first_table(mode: DhcpMode) -> BootTable {
    let mut table = BootTable::default();
    table.networks.push(network(mode));
    let loaders = [(0, "undionly.kpxe"), (7, "snponly.efi")];
    table.loaders = Loaders(loaders.map(|(code, name)| (ClientArch(code), name.to_owned())).into());
    table.insert(node("bld-003", NODE_MAC, NODE));
    table
}

pub(crate) fn network(mode: DhcpMode) -> BootNetwork {
    BootNetwork {
        name: "boot".to_owned(),
        mode,
        subnet: Ipv4Addr::new(192, 0, 2, 0),
        prefix: 24,
        server: SERVER,
        router: None,
        dns: vec![],
        lease_s: 600,
        unknown_lease_s: 120,
        options: vec![],
        http: "192.0.2.1:8067".parse().unwrap(),
    }
}

pub(crate) fn node(name: &str, mac: &str, address: Ipv4Addr) -> BootEntry {
    BootEntry {
        node: name.parse().unwrap(),
        macs: vec![mac_of(mac)],
        address,
        intent: BootIntent::Ask,
        attempt: None,
        traits: BootTraits::default(),
    }
}

pub(crate) fn mac_of(text: &str) -> MacAddr {
    text.parse().unwrap()
}
