//! The boot services alone, from a generated table: as `volund serve` starts them, without nodes' BMCs and the book.
//!
//! `boot_server --server ADDRESS --interface NAME --files FOLDER [--nodes N] [--lease-log FILE]`. It
//! prints `ready` when it can be asked, and what it counted when it is ended. Nodes have the hardware addresses 02:5a:10:xx:xx:xx and the addresses from
//! 198.19.0.1 on; the relay's 198.18.0.2 is a node's too, so that load from there is served as a node's. Machines it
//! does not know get an address of the pool 198.18.1.0 to 198.18.250.255, as with the peers.

use std::{
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use bench::{Args, address, fail};
use model::{
    BootAnswer, BootEntry, BootIntent, BootScript, BootTable, ClientArch, MacAddr,
    boot::{BootNetwork, BootTraits, DhcpMode, Pool},
};
use pxe::{BootCall, DhcpCounters, Listener, PxeConfig, PxeServer, Sink, Sinks, Wrap};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

/// The first node's address.
const NODES: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);
const RELAY: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const HTTP: u16 = 8067;
/// What the book takes to write some sightings.
const WRITE: Duration = Duration::from_millis(5);

#[tokio::main]
async fn main() {
    let mut args = Args::read();
    let server: Ipv4Addr = args.get("server", Ipv4Addr::new(198, 18, 0, 1));
    let interface: Option<String> = args.find("interface");
    let files: PathBuf = args.get("files", PathBuf::from("."));
    let nodes: usize = args.get("nodes", 10_000);
    let lease_log: Option<PathBuf> = args.find("lease-log");
    args.done();
    let listener = Listener {
        server,
        interface,
        dhcp_port: Some(67),
        proxy_port: None,
        advertises: false,
        checks_conflicts: false,
        tftp_port: 69,
        tftp_wrap: Wrap::Zero,
        http_port: HTTP,
    };
    let config = PxeConfig { lease_log, ..PxeConfig::new(vec![listener]) };
    let table = Arc::new(ArcSwap::from_pointee(table(server, &files, nodes)));
    let (calls, engine) = mpsc::channel(1024);
    let sinks = Sinks {
        sightings: Sink::new(10_000),
        leases: Sink::new(10_000),
        packets: Sink::new(10_000),
    };
    let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
    tasks.spawn(answer(engine));
    drain(&sinks, &mut tasks);
    let started = PxeServer::start(&config, table, calls, sinks, &mut tasks, stop.clone());
    let started = started.unwrap_or_else(|error| fail(&format!("{error}: {error:?}")));
    println!("ready {:?}", started.bound);
    let ended = signal(SignalKind::terminate()).map(|mut ended| async move { ended.recv().await });
    ended.unwrap_or_else(|error| fail(&format!("no signals: {error}"))).await;
    for network in started.status.networks() {
        let DhcpCounters { heard, acks, late_acks, dropped_discovers, dropped_requests, .. } =
            network.dhcp;
        println!(
            "heard={heard} acks={acks} late_acks={late_acks} dropped_discovers={dropped_discovers} \
             dropped_requests={dropped_requests}"
        );
    }
    stop.cancel();
}

/// What they saw is taken out, as the book would: some at a time.
fn drain(sinks: &Sinks, tasks: &mut JoinSet<()>) {
    let Sinks { sightings, leases, packets } = sinks.clone();
    tasks.spawn(async move {
        loop {
            sightings.recv().await;
            tokio::time::sleep(WRITE).await;
            while sightings.try_recv().is_some() {}
        }
    });
    tasks.spawn(async move {
        loop {
            leases.recv().await;
            tokio::time::sleep(WRITE).await;
            while leases.try_recv().is_some() {}
        }
    });
    tasks.spawn(async move {
        loop {
            packets.recv().await;
            tokio::time::sleep(WRITE).await;
            while packets.try_recv().is_some() {}
        }
    });
}

/// The engine, as short as it gets: everybody boots the same kernel.
async fn answer(mut calls: mpsc::Receiver<BootCall>) {
    while let Some(call) = calls.recv().await {
        if let BootCall::Boot { reply, .. } = call {
            let script = BootScript {
                title: "bench".to_owned(),
                kernel: "/i/bench/kernel".to_owned(),
                initrds: vec!["/i/bench/initrd0".to_owned()],
                args: "quiet".to_owned(),
                ticket: None,
            };
            reply.send(BootAnswer::Kernel(script)).ok();
        }
    }
}

fn table(server: Ipv4Addr, files: &Path, nodes: usize) -> BootTable {
    let mut table = BootTable::default();
    table.networks.push(BootNetwork {
        name: "boot".to_owned(),
        mode: DhcpMode::Full(Pool {
            first: Ipv4Addr::new(198, 18, 1, 0),
            last: Ipv4Addr::new(198, 18, 250, 255),
        }),
        subnet: Ipv4Addr::new(198, 18, 0, 0),
        prefix: 15,
        server,
        router: None,
        dns: vec![],
        lease_s: 600,
        unknown_lease_s: 600,
        options: vec![],
        http: (server, HTTP).into(),
    });
    for code in [0, 7, 9, 11] {
        table.loaders.0.insert(ClientArch(code), "snponly.efi".to_owned());
    }
    let folder =
        fs::read_dir(files).unwrap_or_else(|error| fail(&format!("{}: {error}", files.display())));
    for entry in folder.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(image) = name.strip_prefix("image-") {
            table.files.insert(format!("/i/bench/{image}"), entry.path());
        }
        table.files.insert(name, entry.path());
    }
    table.insert(entry(0xff_ffff, RELAY));
    for number in 0..nodes {
        table.insert(entry(number, address(NODES, number)));
    }
    table
}

fn entry(number: usize, address: Ipv4Addr) -> BootEntry {
    let [.., a, b, c] = number.to_be_bytes();
    BootEntry {
        node: format!("bench-{number}").parse().expect("a good name"),
        macs: vec![MacAddr([2, 0x5a, 0x10, a, b, c])],
        address,
        intent: BootIntent::Ask,
        attempt: None,
        traits: BootTraits::default(),
    }
}
