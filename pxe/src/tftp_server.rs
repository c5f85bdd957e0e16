//! TFTP: a thread that takes requests, and one thread with its own socket for each transfer.
//!
//! Names are looked up in the boot table and nowhere else, so there is no directory to escape from. Nothing is
//! ever written.

use std::{
    collections::BTreeSet,
    fs::File,
    io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket},
    os::unix::fs::FileExt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use model::Sighted;
use pxe_proto::{
    path::tftp_name,
    tftp::{Ended, Granted, Limits, Packet, ReadTransfer, Request, Transmit, Wrap, error},
};

use crate::{slots::Slots, state::State};

/// Transfers at once, in all and for one address. A request beyond is dropped: clients ask again.
const TRANSFERS: (usize, usize) = (512, 16);
/// Stack of a transfer's thread: a block of at most 64 KiB is on the heap.
const STACK: usize = 256 * 1024;
/// Longest transfer, however slowly a client acknowledges.
const LONGEST: Duration = Duration::from_secs(30 * 60);
/// Longest packet a client sends: an RRQ has at most 512 bytes, an ACK four.
const MAX_DATAGRAM: usize = 2048;

/// Clients with a transfer under way: a repeated request is not a second transfer.
type Active = Arc<Mutex<BTreeSet<SocketAddrV4>>>;

/// Serves until told to stop.
pub(crate) fn run(state: &Arc<State>, socket: &UdpSocket, serving: Serving) {
    let slots = Slots::new(TRANSFERS.0, TRANSFERS.1);
    let active = Active::default();
    let mut buffer = [0; MAX_DATAGRAM];
    while !state.stop.is_cancelled() {
        let Ok((length, SocketAddr::V4(from))) = socket.recv_from(&mut buffer) else { continue };
        // Only to the boot networks: a forged address elsewhere must not be sent files.
        if state.table.load().network_of(*from.ip()).is_none() {
            tracing::debug!(%from, "dropped a TFTP request from no boot network");
            continue;
        }
        let packet = Packet::decode(buffer.get(..length).unwrap_or_default());
        match accept(state, packet, from) {
            Ok(Some(asked)) => start(state, &slots, &active, Job { asked, serving }),
            Ok(None) => (),
            Err((code, text)) => reply_error(socket, from, code, text),
        }
    }
}

/// How a network is served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Serving {
    /// Our own address there.
    pub(crate) server: Ipv4Addr,
    /// The most a client is granted.
    pub(crate) limits: Limits,
    /// What follows block 65,535.
    pub(crate) wrap: Wrap,
}

/// What a transfer needs.
struct Job {
    asked: Asked,
    serving: Serving,
}

/// What a client asked for.
struct Asked {
    from: SocketAddrV4,
    name: String,
    file: File,
    size: u64,
    options: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A request understood; nothing for packets that need no answer; an error to send.
fn accept(
    state: &State,
    packet: Result<Packet<'_>, pxe_proto::tftp::DecodeError>,
    from: SocketAddrV4,
) -> Result<Option<Asked>, (u16, &'static str)> {
    let request = match packet {
        Ok(Packet::Read(request)) => request,
        Ok(Packet::Write(_)) => return Err((error::ACCESS, "files are served for reading only")),
        // A late packet of an ended transfer, or noise: an answer could begin an echo.
        Ok(
            Packet::Data { .. } | Packet::Ack { .. } | Packet::Error { .. } | Packet::OptionAck(_),
        ) => {
            return Ok(None);
        }
        Err(_) => return Err((error::ILLEGAL, "no TFTP request")),
    };
    let shown = String::from_utf8_lossy(request.file.get(..128).unwrap_or(request.file));
    let shown: String = shown.chars().filter(|c| !c.is_control()).collect();
    let refuse = |code, text: &'static str| {
        state.saw_at(*from.ip(), Sighted::TftpRead { file: shown.clone() });
        let why = text.to_owned();
        state.saw_at(*from.ip(), Sighted::TftpFailed { file: shown.clone(), why });
        (code, text)
    };
    if !request.is_octet() {
        return Err(refuse(error::ILLEGAL, "only mode octet is served"));
    }
    let not_found = || refuse(error::NOT_FOUND, "file not found");
    let name = tftp_name(request.file).ok_or_else(not_found)?;
    let table = state.table.load();
    let path = table.files.get(&name).ok_or_else(not_found)?;
    let (file, size) = open(path).map_err(|error| {
        tracing::warn!(name, path = %path.display(), %error, "a served file cannot be read");
        refuse(error::NOT_FOUND, "file cannot be read")
    })?;
    Ok(Some(Asked { from, name, file, size, options: owned(&request) }))
}

/// Opens a regular file.
pub(crate) fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok((file, metadata.len()))
}

fn owned(request: &Request<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    request.options.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
}

fn reply_error(socket: &UdpSocket, to: SocketAddrV4, code: u16, text: &str) {
    let packet = Packet::Error { code, message: text.as_bytes() }.encode();
    if let Err(error) = socket.send_to(&packet, to) {
        tracing::debug!(%to, %error, "could not send a TFTP error");
    }
}

