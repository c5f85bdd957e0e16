//! The file of the lease log: read at start, appended to, replaced whole when most of it is history.
//!
//! A crash may tear the last line; it is left out. A line spoilt in the middle is left out too, and the file as it
//! was is kept beside the new one. It knows nothing of who waits for a line to be on the disk.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use model::Lease;
use pxe_proto::lease_record;

/// The lease log on disk.
#[derive(Debug)]
pub(super) struct LogFile {
    file: File,
    lines: usize,
}

/// What a log held.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Replay {
    /// Leases in the order they were written; the last one of an address counts.
    pub(super) leases: Vec<Lease>,
    /// Lines left out that no crash explains.
    pub(super) damaged: usize,
}

/// A log that is written beside the one in use.
#[derive(Debug)]
pub(super) struct NewLog {
    file: File,
    lines: usize,
}

/// What the log at `path` holds; nothing when there is none.
///
/// # Errors
/// When it is there and cannot be read.
pub(super) fn read(path: &Path) -> io::Result<Replay> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Replay::default()),
        read => read?,
    };
    let mut replay = Replay::default();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let whole = line.strip_suffix(b"\n");
        match lease_record::decode(whole.unwrap_or(line)) {
            Ok(lease) => replay.leases.push(lease),
            // Without its line feed it is the last one, torn by a crash: nobody was told it is on the disk.
            Err(_) if whole.is_none() => (),
            Err(_) => replay.damaged += 1,
        }
    }
    Ok(replay)
}

/// Keeps a damaged log beside the new one, for a person; gives where.
pub(super) fn keep_damaged(path: &Path) -> io::Result<PathBuf> {
    let kept = beside(path, ".damaged");
    fs::copy(path, &kept)?;
    Ok(kept)
}

/// Writes a log beside the one in use, synced.
pub(super) fn begin<'l>(
    path: &Path,
    leases: impl IntoIterator<Item = &'l Lease>,
) -> io::Result<NewLog> {
    let (mut text, mut lines) = (String::new(), 0);
    for lease in leases {
        text.push_str(&lease_record::encode(lease));
        lines += 1;
    }
    let new = beside(path, ".new");
    let written = OpenOptions::new().write(true).create(true).truncate(true).open(&new).and_then(
        |mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_data()?;
            Ok(file)
        },
    );
    // Half a file would take the room the log needs.
    let file = written.inspect_err(|_| _ = fs::remove_file(&new))?;
    Ok(NewLog { file, lines })
}

impl NewLog {
    /// Appends what was written to the old log meanwhile, and takes its place: by rename, so that a crash leaves
    /// one of the two whole.
    pub(super) fn take_over(self, path: &Path, since: &str) -> io::Result<LogFile> {
        let Self { mut file, lines } = self;
        file.write_all(since.as_bytes())?;
        file.sync_all()?;
        fs::rename(beside(path, ".new"), path)?;
        if let Some(folder) = path.parent() {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            File::open(folder)?.sync_all()?;
        }
        Ok(LogFile { file, lines: lines + since.lines().count() })
    }
}

impl LogFile {
    /// Appends whole lines and waits until the disk has them.
    pub(super) fn append(&mut self, lines: &str) -> io::Result<()> {
        self.file.write_all(lines.as_bytes())?;
        self.file.sync_data()?;
        self.lines += lines.lines().count();
        Ok(())
    }

    /// Lines in it, history included.
    pub(super) fn lines(&self) -> usize {
        self.lines
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use model::{MacAddr, UnixMillis, lease::LeaseState};

    use super::*;

    fn lease(last: u8, at: i64) -> Lease {
        Lease {
            network: "boot".to_owned(),
            address: [192, 0, 2, last].into(),
            mac: MacAddr([2, 0, 0, 0, 0, last]),
            state: LeaseState::Bound,
            at: UnixMillis(at),
            until: UnixMillis(at + 600_000),
            host_name: String::new(),
            location: None,
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("volund-log-{name}-{}", std::process::id()));
        let _old = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn what_was_appended_is_read_again_and_a_torn_tail_is_left_out_at_every_length() {
        let folder = folder("torn");
        let path = folder.join("leases");
        assert_eq!(read(&path).unwrap(), Replay::default(), "no log yet");
        let mut log = begin(&path, &[lease(1, 1)]).unwrap().take_over(&path, "").unwrap();
        log.append(&lease_record::encode(&lease(2, 2))).unwrap();
        assert_eq!(log.lines(), 2);
        let both = fs::read(&path).unwrap();
        assert_eq!(read(&path).unwrap().leases, [lease(1, 1), lease(2, 2)]);
        let first = both.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for cut in first..both.len() {
            fs::write(&path, &both[..cut]).unwrap();
            let replay = read(&path).unwrap();
            // Only its line feed missing, the second one is whole.
            let want = if cut == both.len() - 1 { 2 } else { 1 };
            assert_eq!((replay.leases.len(), replay.damaged), (want, 0), "cut at {cut}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_line_spoilt_in_the_middle_is_left_out_and_counted_and_the_file_kept() {
        let folder = folder("spoilt");
        let path = folder.join("leases");
        let text =
            [lease(1, 1), lease(2, 2), lease(3, 3)].map(|lease| lease_record::encode(&lease));
        let spoilt = text.concat().replacen("192.0.2.2", "192.0.2.9", 1);
        fs::write(&path, &spoilt).unwrap();
        let replay = read(&path).unwrap();
        assert_eq!((replay.leases, replay.damaged), (vec![lease(1, 1), lease(3, 3)], 1));
        let kept = keep_damaged(&path).unwrap();
        assert_eq!(fs::read_to_string(kept).unwrap(), spoilt);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_new_log_has_what_was_written_to_the_old_one_meanwhile() {
        let folder = folder("new");
        let path = folder.join("leases");
        let mut old = begin(&path, &[]).unwrap().take_over(&path, "").unwrap();
        (0..9).for_each(|at| old.append(&lease_record::encode(&lease(1, at))).unwrap());
        let new = begin(&path, &[lease(1, 8)]).unwrap();
        let since = lease_record::encode(&lease(2, 9));
        old.append(&since).unwrap();
        assert_eq!(read(&path).unwrap().leases.len(), 10, "the old one is in use until then");
        let new = new.take_over(&path, &since).unwrap();
        assert_eq!((new.lines(), read(&path).unwrap().leases), (2, vec![lease(1, 8), lease(2, 9)]));
        fs::remove_dir_all(folder).unwrap();
    }
}
