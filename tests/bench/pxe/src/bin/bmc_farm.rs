//! Management controllers for the nodes of a benchmark: each answers IPMI and has a power switch, with no machine behind.
//!
//! `bmc_farm --count N`: on 127.9.0.0:623, 127.9.0.1:623 and so on; user `u`, password `secret`. Prints `ready`.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use bench::{Args, address, fail};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use twin::{
    bmc::{IpmiConfig, IpmiServer},
    board::{Board, BootOverride},
};

#[tokio::main]
async fn main() {
    let mut args = Args::read();
    let count: usize = args.get("count", 1000);
    args.done();
    let config = IpmiConfig::new("u", "secret").unwrap_or_else(|error| fail(&error.to_string()));
    let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
    for number in 0..count {
        let at = SocketAddr::from((address(Ipv4Addr::new(127, 9, 0, 0), number), 623));
        let switch = Arc::new(Switch { number, ..Switch::default() });
        let server = IpmiServer::bind(at, switch, config.clone()).await;
        let server = server.unwrap_or_else(|error| fail(&format!("{error}: {error:?}")));
        tasks.spawn(server.run(stop.clone()));
    }
    println!("ready");
    tokio::signal::ctrl_c().await.ok();
    stop.cancel();
}

/// A power switch.
#[derive(Default)]
struct Switch {
    number: usize,
    is_on: AtomicBool,
    wanted: Mutex<Option<BootOverride>>,
}

impl Board for Switch {
    fn power(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    fn power_on(&self) {
        self.is_on.store(true, Ordering::Relaxed);
    }

    fn power_off(&self) {
        self.is_on.store(false, Ordering::Relaxed);
    }

    fn reset(&self) {}

    fn power_cycle(&self) {}

    fn soft_off(&self) {
        self.power_off();
    }

    fn set_boot_override(&self, wanted: Option<BootOverride>) {
        *self.wanted.lock().expect("no panic") = wanted;
    }

    fn boot_override(&self) -> Option<BootOverride> {
        *self.wanted.lock().expect("no panic")
    }

    fn watts(&self) -> Option<u16> {
        Some(150)
    }

    fn guid(&self) -> [u8; 16] {
        let mut guid = [0x5a; 16];
        guid[..8].copy_from_slice(&self.number.to_be_bytes());
        guid
    }
}
