//! Starts the boot services.

use std::{
    io,
    net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket},
    sync::{Arc, Mutex},
};

use arc_swap::ArcSwap;
use model::BootTable;
use pxe_proto::attempt::Attempts;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::{runtime::Handle, sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    calls::BootCall,
    config::{Listener, PxeConfig},
    dhcp_server,
    error::PxeError,
    http_boot,
    sightings::SightingSink,
    state::{LOOK_UP, State},
    tftp_server::{self, Serving},
};

/// Bytes of datagrams the system keeps while we decide: a rack that powers on at once sends hundreds.
const RECEIVE_BUFFER: usize = 4 * 1024 * 1024;

/// The boot services.
#[derive(Debug)]
pub struct PxeServer;

/// Where the services of a listener are heard, in the order of [`PxeConfig::listeners`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// DHCP, where we serve it.
    pub dhcp: Option<SocketAddrV4>,
    /// TFTP.
    pub tftp: SocketAddrV4,
    /// HTTP.
    pub http: SocketAddrV4,
}

/// The sockets of a listener.
struct Sockets {
    dhcp: Option<UdpSocket>,
    tftp: UdpSocket,
    http: TcpListener,
}

impl PxeServer {
    /// Binds everything, then starts the threads. They join `tasks`, so that a panic is noticed, and end within
    /// a moment after `stop`. Has to be called inside a tokio runtime with timers: it carries the questions to
    /// the engine. `calls` full or nobody there: as if the engine did not answer.
    ///
    /// # Errors
    /// When a socket cannot be bound; then nothing was started.
    pub fn start(
        config: &PxeConfig,
        table: Arc<ArcSwap<BootTable>>,
        calls: mpsc::Sender<BootCall>,
        sink: SightingSink,
        tasks: &mut JoinSet<()>,
        stop: CancellationToken,
    ) -> Result<Vec<Bound>, PxeError> {
        let sockets: Vec<Sockets> =
            config.listeners.iter().map(Sockets::bind).collect::<Result<_, _>>()?;
        let silent = config.listeners.iter().filter(|listener| listener.dhcp_port.is_none());
        let state = Arc::new(State {
            table,
            attempts: Mutex::new(Attempts::new(config.attempt_deadline)),
            silent_dhcp: silent.map(|listener| listener.server).collect(),
            sink,
            calls,
            runtime: Handle::current(),
            stop,
            strangers: Mutex::default(),
        });
        let mut bound = vec![];
        for (listener, Sockets { dhcp, tftp, http }) in config.listeners.iter().zip(sockets) {
            let server = listener.server;
            let dhcp_port = dhcp.as_ref().map(|dhcp| port_of(dhcp.local_addr(), "DHCP", server));
            bound.push(Bound {
                dhcp: dhcp_port.transpose()?.map(|port| SocketAddrV4::new(server, port)),
                tftp: SocketAddrV4::new(server, port_of(tftp.local_addr(), "TFTP", server)?),
                http: SocketAddrV4::new(server, port_of(http.local_addr(), "HTTP", server)?),
            });
            let (one, two, three) = (Arc::clone(&state), Arc::clone(&state), Arc::clone(&state));
            let serving = Serving { server, limits: config.tftp, wrap: listener.tftp_wrap };
            if let Some(dhcp) = dhcp {
                tasks.spawn_blocking(move || dhcp_server::run(&one, &dhcp, server));
            }
            tasks.spawn_blocking(move || tftp_server::run(&two, &tftp, serving));
            tasks.spawn_blocking(move || http_boot::run(&three, &http));
        }
        Ok(bound)
    }
}

impl Sockets {
    fn bind(listener: &Listener) -> Result<Self, PxeError> {
        let Listener { server, ref interface, dhcp_port, tftp_port, http_port, .. } = *listener;
        let addr = SocketAddrV4::new(server, http_port);
        let http =
            TcpListener::bind(addr).map_err(|source| PxeError::bind("HTTP", addr, source))?;
        // Linux lets accept() honour it.
        let timed = SockRef::from(&http).set_read_timeout(Some(LOOK_UP));
        timed.map_err(|source| PxeError::bind("HTTP", addr, source))?;
        Ok(Self {
            dhcp: dhcp_port
                .map(|port| bind_dhcp(server, port, interface.as_deref()))
                .transpose()?,
            tftp: bind_udp("TFTP", SocketAddrV4::new(server, tftp_port), None)?,
            http,
        })
    }
}

/// With an interface: every address of it, broadcasts among them. Without: our own address only.
fn bind_dhcp(server: Ipv4Addr, port: u16, interface: Option<&str>) -> Result<UdpSocket, PxeError> {
    let address = if interface.is_some() { Ipv4Addr::UNSPECIFIED } else { server };
    bind_udp("DHCP", SocketAddrV4::new(address, port), interface)
}

fn bind_udp(
    service: &'static str,
    addr: SocketAddrV4,
    interface: Option<&str>,
) -> Result<UdpSocket, PxeError> {
    let failed = |source| PxeError::bind(service, addr, source);
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
    if let Some(interface) = interface {
        socket
            .bind_device(Some(interface.as_bytes()))
            .map_err(|source| PxeError::Interface { interface: interface.to_owned(), source })?;
        socket.set_reuse_address(true).map_err(failed)?;
        socket.set_broadcast(true).map_err(failed)?;
    }
    // The system may give less (net.core.rmem_max): worth a line, not a failure.
    if let Err(error) = socket.set_recv_buffer_size(RECEIVE_BUFFER) {
        tracing::warn!(service, %error, "receive buffer stays small");
    }
    socket.set_read_timeout(Some(LOOK_UP)).map_err(failed)?;
    socket.bind(&addr.into()).map_err(failed)?;
    Ok(socket.into())
}

fn port_of(
    local: io::Result<std::net::SocketAddr>,
    service: &'static str,
    server: Ipv4Addr,
) -> Result<u16, PxeError> {
    let local =
        local.map_err(|source| PxeError::bind(service, SocketAddrV4::new(server, 0), source));
    Ok(local?.port())
}
