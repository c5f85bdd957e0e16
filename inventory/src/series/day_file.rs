//! The file of one node and one UTC day: `NODE/2026-12-01.power`. A header of 16 bytes, then records.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use model::{NodeName, UnixMillis};

use super::{Sample, SeriesError, record};

/// The first bytes of every file: what it is, its version, and eight bytes left free.
const HEADER: [u8; 16] = *b"volpwr1\n\0\0\0\0\0\0\0\0";
const EXTENSION: &str = "power";

/// A UTC day, named as ISO 8601 does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Day(String);

/// What a file holds.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) samples: Vec<Sample>,
    /// Damaged records with a good one after them.
    pub(super) records_bad: usize,
    /// Length up to the last good record.
    pub(super) good_len: u64,
    /// Bytes after that.
    pub(super) torn: u64,
}

impl Day {
    /// The day `at` lies in.
    pub(super) fn of(at: UnixMillis) -> Result<Self, SeriesError> {
        let fault = |_| SeriesError::Time(at.0);
        let moment = jiff::Timestamp::from_millisecond(at.0).map_err(fault)?;
        let date = jiff::tz::Offset::UTC.to_datetime(moment).date();
        if date.year() < 1 { Err(SeriesError::Time(at.0)) } else { Ok(Self(date.to_string())) }
    }

    pub(super) fn path(&self, dir: &Path, node: &NodeName) -> PathBuf {
        dir.join(node.as_str()).join(&self.0).with_extension(EXTENSION)
    }
}

/// An adapter for `map_err`.
pub(super) fn fault(what: &'static str, path: &Path) -> impl Fn(io::Error) -> SeriesError {
    move |source| SeriesError::File { what, path: path.to_owned(), source }
}

/// The nodes that have a folder; other entries are nobody's business here.
pub(super) fn nodes(dir: &Path) -> Result<Vec<NodeName>, SeriesError> {
    let names = names(dir)?;
    let is_folder = |name: &String| dir.join(name).is_dir();
    let folders = names.into_iter().filter(is_folder);
    Ok(folders.filter_map(|name| name.parse().ok()).collect())
}

/// The days of a node, oldest first.
pub(super) fn days(dir: &Path, node: &NodeName) -> Result<Vec<Day>, SeriesError> {
    let day = |name: String| {
        let (stem, extension) = name.rsplit_once('.')?;
        let is_date = stem.parse::<jiff::civil::Date>().is_ok();
        (extension == EXTENSION && is_date).then(|| Day(stem.to_owned()))
    };
    let mut days: Vec<_> = names(&dir.join(node.as_str()))?.into_iter().filter_map(day).collect();
    days.sort();
    Ok(days)
}

fn names(dir: &Path) -> Result<Vec<String>, SeriesError> {
    let entries = fs::read_dir(dir).map_err(fault("list", dir))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fault("list", dir))?;
        names.extend(entry.file_name().into_string().ok());
    }
    Ok(names)
}

/// Everything good in the file. A missing one is empty; one that begins as no series does is refused.
pub(super) fn read(path: &Path) -> Result<Found, SeriesError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::default()),
        Err(error) => return Err(fault("read", path)(error)),
    };
    let Some(body) = bytes.strip_prefix(&HEADER) else {
        // Torn while it was made: no record can have been in it.
        if HEADER.starts_with(&bytes) || bytes.iter().all(|byte| *byte == 0) {
            return Ok(Found { torn: length(bytes.len()), ..Found::default() });
        }
        return Err(SeriesError::Foreign { path: path.to_owned() });
    };
    let mut found = Found { good_len: length(HEADER.len()), ..Found::default() };
    let mut bad = 0;
    for (index, bytes) in body.as_chunks::<{ record::LEN }>().0.iter().enumerate() {
        if let Some(sample) = record::decode(bytes) {
            found.samples.push(sample);
            found.records_bad += std::mem::take(&mut bad);
            found.good_len = length(HEADER.len() + (index + 1) * record::LEN);
        } else {
            bad += 1;
        }
    }
    found.torn = length(bytes.len()).saturating_sub(found.good_len);
    Ok(found)
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Cuts the file to `len` bytes, durably.
pub(super) fn cut(path: &Path, len: u64) -> Result<(), SeriesError> {
    let file = OpenOptions::new().write(true).open(path).map_err(fault("open", path))?;
    file.set_len(len).and_then(|()| file.sync_all()).map_err(fault("cut the torn tail of", path))
}

/// Appends whole records and syncs. A part of a record left by a failed write before is cut first.
pub(super) fn append(path: &Path, records: &[u8]) -> Result<(), SeriesError> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(fault("make", folder))?;
    let opened = OpenOptions::new().create(true).append(true).open(path);
    let mut file = opened.map_err(fault("open", path))?;
    let is_new = align(&file).map_err(fault("mend", path))?;
    let written = if is_new { file.write_all(&HEADER) } else { Ok(()) };
    let written = written.and_then(|()| file.write_all(records)).and_then(|()| file.sync_data());
    written.map_err(fault("write", path))?;
    if is_new {
        // The name must survive a crash too.
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(fault("sync", folder))?;
    }
    Ok(())
}

/// Cuts a part of a record off the end; whether the header has to be written.
fn align(file: &File) -> io::Result<bool> {
    let len = file.metadata()?.len();
    let header = length(HEADER.len());
    let Some(body) = len.checked_sub(header) else {
        file.set_len(0)?;
        return Ok(true);
    };
    let part = body % length(record::LEN);
    if part > 0 {
        file.set_len(len - part)?;
    }
    Ok(false)
}

/// Deletes all but the newest `keep` days of a node. By number, not by age: a clock that is wrong once must not
/// delete what is right.
pub(super) fn prune(dir: &Path, node: &NodeName, keep: usize) -> Result<(), SeriesError> {
    for day in days(dir, node)?.iter().rev().skip(keep) {
        let path = day.path(dir, node);
        fs::remove_file(&path).map_err(fault("delete", &path))?;
    }
    Ok(())
}
