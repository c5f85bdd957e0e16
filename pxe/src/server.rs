//! Starts the boot services.

use std::{
    io,
    net::{SocketAddr, SocketAddrV4, TcpListener, UdpSocket},
    sync::{Arc, Mutex},
};

use arc_swap::ArcSwap;
use model::BootTable;
use pxe_proto::attempt::Attempts;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{runtime::Handle, sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    calls::BootCall,
    config::{Listener, PxeConfig},
    dhcp::{self, Dhcp},
    digests::{self, Digests},
    error::PxeError,
    http_boot,
    loops::BootLoops,
    packets::PacketSink,
    sightings::{LeaseSink, SightingSink},
    state::{LOOK_UP, State},
    status::Status,
    tftp::{self, Serving},
};

/// Bytes of datagrams the system is to keep of a socket while we decide: a rack that powers on at once sends hundreds.
pub(crate) const RECEIVE_BUFFER: usize = 4 * 1024 * 1024;

/// HTTP connections that wait to be accepted; the system gives at most net.core.somaxconn.
const WAITING: i32 = 4096;

/// The boot services.
#[derive(Debug)]
pub struct PxeServer;

/// Where the services of a listener are heard, in the order of [`PxeConfig::listeners`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// DHCP, where we serve it.
    pub dhcp: Option<SocketAddrV4>,
    /// Proxy requests (port 4011), where they are served.
    pub proxy: Option<SocketAddrV4>,
    /// TFTP.
    pub tftp: SocketAddrV4,
    /// HTTP.
    pub http: SocketAddrV4,
}

/// Where the boot services put what they saw.
#[derive(Debug, Clone)]
pub struct Sinks {
    /// What nodes and strangers showed.
    pub sightings: SightingSink,
    /// What became of leases.
    pub leases: LeaseSink,
    /// Packets of boots.
    pub packets: PacketSink,
}

/// Boot services that run.
#[derive(Debug)]
pub struct Started {
    /// Where they are heard, in the order of the listeners.
    pub bound: Vec<Bound>,
    /// What they know of their networks.
    pub status: Status,
    /// Who is kept out of a boot loop.
    pub loops: BootLoops,
}

/// The sockets of a listener.
struct Sockets {
    dhcp: dhcp::Sockets,
    tftp: UdpSocket,
    http: TcpListener,
}

impl PxeServer {
    /// Binds everything, then starts the threads. They join `tasks`, so that a panic is noticed, and end within
    /// a moment after `stop`. Transfers and connections under way have threads of their own, which nobody waits
    /// for: they end with the process, and clients ask again. Has to be called inside a tokio runtime with timers:
    /// it carries the questions to the engine. `calls` full or nobody there: as if the engine did not answer.
    ///
    /// # Errors
    /// When a socket cannot be bound; then nothing was started.
    pub fn start(
        config: &PxeConfig,
        table: Arc<ArcSwap<BootTable>>,
        calls: mpsc::Sender<BootCall>,
        sinks: Sinks,
        tasks: &mut JoinSet<()>,
        stop: CancellationToken,
    ) -> Result<Started, PxeError> {
        let sockets: Vec<Sockets> =
            config.listeners.iter().map(Sockets::bind).collect::<Result<_, _>>()?;
        let bound = config
            .listeners
            .iter()
            .zip(&sockets)
            .map(|(listener, sockets)| sockets.bound(listener))
            .collect::<Result<_, _>>()?;
        let state = Arc::new(state(config, table, calls, sinks, stop)?);
        let (status, loops) = (state.status.clone(), state.loops.clone());
        let mut watched = vec![];
        for (network, (listener, sockets)) in config.listeners.iter().zip(sockets).enumerate() {
            let serving =
                Serving { server: listener.server, limits: config.tftp, wrap: listener.tftp_wrap };
            let dhcp = sockets.serve(serving, &state, tasks);
            watched.extend(dhcp.serve(listener, network, &state, tasks)?);
        }
        dhcp::serve_all(config.lease_log.clone(), watched, &state, tasks);
        let reader = Arc::clone(&state);
        tasks.spawn_blocking(move || digests::run(&reader));
        Ok(Started { bound, status, loops })
    }
}

