//! One connection: requests in turn, answers counted to the last byte the system took. Whether the client received it
//! is not known.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, TcpStream},
    time::{Duration, Instant},
};

use model::Sighted;
use rustix::fs::sendfile;

use super::{
    answer::{Answer, Body, answer, reason},
    files::Served,
    request::{MAX_BODY, Method, NoRequest, Request, Requests, STRANGERS_BODY},
};
use crate::{kernel::note_whole_file, state::State};

/// How long a connection may be idle, or a read may take.
const READ_TIME: Duration = Duration::from_secs(20);
/// How long one write may make no progress.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// Bytes handed to sendfile at once, and to a client that took a second for so many.
const CHUNK: usize = 1024 * 1024;
const SLOW_CHUNK: usize = 64 * 1024;
/// A file up to this size goes out in one write with its head.
const SMALL: u64 = 32 * 1024;
/// Bytes in a second that a client has to take after its first minute, or a slow one could hold its place for ever.
const SLOWEST: u64 = 4 * 1024;

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
    let most_body = || if state.entry_at(from).is_some() { MAX_BODY } else { STRANGERS_BODY };
    while !state.stop.is_cancelled() {
        let keeps_alive = match requests.next(most_body) {
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
    if let (true, Method::Get, Body::File(file)) = (is_whole, request.method, &answer.body) {
        // A small one was read at once.
        if file.length > SMALL && file.has_changed() {
            let path = &answer.shown;
            let why = format!(
                "{path} was written to while it was sent; replace files by renaming a new one over them"
            );
            state.saw_at(from, Sighted::Refused { why });
            return false;
        }
        if file.reaches_end() {
            note_whole_file(state, from, &answer.shown);
        }
    }
    is_whole && keep == Keep::Alive
}

/// Sends head and body, the head with a small body in one write.
fn send(stream: &TcpStream, method: Method, keep: Keep, answer: &Answer) -> Sent {
    let of = match &answer.body {
        Body::Bytes(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        Body::File(file) => file.length,
    };
    let mut out = head(answer, of, keep).into_bytes();
    let begins = out.len();
    let is_head = method == Method::Head;
    match &answer.body {
        _ if is_head => (),
        Body::Bytes(bytes) => out.extend_from_slice(bytes),
        Body::File(file) if file.length <= SMALL => match file.bytes() {
            Ok(bytes) => out.extend_from_slice(&bytes),
            Err(error) => tracing::warn!(path = answer.shown, %error, "a file cannot be read"),
        },
        Body::File(_) => (),
    }
    if let Err(error) = (&*stream).write_all(&out) {
        tracing::debug!(path = answer.shown, %error, "answer cut short");
        return Sent { bytes: 0, of: of.max(1) };
    }
    let bytes = match &answer.body {
        _ if is_head => return Sent { bytes: 0, of: 0 },
        Body::File(file) if file.length > SMALL => send_file(stream, file),
        Body::Bytes(_) | Body::File(_) => u64::try_from(out.len() - begins).unwrap_or(u64::MAX),
    };
    if bytes < of && matches!(&answer.body, Body::File(file) if file.has_changed()) {
        tracing::warn!(path = answer.shown, "a file shrank while it was sent: connection closed");
    }
    Sent { bytes, of }
}

/// Status line and headers. None is empty; the length is always there, but where there can be no body (RFC 9110, 8.6).
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
    let length = match status {
        204 | 304 => String::new(),
        _ => format!("Content-Length: {length}\r\n"),
    };
    let own = match &answer.body {
        Body::Bytes(_) => "Cache-Control: no-store\r\n",
        Body::File(file) => &file.head,
    };
    format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: {content_type}\r\n{length}{own}{extra}\
         Connection: {connection}\r\n\r\n",
        reason(*status)
    )
}

/// Sends a file, or a part of it; the bytes the system took. Fewer when the client goes away, stalls or dawdles, or
/// the file shrank meanwhile.
fn send_file(stream: &TcpStream, file: &Served) -> u64 {
    let begun = Instant::now();
    let (mut offset, end) = (file.first, file.first + file.length);
    let mut chunk = CHUNK;
    while offset < end {
        let left = usize::try_from(end - offset).unwrap_or(chunk).min(chunk);
        let since = begun.elapsed();
        match sendfile(stream, file.file(), Some(&mut offset), left) {
            Ok(0) => break,
            Ok(_) | Err(rustix::io::Errno::INTR) => (),
            Err(error) => {
                let error = io::Error::from(error);
                tracing::debug!(%error, offset, end, "file cut short");
                break;
            }
        }
        let took = begun.elapsed();
        // One call can wait for as long as the client dawdles: the smaller it is, the sooner we look again.
        chunk = if took - since > Duration::from_secs(1) { SLOW_CHUNK } else { CHUNK };
        let least = took.as_secs().saturating_sub(60).saturating_mul(SLOWEST);
        if offset - file.first < least {
            tracing::debug!(offset, end, "file cut short: the client takes it too slowly");
            break;
        }
    }
    offset - file.first
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
