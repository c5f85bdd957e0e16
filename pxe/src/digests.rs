//! SHA-256 of served files that have one declared: computed by a thread of its own, once for each change of a file,
//! so that no request waits for more than the first look.

use std::{
    collections::BTreeMap,
    fs::{File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use model::BootTable;
use sha2::{Digest, Sha256};

use crate::state::{LOOK_UP, State};

/// How often every declared file is looked at.
const PERIOD: Duration = Duration::from_secs(2);
/// How long a request waits for a file that was never read, or has just changed.
const WAIT: Duration = Duration::from_secs(10);
/// A file changed so lately may change again without a new date: those of Linux move on every few milliseconds.
const UNSETTLED: Duration = Duration::from_millis(100);
/// Bytes read at once.
const CHUNK: usize = 256 * 1024;

/// What tells one state of a file from another, without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    pub(crate) inode: u64,
    pub(crate) length: u64,
    /// Seconds and nanoseconds of Unix time.
    pub(crate) modified: (i64, i64),
    /// Of the inode: set by the system, so a date that was set back does not hide a change.
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn new(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether it was changed a moment ago. A date in the future is a clock set back, and old.
    fn is_unsettled(&self) -> bool {
        let (seconds, nanos) = self.changed;
        let changed = u64::try_from(seconds).ok().zip(u32::try_from(nanos).ok());
        let age = changed.and_then(|(seconds, nanos)| {
            SystemTime::now().duration_since(UNIX_EPOCH + Duration::new(seconds, nanos)).ok()
        });
        age.is_some_and(|age| age < UNSETTLED)
    }
}

/// Digests of files as they were read.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    known: Mutex<Known>,
    /// Something was read, or is wanted.
    stirred: Condvar,
}

#[derive(Debug, Default)]
struct Known {
    /// `None`: it could not be read to its end.
    files: BTreeMap<PathBuf, (Stamp, Option<[u8; 32]>)>,
    /// A request waits for a file that is not among them.
    is_wanted: bool,
}

/// Why a file is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfit {
    #[error(
        "{name} is not served: the SHA-256 of {} is {got}, declared is {want}; put the declared file back, or \
         declare the new one", file.display()
    )]
    Differs { name: String, file: PathBuf, got: String, want: String },
    #[error("{name} is not served: {} could not be read to its end; see the log", file.display())]
    Unread { name: String, file: PathBuf },
    #[error(
        "{name} is not served yet: {} is still being read for its SHA-256; the client asks again", file.display()
    )]
    Waiting { name: String, file: PathBuf },
}

impl Digests {
    /// Whether the file, open in this state, is what was declared. Waits a bounded time when it was not read yet.
    pub(crate) fn check(
        &self,
        name: &str,
        file: &Path,
        stamp: Stamp,
        want: &[u8; 32],
    ) -> Result<(), Unfit> {
        let until = Instant::now() + WAIT;
        let mut known = self.lock();
        loop {
            let found = known.files.get(file).filter(|(seen, _)| *seen == stamp);
            match found.map(|(_, digest)| *digest) {
                Some(Some(got)) => return fits(name, file, &got, want),
                Some(None) => {
                    return Err(Unfit::Unread { name: name.to_owned(), file: file.into() });
                }
                None => (),
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Unfit::Waiting { name: name.to_owned(), file: file.into() });
            }
            known.is_wanted = true;
            self.stirred.notify_all();
            known =
                self.stirred.wait_timeout(known, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request wants a file, or a moment.
    fn rest(&self) -> bool {
        let known = self.lock();
        let (mut known, _) = self
            .stirred
            .wait_timeout_while(known, LOOK_UP, |known| !known.is_wanted)
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut known.is_wanted)
    }
}

fn fits(name: &str, file: &Path, got: &[u8; 32], want: &[u8; 32]) -> Result<(), Unfit> {
    if got == want {
        return Ok(());
    }
    let (got, want) = (model::hex::encode(got), model::hex::encode(want));
    Err(Unfit::Differs { name: name.to_owned(), file: file.into(), got, want })
}

/// Reads what has a digest declared, whenever it changed, until told to stop.
pub(crate) fn run(state: &State) {
    let mut looked: Option<(Instant, Arc<BootTable>)> = None;
    let mut is_done = false;
    while !state.stop.is_cancelled() {
        let is_wanted = state.digests.rest();
        let table = state.table.load_full();
        let is_due = looked.as_ref().is_none_or(|(at, of)| {
            at.elapsed() >= PERIOD || of.digests != table.digests || of.files != table.files
        });
        if is_wanted || is_due || !is_done {
            is_done = look(state, &table);
            looked = Some((Instant::now(), table));
        }
    }
}

/// Reads each declared file that is not in the state it was read in; `false` when one was still being changed.
fn look(state: &State, table: &BootTable) -> bool {
    let mut is_done = true;
    let declared = table.digests.iter();
    let declared: Vec<_> =
        declared.filter_map(|(name, want)| Some((name, table.files.get(name)?, want))).collect();
    state.digests.lock().files.retain(|file, _| declared.iter().any(|(_, kept, _)| *kept == file));
    for (name, file, want) in declared {
        // One that is not there is told when it is asked for.
        let Ok(metadata) = file.metadata() else { continue };
        let seen = state.digests.lock().files.get(file).map(|(stamp, _)| *stamp);
        if seen == Some(Stamp::new(&metadata)) {
            continue;
        }
        match read(file, state) {
            Ok(Some((stamp, digest))) => {
                if let Err(error) = fits(name, file, &digest, want) {
                    tracing::error!("{error}");
                }
                keep(state, file, (stamp, Some(digest)));
            }
            Ok(None) => is_done = false,
            Err(error) => {
                tracing::error!(file = %file.display(), %error, "a declared file cannot be read");
                keep(state, file, (Stamp::new(&metadata), None));
            }
        }
    }
    is_done
}

fn keep(state: &State, file: &Path, read: (Stamp, Option<[u8; 32]>)) {
    state.digests.lock().files.insert(file.to_owned(), read);
    state.digests.stirred.notify_all();
}

/// A file's digest, and the state it was in before and after; `None` when these differ, when it was changed a moment
/// ago, or when we are told to stop.
fn read(path: &Path, state: &State) -> io::Result<Option<(Stamp, [u8; 32])>> {
    let mut file = File::open(path)?;
    let before = Stamp::new(&file.metadata()?);
    if before.is_unsettled() {
        return Ok(None);
    }
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; CHUNK]);
    loop {
        let length = file.read(&mut chunk)?;
        if length == 0 {
            break;
        }
        hash.update(chunk.get(..length).unwrap_or_default());
        if state.stop.is_cancelled() {
            return Ok(None);
        }
    }
    let after = Stamp::new(&file.metadata()?);
    Ok((before == after).then(|| (before, hash.finalize().into())))
}
