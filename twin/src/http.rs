//! A tiny HTTP/1.1 client, bound to the blade's own address: what iPXE and the agent need, and no more.
//!
//! Plain `http://` with an IPv4 literal, keep-alive, `Content-Length` checked to the byte. No redirects, no
//! chunked bodies (volund's boot port sends none), no names to resolve. Bodies that nobody reads are counted
//! and dropped, so that sixteen blades can fetch sixteen kernels without holding one.

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

/// Longest wait for a connection, and between two reads.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer head.
const MOST_HEAD: usize = 16 * 1024;
/// Longest body that is kept.
const MOST_KEPT: u64 = 1024 * 1024;

/// An `http://` address, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Who serves it.
    pub host: SocketAddrV4,
    /// Path and query, beginning with `/`.
    pub target: String,
}

/// Why a request gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Not a URL this client can fetch.
    #[error("{0:?}: only http://ADDRESS[:PORT]/PATH is supported")]
    Url(String),
    /// No connection.
    #[error("could not connect to {0}")]
    Connect(SocketAddrV4, #[source] io::Error),
    /// The connection broke.
    #[error("connection to {0} broke")]
    Broken(SocketAddrV4, #[source] io::Error),
    /// Nothing came for a while.
    #[error("{0} fell silent")]
    Silent(SocketAddrV4),
    /// The answer makes no sense.
    #[error("bad answer from {0}: {1}")]
    Answer(SocketAddrV4, &'static str),
    /// The body ended early.
    #[error("{0} sent {1} of {2} bytes")]
    Short(SocketAddrV4, u64, u64),
}

/// What to do with a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Read it into memory; bodies beyond 1 MiB are an error.
    Body,
    /// Count it.
    Length,
    /// Read half of it, then cut the connection: a fault, for tests. The server notices when the rest is more than
    /// its socket buffers hold.
    Half,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Bytes of the body.
    pub length: u64,
    /// The body, if it was kept.
    pub body: Vec<u8>,
}

/// A request.
#[derive(Debug, Clone, Default)]
pub struct Request<'a> {
    /// `GET` when empty.
    pub method: &'a str,
    /// `Authorization` header.
    pub authorization: Option<String>,
    /// JSON body of a `POST`.
    pub json: Option<Vec<u8>>,
}

/// A client that speaks from one address and keeps its last connection open.
#[derive(Debug)]
pub struct HttpClient {
    from: Ipv4Addr,
    open: Option<(SocketAddrV4, TcpStream)>,
    agent: &'static str,
}

impl Url {
    /// Takes `http://a.b.c.d[:port]/path?query` apart.
    ///
    /// # Errors
    /// [`HttpError::Url`] for anything else: other schemes, names, credentials, control characters.
    pub fn parse(text: &str) -> Result<Self, HttpError> {
        let bad = || HttpError::Url(text.to_owned());
        let rest = text.strip_prefix("http://").ok_or_else(bad)?;
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(bad());
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, target) = rest.split_at(at);
        let address = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Self { host: address.parse().map_err(|_| bad())?, target: format!("{slash}{target}") })
    }

    /// `text` as seen from here: absolute, from the root, or beside this one.
    ///
    /// # Errors
    /// [`HttpError::Url`] when the outcome is no `http://` URL.
    pub fn join(&self, text: &str) -> Result<Self, HttpError> {
        let scheme = text.split_once(':').is_some_and(|(scheme, _)| {
            !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric())
        });
        if scheme {
            return Self::parse(text);
        }
        if text.starts_with('/') {
            return Self::parse(&format!("http://{}{text}", self.host));
        }
        let path = self.target.split('?').next().unwrap_or_default();
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        Self::parse(&format!("http://{}{folder}/{text}", self.host))
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.host, self.target)
    }
}

impl HttpClient {
    /// A client that speaks from `from`; `agent` is its `User-Agent`.
    #[must_use]
    pub fn new(from: Ipv4Addr, agent: &'static str) -> Self {
        Self { from, open: None, agent }
    }

    /// One request, one answer. A kept connection the server has closed meanwhile is opened anew, once.
    ///
    /// # Errors
    /// When there is no whole answer. Status codes are no errors.
    pub async fn send(
        &mut self,
        url: &Url,
        request: &Request<'_>,
        keep: Keep,
    ) -> Result<Answer, HttpError> {
        let reused = self.open.as_ref().is_some_and(|(host, _)| *host == url.host);
        match self.exchange(url, request, keep).await {
            Err(HttpError::Broken(..)) if reused => self.exchange(url, request, keep).await,
            outcome => outcome,
        }
    }

