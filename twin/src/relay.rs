//! The enclosure's DHCP relay: how a blade on loopback, where nothing broadcasts, reaches the server.
//!
//! Each bay has a port; what a blade broadcasts there goes to the server as RFC 1542 and RFC 3046 say: hops,
//! giaddr (the relay's own address), option 82 with the bay as circuit id, and RFC 8357's sub-option 19, so
//! that the server answers to the port we ask from. The answer finds its bay by the circuit id the server
//! echoed. The relay decides nothing and keeps nothing.

use std::{
    collections::BTreeMap,
    io,
    net::{Ipv4Addr, SocketAddr},
};

use model::BayNumber;
use pxe_proto::dhcp::{Message, Op, RelayInfo, code};
use tokio::{
    net::UdpSocket,
    sync::{mpsc, watch},
};
use tokio_util::sync::CancellationToken;

/// Frames on the way from all bays; a full queue drops the frame, as a wire would.
const UP: usize = 64;
/// Frames on the way to one bay; a full queue drops the frame, as a network card's ring would.
const DOWN: usize = 16;
/// RFC 1542 lets a relay drop what passed so many others.
const MOST_HOPS: u8 = 16;

/// The relay of one enclosure, bound and not yet running.
#[derive(Debug)]
pub struct Relay {
    address: Ipv4Addr,
    socket: UdpSocket,
    server: watch::Receiver<Option<SocketAddr>>,
    up: mpsc::Receiver<(BayNumber, Message)>,
    up_sender: mpsc::Sender<(BayNumber, Message)>,
    down: BTreeMap<u8, mpsc::Sender<Message>>,
}

/// A bay's side of the relay.
#[derive(Debug)]
pub struct Port {
    bay: BayNumber,
    up: mpsc::Sender<(BayNumber, Message)>,
    down: mpsc::Receiver<Message>,
}

impl Relay {
    /// Binds a port of `address`, which becomes giaddr. Until `server` holds an address, everything is dropped.
    ///
    /// # Errors
    /// When the address is not loopback or cannot be bound.
    pub async fn bind(
        address: Ipv4Addr,
        server: watch::Receiver<Option<SocketAddr>>,
    ) -> io::Result<Self> {
        if !address.is_loopback() {
            let why = format!("relay address {address} is not in 127.0.0.0/8");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let socket = UdpSocket::bind((address, 0)).await?;
        let (up_sender, up) = mpsc::channel(UP);
        Ok(Self { address, socket, server, up, up_sender, down: BTreeMap::new() })
    }

    /// Plugs a bay in. A second call for the same bay unplugs the first.
    pub fn port(&mut self, bay: BayNumber) -> Port {
        let (sender, down) = mpsc::channel(DOWN);
        self.down.insert(bay.get(), sender);
        Port { bay, up: self.up_sender.clone(), down }
    }

    /// Passes frames on until `stop` fires.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut buffer = vec![0; 2048];
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some((bay, message)) = self.up.recv() => self.forward(bay, message).await,
                received = self.socket.recv_from(&mut buffer) => match received {
                    Ok((length, _)) => self.deliver(buffer.get(..length).unwrap_or_default()),
                    // An ICMP error of an earlier send: the server is not there (yet).
                    Err(error) => tracing::debug!(%error, "relay could not receive"),
                },
            }
        }
    }

    async fn forward(&self, bay: BayNumber, message: Message) {
        let Some(server) = *self.server.borrow() else { return };
        if message.hops >= MOST_HOPS {
            return;
        }
        let circuit = bay.to_string().into_bytes();
        let info = RelayInfo { circuit_id: Some(circuit), source_port: true };
        let bytes = message.through_relay(self.address, &info).encode();
        if let Err(error) = self.socket.send_to(&bytes, server).await {
            tracing::debug!(%error, %bay, "relay could not send");
        }
    }

    fn deliver(&self, bytes: &[u8]) {
        let Ok(mut message) = Message::decode(bytes) else { return };
        if message.op != Op::Reply || message.giaddr != self.address {
            return;
        }
        let bay = message.relay_info().and_then(|info| info.circuit_text()?.parse::<u8>().ok());
        let Some(port) = bay.and_then(|bay| self.down.get(&bay)) else {
            tracing::warn!("a DHCP reply came back without the option 82 it was asked with");
            return;
        };
        message.options.remove(code::RELAY);
        if port.try_send(message).is_err() {
            tracing::debug!(?bay, "a DHCP reply was dropped: the bay does not listen");
        }
    }
}

impl Port {
    /// Broadcasts a frame.
    pub fn send(&self, message: Message) {
        if self.up.try_send((self.bay, message)).is_err() {
            tracing::debug!(bay = %self.bay, "a DHCP frame was dropped: the relay is gone or busy");
        }
    }

    /// The next frame for this bay; `None` when the relay is gone.
    pub async fn receive(&mut self) -> Option<Message> {
        self.down.recv().await
    }

    /// Throws away what came for an earlier conversation: a card that was off heard nothing.
    pub fn flush(&mut self) {
        while self.down.try_recv().is_ok() {}
    }
}
