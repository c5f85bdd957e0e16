//! The server: everything wired together and running. No rules of its own.

mod access;
mod boots;
mod calls;
mod console;
mod doctor;
mod lab;
mod learning;
mod lock;
mod loops;
mod networks;
mod packets;
mod specs;
mod table;
mod views;

use std::{collections::BTreeMap, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use bmc::{Bmc, BmcAddress, Login, Options, Secret, Suite, SuiteChoice};
use energy::reading::MarginRule;
use inventory::{Store, Writer, series::Series};
use meter::{Latest, Metered, Sampler, Seen};
use model::{
    NodeName, PowerKind,
    boot::{BootTable, DhcpMode},
};
use plan::{Engine, Input, Stopped};
use profiles::{EngineHandle, LiveWorld, Templates, Wiring, acts::Boards};
use pxe::{
    Bound, LeaseSink, Listener, PacketSink, PxeConfig, PxeServer, SightingSink, Sinks, Started,
};
use tokio::{
    net::TcpListener,
    sync::{broadcast, mpsc},
    task::JoinSet,
};
use tokio_util::sync::{CancellationToken, DropGuard};
use web::lab::Changed;

use crate::config::{CipherSuite, Config, Network};

use console::Console;
use learning::Learning;
pub use lock::StateLock;
use packets::PacketFiles;
use table::Table;

/// Sightings that may wait for the engine; older ones are dropped and counted.
const SIGHTINGS: usize = 4_096;
/// Leases that may wait for the book.
const LEASES: usize = 4_096;
/// Packets of boots that may wait to be kept.
const PACKETS: usize = 4_096;
/// Questions of the boot services that may wait; a full queue is local boot.
const CALLS: usize = 1_024;
/// Days of samples that are kept.
const SAMPLE_DAYS: usize = 90;
/// How long the tasks may take to end after the stop.
const GRACE: Duration = Duration::from_secs(5);

/// A running server.
pub struct Server {
    /// Where page and API answer.
    pub operator: SocketAddr,
    /// Where the boot services of each network answer.
    pub boot: BTreeMap<String, Bound>,
    auth: Arc<web::auth::Auth>,
    store: Store,
    tasks: JoinSet<()>,
    stop: CancellationToken,
    /// Fires the stop whatever ends the server: the boot services' threads end by nothing else, and the process
    /// waits for them.
    _stops: DropGuard,
    _lock: StateLock,
}

/// What stands before the first task starts.
struct Ground {
    config: Arc<Config>,
    store: Store,
    writer: Writer,
    series: Arc<Series>,
    table: Table,
    lock: StateLock,
}

/// The boot services as they were bound: what they tell, ask and know.
struct BootSide {
    sightings: SightingSink,
    packets: PacketSink,
    leases: LeaseSink,
    bound: BTreeMap<String, Bound>,
    status: pxe::Status,
    loops: pxe::BootLoops,
    calls: mpsc::Receiver<pxe::BootCall>,
}

impl Server {
    /// Binds, opens, starts. When it returns, page, API and boot services answer.
    ///
    /// # Errors
    /// What could not be opened or bound, and what to do about it.
    pub async fn start(config: Config, stop: CancellationToken) -> anyhow::Result<Self> {
        let mut tasks = JoinSet::new();
        let stops = stop.clone().drop_guard();
        let operator = config.operator.listen;
        let listener = TcpListener::bind(operator)
            .await
            .with_context(|| format!("could not bind the page to {operator}"))?;
        let operator = listener.local_addr().context("could not read the page's own address")?;
        let ground = Ground::lay(config, &mut tasks).await?;
        let BootSide { sightings, packets, leases, bound, status, loops, calls } =
            ground.bind_boot(&mut tasks, &stop)?;
        let http = http(&bound);
        let templates = Arc::new(specs::templates(&ground.config, &http)?);
        let boards = Arc::new(ground.boards()?);
        let book = specs::boot_table(&ground.config, &http);
        let engine = ground.start_engine(&templates, book, &boards, &mut tasks, &stop).await?;
        let learning = ground.learning().await?;
        let (learns, lessons) = mpsc::channel(SIGHTINGS);
        tasks.spawn(until(stop.clone(), learning.clone().follow(lessons, engine.clone())));
        let forwarding = calls::forward_sightings(sightings, engine.clone(), learns);
        tasks.spawn(until(stop.clone(), forwarding));
        let files = ground.packet_files();
        tasks.spawn(until(stop.clone(), Arc::clone(&files).keep(packets)));
        let config = Arc::clone(&ground.config);
        tasks.spawn(until(stop.clone(), loops::follow(engine.clone(), config, loops.clone())));
        // Without a network nobody can ask, and the answering task would end at once.
        if !bound.is_empty() {
            let console = Console::new(ground.config.menu.clone(), engine.clone());
            let answering = calls::answer_calls(calls, engine.clone(), templates, console);
            tasks.spawn(until(stop.clone(), answering));
        }
        let changes = broadcast::channel(256).0;
        let latest = ground.start_sampler(&engine, &changes, &boards, &mut tasks, &stop);
        tasks.spawn(until(stop.clone(), forward_changes(engine.clone(), changes.clone())));
        let keeping = networks::keep_leases(leases, ground.writer.clone(), changes.clone());
        tasks.spawn(until(stop.clone(), keeping));
        let auth = Arc::new(access::auth(&ground.config, &ground.store, &ground.writer).await?);
        let Ground { config, store, series, lock, .. } = ground;
        let lab = lab::LiveLab {
            config,
            engine,
            store: store.clone(),
            series,
            latest,
            changes,
            packets: files,
            status,
            bound: bound.clone(),
            loops,
            learning,
        };
        let app = web::App::new(Arc::new(lab), Arc::clone(&auth), hosts(operator));
        let serving = web::serve(listener, app, stop.clone());
        tasks.spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "the page has ended");
            }
        });
        Ok(Self { operator, boot: bound, auth, store, tasks, stop, _stops: stops, _lock: lock })
    }

    /// A new API token under `name`, kept as a hash.
    ///
    /// # Errors
    /// When it could not be kept.
    pub async fn mint_token(&self, name: &str) -> anyhow::Result<String> {
        self.auth.mint_token(name).await.context("could not make an API token")
    }

    /// Runs until the stop is asked for, or a part of it ends that must not.
    ///
    /// # Errors
    /// When a task ended by itself: volund must be restarted then, half of it would mislead.
    pub async fn run(mut self) -> anyhow::Result<()> {
        tokio::select! {
            () = self.stop.cancelled() => {
                self.end().await;
                Ok(())
            }
            ended = self.tasks.join_next() => {
                let asked = self.stop.is_cancelled();
                self.stop.cancel();
                self.end().await;
                match ended {
                    _ if asked => Ok(()),
                    Some(Err(error)) => bail!("a task of volund broke: {error}"),
                    Some(Ok(())) | None => bail!("a task of volund ended by itself; its log says why"),
                }
            }
        }
    }

    async fn end(mut self) {
        // The book's writer ends when the last of those who write is gone; log-in keeps tokens through it.
        drop(self.auth);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, all).await.is_err() {
            tracing::warn!("some tasks did not end in time");
        }
        self.store.close().await;
    }
}