    async fn exchange(
        &mut self,
        url: &Url,
        request: &Request<'_>,
        keep: Keep,
    ) -> Result<Answer, HttpError> {
        let mut stream = match self.open.take() {
            Some((host, stream)) if host == url.host => stream,
            _ => self.connect(url.host).await?,
        };
        let broken = |error| HttpError::Broken(url.host, error);
        let bytes = self.request_bytes(url, request);
        stream.write_all(&bytes).await.map_err(broken)?;
        let (head, early) = read_head(&mut stream, url.host).await?;
        let head_only = request.method == "HEAD" || matches!(head.status, 204 | 304);
        let promised = if head_only { 0 } else { head.length };
        if keep == Keep::Body && promised > MOST_KEPT {
            return Err(HttpError::Answer(
                url.host,
                "a body of more than 1 MiB where text was asked",
            ));
        }
        let body = read_body(&mut stream, url.host, early, promised, keep).await?;
        if !head.close {
            self.open = Some((url.host, stream));
        }
        let length = if head_only { head.length } else { promised };
        Ok(Answer { status: head.status, length, body })
    }

    async fn connect(&self, host: SocketAddrV4) -> Result<TcpStream, HttpError> {
        let failed = |error| HttpError::Connect(host, error);
        let socket = TcpSocket::new_v4().map_err(failed)?;
        socket.bind(SocketAddr::from((self.from, 0))).map_err(failed)?;
        let connecting = timeout(PATIENCE, socket.connect(SocketAddr::V4(host)));
        let stream = connecting.await.map_err(|_| HttpError::Silent(host))?.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        Ok(stream)
    }

    fn request_bytes(&self, url: &Url, request: &Request<'_>) -> Vec<u8> {
        let method = match (request.method, &request.json) {
            ("", None) => "GET",
            ("", Some(_)) => "POST",
            (method, _) => method,
        };
        let mut head = format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\nConnection: keep-alive\r\n",
            url.target, url.host, self.agent
        );
        if let Some(value) = &request.authorization {
            head.push_str(&format!("Authorization: {value}\r\n"));
        }
        let body = request.json.as_deref();
        if let Some(body) = body {
            let length = body.len();
            head.push_str(&format!(
                "Content-Type: application/json\r\nContent-Length: {length}\r\n"
            ));
        }
        head.push_str("\r\n");
        [head.as_bytes(), body.unwrap_or_default()].concat()
    }
}

/// What the head of an answer says.
struct Head {
    status: u16,
    length: u64,
    close: bool,
}

/// Reads up to the empty line; gives the body bytes that came along.
async fn read_head(
    stream: &mut TcpStream,
    host: SocketAddrV4,
) -> Result<(Head, Vec<u8>), HttpError> {
    let mut buffer = Vec::with_capacity(1024);
    loop {
        if read_some(stream, host, &mut buffer).await? == 0 {
            let eof = io::Error::from(io::ErrorKind::UnexpectedEof);
            return Err(HttpError::Broken(host, eof));
        }
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut answer = httparse::Response::new(&mut headers);
        let parsed = answer.parse(&buffer);
        let parsed = parsed.map_err(|_| HttpError::Answer(host, "not HTTP"))?;
        if let httparse::Status::Complete(size) = parsed {
            let head = head_of(&answer).map_err(|why| HttpError::Answer(host, why))?;
            return Ok((head, buffer.split_off(size)));
        }
        if buffer.len() > MOST_HEAD {
            return Err(HttpError::Answer(host, "a head of more than 16 KiB"));
        }
    }
}

fn head_of(answer: &httparse::Response<'_, '_>) -> Result<Head, &'static str> {
    let find = |name: &str| {
        let header = answer.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(header.value).ok()
    };
    let status = answer.code.unwrap_or_default();
    if find("transfer-encoding").is_some() {
        return Err("a transfer coding where Content-Length was expected");
    }
    let length = match find("content-length") {
        Some(text) => text.trim().parse().map_err(|_| "Content-Length is no number")?,
        None if matches!(status, 204 | 304) => 0,
        None => return Err("no Content-Length"),
    };
    let close = find("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    Ok(Head { status, length, close: close || answer.version == Some(0) })
}

/// Reads exactly `promised` bytes, or half of them for [`Keep::Half`].
async fn read_body(
    stream: &mut TcpStream,
    host: SocketAddrV4,
    early: Vec<u8>,
    promised: u64,
    keep: Keep,
) -> Result<Vec<u8>, HttpError> {
    let mut got = u64::try_from(early.len()).unwrap_or(u64::MAX);
    let wanted = if keep == Keep::Half { promised / 2 } else { promised };
    let mut body = if keep == Keep::Body { early } else { Vec::new() };
    let mut piece = Vec::with_capacity(64 * 1024);
    while got < wanted {
        piece.clear();
        let count = read_some(stream, host, &mut piece).await?;
        if count == 0 {
            return Err(HttpError::Short(host, got, promised));
        }
        got += u64::try_from(count).unwrap_or(u64::MAX);
        if keep == Keep::Body {
            body.extend_from_slice(&piece);
        }
    }
    match got.cmp(&promised) {
        _ if keep == Keep::Half => Err(HttpError::Short(host, got.min(wanted), promised)),
        std::cmp::Ordering::Greater => Err(HttpError::Answer(host, "more bytes than promised")),
        _ => Ok(body),
    }
}

