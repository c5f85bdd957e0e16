//! One transfer from request to end, with both told.

use std::{
    collections::BTreeSet,
    io,
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use model::Sighted;
use pxe_proto::{
    pxelinux::Over,
    tftp::{Ended, Granted, Packet, error},
};

use super::{
    Serving,
    live::{Live, Registered},
    notes::Notes,
    packets::Source,
    request::{Asked, Content},
    transfer::Transfer,
    wire::Wire,
};
use crate::{digests::Stamp, files, generated, kernel::note_whole_file, state::State};

/// Why a transfer never began, or broke off on our side.
enum Failed {
    /// The client is told so.
    Refused(&'static str),
    /// It is not: there is no socket, or it failed.
    Io(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Serves one request.
pub(super) fn serve(state: &State, asked: &Asked, serving: Serving, registered: &Registered) {
    let begun = Instant::now();
    let (live, notes) = (&registered.live, Notes::new(state, asked.client));
    let address = *asked.client.ip();
    let tell_read = || state.saw_at(address, Sighted::TftpRead { file: asked.name.clone() });
    // One that may be needless is told of when it turns out not to be.
    let is_sure = !live.was_needless();
    if is_sure {
        tell_read();
    }
    let mut size = 0;
    let ended = transfer(state, asked, serving, (&notes, live), &mut size);
    if live.was_needless() && !matches!(ended, Ok(Ended::Complete)) {
        // The network repeated a request: the transfer beside this one is the client's.
        tracing::debug!(client = %asked.client, file = asked.name, "a repeated request was no new one");
        return;
    }
    if !is_sure {
        tell_read();
    }
    let is_whole = matches!(ended, Ok(Ended::Complete));
    state.saw_at(address, told(&asked.name, ended, size, begun.elapsed()));
    if is_whole && matches!(asked.content, Content::File(_)) {
        note_whole_file(state, address, &asked.name);
    }
}

/// Drives a transfer to its end; `size` becomes that of what is sent.
fn transfer(
    state: &State,
    asked: &Asked,
    serving: Serving,
    (notes, live): (&Notes<'_>, &Live),
    size: &mut u64,
) -> Result<Ended, Failed> {
    let wire = Wire::connect(serving.server, asked.client)?;
    let source = match source(state, asked) {
        Ok(source) => source,
        Err((code, why)) => {
            let packet = Packet::Error { code, message: why.as_bytes() }.encode();
            notes.sent(wire.local(), &packet);
            wire.send(&packet)?;
            return Err(Failed::Refused(why));
        }
    };
    *size = source.1;
    let node_blksize = notes.entry().and_then(|entry| entry.traits.tftp_blksize);
    let limits = serving.limits.within(wire.mtu(), node_blksize);
    let options: Vec<(&[u8], &[u8])> =
        asked.options.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect();
    let granted = Granted::negotiate(&options, *size, limits);
    let blksize = granted.blksize;
    let transfer = Transfer::new(source, granted, serving.wrap, wire, (notes, live));
    if transfer.wraps() {
        warn_wraps(&asked.name, *size, blksize);
    }
    Ok(transfer.run()?)
}

/// What is sent and how long it is, or the error that is.
fn source(state: &State, asked: &Asked) -> Result<(Source, u64), (u16, &'static str)> {
    match &asked.content {
        Content::File(path) => open(state, asked, path),
        Content::Text(kind, mac) => {
            let text = generated::text(state, *kind, Over::Tftp, *mac, *asked.client.ip());
            let text = text.ok_or((error::NOT_FOUND, "file not found"))?.into_bytes();
            let size = u64::try_from(text.len()).unwrap_or(u64::MAX);
            Ok((Source::Text(text), size))
        }
    }
}

/// A file of the table, if it is what was declared.
fn open(state: &State, asked: &Asked, path: &Path) -> Result<(Source, u64), (u16, &'static str)> {
    let name = asked.name.as_str();
    let opened = files::open(name, path).and_then(|(file, size)| {
        let stamp = Stamp::new(&file.metadata()?);
        Ok((file, size, stamp))
    });
    let (file, size, stamp) = opened.map_err(|error| {
        tracing::warn!(name, path = %path.display(), %error, "a served file cannot be read");
        (error::NOT_FOUND, "file cannot be read")
    })?;
    if let Some(want) = state.table.load().digests.get(name)
        && let Err(unfit) = state.digests.check(name, path, stamp, want)
    {
        let why = unfit.to_string();
        state.saw_at(*asked.client.ip(), Sighted::Refused { why });
        return Err((error::UNDEFINED, "not the declared file"));
    }
    Ok((Source::File(file), size))
}

/// Says once for each file that it has more blocks than the block number can count.
fn warn_wraps(name: &str, size: u64, blksize: u16) {
    /// Names told about. They come from the table, so there are not many.
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned()) {
        tracing::warn!(
            name,
            size,
            blksize,
            "more than 65,535 TFTP blocks: clients that cannot count on from there stop; boot it over HTTP"
        );
    }
}

/// How it ended, for the timeline.
fn told(file: &str, ended: Result<Ended, Failed>, bytes: u64, took: Duration) -> Sighted {
    let file = file.to_owned();
    let why = match ended {
        Ok(Ended::Complete) => {
            let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            return Sighted::TftpDone { file, bytes, millis };
        }
        Ok(Ended::Probe) => return Sighted::TftpProbe { file },
        Ok(Ended::ClientError { code, message }) => {
            let message: String = message.chars().filter(|c| !c.is_control()).take(128).collect();
            format!("the client ended it: {message} ({code})")
        }
        Ok(Ended::Closed { blocks }) => format!("the client closed its port after {blocks} blocks"),
        Ok(Ended::GaveUp { blocks }) => format!("the client went silent after {blocks} blocks"),
        Ok(Ended::Superseded { blocks }) => format!("the client began anew after {blocks} blocks"),
        Err(Failed::Refused(why)) => why.to_owned(),
        Err(Failed::Io(error)) => error.to_string(),
    };
    Sighted::TftpFailed { file, why }
}