/// Starts the thread of a transfer, unless it runs already or there are too many.
fn start(state: &Arc<State>, slots: &Slots, active: &Active, job: Job) {
    let from = job.asked.from;
    let fresh = active.lock().unwrap_or_else(PoisonError::into_inner).insert(from);
    if !fresh {
        return;
    }
    let done = Finished { active: Arc::clone(active), from };
    let Some(slot) = slots.take(*from.ip()) else {
        tracing::warn!(%from, "too many TFTP transfers: request dropped, the client asks again");
        return;
    };
    let state = Arc::clone(state);
    let started =
        thread::Builder::new().name("tftp".to_owned()).stack_size(STACK).spawn(move || {
            let _held = (slot, done);
            serve(&state, &job);
        });
    if let Err(error) = started {
        tracing::warn!(%from, %error, "no thread for a TFTP transfer: request dropped");
    }
}

/// Takes a client out of the active ones, whatever ended its transfer.
struct Finished {
    active: Active,
    from: SocketAddrV4,
}

impl Drop for Finished {
    fn drop(&mut self) {
        self.active.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.from);
    }
}

/// One transfer from request to end, with both told.
fn serve(state: &State, job: &Job) {
    let address = *job.asked.from.ip();
    let file = || job.asked.name.clone();
    state.saw_at(address, Sighted::TftpRead { file: file() });
    let begun = Instant::now();
    let what = match transfer(job, begun) {
        Ok(Ended::Complete) => Sighted::TftpDone {
            file: file(),
            bytes: job.asked.size,
            millis: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        },
        Ok(Ended::Probe) => Sighted::TftpProbe { file: file() },
        Ok(Ended::ClientError { code, message }) => {
            let message: String = message.chars().filter(|c| !c.is_control()).take(128).collect();
            Sighted::TftpFailed {
                file: file(),
                why: format!("the client ended it: {message} ({code})"),
            }
        }
        Ok(Ended::Closed { blocks }) => Sighted::TftpFailed {
            file: file(),
            why: format!("the client closed its port after {blocks} blocks"),
        },
        Ok(Ended::GaveUp { blocks }) => Sighted::TftpFailed {
            file: file(),
            why: format!("the client went silent after {blocks} blocks"),
        },
        Err(error) => Sighted::TftpFailed { file: file(), why: error.to_string() },
    };
    state.saw_at(address, what);
}

/// Drives the machine of [`ReadTransfer`] over a socket of its own.
fn transfer(job: &Job, begun: Instant) -> io::Result<Ended> {
    let Job { asked, serving } = job;
    let socket = UdpSocket::bind(SocketAddrV4::new(serving.server, 0))?;
    socket.connect(asked.from)?;
    let options: Vec<(&[u8], &[u8])> =
        asked.options.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect();
    let granted = Granted::negotiate(&options, asked.size, serving.limits);
    let mut machine = ReadTransfer::new(granted, asked.size, serving.wrap);
    let mut packet = vec![];
    while begun.elapsed() <= LONGEST {
        send_due(&socket, &mut machine, &asked.file, begun, &mut packet)?;
        if let Some(ended) = machine.ended() {
            return Ok(ended.clone());
        }
        hear(&socket, &mut machine, begun)?;
        machine.handle_timeout(begun.elapsed());
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "the transfer took over 30 minutes"))
}

/// Sends what the machine wants sent now; `packet` is where each is put together.
fn send_due(
    socket: &UdpSocket,
    machine: &mut ReadTransfer,
    file: &File,
    begun: Instant,
    packet: &mut Vec<u8>,
) -> io::Result<()> {
    while let Some(transmit) = machine.poll_transmit(begun.elapsed()) {
        fill(packet, file, transmit).inspect_err(|_| {
            let error = Packet::Error { code: error::UNDEFINED, message: b"file cannot be read" };
            // The client may be gone already; the read error is what is told.
            socket.send(&error.encode()).ok();
        })?;
        match socket.send(packet) {
            Ok(_) => (),
            // The answer of an earlier packet.
            Err(error) if is_closed(&error) => machine.handle_closed(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits for a packet of the client, at most until something is to be sent again.
fn hear(socket: &UdpSocket, machine: &mut ReadTransfer, begun: Instant) -> io::Result<()> {
    let wait = machine.poll_timeout().unwrap_or(LONGEST).saturating_sub(begun.elapsed());
    // Zero would mean "for ever".
    socket.set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
    let mut buffer = [0; MAX_DATAGRAM];
    match socket.recv(&mut buffer) {
        Ok(length) => {
            if let Ok(packet) = Packet::decode(buffer.get(..length).unwrap_or_default()) {
                machine.handle_packet(begun.elapsed(), &packet);
            }
        }
        Err(error) if is_timeout(&error) => (),
        Err(error) if is_closed(&error) => machine.handle_closed(),
        Err(error) => return Err(error),
    }
    Ok(())
}

pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// ICMP port unreachable.
fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

/// The packet for what the machine wants sent.
fn fill(packet: &mut Vec<u8>, file: &File, transmit: Transmit) -> io::Result<()> {
    packet.clear();
    match transmit {
        Transmit::OptionAck(oack) => packet.extend(oack),
        Transmit::Data { block, offset, length } => {
            packet.extend([0, 3]);
            packet.extend(block.to_be_bytes());
            packet.resize(4 + length, 0);
            file.read_exact_at(packet.get_mut(4..).unwrap_or_default(), offset)?;
        }
    }
    Ok(())
}
