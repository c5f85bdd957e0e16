//! Requests of clients good and bad, without a socket.

use std::io::{self, Read, Write};

use super::request::{MAX_BODY, Method, NoRequest, Request, Requests};

/// Gives what it holds in pieces of `step`, then the end.
struct Script {
    bytes: Vec<u8>,
    step: usize,
    sent: Vec<u8>,
}

impl Read for Script {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let take = self.step.min(self.bytes.len()).min(buffer.len());
        buffer[..take].copy_from_slice(&self.bytes[..take]);
        self.bytes.drain(..take);
        Ok(take)
    }
}

impl Write for Script {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.sent.extend_from_slice(buffer);
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn read(bytes: &[u8], step: usize) -> (Vec<Request>, Option<u16>) {
    let mut requests = Requests::new(Script { bytes: bytes.to_vec(), step, sent: vec![] });
    let mut all = vec![];
    loop {
        match requests.next(|| MAX_BODY) {
            Ok(request) => all.push(request),
            Err(NoRequest::Closed) => return (all, None),
            Err(NoRequest::Bad(status)) => return (all, Some(status)),
        }
    }
}

#[test]
fn requests_on_one_connection_read_alike_in_any_pieces() {
    let bytes = b"HEAD /a HTTP/1.1\r\nHost: x\r\n\r\nPOST /agent/v1/claim HTTP/1.1\r\n\
        authorization: Ticket abc\r\ncontent-length: 5\r\n\r\nhelloGET /b HTTP/1.0\r\n\r\n";
    let want = [
        (Method::Head, "/a", true, None, &b""[..]),
        (Method::Post, "/agent/v1/claim", true, Some("abc"), b"hello"),
        (Method::Get, "/b", false, None, b""),
    ];
    for step in [1, 2, 7, 64, 8192] {
        let (requests, status) = read(bytes, step);
        let got: Vec<_> = requests
            .iter()
            .map(|r| (r.method, &*r.target, r.keeps_alive, r.ticket.as_deref(), &*r.body))
            .collect();
        assert_eq!((&*got, status), (&want[..], None), "{step}");
    }
}

#[test]
fn bad_requests_have_their_status() {
    let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(40_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100));
    let cases = [
        ("PUT / HTTP/1.1\r\n\r\n", 405),
        ("GARBAGE\r\n\r\n", 400),
        ("\x16\x03\x01", 400),
        ("POST / HTTP/1.1\r\nContent-Length: 4194305\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (&*long, 431),
        (&*many, 431),
    ];
    for (bytes, want) in cases {
        assert_eq!(read(bytes.as_bytes(), 8192), (vec![], Some(want)), "{bytes:.40}");
    }
}

#[test]
fn a_client_that_waits_for_100_is_told_to_go_on() {
    let bytes = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n".to_vec();
    let mut script = Script { bytes, step: 8192, sent: vec![] };
    let next = Requests::new(&mut script as &mut dyn Both).next(|| MAX_BODY);
    assert!(matches!(next, Err(NoRequest::Closed)));
    assert_eq!(script.sent, b"HTTP/1.1 100 Continue\r\n\r\n");
}

trait Both: Read + Write {}
impl Both for Script {}