/// What the services share, with the leases of the log.
fn state(
    config: &PxeConfig,
    table: Arc<ArcSwap<BootTable>>,
    calls: mpsc::Sender<BootCall>,
    sinks: Sinks,
    stop: CancellationToken,
) -> Result<State, PxeError> {
    let status = Status::default();
    for listener in &config.listeners {
        status.add(listener.server);
    }
    let silent = config.listeners.iter().filter(|listener| listener.dhcp_port.is_none());
    Ok(State {
        table,
        attempts: Mutex::new(Attempts::new(config.attempt_deadline)),
        silent_dhcp: silent.map(|listener| listener.server).collect(),
        sink: sinks.sightings.clone(),
        sinks,
        dhcp: Dhcp::new(config.lease_log.as_ref(), &status)?,
        status,
        calls,
        runtime: Handle::current(),
        stop,
        strangers: Mutex::default(),
        places: Mutex::default(),
        digests: Digests::default(),
        loops: BootLoops::default(),
    })
}

impl Sockets {
    fn bind(listener: &Listener) -> Result<Self, PxeError> {
        let Listener { server, tftp_port, http_port, .. } = *listener;
        let addr = SocketAddrV4::new(server, http_port);
        let http = bind_http(addr).map_err(|source| PxeError::bind("HTTP", addr, source))?;
        Ok(Self {
            dhcp: dhcp::Sockets::bind(listener)?,
            tftp: bind_tftp(SocketAddrV4::new(server, tftp_port))?,
            http,
        })
    }

    /// Where they are heard.
    fn bound(&self, listener: &Listener) -> Result<Bound, PxeError> {
        let server = listener.server;
        let at = |local: io::Result<SocketAddr>, service| {
            let local = local
                .map_err(|source| PxeError::bind(service, SocketAddrV4::new(server, 0), source));
            Ok(SocketAddrV4::new(server, local?.port()))
        };
        let (dhcp, proxy) = self.dhcp.bound(listener)?;
        let tftp = at(self.tftp.local_addr(), "TFTP")?;
        Ok(Bound { dhcp, proxy, tftp, http: at(self.http.local_addr(), "HTTP")? })
    }

    /// Starts a thread for TFTP and one for HTTP; gives back what DHCP has.
    fn serve(self, serving: Serving, state: &Arc<State>, tasks: &mut JoinSet<()>) -> dhcp::Sockets {
        let Self { dhcp, tftp: socket, http } = self;
        let (tftp_state, http_state) = (Arc::clone(state), Arc::clone(state));
        tasks.spawn_blocking(move || tftp::run(&tftp_state, &socket, serving));
        tasks.spawn_blocking(move || http_boot::run(&http_state, &http));
        dhcp
    }
}

/// With room for a rack that comes at once: the standard library keeps 128 connections that wait, and the next
/// client would come again only after a second.
fn bind_http(addr: SocketAddrV4) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    // Linux lets accept() honour it.
    socket.set_read_timeout(Some(LOOK_UP))?;
    socket.bind(&addr.into())?;
    socket.listen(WAITING)?;
    Ok(socket.into())
}

fn bind_tftp(addr: SocketAddrV4) -> Result<UdpSocket, PxeError> {
    let failed = |source| PxeError::bind("TFTP", addr, source);
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
    // The system may give less (net.core.rmem_max): worth a line, not a failure.
    if let Err(error) = socket.set_recv_buffer_size(RECEIVE_BUFFER) {
        tracing::warn!(service = "TFTP", %error, "receive buffer stays small");
    }
    socket.set_read_timeout(Some(LOOK_UP)).map_err(failed)?;
    socket.bind(&addr.into()).map_err(failed)?;
    Ok(socket.into())
}
