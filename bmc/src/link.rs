//! One connected UDP socket: send, wait for the datagram that is meant, send again.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::atomic::Ordering,
    time::Duration,
};

use tokio::{
    net::UdpSocket,
    time::{Instant, sleep_until, timeout_at},
};

use crate::{BmcError, Inner};

/// Longest wait between two transmissions.
const LONGEST_WAIT: Duration = Duration::from_secs(4);

/// Whether a command may be sent more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It says or does the same again.
    Freely,
    /// Never: a second one would be a second deed.
    Never,
}

/// How long and how often one exchange is tried.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) first_wait: Duration,
    pub(crate) transmissions: u32,
    pub(crate) deadline: Instant,
}

/// One side of an exchange: what goes out each time, and which datagram ends it.
pub(crate) trait Talk {
    /// What the exchange is for.
    type Answer;
    /// The datagram of the next transmission.
    fn next(&mut self) -> Vec<u8>;
    /// The answer, if this datagram is it; `None` for strays.
    fn take(&mut self, datagram: &[u8]) -> Option<Self::Answer>;
}

pub(crate) struct Link {
    addr: SocketAddr,
    socket: UdpSocket,
}

impl Link {
    pub(crate) async fn connect(addr: SocketAddr) -> Result<Self, BmcError> {
        let any: IpAddr = match addr {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let failed = |source| BmcError::Socket { addr, source };
        let socket = UdpSocket::bind((any, 0)).await.map_err(failed)?;
        socket.connect(addr).await.map_err(failed)?;
        Ok(Self { addr, socket })
    }

    /// Sends and waits for the datagram `talk` wants; anything else is a stray.
    ///
    /// A closed port is no end: a BMC that restarts comes back. Only if every transmission met one, the error
    /// says so.
    pub(crate) async fn exchange<T: Talk>(
        &self,
        inner: &Inner,
        patience: Patience,
        talk: &mut T,
    ) -> Result<T::Answer, BmcError> {
        let mut wait = patience.first_wait;
        let (mut sent, mut refused) = (0, 0);
        while sent < patience.transmissions && Instant::now() < patience.deadline {
            if sent > 0 {
                inner.counters.retransmits.fetch_add(1, Ordering::Relaxed);
            }
            sent += 1;
            self.send(&talk.next()).await?;
            let until = (Instant::now() + wait).min(patience.deadline);
            match self.wait_for(inner, until, talk).await? {
                Heard::Answer(answer) => return Ok(answer),
                Heard::Nothing => (),
                Heard::PortClosed => {
                    refused += 1;
                    if sent < patience.transmissions {
                        sleep_until(until).await;
                    }
                }
            }
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        let addr = self.addr;
        Err(match sent {
            0 => BmcError::Queued { addr },
            _ if refused == sent => BmcError::PortClosed { addr },
            attempts => BmcError::Unreachable { addr, attempts },
        })
    }

    /// Sends one datagram and waits for nothing.
    pub(crate) async fn send(&self, datagram: &[u8]) -> Result<(), BmcError> {
        let failed = |source| BmcError::Socket { addr: self.addr, source };
        match self.socket.send(datagram).await {
            Ok(_) => Ok(()),
            // The kernel reports an earlier datagram's ICMP error here, and this one was not sent.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                match self.socket.send(datagram).await {
                    Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => {
                        Err(failed(error))
                    }
                    Ok(_) | Err(_) => Ok(()),
                }
            }
            Err(error) => Err(failed(error)),
        }
    }

    async fn wait_for<T: Talk>(
        &self,
        inner: &Inner,
        until: Instant,
        talk: &mut T,
    ) -> Result<Heard<T::Answer>, BmcError> {
        let mut buffer = [0_u8; 1024];
        loop {
            match timeout_at(until, self.socket.recv(&mut buffer)).await {
                Err(_) => return Ok(Heard::Nothing),
                Ok(Ok(length)) => {
                    if let Some(answer) = talk.take(buffer.get(..length).unwrap_or_default()) {
                        return Ok(Heard::Answer(answer));
                    }
                    inner.counters.strays.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    return Ok(Heard::PortClosed);
                }
                Ok(Err(source)) => return Err(BmcError::Socket { addr: self.addr, source }),
            }
        }
    }
}

enum Heard<T> {
    Answer(T),
    Nothing,
    PortClosed,
}
