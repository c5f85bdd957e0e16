//! A lab of modelled blades in this process, and volund beside it as a child process that can be killed.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use api::PowerState;
use bmc_proto::ipmi::chassis::ChassisControl;
use tokio::process::{Child, Command};
use tokio_util::sync::{CancellationToken, DropGuard};
use twin::{
    Lab, LabBlade, LabSpec,
    blade::{BootServices, Pace},
    bmc::{IpmiConfig, IpmiServer},
    qemu::Password,
};

/// Longest wait for anything a quick lab does, on two busy cores.
pub(crate) const BOUND: Duration = Duration::from_secs(15);
/// Password of every BMC; no text may hold it.
pub(crate) const BMC_PASSWORD: &str = "Quiet-Raven-7#";
/// What the configuration says where it is wrong.
pub(crate) const WRONG_PASSWORD: &str = "Loud-Sparrow-8!";
/// Ports of the boot services. Fixed, so that a restarted volund is where its nodes remember it; each lab has
/// addresses of its own, and no system hands these ports out by itself.
pub(crate) const PORTS: [u16; 3] = [6_767, 6_969, 8_067];
/// Marks a third octet as taken for as long as its lab lives, also for other test processes.
const CLAIM_PORT: u16 = 6_001;

/// A blade whose every wait is as short as it can be.
pub(crate) const QUICK: Pace = Pace {
    post: Duration::from_millis(50),
    post_spread: Duration::from_millis(50),
    install: Duration::from_millis(100),
    soft_off: Duration::from_millis(100),
    scale: 0.25,
};

/// What a lab is to be.
#[derive(Clone)]
pub(crate) struct Setup {
    /// Bays 1 to this one hold a blade.
    pub(crate) bays: u8,
    /// How fast blades live.
    pub(crate) pace: Pace,
    /// Bounds of every profile, in the configuration's words.
    pub(crate) timeouts: &'static str,
    /// Size of the kernel.
    pub(crate) kernel_bytes: usize,
    /// Bays whose BMC has another password than the configuration says.
    pub(crate) wrong_password: &'static [u8],
    /// A bay whose BMC has no power meter.
    pub(crate) no_meter: Option<u8>,
    /// More lines of the network's table; `OCTET` stands for the lab's own third octet.
    pub(crate) network: &'static str,
    /// What volund logs.
    pub(crate) log: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            bays: 1,
            pace: QUICK,
            timeouts: r#"soft_off = "2s", off_settle = "1s", acts_after = "1s""#,
            kernel_bytes: 256 << 10,
            wrong_password: &[],
            no_meter: None,
            network: "",
            log: "info",
        }
    }
}

/// The lab, and volund beside it.
pub(crate) struct Rig {
    pub(crate) lab: Lab,
    pub(crate) token: String,
    pub(crate) octet: u8,
    pub(crate) dir: PathBuf,
    log: &'static str,
    pub(crate) client: reqwest::Client,
    volund: Option<Child>,
    /// The BMC without a power meter, and its bay.
    pub(crate) meterless: Option<(u8, SocketAddr)>,
    _stop: DropGuard,
    _claim: TcpListener,
}

/// How often each verb of Chassis Control reached a BMC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Verbs {
    pub(crate) on: u32,
    pub(crate) soft: u32,
    pub(crate) off: u32,
    /// Cycle and reset: no switch uses them.
    pub(crate) other: u32,
}

impl Verbs {
    pub(crate) fn of(blade: &LabBlade) -> Self {
        let count = |verb| blade.control.control_count(verb);
        Self {
            on: count(ChassisControl::On),
            soft: count(ChassisControl::SoftOff),
            off: count(ChassisControl::Off),
            other: count(ChassisControl::Cycle) + count(ChassisControl::Reset),
        }
    }
}

