//! A management controller on a UDP socket of its own: RMCP+ suites 3 and 17, the commands volund and
//! `ipmitool` use, and faults on demand.
//!
//! It shares the codecs with volund's client, never the client. It refuses any address but loopback ones: a
//! password of a twin protects nothing.

mod commands;
mod faults;
mod sessions;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use bmc_proto::ipmi::{
    LoginError, Suite,
    chassis::ChassisControl,
    device_id::DeviceId,
    rakp::Privilege,
    server::Account,
    session::{self, Frame, PayloadType},
};
use tokio::{net::UdpSocket, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub use self::faults::{IpmiControl, SuiteRefusal};
use self::{commands::Commands, sessions::Sessions};
use crate::board::Board;

/// Answers that may wait for [`IpmiControl::answer_late`] at once; beyond it they are lost, as on a network.
const LATE_ANSWERS: usize = 64;

/// What kind of management controller it is.
#[derive(Clone)]
pub struct IpmiConfig {
    /// Who may log in.
    pub accounts: Vec<Account>,
    /// Suites it lists and takes.
    pub suites: Vec<Suite>,
    /// Whether it has a DCMI power meter.
    pub dcmi: bool,
    /// What Get Device ID says.
    pub device: DeviceId,
    /// Sessions it has room for.
    pub max_sessions: usize,
    /// Sessions that were silent for so long are given up.
    pub idle: Duration,
}

impl IpmiConfig {
    /// An iLO-4-like controller with one administrator, suites 3 and 17, and DCMI.
    ///
    /// # Errors
    /// When user or password are longer than IPMI can carry.
    pub fn new(user: &str, password: &str) -> Result<Self, LoginError> {
        let secret = bmc_proto::ipmi::Secret::new(password);
        let login = bmc_proto::ipmi::Login::new(user, secret)?;
        Ok(Self {
            accounts: vec![Account { login, limit: Privilege::Administrator }],
            suites: vec![Suite::Three, Suite::Seventeen],
            dcmi: true,
            device: DeviceId {
                device: 0x13,
                revision: 0x01,
                firmware_major: 2,
                firmware_minor: 50,
                ipmi: (2, 0),
                support: 0x8f,
                // Hewlett-Packard.
                manufacturer: 11,
                product: 0x2000,
                auxiliary: vec![0; 4],
            },
            max_sessions: 16,
            idle: Duration::from_secs(60),
        })
    }
}

/// Why a twin BMC could not be started.
#[derive(Debug, thiserror::Error)]
pub enum IpmiServerError {
    /// The twin is for loopback only.
    #[error("the twin's BMC will not bind {0}: only loopback addresses")]
    NotLoopback(SocketAddr),
    /// The operating system refused.
    #[error("could not bind the twin's BMC to {addr}")]
    Bind {
        /// To where.
        addr: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// One management controller, bound, not yet answering.
pub struct IpmiServer {
    socket: Arc<UdpSocket>,
    address: SocketAddr,
    control: IpmiControl,
    sessions: Sessions,
    commands: Commands,
}

impl IpmiServer {
    /// Binds `addr` (port 0 takes a free one).
    ///
    /// # Errors
    /// [`IpmiServerError`].
    pub async fn bind(
        addr: SocketAddr,
        board: Arc<dyn Board>,
        config: IpmiConfig,
    ) -> Result<Self, IpmiServerError> {
        if !addr.ip().is_loopback() {
            return Err(IpmiServerError::NotLoopback(addr));
        }
        let failed = |source| IpmiServerError::Bind { addr, source };
        let socket = UdpSocket::bind(addr).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let control = IpmiControl::default();
        let sessions = Sessions::new(&config, board.guid());
        let commands = Commands::new(board, config);
        Ok(Self { socket: Arc::new(socket), address, control, sessions, commands })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Faults and counts, also while it runs.
    #[must_use]
    pub fn control(&self) -> IpmiControl {
        self.control.clone()
    }

    /// Answers until `stop` fires.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut late = JoinSet::new();
        let mut buffer = [0_u8; 1024];
        loop {
            let got = tokio::select! {
                () = stop.cancelled() => return,
                Some(_) = late.join_next() => continue,
                got = self.socket.recv_from(&mut buffer) => got,
            };
            match got {
                Ok((length, peer)) => {
                    let datagram = buffer.get(..length).unwrap_or_default();
                    self.handle(datagram, peer, &mut late).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "twin BMC could not receive");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        }
    }

    async fn handle(&mut self, datagram: &[u8], peer: SocketAddr, late: &mut JoinSet<()>) {
        let faults = self.control.on_datagram();
        if faults.lost {
            return;
        }
        if faults.forget_sessions {
            self.sessions.forget_all();
        }
        let Some(answer) = self.answer(datagram, peer) else { return };
        if self.control.loses_answer() {
            return;
        }
        let times = if faults.twice { 2 } else { 1 };
        for _ in 0..times {
            if faults.late.is_zero() {
                send(&self.socket, &answer, peer).await;
            } else if late.len() < LATE_ANSWERS {
                let (socket, answer) = (Arc::clone(&self.socket), answer.clone());
                late.spawn(async move {
                    tokio::time::sleep(faults.late).await;
                    send(&socket, &answer, peer).await;
                });
            }
        }
    }

    fn answer(&mut self, datagram: &[u8], peer: SocketAddr) -> Option<Vec<u8>> {
        if let Ok(bmc_proto::asf::Presence::Ping { tag }) =
            bmc_proto::asf::Presence::decode(datagram)
        {
            return Some(bmc_proto::asf::Presence::Pong { tag, ipmi: true }.encode());
        }
        match Frame::decode(datagram).ok()? {
            Frame::V15 { message } => {
                let response = self.commands.before_session(message)?;
                Some(session::plain_v15(&response))
            }
            Frame::V20(packet) => match packet.payload_type {
                PayloadType::OpenSessionRequest => self.sessions.open(&packet, peer, &self.control),
                PayloadType::Rakp1 => self.sessions.rakp1(&packet),
                PayloadType::Rakp3 => self.sessions.rakp3(&packet),
                PayloadType::Ipmi if packet.session_id == 0 => {
                    let response = self.commands.before_session(packet.payload)?;
                    Some(session::plain(PayloadType::Ipmi, &response))
                }
                PayloadType::Ipmi => {
                    let entry = self.sessions.active(packet.session_id)?;
                    let message = entry.receive(&packet)?;
                    let outcome = self.commands.in_session(&message, entry, &self.control)?;
                    let answer = entry.transmit(&outcome.response, chance())?;
                    if let Some(closed) = outcome.closes {
                        self.sessions.close(closed);
                    }
                    Some(answer)
                }
                PayloadType::OpenSessionResponse
                | PayloadType::Rakp2
                | PayloadType::Rakp4
                | PayloadType::Other(_) => None,
            },
        }
    }
}

impl IpmiControl {
    /// How often a chassis control verb was carried out or refused by the machine's state.
    #[must_use]
    pub fn control_count(&self, verb: ChassisControl) -> u32 {
        self.counted(verb)
    }
}

async fn send(socket: &UdpSocket, answer: &[u8], peer: SocketAddr) {
    if let Err(error) = socket.send_to(answer, peer).await {
        tracing::warn!(%error, %peer, "twin BMC could not answer");
    }
}

/// Fresh random bytes.
fn chance<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}
