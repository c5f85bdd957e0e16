//! The boot port's HTTP: request heads and the names of files.

use std::{
    hint::black_box,
    io::{self, Read, Write},
};

use pxe_proto::path::{http_path, tftp_name, url};
use twin::http::Url;

#[allow(dead_code, reason = "the server's own file; not all of it is needed here")]
#[path = "../../../pxe/src/http_boot/request.rs"]
mod requests;

use requests::{NoRequest, Request, Requests};

/// A client: what it sends comes in pieces of `step` bytes, then it closes.
struct Client<'a> {
    bytes: &'a [u8],
    step: usize,
}

impl Read for Client<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let take = self.step.min(buffer.len());
        let piece = self.bytes.get(..take).unwrap_or(self.bytes);
        self.bytes = self.bytes.get(piece.len()..).unwrap_or_default();
        buffer.iter_mut().zip(piece).for_each(|(to, from)| *to = *from);
        Ok(piece.len())
    }
}

impl Write for Client<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes of a body that are read; the boot services read fewer from strangers.
const MOST_BODY: usize = 1_024;

/// All requests of a connection, and the status it ends with, if it does not just close.
fn read(bytes: &[u8], step: usize) -> (Vec<Request>, Option<u16>) {
    let mut requests = Requests::new(Client { bytes, step });
    let mut all = vec![];
    loop {
        match requests.next(|| MOST_BODY) {
            Ok(request) => all.push(request),
            Err(NoRequest::Closed) => return (all, None),
            Err(NoRequest::Bad(status)) => return (all, Some(status)),
        }
    }
}

/// What a client sends on one connection: the same requests, however it is cut into pieces.
pub(super) fn request(data: &[u8]) {
    let data = data.get(..4_096).unwrap_or(data);
    let whole = read(data, usize::MAX);
    assert_eq!(read(data, 1), whole);
    assert_eq!(read(data, 7), whole);
    for request in &whole.0 {
        black_box(http_path(&request.target));
        let ticket = request.ticket.as_deref().unwrap_or_default();
        black_box(ticket.parse::<model::Ticket>().is_ok());
    }
}

/// Names that clients ask for: one that is taken stays inside, and taking it again changes nothing.
pub(super) fn paths(data: &[u8]) {
    let stays_inside = |name: &str| !name.split('/').any(|part| part == "..");
    if let Some(name) = tftp_name(data) {
        assert!(stays_inside(&name) && !name.starts_with('/'), "{name:?}");
        assert_eq!(tftp_name(name.as_bytes()), Some(name));
    }
    let Ok(target) = str::from_utf8(data) else { return };
    if let Some((path, _query)) = http_path(target) {
        assert!(stays_inside(&path) && path.starts_with('/'), "{path:?}");
        let url = url("192.0.2.1:8067".parse().expect("a literal"), &path);
        assert_eq!(http_path(&url), Some((path, "")));
    }
    // The twin's client joins what a script names to the script's own URL.
    let base = Url::parse("http://192.0.2.1:8067/a/boot.ipxe?mac=x").expect("a good URL");
    for joined in [Url::parse(target), base.join(target)].into_iter().flatten() {
        let again = Url::parse(&joined.to_string()).expect("what is shown can be fetched");
        assert_eq!((again.host, &again.target), (joined.host, &joined.target));
    }
}
