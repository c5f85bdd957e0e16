//! Power readings in append-only files: one a node and UTC day, fixed-size records with a checksum each.
//!
//! Appending never waits: a thread of its own writes, and syncs at most every few seconds. A crash loses at
//! most those seconds; a torn tail is cut at the next start, counted and reported. Values are kept as they were
//! read, absences with their reason; nothing is averaged or filled in.

mod day_file;
mod record;
#[cfg(test)]
mod tests;
mod writer;

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use model::{NodeName, UnixMillis, power::PowerSample};

use day_file::Day;
use writer::{Job, WriterThread};

/// Samples that may wait for the writing thread. When it is full a new one is refused and the caller told.
const QUEUE: usize = 8_192;
/// Samples of a node held in memory, for [`Series::last_hour`]: one a second.
const RECENT: usize = 3_600;
const HOUR: Duration = Duration::from_hours(1);

/// What was read, or why nothing was, at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// When: for a reading, the end of its window.
    pub at: UnixMillis,
    /// The reading or the reason.
    pub power: PowerSample,
}

/// What was found damaged at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Files whose tail was cut.
    pub files_cut: usize,
    /// Bytes cut.
    pub bytes_cut: u64,
    /// Damaged records before good ones, passed over.
    pub records_bad: usize,
}

/// Why samples could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// A file or folder of the series.
    #[error("could not {what} {path}")]
    File {
        /// The operation.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is somebody else's file, or of a later volund.
    #[error("{path} is no power series of this version; move it away")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A number no meter can mean.
    #[error("{milliwatts} mW cannot be kept: a reading lies between 0 and 4,294,967 W")]
    Value {
        /// The number, in mW.
        milliwatts: f64,
    },
    /// The time lies outside the years 1 to 9999.
    #[error("{0} ms since 1970 is no moment a file can be named for")]
    Time(i64),
    /// The writing thread does not keep up, or has ended.
    #[error("a power sample was dropped: the disk does not keep up")]
    Behind,
    /// The writing thread could not be started.
    #[error("could not start the thread that writes power samples")]
    Thread(#[source] io::Error),
}

type Recent = BTreeMap<NodeName, VecDeque<Sample>>;

/// The open series. Clones share it; the last one gone, everything is written and synced.
#[derive(Debug, Clone)]
pub struct Series {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    dir: PathBuf,
    recent: Mutex<Recent>,
    recovery: Recovery,
    jobs: Option<mpsc::SyncSender<Job>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Series {
    /// Opens the series in `dir`, made if it is not there, cuts torn tails and reads the last hour. Of each node
    /// the newest `keep_days` files are kept, at least 2. Touches the disk: not for an async task.
    ///
    /// # Errors
    /// [`SeriesError`] names the file that cannot be used.
    pub fn open(dir: &Path, keep_days: usize) -> Result<Self, SeriesError> {
        std::fs::create_dir_all(dir).map_err(day_file::fault("make", dir))?;
        let mut recent = Recent::new();
        let mut recovery = Recovery::default();
        for node in day_file::nodes(dir)? {
            let samples = recover(dir, &node, &mut recovery)?;
            recent.insert(node, samples);
        }
        if recovery != Recovery::default() {
            tracing::warn!(?recovery, "power series were damaged, by a crash most likely");
        }
        let (jobs, queue) = mpsc::sync_channel(QUEUE);
        let writer = WriterThread::new(dir.to_owned(), keep_days.max(2));
        let thread = std::thread::Builder::new().name("series".to_owned());
        let thread = thread.spawn(move || writer.run(&queue)).map_err(SeriesError::Thread)?;
        let shared = Shared {
            dir: dir.to_owned(),
            recent: Mutex::new(recent),
            recovery,
            jobs: Some(jobs),
            thread: Some(thread),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// What was found damaged when this was opened.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.shared.recovery
    }

    /// Keeps a sample of `node`; does not wait for the disk.
    ///
    /// # Errors
    /// [`SeriesError::Value`] or [`SeriesError::Time`] for what no file can hold; [`SeriesError::Behind`] when
    /// the writing thread does not keep up.
    pub fn append(&self, node: &NodeName, sample: &Sample) -> Result<(), SeriesError> {
        let bytes = record::encode(sample)?;
        let job = Job::Append { node: node.clone(), day: Day::of(sample.at)?, bytes };
        self.send(job)?;
        let mut recent = self.shared.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if !recent.contains_key(node) {
            recent.insert(node.clone(), VecDeque::new());
        }
        if let Some(samples) = recent.get_mut(node) {
            remember(samples, *sample);
        }
        Ok(())
    }

    /// The samples of the hour before `now`, in the order they were appended. From memory: at most the last
    /// 3,600.
    #[must_use]
    pub fn last_hour(&self, node: &NodeName, now: UnixMillis) -> Vec<Sample> {
        let recent = self.shared.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let within = |sample: &&Sample| sample.at <= now && now.since(sample.at) <= HOUR;
        recent.get(node).into_iter().flatten().filter(within).copied().collect()
    }

    /// The samples of the UTC day that `at` lies in, as they stand on disk; damaged records are left out. Touches
    /// the disk: not for an async task.
    ///
    /// # Errors
    /// [`SeriesError`] when the file cannot be read. No file is no samples.
    pub fn day(&self, node: &NodeName, at: UnixMillis) -> Result<Vec<Sample>, SeriesError> {
        let path = Day::of(at)?.path(&self.shared.dir, node);
        Ok(day_file::read(&path)?.samples)
    }

    /// Waits until everything appended so far is written and synced. Blocks: not for an async task.
    ///
    /// # Errors
    /// [`SeriesError::Behind`] when some of it could not be written.
    pub fn flush(&self) -> Result<(), SeriesError> {
        let (reply, answer) = mpsc::sync_channel(1);
        // A flush waits for room in the queue; it is no sample that may be dropped.
        let jobs = self.shared.jobs.as_ref().ok_or(SeriesError::Behind)?;
        jobs.send(Job::Flush(reply)).map_err(|_ended| SeriesError::Behind)?;
        match answer.recv() {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(SeriesError::Behind),
        }
    }

    fn send(&self, job: Job) -> Result<(), SeriesError> {
        let jobs = self.shared.jobs.as_ref().ok_or(SeriesError::Behind)?;
        jobs.try_send(job).map_err(|_full_or_ended| SeriesError::Behind)
    }
}

impl Drop for Shared {
    /// Closing the queue lets the thread write what is left and end.
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that writes power samples has panicked");
        }
    }
}

/// Repairs the two newest files of `node`, the only ones a crash can have torn, and gives their last samples.
fn recover(
    dir: &Path,
    node: &NodeName,
    recovery: &mut Recovery,
) -> Result<VecDeque<Sample>, SeriesError> {
    let mut samples = VecDeque::new();
    let days = day_file::days(dir, node)?;
    for day in days.iter().rev().take(2).rev() {
        let path = day.path(dir, node);
        let found = day_file::read(&path)?;
        recovery.records_bad += found.records_bad;
        if found.torn > 0 {
            day_file::cut(&path, found.good_len)?;
            recovery.files_cut += 1;
            recovery.bytes_cut = recovery.bytes_cut.saturating_add(found.torn);
        }
        found.samples.into_iter().for_each(|sample| remember(&mut samples, sample));
    }
    Ok(samples)
}

fn remember(samples: &mut VecDeque<Sample>, sample: Sample) {
    if samples.len() == RECENT {
        samples.pop_front();
    }
    samples.push_back(sample);
}