impl Rig {
    /// Lab and volund, both ready: every BMC that answers has been read once.
    pub(crate) async fn start(setup: Setup) -> Self {
        let (octet, claim) = free_octet();
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("whole-lab-{}-{octet}", std::process::id()));
        // What a test of this process left that failed with this octet.
        let _old = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("config")).unwrap();
        let spec = LabSpec {
            octet,
            bays: setup.bays,
            bmc_password: Password(BMC_PASSWORD.to_owned()),
            pace: setup.pace,
            ..LabSpec::default()
        };
        let lab = Lab::bind(&spec).await.unwrap();
        let [dhcp, tftp_port, _] = PORTS;
        let server = Ipv4Addr::new(127, 0, octet, 2);
        lab.connect(BootServices { dhcp: SocketAddr::from((server, dhcp)), tftp_port });
        let (token, operator) = new_token().await;
        let stop = CancellationToken::new();
        let meterless = match setup.no_meter {
            Some(bay) => Some((bay, bmc_without_meter(lab.blade(bay).unwrap(), &stop).await)),
            None => None,
        };
        let mut rig = Self {
            lab,
            token,
            octet,
            dir,
            log: setup.log,
            client: reqwest::Client::builder().timeout(BOUND).no_proxy().build().unwrap(),
            volund: None,
            meterless,
            _stop: stop.drop_guard(),
            _claim: claim,
        };
        rig.configure(&setup, &operator);
        rig.serve().await;
        rig
    }

    /// The same, with power known of all nodes.
    pub(crate) async fn ready(setup: Setup) -> Self {
        let rig = Self::start(setup).await;
        until("all power states", BOUND, async || {
            let nodes = rig.nodes().await.nodes;
            nodes.iter().all(|node| node.power != PowerState::Unknown).then_some(())
        })
        .await;
        rig
    }

    /// Where page and API answer: an address of the lab's own, so that the port can stay the same.
    pub(crate) fn operator(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, self.octet, 3], 8_443))
    }

    /// Where the boot port answers.
    pub(crate) fn boot_port(&self) -> SocketAddr {
        let [_, _, http] = PORTS;
        SocketAddr::from(([127, 0, self.octet, 2], http))
    }

    /// Where DHCP answers.
    pub(crate) fn dhcp_port(&self) -> SocketAddr {
        let [dhcp, ..] = PORTS;
        SocketAddr::from(([127, 0, self.octet, 2], dhcp))
    }

    /// An address of the lab's network that belongs to no node.
    pub(crate) fn stray_address(&self) -> Ipv4Addr {
        Ipv4Addr::new(127, 0, self.octet, 99)
    }

    /// The book of record.
    pub(crate) async fn book(&self) -> inventory::Store {
        let path = self.dir.join("state/volund.db");
        inventory::Store::open(&path.display().to_string()).await.unwrap()
    }

    /// Starts `volund serve` and waits until it answers.
    pub(crate) async fn serve(&mut self) {
        assert!(self.volund.is_none(), "volund runs already");
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log_path()).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_volund"))
            .args(["serve", "--config"])
            .arg(self.dir.join("config"))
            .env("VOLUND_LOG", self.log)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut child = child;
        let url = format!("http://{}/healthz", self.operator());
        until("an answer of volund", BOUND, async || {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("volund ended with {status}:\n{}", self.log_text());
            }
            let answer = self.client.get(&url).send().await;
            answer.is_ok_and(|answer| answer.status().is_success()).then_some(())
        })
        .await;
        self.volund = Some(child);
    }

    /// SIGKILL, and gone.
    pub(crate) async fn kill(&mut self) {
        self.volund.take().unwrap().kill().await.unwrap();
    }

    fn log_path(&self) -> PathBuf {
        self.dir.join("volund.log")
    }

    /// Everything volund wrote to its standard output and error.
    pub(crate) fn log_text(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// The blade in a bay.
    pub(crate) fn blade(&self, bay: u8) -> &LabBlade {
        self.lab.blade(bay).unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // Gone before its folder goes, or it would write into it.
        if let Some(volund) = &mut self.volund {
            let _gone = volund.start_kill();
            let end = Instant::now() + Duration::from_secs(2);
            while matches!(volund.try_wait(), Ok(None)) && Instant::now() < end {
                std::thread::park_timeout(Duration::from_millis(1));
            }
        }
        // What a failed test leaves is for whoever looks for the reason.
        if !std::thread::panicking() {
            let _gone = fs::remove_dir_all(&self.dir);
        }
    }
}

/// Time between two looks.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// Looks until there is something to see.
pub(crate) async fn until<T>(
    what: &str,
    bound: Duration,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let end = Instant::now() + bound;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < end, "no {what} within {bound:?}");
        tokio::time::sleep(LOOK).await;
    }
}

/// The wall clock, as records have it.
pub(crate) fn now_ms() -> i64 {
    profiles::world::now().0
}

/// A third octet nobody else uses, and the socket that keeps it so. Neither the demo's nor one of the twin's tests.
fn free_octet() -> (u8, TcpListener) {
    let start = std::process::id() % 90;
    let octets = (0..90_u32).map(|step| 100 + u8::try_from((start + step) % 90).unwrap());
    for octet in octets {
        if let Ok(claim) = TcpListener::bind((Ipv4Addr::new(127, 0, octet, 4), CLAIM_PORT)) {
            return (octet, claim);
        }
    }
    panic!("90 labs at once: no address is free");
}

/// A second management controller of a blade, as those without DCMI are.
async fn bmc_without_meter(blade: &LabBlade, stop: &CancellationToken) -> SocketAddr {
    let mut config = IpmiConfig::new("ADMIN", BMC_PASSWORD).unwrap();
    config.dcmi = false;
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = IpmiServer::bind(loopback, Arc::new(blade.blade.clone()), config).await.unwrap();
    let address = server.address();
    tokio::spawn(server.run(stop.clone()));
    address
}

/// A token made by `volund token`, and its lines of the configuration.
async fn new_token() -> (String, String) {
    let made = Command::new(env!("CARGO_BIN_EXE_volund")).args(["token", "test"]).output().await;
    let made = made.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let told = String::from_utf8(made.stderr).unwrap();
    let operator: Vec<&str> = told.lines().take(3).collect();
    (String::from_utf8(made.stdout).unwrap().trim().to_owned(), operator.join("\n"))
}