async fn read_some(
    stream: &mut TcpStream,
    host: SocketAddrV4,
    into: &mut Vec<u8>,
) -> Result<usize, HttpError> {
    let reading = timeout(PATIENCE, stream.read_buf(into)).await;
    reading.map_err(|_| HttpError::Silent(host))?.map_err(|error| HttpError::Broken(host, error))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Answers one connection's requests with `answers`, one each, and hands back what it was sent.
    async fn server(
        answers: Vec<&'static str>,
    ) -> (SocketAddrV4, tokio::task::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let SocketAddr::V4(address) = listener.local_addr().unwrap() else { unreachable!() };
        let task = tokio::spawn(async move {
            let (mut stream, peer) = listener.accept().await.unwrap();
            let mut seen = vec![peer.ip().to_string()];
            for answer in answers {
                let mut buffer = Vec::new();
                while !buffer.windows(4).any(|four| four == b"\r\n\r\n") {
                    if stream.read_buf(&mut buffer).await.unwrap() == 0 {
                        return seen;
                    }
                }
                seen.push(String::from_utf8(buffer).unwrap());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            seen
        });
        (address, task)
    }

    #[tokio::test]
    async fn one_connection_from_the_blades_own_address_serves_many_requests() {
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        let gone = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
        let (address, task) = server(vec![ok, ok, gone]).await;
        let mut client = HttpClient::new(Ipv4Addr::new(127, 0, 9, 13), "twin");
        let url = Url::parse(&format!("http://{address}/boot.ipxe?mac=1")).unwrap();
        let get = Request::default();
        let first = client.send(&url, &get, Keep::Body).await.unwrap();
        assert_eq!((first.status, first.length, first.body), (200, 5, b"hello".to_vec()));
        let second = client.send(&url, &get, Keep::Length).await.unwrap();
        assert_eq!((second.length, second.body), (5, vec![]));
        let authorization = Some("Ticket 0123".to_owned());
        let post = Request { method: "", authorization, json: Some(b"{}".to_vec()) };
        assert_eq!(client.send(&url, &post, Keep::Body).await.unwrap().status, 404);
        let seen = task.await.unwrap();
        assert_eq!(seen[0], "127.0.9.13");
        assert!(seen[1].starts_with("GET /boot.ipxe?mac=1 HTTP/1.1\r\nHost: 127.0.0.1:"));
        assert!(seen[3].starts_with("POST /boot.ipxe"), "{}", seen[3]);
        assert!(seen[3].contains("Authorization: Ticket 0123\r\n"));
    }

    #[tokio::test]
    async fn an_answer_that_is_not_whole_is_an_error() {
        let cases = [
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "sent 5 of 9 bytes"),
            ("HTTP/1.1 200 OK\r\n\r\nhello", "no Content-Length"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "a transfer coding"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello", "more bytes than promised"),
            ("SSH-2.0-OpenSSH_9\r\n", "not HTTP"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n", "more than 1 MiB"),
            ("", "broke"),
        ];
        for (answer, want) in cases {
            let (address, _task) = server(vec![answer]).await;
            let mut client = HttpClient::new(Ipv4Addr::LOCALHOST, "twin");
            let url = Url::parse(&format!("http://{address}/")).unwrap();
            let error = client.send(&url, &Request::default(), Keep::Body).await.unwrap_err();
            assert!(error.to_string().contains(want), "{answer:?}: {error}");
        }
    }

    #[test]
    fn urls_are_taken_apart_and_joined() {
        let base = Url::parse("http://127.0.0.1:8067/a/boot.ipxe?mac=x/y").unwrap();
        let cases = [
            ("http://127.0.0.2/k", Some("http://127.0.0.2:80/k")),
            ("/i/k", Some("http://127.0.0.1:8067/i/k")),
            ("k?x=1#f", Some("http://127.0.0.1:8067/a/k?x=1")),
            ("tftp://127.0.0.1/k", None),
            ("https://127.0.0.1/k", None),
            ("http://localhost/k", None),
            ("http://127.0.0.1/a b", None),
        ];
        for (text, want) in cases {
            assert_eq!(base.join(text).ok().map(|url| url.to_string()).as_deref(), want, "{text}");
        }
    }
}
