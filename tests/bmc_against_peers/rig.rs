//! A board, a twin BMC in front of it, and a client.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use bmc::{Bmc, BmcAddress, Login, Options, Secret};
use model::{
    NodeName, Permit, UnixMillis, Verb,
    permit::{ObservedIdentity, Order, Protection, Warrant},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use twin::{
    bmc::{IpmiConfig, IpmiControl, IpmiServer},
    board::{Board, BootOverride},
};

/// A password no text may hold.
pub const PASSWORD: &str = "S3cret-Lab!#%&7";
pub const NOW: UnixMillis = UnixMillis(1_000);

/// A machine that obeys at once and writes down what was done to it.
#[derive(Default)]
pub struct TestBoard {
    pub on: AtomicBool,
    /// 0: no meter.
    pub watts: AtomicU32,
    pub boot: Mutex<Option<BootOverride>>,
    pub log: Mutex<Vec<&'static str>>,
}

impl TestBoard {
    fn did(&self, what: &'static str) {
        self.log.lock().unwrap().push(what);
    }

    pub fn log(&self) -> Vec<&'static str> {
        self.log.lock().unwrap().clone()
    }
}

impl Board for TestBoard {
    fn power(&self) -> bool {
        self.on.load(Ordering::SeqCst)
    }
    fn power_on(&self) {
        self.did("on");
        self.on.store(true, Ordering::SeqCst);
    }
    fn power_off(&self) {
        self.did("off");
        self.on.store(false, Ordering::SeqCst);
    }
    fn reset(&self) {
        self.did("reset");
    }
    fn power_cycle(&self) {
        self.did("cycle");
    }
    fn soft_off(&self) {
        self.did("soft");
        self.on.store(false, Ordering::SeqCst);
    }
    fn set_boot_override(&self, wanted: Option<BootOverride>) {
        *self.boot.lock().unwrap() = wanted;
    }
    fn boot_override(&self) -> Option<BootOverride> {
        *self.boot.lock().unwrap()
    }
    fn watts(&self) -> Option<u16> {
        let watts = u16::try_from(self.watts.load(Ordering::SeqCst)).unwrap();
        (watts != 0).then_some(watts)
    }
    fn guid(&self) -> [u8; 16] {
        *b"654918ZC33009003"
    }
}

/// A running twin BMC. Ends with the value.
pub struct Rig {
    pub board: Arc<TestBoard>,
    pub control: IpmiControl,
    pub address: SocketAddr,
    _stop: DropGuard,
}

impl Rig {
    pub async fn start() -> Self {
        Self::start_with(|_| ()).await
    }

    pub async fn start_with(change: impl FnOnce(&mut IpmiConfig)) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), change).await
    }

    pub async fn start_at(address: SocketAddr, change: impl FnOnce(&mut IpmiConfig)) -> Self {
        let board = Arc::new(TestBoard::default());
        let mut config = IpmiConfig::new("admin", PASSWORD).unwrap();
        change(&mut config);
        let server = IpmiServer::bind(address, Arc::clone(&board) as _, config).await.unwrap();
        let (control, address) = (server.control(), server.address());
        let stop = CancellationToken::new();
        tokio::spawn(server.run(stop.clone()));
        Self { board, control, address, _stop: stop.drop_guard() }
    }

    pub fn client(&self) -> Bmc {
        client(self.address, PASSWORD, quick())
    }
}

/// Impatient, so that a test of ten lost packets is over in a second.
pub fn quick() -> Options {
    Options {
        deadline: Duration::from_secs(2),
        first_wait: Duration::from_millis(60),
        ..Options::default()
    }
}

pub fn client(address: SocketAddr, password: &str, options: Options) -> Bmc {
    let login = Login::new("admin", Secret::new(password)).unwrap();
    let address = BmcAddress { host: address.ip(), port: address.port() };
    Bmc::new(address, login, options)
}

pub fn node() -> NodeName {
    "bld-003".parse().unwrap()
}

pub fn permit(verb: Verb) -> Permit {
    let expires = UnixMillis(9_000);
    let order = Order {
        node: node(),
        verb,
        disks: vec![],
        plan_hash: None,
        by: "anna".to_owned(),
        deadline: expires,
    };
    let warrant = Warrant { id: "sw1".to_owned(), node: node(), expires };
    Permit::issue(order, ObservedIdentity::default(), &Protection::Open, &warrant, NOW).unwrap()
}

/// Every text an error can turn into: Display and Debug of it and of its causes.
pub fn texts(error: &dyn std::error::Error) -> String {
    let mut out = format!("{error}\n{error:?}");
    let mut next = error.source();
    while let Some(cause) = next {
        out.push_str(&format!("\n{cause}\n{cause:?}"));
        next = cause.source();
    }
    out
}
