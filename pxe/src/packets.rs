//! Packets of a boot as they were on the wire, for whoever keeps them.

use std::net::SocketAddrV4;

use model::{MacAddr, NodeName, UnixMillis};

use crate::sightings::Sink;

/// Packets of boots. Full: the oldest one is dropped and counted.
pub type PacketSink = Sink<Packet>;

/// One packet of a boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// When it was heard or sent.
    pub at: UnixMillis,
    /// Whose boot it belongs to.
    pub node: NodeName,
    /// The attempt it belongs to, by its first moment.
    pub attempt: Option<UnixMillis>,
    /// The node's hardware address.
    pub mac: MacAddr,
    /// Sender.
    pub from: SocketAddrV4,
    /// Receiver.
    pub to: SocketAddrV4,
    /// UDP payload, as much of it as is kept.
    pub payload: Vec<u8>,
    /// Bytes the payload had on the wire.
    pub length: usize,
}
