//! Files of the boot table as answers: opened, checked against their digest, and cut to what was asked for.

use std::{fs::File, io, net::Ipv4Addr, os::unix::fs::FileExt};

use model::Sighted;
use pxe_proto::path::find_file;

use super::{
    answer::{Answer, Body},
    date,
    range::{Validators, Wanted, wanted},
    request::{Method, Request},
};
use crate::{digests::Stamp, files, state::State};

/// What of a file is sent.
#[derive(Debug)]
pub(super) struct Served {
    file: File,
    stamp: Stamp,
    /// Offset of the first byte.
    pub(super) first: u64,
    /// How many bytes.
    pub(super) length: u64,
    /// Header lines of this file, each with its line end.
    pub(super) head: String,
}

impl Served {
    /// The file, for the system to send from.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// All of it at once; less when the file shrank.
    pub(super) fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(self.length).unwrap_or(usize::MAX)];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let offset = self.first + u64::try_from(filled).unwrap_or(u64::MAX);
            match self.file.read_at(rest, offset) {
                Ok(0) => break,
                Ok(length) => filled += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// Whether its last byte is among those sent: with it the client has the file, in one piece or as the end of
    /// a download taken up again.
    pub(super) fn reaches_end(&self) -> bool {
        self.length > 0 && self.first + self.length == self.stamp.length
    }

    /// Whether the file was written to since it was opened: what was sent may be of two files.
    pub(super) fn has_changed(&self) -> bool {
        let now = self.file.metadata().map(|metadata| Stamp::new(&metadata));
        now.is_ok_and(|now| (now.length, now.modified) != (self.stamp.length, self.stamp.modified))
    }
}

/// A file of the table, by its URL path or by its TFTP name; `None` when it is not there.
pub(super) fn file(state: &State, request: &Request, path: &str, from: Ipv4Addr) -> Option<Answer> {
    let table = state.table.load();
    let by_path = table.files.get_key_value(path).map(|(name, file)| (name.as_str(), file));
    let (name, named) =
        by_path.or_else(|| find_file(&table.files, path.trim_start_matches('/')))?;
    let (file, stamp) = match files::open_with_metadata(name, named) {
        Ok((file, metadata)) => (file, Stamp::new(&metadata)),
        Err(error) => {
            tracing::warn!(path, file = %named.display(), %error, "a served file cannot be read");
            return None;
        }
    };
    if let Some(want) = table.digests.get(name)
        && let Err(unfit) = state.digests.check(name, named, stamp, want)
    {
        state.saw_at(from, Sighted::Refused { why: unfit.to_string() });
        return Some(Answer::text(503, path, "not the declared file\n"));
    }
    Some(served(request, path, file, stamp))
}

/// The answer with as much of the file as was asked for. A range is one of GET (RFC 9110, 14.2): HEAD tells the
/// length of everything, which is what firmware asks it for.
fn served(request: &Request, path: &str, file: File, stamp: Stamp) -> Answer {
    let (seconds, nanos) = stamp.modified;
    let modified = u64::try_from(seconds).unwrap_or(0);
    let etag = format!("\"{:x}-{:x}-{modified:x}.{nanos:x}\"", stamp.inode, stamp.length);
    let length = stamp.length;
    let mut asked = request.conditions.clone();
    asked.range.take_if(|_| request.method == Method::Head);
    let (status, first, sent, range) =
        match wanted(&asked, Validators { length, etag: &etag, modified }) {
            Wanted::Whole => (200, 0, length, String::new()),
            Wanted::Part { first, length: sent } => {
                let last = first + sent - 1;
                (206, first, sent, format!("Content-Range: bytes {first}-{last}/{length}\r\n"))
            }
            Wanted::Unchanged => (304, 0, 0, String::new()),
            Wanted::Changed => (412, 0, 0, String::new()),
            Wanted::NoSuchBytes => (416, 0, 0, format!("Content-Range: bytes */{length}\r\n")),
        };
    let head = format!(
        "{range}Accept-Ranges: bytes\r\nETag: {etag}\r\nLast-Modified: {}\r\nCache-Control: no-cache\r\n",
        date::text(modified)
    );
    let body = Body::File(Box::new(Served { file, stamp, first, length: sent, head }));
    let content_type = "application/octet-stream".to_owned();
    Answer { status, content_type, body, shown: path.to_owned() }
}
