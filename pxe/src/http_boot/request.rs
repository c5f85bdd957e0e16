//! Reads requests off a connection.

use std::{
    io::{self, Read},
    time::{Duration, Instant},
};

/// Longest request head.
const MAX_HEAD: usize = 32 * 1024;
/// Longest body of a node: an agent's report.
pub(super) const MAX_BODY: usize = 4 * 1024 * 1024;
/// Longest body of anybody else, who is refused whatever it says and must not fill memory before that.
pub(super) const STRANGERS_BODY: usize = 4 * 1024;
/// Header lines read.
const MAX_HEADERS: usize = 64;
/// A whole request has to be there by then, however it trickles.
const REQUEST_TIME: Duration = Duration::from_secs(30);

/// A request, read whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: Method,
    /// Request target as sent.
    pub(super) target: String,
    /// Whether the client takes another answer on this connection.
    pub(super) keeps_alive: bool,
    /// The bearer of `Authorization: Ticket …`.
    pub(super) ticket: Option<String>,
    pub(super) conditions: Conditions,
    pub(super) body: Vec<u8>,
}

/// Headers that ask for a part of a file, or for it only if it is, or is no longer, the one the client knows.
/// Their values as sent, lines of one name joined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    pub(super) range: Option<String>,
    pub(super) if_range: Option<String>,
    pub(super) if_match: Option<String>,
    pub(super) if_none_match: Option<String>,
    pub(super) if_modified_since: Option<String>,
    pub(super) if_unmodified_since: Option<String>,
}

/// What we answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Post,
}

impl Method {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
        }
    }
}

/// Why there is no request.
#[derive(Debug)]
pub(super) enum NoRequest {
    /// The client closed, reset or fell silent between requests: normal.
    Closed,
    /// Nothing we can read: answer with this status and close.
    Bad(u16),
}

/// Reads requests from `stream`; what was sent ahead is kept for the next one.
pub(super) struct Requests<S> {
    stream: S,
    buffer: Vec<u8>,
}

/// The head of a request.
struct Head {
    length: usize,
    request: Request,
    body: usize,
    expects_continue: bool,
}

impl<S: Read + io::Write> Requests<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, buffer: vec![] }
    }

    /// The next request; with a body of more than `most_body` bytes it is refused before that is read.
    pub(super) fn next(&mut self, most_body: impl Fn() -> usize) -> Result<Request, NoRequest> {
        let begun = Instant::now();
        let head = loop {
            match parse(&self.buffer)? {
                Some(head) => break head,
                None if self.buffer.len() >= MAX_HEAD => return Err(NoRequest::Bad(431)),
                None => self.read_more(begun)?,
            }
        };
        let Head { length, mut request, body, expects_continue } = head;
        if body > most_body() {
            return Err(NoRequest::Bad(413));
        }
        self.buffer.drain(..length);
        if expects_continue && self.buffer.is_empty() {
            let go_on = self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
            go_on.map_err(|_| NoRequest::Closed)?;
        }
        while self.buffer.len() < body {
            self.read_more(begun)?;
        }
        request.body = self.buffer.drain(..body).collect();
        Ok(request)
    }

    fn read_more(&mut self, begun: Instant) -> Result<(), NoRequest> {
        let mut chunk = [0; 8192];
        let read = self.stream.read(&mut chunk).map_err(|_| NoRequest::Closed)?;
        if read == 0 {
            return Err(NoRequest::Closed);
        }
        // An idle connection may wait longer; a begun request may not.
        if !self.buffer.is_empty() && begun.elapsed() > REQUEST_TIME {
            return Err(NoRequest::Bad(408));
        }
        self.buffer.extend_from_slice(chunk.get(..read).unwrap_or_default());
        Ok(())
    }
}

/// The head in these bytes, if it is whole.
fn parse(bytes: &[u8]) -> Result<Option<Head>, NoRequest> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(NoRequest::Bad(431)),
        Err(_) => return Err(NoRequest::Bad(400)),
    };
    let method = match head.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        Some("POST") => Method::Post,
        _ => return Err(NoRequest::Bad(405)),
    };
    let all = |name: &str| -> Vec<&str> {
        let named = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| str::from_utf8(header.value).unwrap_or_default().trim()).collect()
    };
    let one = |name: &str| Some(all(name).join(", ")).filter(|value| !value.is_empty());
    let is_modern = head.version == Some(1);
    let closes = all("connection").iter().any(|value| has_token(value, "close"));
    let ticket = all("authorization").first().and_then(|value| value.strip_prefix("Ticket "));
    Ok(Some(Head {
        length,
        body: body_length(&all("content-length"), !all("transfer-encoding").is_empty())?,
        expects_continue: all("expect").iter().any(|v| v.eq_ignore_ascii_case("100-continue")),
        request: Request {
            method,
            target: head.path.unwrap_or_default().to_owned(),
            keeps_alive: is_modern && !closes,
            ticket: ticket.map(|ticket| ticket.trim().to_owned()),
            conditions: Conditions {
                range: one("range"),
                if_range: one("if-range"),
                if_match: one("if-match"),
                if_none_match: one("if-none-match"),
                if_modified_since: one("if-modified-since"),
                if_unmodified_since: one("if-unmodified-since"),
            },
            body: vec![],
        },
    }))
}

fn has_token(value: &str, token: &str) -> bool {
    value.split(',').any(|word| word.trim().eq_ignore_ascii_case(token))
}

/// The length of the body; a body of unknown length, or of two, is refused (RFC 9112, 6.3).
fn body_length(lengths: &[&str], is_encoded: bool) -> Result<usize, NoRequest> {
    if is_encoded {
        return Err(NoRequest::Bad(411));
    }
    let Some((first, rest)) = lengths.split_first() else { return Ok(0) };
    let is_number = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || rest.iter().any(|other| other != first) {
        return Err(NoRequest::Bad(400));
    }
    match first.parse() {
        Ok(length) if length <= MAX_BODY => Ok(length),
        _ => Err(NoRequest::Bad(413)),
    }
}
