//! The thread that writes leases to the disk and lets their ACKs go.
//!
//! What waits is written and synced as one group; groups begin half a millisecond apart at least, since syncs that
//! follow each other without a pause stall for ten milliseconds and more. A disk that is full or broken stops no
//! answer: it is a finding, ACKs go out unsynced and are counted, and the file is written anew from memory as soon as
//! that works. A log that is mostly history is written anew beside the one in use, on a thread of its own.

use std::{
    io,
    path::{Path, PathBuf},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use model::Lease;

use super::{
    line::{Outgoing, post},
    log_file::{self, LogFile, NewLog},
    waiting::Group,
};
use crate::{
    error::PxeError,
    state::{LOOK_UP, State},
    status::{About, Finding, Status},
};

/// Least time between the beginnings of two syncs.
const GAP: Duration = Duration::from_micros(500);
/// How often a disk that took nothing is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// A log may hold so many times the leases there are, and some.
const HISTORY: usize = 4;
const SPARE_LINES: usize = 1024;
/// Bytes of lines kept for a new log while it is written; more, and it is given up for this time.
const SINCE_BYTES: usize = 16 * 1024 * 1024;

/// The lease log as its thread has it.
#[derive(Debug)]
pub(super) struct LeaseLog {
    path: PathBuf,
    /// `None`: the disk did not take the last write.
    file: Option<LogFile>,
    /// When the last sync, or try of one, began.
    begun: Instant,
    /// When the whole log was last tried to be written.
    tried: Instant,
    rewriting: Option<Rewriting>,
    /// Lines at which it is looked whether the log is mostly history.
    look_at: usize,
}

/// A new log under way.
#[derive(Debug)]
struct Rewriting {
    thread: JoinHandle<io::Result<NewLog>>,
    /// What went into the old log meanwhile; `None`: more than is kept.
    since: Option<String>,
}

impl Rewriting {
    /// Keeps lines for the new log, as long as they are not too many: it may take for ever.
    fn keep(&mut self, lines: &str) {
        let kept = self.since.take().filter(|since| since.len() + lines.len() <= SINCE_BYTES);
        self.since = kept.map(|since| since + lines);
    }
}

/// What the log at `path` holds. A damaged one is kept beside it and is a finding.
///
/// # Errors
/// When it is there and cannot be read: to go on without it would give addresses away twice.
pub(super) fn read(path: &Path, status: &Status) -> Result<Vec<Lease>, PxeError> {
    let failed = |source| PxeError::LeaseLog { path: path.to_owned(), source };
    let replay = log_file::read(path).map_err(failed)?;
    if replay.damaged > 0 {
        let kept = log_file::keep_damaged(path).map_err(failed)?;
        let (lines, path, kept) = (replay.damaged, path.display(), kept.display());
        let what = format!("{lines} lines of the lease log {path} were damaged and are left out");
        let remedy = format!("look at {kept}; has the disk or another program changed it?");
        status.everywhere(About::LeaseLogDamage, Some(&Finding::new(what, remedy)));
    }
    Ok(replay.leases)
}

impl LeaseLog {
    /// Writes the log anew with the leases of memory. A disk that does not take it is a finding.
    pub(super) fn open(path: PathBuf, state: &State) -> Self {
        let now = Instant::now();
        let (file, rewriting, look_at) = (None, None, SPARE_LINES);
        let mut log = Self { path, file, begun: now, tried: now, rewriting, look_at };
        log.write_anew(state);
        log
    }

    /// Serves until told to stop, and until nothing waits.
    pub(super) fn run(mut self, state: &State) {
        loop {
            thread::sleep(GAP.saturating_sub(self.begun.elapsed()));
            match state.dhcp.waiting.take(LOOK_UP) {
                Some(group) => self.write(state, group),
                // The threads that fill it look at `stop` as often as this one.
                None if state.stop.is_cancelled() => break,
                None => (),
            }
            self.tidy(state);
        }
    }

    /// One group: to the disk, then its ACKs to their clients.
    fn write(&mut self, state: &State, group: Group) {
        // A file that lacks records gets all of them at once, from memory.
        let Some(file) = &mut self.file else { return };
        self.begun = Instant::now();
        match file.append(&group.lines) {
            Ok(()) => post(state, state.dhcp.waiting.synced(group.last)),
            Err(error) => return self.failed(state, &error),
        }
        if let Some(rewriting) = &mut self.rewriting {
            rewriting.keep(&group.lines);
        }
    }

    /// The disk does not take the log.
    fn failed(&mut self, state: &State, error: &io::Error) {
        self.file = None;
        let what = format!("the lease log {} cannot be written: {error}", self.path.display());
        let remedy = "make room or repair the disk; until then leases are kept in memory only, and a restart of \
                      volund forgets them";
        state.status.everywhere(About::LeaseLog, Some(&Finding::new(what, remedy)));
        late(state, state.dhcp.waiting.failed());
    }

    /// What is due beside the writing: another try of a disk that took nothing, and the end of history.
    fn tidy(&mut self, state: &State) {
        let is_behind = self.file.is_none() || state.dhcp.waiting.is_behind();
        if is_behind && self.tried.elapsed() >= RETRY {
            self.write_anew(state);
        }
        if self.rewriting.as_ref().is_some_and(|rewriting| rewriting.thread.is_finished()) {
            self.take_over(state);
        } else if self.rewriting.is_none()
            && self.file.as_ref().is_some_and(|file| file.lines() >= self.look_at)
        {
            self.look_at_history(state);
        }
    }

    /// Writes the whole log from memory and waits for it.
    fn write_anew(&mut self, state: &State) {
        // A new log under way writes to the same name.
        if let Some(Rewriting { thread, .. }) = self.rewriting.take() {
            let _of_no_use = thread.join();
        }
        self.tried = Instant::now();
        state.dhcp.waiting.begin_anew();
        let leases = state.dhcp.live();
        let written =
            log_file::begin(&self.path, &leases).and_then(|new| new.take_over(&self.path, ""));
        match written {
            Ok(file) => {
                self.file = Some(file);
                self.look_at = HISTORY * leases.len() + SPARE_LINES;
                state.status.everywhere(About::LeaseLog, None);
            }
            Err(error) => self.failed(state, &error),
        }
    }

    /// Begins a new log if the one in use is mostly history.
    fn look_at_history(&mut self, state: &State) {
        let leases = state.dhcp.live();
        let most = HISTORY * leases.len() + SPARE_LINES;
        if self.file.as_ref().is_some_and(|file| file.lines() < most) {
            self.look_at = most;
            return;
        }
        let path = self.path.clone();
        let write = move || log_file::begin(&path, &leases);
        match thread::Builder::new().name("lease log".to_owned()).spawn(write) {
            Ok(thread) => self.rewriting = Some(Rewriting { thread, since: Some(String::new()) }),
            Err(error) => self.give_up_rewriting(&error),
        }
    }

    /// Puts a finished new log into the place of the old one.
    fn take_over(&mut self, state: &State) {
        let Some(Rewriting { thread, since }) = self.rewriting.take() else { return };
        // Without a file the next try writes everything anyway.
        if self.file.is_none() {
            return;
        }
        let written = match (thread.join(), since) {
            (Ok(written), Some(since)) => written.and_then(|new| new.take_over(&self.path, &since)),
            (Ok(_), None) => Err(io::Error::other("too much came meanwhile")),
            (Err(_), _) => Err(io::Error::other("its thread panicked")),
        };
        match written {
            Ok(file) => {
                self.file = Some(file);
                self.look_at_history(state);
            }
            Err(error) => self.give_up_rewriting(&error),
        }
    }

    /// The old log stays in use and grows on.
    fn give_up_rewriting(&mut self, error: &io::Error) {
        tracing::warn!(log = %self.path.display(), %error, "could not write the lease log anew");
        self.look_at *= 2;
    }
}

/// ACKs that go out before their record is on the disk.
pub(super) fn late(state: &State, acks: Vec<Outgoing>) {
    for ack in &acks {
        state.status.change(ack.line.network, |network| network.dhcp.late_acks += 1);
    }
    post(state, acks);
}
