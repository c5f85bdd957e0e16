//! Network boot: DHCP, TFTP and HTTP sockets around pxe-proto.
//!
//! It answers from a snapshot of the boot table and never waits for a database: what it saw goes to a bounded
//! sink, and only a boot script, a document or an agent's call is a question to the engine, with a bound. It does
//! not decide what a node boots, reads no agent message, and walks no directory: a file is served only when the
//! table names it. The only file it writes is the lease log.
//!
//! Each socket has a blocking thread of its own; transfers and connections have one each, in bounded number. A
//! cold disk or a slow client so delays nobody else.

mod calls;
mod config;
mod dhcp;
mod digests;
mod error;
mod files;
mod generated;
mod http_boot;
mod kernel;
mod loops;
mod packets;
mod places;
mod server;
mod sightings;
mod slots;
mod state;
mod status;
mod tftp;

#[cfg(test)]
mod socket_tests;

pub use self::{
    calls::{AgentReply, BootCall, Document, Refused},
    config::{Listener, PxeConfig},
    error::PxeError,
    loops::BootLoops,
    packets::{Packet, PacketSink},
    server::{Bound, PxeServer, Sinks, Started},
    sightings::{LeaseSink, SightingSink, Sink},
    status::{DhcpCounters, Finding, NetworkStatus, PoolUse, Rival, Status},
};
pub use pxe_proto::tftp::Wrap;
