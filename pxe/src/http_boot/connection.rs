//! One connection: requests in turn, answers counted to the last byte the system took. Whether the client received it
//! is not known.

use std::{
    fs::File,
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, TcpStream},
    time::{Duration, Instant},
};

use model::{BootIntent, Sighted};
use rustix::fs::sendfile;

use super::{
    answer::{Answer, Body, answer, reason},
    request::{Method, NoRequest, Request, Requests},
};
use crate::state::{State, now};

/// How long a connection may be idle, or a read may take.
const READ_TIME: Duration = Duration::from_secs(20);
/// How long one write may make no progress.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// Bytes handed to sendfile at once.
const CHUNK: usize = 1024 * 1024;

/// Serves a connection to its end. A reset by the client is normal: UEFI ends every boot so.
pub(super) fn serve(state: &State, stream: TcpStream, from: Ipv4Addr) {
    let prepared = stream
        .set_read_timeout(Some(READ_TIME))
        .and_then(|()| stream.set_write_timeout(Some(WRITE_TIME)))
        .and_then(|()| stream.set_nodelay(true));
    if let Err(error) = prepared {
        tracing::debug!(%from, %error, "connection lost before its first request");
        return;
    }
    let mut requests = Requests::new(&stream);
    while !state.stop.is_cancelled() {
        let keeps_alive = match requests.next() {
            Ok(request) => handle(state, &stream, request, from),
            Err(NoRequest::Closed) => return,
            Err(NoRequest::Bad(status)) => {
                let answer = Answer::bad(status);
                let sent = send(&stream, Method::Get, Keep::Closes, &answer);
                tell(state, from, "?", &answer, &sent, Instant::now());
                linger(&stream);
                false
            }
        };
        if !keeps_alive {
            return;
        }
    }
}

/// Lets a client read why it was refused: closing with bytes of it unread would reset the connection and could
/// take our answer along.
fn linger(stream: &TcpStream) {
    let ready = stream
        .shutdown(Shutdown::Write)
        .and_then(|()| stream.set_read_timeout(Some(Duration::from_secs(1))));
    let mut rest = [0; 8192];
    let mut reads = 0..64;
    while ready.is_ok() && reads.next().is_some() {
        if matches!((&*stream).read(&mut rest), Ok(0) | Err(_)) {
            return;
        }
    }
}

/// Whether the connection goes on after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    Alive,
    Closes,
}

/// Body bytes the system took, of how many.
struct Sent {
    bytes: u64,
    of: u64,
}

/// Answers one request; whether the connection can carry another.
fn handle(state: &State, stream: &TcpStream, mut request: Request, from: Ipv4Addr) -> bool {
    let begun = Instant::now();
    let answer = answer(state, &mut request, from);
    let keep = if request.keeps_alive { Keep::Alive } else { Keep::Closes };
    let sent = send(stream, request.method, keep, &answer);
    let is_whole = tell(state, from, request.method.as_str(), &answer, &sent, begun);
    if is_whole && request.method == Method::Get && matches!(answer.body, Body::File(..)) {
        note_whole_file(state, from, &answer.shown);
    }
    is_whole && keep == Keep::Alive
}

/// Sends head and body, the head with a small body in one write.
fn send(stream: &TcpStream, method: Method, keep: Keep, answer: &Answer) -> Sent {
    let of = match &answer.body {
        Body::Bytes(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        Body::File(_, length) => *length,
    };
    let mut out = head(answer, of, keep).into_bytes();
    let is_head = method == Method::Head;
    if let (Body::Bytes(bytes), false) = (&answer.body, is_head) {
        out.extend_from_slice(bytes);
    }
    if let Err(error) = (&*stream).write_all(&out) {
        tracing::debug!(path = answer.shown, %error, "answer cut short");
        return Sent { bytes: 0, of: of.max(1) };
    }
    match &answer.body {
        _ if is_head => Sent { bytes: 0, of: 0 },
        Body::Bytes(_) => Sent { bytes: of, of },
        Body::File(file, length) => Sent { bytes: send_file(stream, file, *length), of },
    }
}

/// Status line and headers. None is empty, the length is always there.
fn head(answer: &Answer, length: u64, keep: Keep) -> String {
    let Answer { status, content_type, .. } = answer;
    let connection = match keep {
        Keep::Alive => "keep-alive",
        Keep::Closes => "close",
    };
    let extra = match status {
        405 => "Allow: GET, HEAD, POST\r\n",
        401 => "WWW-Authenticate: Ticket\r\n",
        503 => "Retry-After: 1\r\n",
        _ => "",
    };
    format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\n{extra}Connection: {connection}\r\n\r\n",
        reason(*status)
    )
}

/// Sends a file; the bytes the system took. Fewer than `length` when the client goes away, stalls, or the file
/// shrank meanwhile.
fn send_file(stream: &TcpStream, file: &File, length: u64) -> u64 {
    let mut offset = 0;
    while offset < length {
        let left = usize::try_from(length - offset).unwrap_or(CHUNK).min(CHUNK);
        match sendfile(stream, file, Some(&mut offset), left) {
            Ok(0) => break,
            Ok(_) | Err(rustix::io::Errno::INTR) => (),
            Err(error) => {
                let error = io::Error::from(error);
                tracing::debug!(%error, offset, length, "file cut short");
                break;
            }
        }
    }
    offset
}

/// Tells how an answer ended; whether it was whole.
fn tell(
    state: &State,
    from: Ipv4Addr,
    method: &str,
    answer: &Answer,
    sent: &Sent,
    begun: Instant,
) -> bool {
    let path = answer.shown.clone();
    let is_whole = sent.bytes == sent.of;
    let what = if is_whole {
        let millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (method, bytes) = (method.to_owned(), sent.bytes);
        Sighted::HttpDone { method, path, status: answer.status, bytes, millis }
    } else {
        Sighted::HttpShort { path, bytes: sent.bytes, of: sent.of }
    };
    // The health check of a load balancer is nobody's boot.
    if answer.shown != "/healthz" {
        state.saw_at(from, what);
    }
    is_whole
}

/// A file went out whole: if it is the kernel of the node's attempt, that attempt has what it came for.
///
/// "Whole" means the last byte our system took, not the last the client acknowledged. What the client does afterwards
/// is no sign to wait for: UEFI ends a boot with a reset whether it had everything or not, a kernel without initrd is
/// started without another request, and the count of unacknowledged bytes (SIOCOUTQ) has no safe wrapper. A sign that
/// is missed would give an installer's script out a second time.
fn note_whole_file(state: &State, from: Ipv4Addr, path: &str) {
    let Some(entry) = state.table.load().by_address.get(&from).cloned() else { return };
    let at = now();
    // After a restart we do not know what the script said; the engine, asked again, says the same.
    let unanswered = state.attempts().unanswered(&entry, at);
    if let (Some(attempt), BootIntent::Ask, Some(mac)) =
        (unanswered, entry.intent, entry.macs.first())
    {
        // Late or none: the next fetch asks again.
        let _answer = state.ask_boot(&entry, *mac, attempt, at);
    }
    let whole = state.attempts().fetched(&entry, path, at);
    if let Some(attempt) = whole {
        let what = Sighted::KernelWhole { path: path.to_owned() };
        state.saw_in(&entry, Some(attempt), at, what);
    }
}
