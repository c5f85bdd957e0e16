//! DHCP on its sockets: who hears, who decides, who waits for the disk, who sends.
//!
//! A thread a socket reads and decides; one thread writes the lease log and lets ACKs go; one sends what is held back;
//! one keeps watch (pings, pools, the ground we stand on); and a network with an interface has one that listens for
//! other servers and one that advertises. It decides nothing itself: that is `pxe_proto::dhcp::decide_as`.

mod advert;
mod delays;
mod ground;
mod lease_log;
mod line;
mod log_file;
mod packet_socket;
mod prober;
mod queues;
mod rivals;
mod serve;
mod socket;
mod waiting;
mod watch;

use std::{
    io,
    net::SocketAddrV4,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use model::{BootEntry, BootTable, Lease, UnixMillis};
use pxe_proto::dhcp::{Arrival, Decision, Leases, Request, ServerPort, decide_as};
use tokio::task::JoinSet;

use self::{
    advert::Advertiser,
    delays::Delays,
    lease_log::LeaseLog,
    line::{Line, Outgoing},
    packet_socket::PacketSocket,
    rivals::Told,
    socket::DhcpSocket,
    waiting::Waiting,
    watch::Watched,
};
use crate::{
    config::Listener,
    error::PxeError,
    state::{LOOK_UP, State},
    status::{About, Finding, Status},
};

/// What the threads of DHCP share.
#[derive(Debug)]
pub(crate) struct Dhcp {
    leases: Mutex<Leases>,
    waiting: Waiting<Outgoing>,
    /// Whether there is a lease log to wait for.
    has_log: bool,
    delays: Delays<Outgoing>,
    told: Mutex<Told>,
}

impl Dhcp {
    /// With the leases of the log, if there is one.
    ///
    /// # Errors
    /// When there is a log and it cannot be read.
    pub(crate) fn new(log: Option<&PathBuf>, status: &Status) -> Result<Self, PxeError> {
        let mut leases = Leases::default();
        if let Some(path) = log {
            lease_log::read(path, status)?.into_iter().for_each(|lease| leases.replay(lease));
        }
        Ok(Self {
            leases: Mutex::new(leases),
            waiting: Waiting::default(),
            has_log: log.is_some(),
            delays: Delays::default(),
            told: Mutex::default(),
        })
    }

    fn decide(
        &self,
        entry: Option<Arc<BootEntry>>,
        request: &Request,
        arrival: Arrival,
        table: &BootTable,
        now: UnixMillis,
    ) -> Decision {
        decide_as(entry, request, arrival, table, &mut self.leases(), now)
    }

    /// The last record of each address.
    fn live(&self) -> Vec<Lease> {
        self.leases().live().cloned().collect()
    }

    /// Records what became of a lease: a copy for the book, a line for the log. What waits for that line comes back
    /// when there is nothing to wait for.
    fn record(&self, state: &State, lease: Lease, answer: Option<Outgoing>) -> Option<Outgoing> {
        if !self.has_log {
            state.sinks.leases.push(lease);
            return answer;
        }
        let unsynced = self.waiting.submit(Instant::now(), &lease, answer);
        state.sinks.leases.push(lease);
        lease_log::late(state, unsynced.into_iter().collect());
        None
    }

    fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The DHCP sockets of a listener.
#[derive(Debug)]
pub(crate) struct Sockets {
    dhcp: Option<DhcpSocket>,
    proxy: Option<DhcpSocket>,
}

impl Sockets {
    /// Binds what the listener asks for; nothing where another server has the network for itself.
    pub(crate) fn bind(listener: &Listener) -> Result<Self, PxeError> {
        let interface = listener.interface.as_deref();
        let bind = |service, port| DhcpSocket::bind(service, listener.server, port, interface);
        let dhcp = listener.dhcp_port.map(|port| bind("DHCP", port)).transpose()?;
        let proxy = listener.proxy_port.filter(|_| dhcp.is_some());
        Ok(Self { dhcp, proxy: proxy.map(|port| bind("proxy DHCP", port)).transpose()? })
    }

    /// Where DHCP and proxy requests are heard.
    pub(crate) fn bound(
        &self,
        listener: &Listener,
    ) -> Result<(Option<SocketAddrV4>, Option<SocketAddrV4>), PxeError> {
        let at = |socket: &Option<DhcpSocket>| {
            let socket = socket.as_ref().map(|socket| ours(listener, socket));
            socket.transpose()
        };
        Ok((at(&self.dhcp)?, at(&self.proxy)?))
    }

    /// Starts the threads of this network.
    pub(crate) fn serve(
        self,
        listener: &Listener,
        network: usize,
        state: &Arc<State>,
        tasks: &mut JoinSet<()>,
    ) -> Result<Option<Watched>, PxeError> {
        let Some(dhcp) = self.dhcp else { return Ok(None) };
        let packets = sender(listener, network, &state.status);
        for (service, socket) in [(ServerPort::Dhcp, Some(dhcp)), (ServerPort::Proxy, self.proxy)] {
            let Some(socket) = socket else { continue };
            let ours = ours(listener, &socket)?;
            let small = ground::receive_buffer(socket.receive_buffer(), ours.port());
            if let Some(finding) = small.filter(|_| !listener.server.is_loopback()) {
                state.status.find(network, About::ReceiveBuffer, finding);
            }
            let packets = packets.clone();
            let line = Arc::new(Line { socket, packets, ours, service, network });
            let state = Arc::clone(state);
            tasks.spawn_blocking(move || serve::run(&state, &line));
        }
        if let Some(packets) = &packets {
            listen_for_rivals(listener, network, packets, state, tasks);
        }
        if listener.advertises {
            advertise(listener, network, packets.as_deref(), state, tasks);
        }
        Ok(Some(Watched::new(listener, network, &state.status)))
    }
}

/// Starts what all networks share: the lease log, the delays, the watch.
pub(crate) fn serve_all(
    log: Option<PathBuf>,
    watched: Vec<Watched>,
    state: &Arc<State>,
    tasks: &mut JoinSet<()>,
) {
    if let Some(path) = log {
        let log = LeaseLog::open(path, state);
        let state = Arc::clone(state);
        tasks.spawn_blocking(move || log.run(&state));
    }
    let delaying = Arc::clone(state);
    tasks.spawn_blocking(move || line::run_delays(&delaying));
    let watching = Arc::clone(state);
    tasks.spawn_blocking(move || watch::run(&watching, watched));
}

/// Our own address, and the port it is heard on. With an interface DHCP is bound to every address, and `server` is
/// the one to ask.
fn ours(listener: &Listener, socket: &DhcpSocket) -> Result<SocketAddrV4, PxeError> {
    let at = SocketAddrV4::new(listener.server, 0);
    let port = socket.port().map_err(|source| PxeError::bind("DHCP", at, source))?;
    Ok(SocketAddrV4::new(listener.server, port))
}

/// The socket for frames; without it a client that has no address yet is sent a broadcast.
fn sender(listener: &Listener, network: usize, status: &Status) -> Option<Arc<PacketSocket>> {
    let interface = listener.interface.as_deref()?;
    match PacketSocket::sender(interface) {
        Ok(socket) => Some(Arc::new(socket)),
        Err(error) => {
            let what = format!(
                "clients without an address are answered by broadcast, and other DHCP servers on {interface} are \
                 not heard: {error}"
            );
            status.find(network, About::Unicast, Finding::new(what, RAW_REMEDY));
            None
        }
    }
}

/// What helps against a missing right to packet and raw sockets.
const RAW_REMEDY: &str =
    "in the systemd unit: AmbientCapabilities=CAP_NET_BIND_SERVICE CAP_NET_RAW";

fn listen_for_rivals(
    listener: &Listener,
    network: usize,
    packets: &Arc<PacketSocket>,
    state: &Arc<State>,
    tasks: &mut JoinSet<()>,
) {
    let Some(interface) = listener.interface.as_deref() else { return };
    match PacketSocket::hearing_servers(interface, LOOK_UP) {
        Ok(hearing) => {
            let (state, sending, ours) = (Arc::clone(state), Arc::clone(packets), listener.server);
            tasks.spawn_blocking(move || rivals::run(&state, network, ours, &hearing, &sending));
        }
        Err(error) => {
            let what = format!("other DHCP servers on {interface} are not heard: {error}");
            state.status.find(network, About::Rivals, Finding::new(what, RAW_REMEDY));
        }
    }
}

/// Starts the advertising; where that cannot be done, iPXE boots all the same, only later.
fn advertise(
    listener: &Listener,
    network: usize,
    packets: Option<&PacketSocket>,
    state: &Arc<State>,
    tasks: &mut JoinSet<()>,
) {
    let opened = match (listener.interface.as_deref(), packets) {
        (Some(interface), Some(packets)) => Advertiser::open(interface, packets.mac()),
        (Some(_), None) => Err(io::ErrorKind::PermissionDenied.into()),
        (None, _) => Err(io::Error::other("the network names no interface")),
    };
    match opened {
        Ok(advertiser) => {
            let state = Arc::clone(state);
            tasks.spawn_blocking(move || advertiser.run(&state));
        }
        Err(error) => {
            let what = format!(
                "no router advertisements, so iPXE waits 13 s for IPv6 at each boot: {error}"
            );
            let remedy = "name the interface, grant CAP_NET_RAW and leave IPv6 on there (sysctl net.ipv6.conf)";
            state.status.find(network, About::Advertisements, Finding::new(what, remedy));
        }
    }
}
