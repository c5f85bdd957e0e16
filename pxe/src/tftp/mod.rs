//! TFTP: a thread that takes requests, and one thread with its own socket for each transfer.
//!
//! Names are looked up in the boot table and nowhere else, so there is no directory to escape from; a few more stand
//! for texts made for the node that asks. Nothing is ever written.

mod live;
mod notes;
mod packets;
mod request;
mod serve;
mod transfer;
mod wire;

use std::{
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use model::Sighted;
use pxe_proto::tftp::{Limits, Packet, Wrap};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::{
    live::Registry,
    notes::Notes,
    request::{Asked, Verdict, judge},
    serve::serve,
    wire::{is_closed, is_timeout},
};
use crate::{
    slots::Shared,
    state::{LOOK_UP, State},
};

/// Transfers at once, in all and for one address. A request beyond is dropped: clients ask again.
const TRANSFERS: (usize, usize) = (2_048, 16);
/// How many of them are for others than nodes: a request costs one datagram whose sender may be forged, and must not
/// be able to take the nodes' places.
const STRANGERS: usize = 1_024;
/// Stack of a transfer's thread: its blocks are on the heap, 64 KiB at most.
const STACK: usize = 128 * 1024;
/// Longest datagram taken: an RRQ has at most 512 bytes.
const MAX_DATAGRAM: usize = 2_048;
/// Descriptors all transfers need, a socket and a file each, and what else is open.
const DESCRIPTORS: u64 = 2 * 2_048 + 4_096;
/// How often a full house is told about.
const FULL: Duration = Duration::from_secs(10);

/// How a network is served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Serving {
    /// Our own address there.
    pub(crate) server: Ipv4Addr,
    /// The most a client is granted, besides what the way to it allows.
    pub(crate) limits: Limits,
    /// What follows block 65,535.
    pub(crate) wrap: Wrap,
}

/// The requests of one network.
struct Desk<'a> {
    state: &'a Arc<State>,
    socket: &'a UdpSocket,
    local: SocketAddrV4,
    serving: Serving,
    slots: Shared,
    registry: Registry,
    told_full: Option<Instant>,
}

/// Serves until told to stop.
pub(crate) fn run(state: &Arc<State>, socket: &UdpSocket, serving: Serving) {
    raise_descriptors();
    let local = match socket.local_addr() {
        Ok(SocketAddr::V4(local)) => local,
        Ok(SocketAddr::V6(_)) | Err(_) => SocketAddrV4::new(serving.server, 69),
    };
    let slots = Shared::new(TRANSFERS.0, STRANGERS, TRANSFERS.1);
    let registry = Registry::default();
    let mut desk = Desk { state, socket, local, serving, slots, registry, told_full: None };
    let mut buffer = [0; MAX_DATAGRAM];
    while !state.stop.is_cancelled() {
        let (length, from) = match socket.recv_from(&mut buffer) {
            Ok((length, SocketAddr::V4(from))) => (length, from),
            Ok((_, SocketAddr::V6(_))) => continue,
            // A time-out is the moment to look at `stop`; a closed port belongs to an earlier answer.
            Err(error) if is_timeout(&error) || is_closed(&error) => continue,
            Err(error) => {
                tracing::warn!(%error, "cannot read TFTP requests; trying again in a moment");
                thread::sleep(LOOK_UP);
                continue;
            }
        };
        // Only to the boot networks: a forged address elsewhere must not be sent files.
        if state.table.load().network_of(*from.ip()).is_none() {
            tracing::debug!(%from, "dropped a TFTP request from no boot network");
            continue;
        }
        desk.take(buffer.get(..length).unwrap_or_default(), from);
    }
}

/// As many descriptors as the system lets us have, should they be fewer than all transfers need.
fn raise_descriptors() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(DESCRIPTORS, |most| most.min(DESCRIPTORS));
    if current.is_some_and(|current| current < wanted) {
        let raised = Rlimit { current: Some(wanted), maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, wanted, "could not raise the limit of open files");
        }
    }
}

impl Desk<'_> {
    /// One datagram.
    fn take(&mut self, datagram: &[u8], from: SocketAddrV4) {
        match judge(self.state, Packet::decode(datagram), from) {
            Verdict::Ignore => (),
            Verdict::Serve(asked) => self.start(asked, datagram),
            Verdict::Refuse { file, code, why } => {
                let notes = Notes::new(self.state, from);
                notes.heard(self.local, datagram);
                let packet = Packet::Error { code, message: why.as_bytes() }.encode();
                notes.sent(self.local, &packet);
                if let Err(error) = self.socket.send_to(&packet, from) {
                    tracing::debug!(%from, %error, "could not send a TFTP error");
                }
                if let Some(file) = file {
                    self.state.saw_at(*from.ip(), Sighted::TftpRead { file: file.clone() });
                    let why = why.to_owned();
                    self.state.saw_at(*from.ip(), Sighted::TftpFailed { file, why });
                }
            }
        }
    }

    /// Starts the thread of a transfer, unless it runs already or there are too many.
    fn start(&mut self, asked: Asked, datagram: &[u8]) {
        let from = asked.client;
        let Some(registered) = self.registry.enter(from, datagram) else { return };
        let is_node = self.state.entry_at(*from.ip()).is_some();
        let Some(slot) = self.slots.take(*from.ip(), is_node) else {
            return self.tell_full(from);
        };
        Notes::new(self.state, from).heard(self.local, datagram);
        let (state, serving) = (Arc::clone(self.state), self.serving);
        let started =
            thread::Builder::new().name("tftp".to_owned()).stack_size(STACK).spawn(move || {
                let _held = slot;
                serve(&state, &asked, serving, &registered);
            });
        if let Err(error) = started {
            tracing::warn!(%from, %error, "no thread for a TFTP transfer: request dropped");
        }
    }

    fn tell_full(&mut self, from: SocketAddrV4) {
        if self.told_full.is_none_or(|told| told.elapsed() >= FULL) {
            self.told_full = Some(Instant::now());
            tracing::warn!(%from, "too many TFTP transfers: request dropped, the client asks again");
        }
    }
}
