//! The thread that writes samples: collects by file, writes and syncs every few seconds.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender},
    time::{Duration, Instant},
};

use model::NodeName;

use super::{
    day_file::{self, Day},
    record,
};

/// Longest time a sample waits for its sync.
const SYNC_EVERY: Duration = Duration::from_secs(3);
/// Records kept for one file while the disk refuses; beyond it the oldest go, and are counted.
const MOST_HELD: usize = 4_096;

/// Work for the thread.
#[derive(Debug)]
pub(super) enum Job {
    /// One record for one file.
    Append { node: NodeName, day: Day, bytes: [u8; record::LEN] },
    /// Write and sync all; answer whether everything is on disk.
    Flush(SyncSender<bool>),
}

pub(super) struct WriterThread {
    dir: PathBuf,
    keep_days: usize,
    /// Records not yet on disk, by file.
    held: BTreeMap<(NodeName, Day), Vec<[u8; record::LEN]>>,
    /// The newest day written of each node: a new one is the moment to delete old files.
    newest: BTreeMap<NodeName, Day>,
}

impl WriterThread {
    pub(super) fn new(dir: PathBuf, keep_days: usize) -> Self {
        Self { dir, keep_days, held: BTreeMap::new(), newest: BTreeMap::new() }
    }

    /// Runs until every sender is gone, then writes what is left.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        let mut due = Instant::now() + SYNC_EVERY;
        loop {
            match jobs.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(Job::Append { node, day, bytes }) => self.hold(node, day, bytes),
                Ok(Job::Flush(reply)) => {
                    let whole = self.write_all();
                    // Whoever asked may have gone.
                    let _gone = reply.send(whole);
                }
                Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if due <= Instant::now() {
                self.write_all();
                due = Instant::now() + SYNC_EVERY;
            }
        }
        self.write_all();
    }

    fn hold(&mut self, node: NodeName, day: Day, bytes: [u8; record::LEN]) {
        let records = self.held.entry((node, day)).or_default();
        if records.len() == MOST_HELD {
            records.remove(0);
            tracing::error!("a power sample was lost: it could not be written for too long");
        }
        records.push(bytes);
    }

    /// Whether all went to disk; what did not stays for the next time.
    fn write_all(&mut self) -> bool {
        let held = std::mem::take(&mut self.held);
        for ((node, day), records) in held {
            let path = day.path(&self.dir, &node);
            if let Err(error) = day_file::append(&path, records.as_flattened()) {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, ?cause, "power samples wait for the disk");
                self.held.insert((node, day), records);
                continue;
            }
            self.prune(node, day);
        }
        self.held.is_empty()
    }

    fn prune(&mut self, node: NodeName, day: Day) {
        if self.newest.get(&node).is_some_and(|newest| *newest >= day) {
            return;
        }
        if let Err(error) = day_file::prune(&self.dir, &node, self.keep_days) {
            tracing::warn!(%error, "old power samples stay");
        }
        self.newest.insert(node, day);
    }
}
