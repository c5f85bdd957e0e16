//! One POST over one connection (RFC 9112), as much of HTTP/1.1 as volund's boot port speaks.
//!
//! Everything is bounded: connecting, the whole exchange, and the size of the answer.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use model::Ticket;

const CONNECT: Duration = Duration::from_secs(5);
const EXCHANGE: Duration = Duration::from_secs(30);
/// Orders are tens of bytes and refusals a sentence.
const LARGEST_ANSWER: usize = 64 * 1024;

/// What the server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    /// Status code.
    pub(crate) status: u16,
    /// Body as text.
    pub(crate) body: String,
}

/// No answer was had; asking again may help.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("could not reach {server}: {cause}")]
    Connect { server: SocketAddr, cause: io::Error },
    #[error("the exchange with {server} broke off: {cause}")]
    Exchange { server: SocketAddr, cause: io::Error },
    #[error("the answer is not HTTP as I know it: {0}")]
    Malformed(&'static str),
}

/// Posts `body`, which is JSON, and reads the answer.
///
/// # Errors
/// When there is no connection, no whole answer within its time, or none that can be read.
pub(crate) fn post(
    server: SocketAddr,
    path: &str,
    ticket: &Ticket,
    body: &str,
) -> Result<Reply, HttpError> {
    let connect = TcpStream::connect_timeout(&server, CONNECT);
    let mut stream = connect.map_err(|cause| HttpError::Connect { server, cause })?;
    let broke = |cause| HttpError::Exchange { server, cause };
    let deadline = Instant::now() + EXCHANGE;
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {server}\r\nAuthorization: Ticket {}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n",
        ticket.reveal()
    );
    write_by(&mut stream, format!("{head}{body}").as_bytes(), deadline).map_err(broke)?;
    read_reply(&mut stream, deadline, broke)
}

/// `write_all` with one bound for the whole: a server that takes a byte now and then must not hold process 1.
fn write_by(stream: &mut TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        let written = stream.write(bytes)?;
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// What is left of the time; an error when nothing is.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn read_reply(
    stream: &mut TcpStream,
    deadline: Instant,
    broke: impl Fn(io::Error) -> HttpError,
) -> Result<Reply, HttpError> {
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        stream.set_read_timeout(Some(left(deadline).map_err(&broke)?)).map_err(&broke)?;
        let read = stream.read(&mut chunk).map_err(&broke)?;
        answer.extend_from_slice(chunk.get(..read).unwrap_or_default());
        if let Some(reply) = parse(&answer, read == 0)? {
            return Ok(reply);
        }
        if answer.len() > LARGEST_ANSWER {
            return Err(HttpError::Malformed("it is longer than 64 KiB"));
        }
    }
}

/// The reply in `answer`, or `None` while more has to come. `ended` says that no more will.
pub(super) fn parse(answer: &[u8], ended: bool) -> Result<Option<Reply>, HttpError> {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return if ended { Err(HttpError::Malformed("it ends in its head")) } else { Ok(None) };
    };
    let (head, rest) = answer.split_at_checked(end).unwrap_or_default();
    let body = rest.get(4..).unwrap_or_default();
    let head = str::from_utf8(head).map_err(|_| HttpError::Malformed("its head is not text"))?;
    let status = status_of(head).ok_or(HttpError::Malformed("it has no status line"))?;
    let body = match body_length(head)? {
        Some(length) if body.len() < length && ended => {
            return Err(HttpError::Malformed("it ends in its body"));
        }
        Some(length) if body.len() < length => return Ok(None),
        Some(length) => body.get(..length).unwrap_or_default(),
        None if ended => body,
        None => return Ok(None),
    };
    Ok(Some(Reply { status, body: String::from_utf8_lossy(body).into_owned() }))
}

fn status_of(head: &str) -> Option<u16> {
    let line = head.lines().next()?.strip_prefix("HTTP/1.")?;
    line.split_ascii_whitespace().nth(1)?.parse().ok().filter(|code| (100..600).contains(code))
}

/// Bytes of the body; `None` when it lasts until the connection ends.
fn body_length(head: &str) -> Result<Option<usize>, HttpError> {
    let mut length = None;
    for (name, value) in head.lines().skip(1).filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(HttpError::Malformed("its body comes in chunks"));
        }
        if name.eq_ignore_ascii_case("content-length") {
            let bytes = value.trim().parse();
            length = Some(bytes.map_err(|_| HttpError::Malformed("its length is no number"))?);
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn answers_are_read_as_far_as_they_came() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".as_slice();
        let ok = Reply { status: 200, body: "{}".into() };
        let open = b"HTTP/1.0 403 Forbidden\r\n\r\nspent".as_slice();
        let refused = Reply { status: 403, body: "spent".into() };
        assert_eq!(parse(whole, false).unwrap(), Some(ok));
        assert_eq!(parse(&whole[..whole.len() - 1], false).unwrap(), None);
        assert_eq!(parse(open, false).unwrap(), None, "length unknown, more may come");
        assert_eq!(parse(open, true).unwrap(), Some(refused));
    }

    #[test]
    fn broken_answers_are_named() {
        let cases = [
            (b"HTTP/1.1 200 OK\r\ncontent-le".as_slice(), "ends in its head"),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}", "ends in its body"),
            (b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", "no number"),
            (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "in chunks"),
            (b"SSH-2.0-OpenSSH\r\n\r\n", "no status line"),
            (b"HTTP/1.1 99 Low\r\n\r\n", "no status line"),
        ];
        for (answer, want) in cases {
            let said = parse(answer, true).unwrap_err().to_string();
            assert!(said.contains(want), "{said}");
        }
    }

    #[test]
    fn a_post_carries_its_ticket_and_body_over_a_real_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let heard = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = vec![0; 4096];
            let mut length = 0;
            while !request[..length].ends_with(b"{\"nonce\":\"ab\"}") {
                length += stream.read(&mut request[length..]).unwrap();
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone").unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        let ticket = Ticket::from_random([7; 16]);
        let reply = post(server, "/agent/v1/claim", &ticket, "{\"nonce\":\"ab\"}").unwrap();
        assert_eq!(reply, Reply { status: 200, body: "done".into() });
        let request = heard.join().unwrap();
        assert!(request.starts_with("POST /agent/v1/claim HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("\r\nAuthorization: Ticket 07070707"), "{request}");
        assert!(request.contains("\r\nContent-Length: 14\r\n"), "{request}");
    }

    #[test]
    fn a_closed_port_is_an_error_that_names_it() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = post(server, "/", &Ticket::from_random([7; 16]), "").unwrap_err();
        assert!(error.to_string().contains(&server.to_string()), "{error}");
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(answer: Vec<u8>, ended: bool) {
            let _outcome = parse(&answer, ended);
        }

        #[test]
        fn no_head_makes_it_panic(head in "[ -~\r\n]{0,80}", body: Vec<u8>, ended: bool) {
            let mut answer = format!("HTTP/1.1 {head}\r\n\r\n").into_bytes();
            answer.extend(body);
            let _outcome = parse(&answer, ended);
        }
    }
}
