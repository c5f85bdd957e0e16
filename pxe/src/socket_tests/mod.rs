//! The services over real sockets on loopback: modelled clients, an engine of a few lines, and foreign tools.

mod dhcp;
mod files;
mod foreign;
mod generated;
mod http;
mod loops;
mod scripts;
mod tftp;
mod tftp_clients;
mod tftp_names;
mod tftp_parallel;

use std::{
    fs,
    net::{Ipv4Addr, SocketAddrV4},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use model::{
    BootAnswer, BootEntry, BootIntent, BootScript, BootTable, ClientArch, MacAddr, Sighted,
    Sighting,
    boot::{Attempt, BootAsk, BootNetwork, BootTraits, DhcpMode, Loaders},
};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    BootCall, Bound, Listener, PacketSink, PxeConfig, PxeServer, SightingSink, Sink, Sinks,
};

const SERVER: Ipv4Addr = Ipv4Addr::LOCALHOST;
const RELAY: Ipv4Addr = Ipv4Addr::new(127, 77, 0, 1);
const NODE: Ipv4Addr = Ipv4Addr::new(127, 77, 0, 13);
const MAC: MacAddr = MacAddr([2, 0x5a, 0x10, 0, 0, 3]);
const KERNEL: &str = "/i/inspect/vmlinuz";
const BOUND: Duration = Duration::from_secs(20);

/// The services, a table with one node, and files in a folder of their own.
struct Lab {
    bound: Bound,
    sink: SightingSink,
    packets: PacketSink,
    table: Arc<ArcSwap<BootTable>>,
    calls: Option<mpsc::Receiver<BootCall>>,
    folder: Folder,
    stop: CancellationToken,
    _tasks: JoinSet<()>,
}

/// A folder that goes with its owner.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Ports of the system's choice on our address, as behind a relay.
fn listener() -> Listener {
    Listener {
        server: SERVER,
        interface: None,
        dhcp_port: Some(0),
        proxy_port: Some(0),
        advertises: false,
        checks_conflicts: false,
        tftp_port: 0,
        tftp_wrap: crate::Wrap::Zero,
        http_port: 0,
    }
}

/// Sinks that keep sightings in `sink`.
fn sinks(sink: &SightingSink) -> Sinks {
    let (leases, packets) = (Sink::new(1_000), Sink::new(10_000));
    Sinks { sightings: sink.clone(), leases, packets }
}

impl Lab {
    fn start() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("volund-pxe-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let table = Arc::new(ArcSwap::from_pointee(BootTable::default()));
        let (sender, calls) = mpsc::channel(64);
        let (sink, stop) = (SightingSink::new(10_000), CancellationToken::new());
        let mut tasks = JoinSet::new();
        let sinks = sinks(&sink);
        let packets = sinks.packets.clone();
        let bound = PxeServer::start(
            &PxeConfig::new(vec![listener()]),
            Arc::clone(&table),
            sender,
            sinks,
            &mut tasks,
            stop.clone(),
        )
        .unwrap()
        .bound
        .remove(0);
        let folder = Folder(folder);
        let lab =
            Self { bound, sink, packets, table, calls: Some(calls), folder, stop, _tasks: tasks };
        lab.table.store(Arc::new(lab.first_table()));
        lab
    }

    fn first_table(&self) -> BootTable {
        let mut table = BootTable::default();
        table.networks.push(BootNetwork {
            name: "boot".to_owned(),
            mode: DhcpMode::Reserved,
            unknown_lease_s: 120,
            options: vec![],
            subnet: Ipv4Addr::new(127, 77, 0, 0),
            prefix: 24,
            server: SERVER,
            router: None,
            dns: vec![],
            lease_s: 600,
            http: self.bound.http.into(),
        });
        let loaders = [(0, "undionly.kpxe"), (7, "snponly.efi")];
        table.loaders =
            Loaders(loaders.map(|(code, name)| (ClientArch(code), name.to_owned())).into());
        table.insert(BootEntry {
            node: "bld-003".parse().unwrap(),
            macs: vec![MAC],
            address: NODE,
            intent: BootIntent::Ask,
            attempt: None,
            traits: BootTraits::default(),
        });
        table
    }

    fn change(&self, change: impl FnOnce(&mut BootTable)) {
        let mut table = (**self.table.load()).clone();
        change(&mut table);
        self.table.store(Arc::new(table));
    }

    /// Puts a file into the folder and under a name into the table.
    fn serve(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.folder.0.join(name.replace('/', "_"));
        fs::write(&path, content).unwrap();
        self.change(|table| _ = table.files.insert(name.to_owned(), path.clone()));
        path
    }

    fn change_entry(&self, change: impl FnOnce(&mut BootEntry)) {
        self.change(|table| {
            let mut entry = (*table.by_mac[&MAC]).clone();
            change(&mut entry);
            table.insert(entry);
        });
    }

    fn recorded(&self, attempt: Attempt) {
        self.change_entry(|entry| entry.attempt = Some(attempt));
    }

    /// Answers every boot question with this; gives what was asked.
    fn answer_with(&mut self, answer: BootAnswer) -> Arc<std::sync::Mutex<Vec<BootAsk>>> {
        let asked = Arc::new(std::sync::Mutex::new(vec![]));
        let mut calls = self.calls.take().unwrap();
        let kept = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Some(call) = calls.recv().await {
                if let BootCall::Boot { ask, reply } = call {
                    kept.lock().unwrap().push(ask);
                    reply.send(answer.clone()).ok();
                }
            }
        });
        asked
    }

    /// Sightings up to the first that fits; fails when none comes.
    async fn until(&self, what: &str, fits: impl Fn(&Sighted) -> bool) -> Vec<Sighting> {
        let mut seen = vec![];
        let wait = async {
            loop {
                seen.push(self.sink.recv().await);
                if seen.last().is_some_and(|last| fits(&last.what)) {
                    break;
                }
            }
        };
        let arrived = tokio::time::timeout(BOUND, wait).await;
        assert!(arrived.is_ok(), "{what} never came; seen: {:#?}", lines(&seen));
        seen
    }
}

fn lines(seen: &[Sighting]) -> Vec<String> {
    seen.iter().map(|sighting| sighting.what.to_string()).collect()
}

fn kernel() -> BootAnswer {
    BootAnswer::Kernel(BootScript {
        title: "inspect".to_owned(),
        kernel: KERNEL.to_owned(),
        initrds: vec!["/i/inspect/initrd".to_owned()],
        args: "quiet".to_owned(),
        ticket: None,
    })
}

fn at(address: Ipv4Addr) -> SocketAddrV4 {
    SocketAddrV4::new(address, 0)
}
