//! The file of a node's day of power readings.

use inventory::series::{Recovery, Series, SeriesError};
use model::{NodeName, UnixMillis};

use super::scratch::Scratch;

const FILE: &str = "bld-003/2026-12-01.power";
/// A moment of that day.
const NOON: UnixMillis = UnixMillis(1_796_126_400_000);

/// A file as a crash or a bad disk leaves it: it is mended once, and what was good stays.
pub(super) fn file(data: &[u8]) {
    let folder = Scratch::new();
    folder.write(FILE, data);
    let node: NodeName = "bld-003".parse().expect("a good name");
    let first = match Series::open(folder.path(), 2) {
        Ok(series) => series,
        Err(SeriesError::Foreign { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    let samples = first.day(&node, NOON).expect("it was read a moment ago");
    let cut = usize::try_from(first.recovery().bytes_cut).expect("it is no longer than the file");
    assert!(cut <= data.len() && samples.len() <= data.len() / 28);
    drop(first);
    let second = Series::open(folder.path(), 2).expect("it was mended");
    let Recovery { files_cut, bytes_cut, .. } = second.recovery();
    assert_eq!((files_cut, bytes_cut), (0, 0), "it was mended");
    assert_eq!(second.day(&node, NOON).expect("it was mended"), samples);
    for sample in &samples {
        second.append(&node, sample).ok();
    }
    second.flush().expect("a folder in memory takes a few samples");
}