impl Ground {
    async fn lay(config: Config, tasks: &mut JoinSet<()>) -> anyhow::Result<Self> {
        let state = config.lab.state_dir.clone();
        std::fs::create_dir_all(&state)
            .with_context(|| format!("could not make the state directory {}", state.display()))?;
        let lock = StateLock::take(&state)?;
        let book = state.join("volund.db");
        let store = Store::open(&book.display().to_string())
            .await
            .with_context(|| format!("could not open the book {}", book.display()))?;
        let writer = Writer::start(&store, tasks).await.context("could not start the writer")?;
        let series = open_series(&state.join("samples"))?;
        let table = Table::new(specs::options(&config));
        let (config, series) = (Arc::new(config), Arc::new(series));
        Ok(Self { config, store, writer, series, table, lock })
    }

    /// Binds the boot services. Until [`Table::fill`] the table is empty and nobody is answered.
    fn bind_boot(
        &self,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> anyhow::Result<BootSide> {
        let listeners = self.config.networks.iter().map(boot_listener).collect();
        let (sender, calls) = mpsc::channel(CALLS);
        let (sightings, packets) = (SightingSink::new(SIGHTINGS), PacketSink::new(PACKETS));
        let leases = LeaseSink::new(LEASES);
        let lease_log = Some(self.config.lab.state_dir.join("leases.log"));
        let settings = PxeConfig { lease_log, ..PxeConfig::new(listeners) };
        let table = Arc::clone(&self.table.current);
        let sinks = Sinks {
            sightings: sightings.clone(),
            leases: leases.clone(),
            packets: packets.clone(),
        };
        let Started { bound, status, loops } =
            PxeServer::start(&settings, table, sender, sinks, tasks, stop.clone())?;
        let names = self.config.networks.iter().map(|network| network.name.clone());
        let bound = names.zip(bound).collect();
        Ok(BootSide { sightings, packets, leases, bound, status, loops, calls })
    }

    /// Where packets of boots are kept.
    fn packet_files(&self) -> Arc<PacketFiles> {
        let ours = self.config.networks.iter().map(|network| network.server);
        Arc::new(PacketFiles::new(&self.config.lab.state_dir, ours))
    }

    async fn start_engine(
        &self,
        templates: &Templates,
        book: BootTable,
        boards: &Boards,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> anyhow::Result<EngineHandle> {
        let specs = specs::specs(&self.config);
        let profiles = specs.profiles.clone();
        let nodes = profiles::journal::load(&self.store, specs.nodes.values().cloned()).await?;
        let mut engine = Engine::new(specs, nodes, Box::new(templates.clone()));
        self.table.fill(book, &engine);
        let table = self.table.clone();
        let wiring = Wiring {
            writer: self.writer.clone(),
            boards: Arc::clone(boards),
            profiles,
            on_change: Box::new(move |changes| table.apply(changes)),
            stop: stop.clone(),
        };
        let (mut world, handle) = LiveWorld::new(wiring);
        tasks.spawn(async move {
            match plan::run(&mut engine, &mut world).await {
                Stopped::WorldEnded => (),
                Stopped::NotDurable(error) => {
                    tracing::error!(%error, "the engine stopped: what it decided was not kept");
                }
            }
        });
        Ok(handle)
    }

    async fn learning(&self) -> anyhow::Result<Learning> {
        let (config, table) = (Arc::clone(&self.config), self.table.clone());
        Learning::begin(config, table, self.store.clone(), self.writer.clone())
            .await
            .context("could not read what was learnt of machines")
    }

    fn boards(&self) -> anyhow::Result<BTreeMap<NodeName, Arc<Bmc>>> {
        let nodes = self.config.nodes.values();
        nodes
            .map(|node| {
                let address =
                    BmcAddress { host: node.bmc.address.ip(), port: node.bmc.address.port() };
                let password = Secret::new(node.bmc.password.reveal());
                let login = Login::new(&node.bmc.user, password)
                    .with_context(|| format!("the BMC login of {} cannot be used", node.name))?;
                let options = Options { suite: suite(node.bmc.suite), ..Options::default() };
                Ok((node.name.clone(), Arc::new(Bmc::new(address, login, options))))
            })
            .collect()
    }

    fn start_sampler(
        &self,
        engine: &EngineHandle,
        changes: &broadcast::Sender<Changed>,
        boards: &Boards,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> Latest {
        let (seen, receiver) = mpsc::channel(256);
        let share = self.config.metering.margin_percent / 100.0;
        let sampler = Sampler {
            period: self.config.metering.period,
            margin: MarginRule { share, ..MarginRule::UNCALIBRATED },
            series: Arc::clone(&self.series),
            seen,
        };
        let metered = self.config.nodes.values().filter_map(|node| {
            let bmc = Arc::clone(boards.get(&node.name)?);
            let kind = match node.seat {
                Some(_) => PowerKind::BladeInput,
                None => PowerKind::WallInput,
            };
            Some(Metered { node: node.name.clone(), bmc, kind })
        });
        tasks.spawn(until(stop.clone(), forward_seen(receiver, engine.clone(), changes.clone())));
        sampler.start(metered.collect(), tasks, stop)
    }
}

fn open_series(dir: &Path) -> anyhow::Result<Series> {
    Series::open(dir, SAMPLE_DAYS)
        .with_context(|| format!("could not open the samples in {}", dir.display()))
}

fn boot_listener(network: &Network) -> Listener {
    Listener {
        server: network.server,
        interface: network.interface.clone(),
        dhcp_port: match network.dhcp {
            DhcpMode::Full(_) | DhcpMode::Reserved | DhcpMode::Proxy => Some(network.dhcp_port),
            DhcpMode::Off => None,
        },
        proxy_port: (network.dhcp != DhcpMode::Off).then_some(network.proxy_port),
        advertises: network.advertises,
        checks_conflicts: network.checks_conflicts,
        tftp_port: network.tftp_port,
        tftp_wrap: network.tftp_wrap,
        http_port: network.http_port,
    }
}

fn http(bound: &BTreeMap<String, Bound>) -> BTreeMap<String, SocketAddr> {
    bound.iter().map(|(name, bound)| (name.clone(), bound.http.into())).collect()
}

fn suite(suite: CipherSuite) -> SuiteChoice {
    match suite {
        CipherSuite::Auto => SuiteChoice::Auto,
        CipherSuite::Suite3 => SuiteChoice::Only(Suite::Three),
        CipherSuite::Suite17 => SuiteChoice::Only(Suite::Seventeen),
    }
}

/// Names under which the page may be asked for: the address itself and `localhost`.
fn hosts(operator: SocketAddr) -> Vec<String> {
    let port = operator.port();
    let mut hosts = vec![operator.to_string()];
    if operator.ip().is_loopback() {
        hosts.push(format!("localhost:{port}"));
    }
    hosts
}

async fn until(stop: CancellationToken, task: impl Future<Output = ()>) {
    let _ended: Option<()> = stop.run_until_cancelled(task).await;
}

async fn forward_changes(engine: EngineHandle, changes: broadcast::Sender<Changed>) {
    let mut nodes = engine.changes();
    loop {
        match nodes.recv().await {
            // Nobody listening is no error.
            Ok(node) => drop(changes.send(Changed { node: node.to_string() })),
            Err(broadcast::error::RecvError::Lagged(missed)) => {
                tracing::debug!(missed, "changes came faster than they were passed on");
            }
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

async fn forward_seen(
    mut seen: mpsc::Receiver<Seen>,
    engine: EngineHandle,
    changes: broadcast::Sender<Changed>,
) {
    while let Some(seen) = seen.recv().await {
        match seen {
            Seen::Power { node, on, at } => engine.power_seen(node, on, at).await,
            Seen::Bmc { node, guid, suite, trouble, at } => {
                engine.tell(Input::BmcSeen { node, guid, suite, trouble, at }).await;
            }
            // Nobody listening is no error.
            Seen::Sampled { node } => drop(changes.send(Changed { node: node.to_string() })),
        }
    }
    // A lab without nodes has no sampler: nothing will ever be seen, and that is no fault.
    std::future::pending().await
}

/// Runs `volund serve` until told to stop.
///
/// # Errors
/// Every fault of the configuration at once, or what could not be started.
pub async fn run(dir: &Path) -> anyhow::Result<()> {
    let config = crate::config::load(dir)
        .with_context(|| format!("the configuration in {} is wrong", dir.display()))?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let stop = stop_on_signals()?;
    let server = Server::start(config, stop).await?;
    tracing::info!(page = %server.operator, "volund is ready");
    server.run().await
}

/// A token that is cancelled by SIGINT or SIGTERM.
///
/// # Errors
/// When the signals cannot be listened to.
pub fn stop_on_signals() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let stop = CancellationToken::new();
    let mut interrupt = signal(SignalKind::interrupt()).context("could not listen to SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("could not listen to SIGTERM")?;
    let fire = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => (),
            _ = terminate.recv() => (),
        }
        fire.cancel();
    });
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lab_without_nodes_and_networks_runs_until_it_is_stopped() {
        let dir = std::env::temp_dir().join(format!("volund-empty-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let state = dir.join("state");
        let text = format!(
            "schema = 1\n[lab]\nname = \"empty\"\nstate_dir = {:?}\n[operator]\nlisten = \"127.0.0.1:0\"\n",
            state.display().to_string()
        );
        std::fs::write(dir.join("volund.toml"), text).unwrap();
        let config = crate::config::load(&dir).unwrap();
        let stop = CancellationToken::new();
        let mut server = Server::start(config, stop.clone()).await.unwrap();
        // Every task gets its turn; one that has nothing to do must wait, not end.
        for _turn in 0..1_000 {
            tokio::task::yield_now().await;
        }
        assert!(server.tasks.try_join_next().is_none(), "a task ended by itself");
        stop.cancel();
        server.run().await.unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
