//! What lies on the disk: files of power samples.

use std::fs;

use inventory::series::{Sample, Series};
use model::{NodeName, PowerKind, PowerReading, PowerSource, UnixMillis, Watts, power::NoReading};

use super::super::scratch::Scratch;
use super::{Seed, seed};

/// A day's file as the program writes it, and the same torn and flipped.
pub(super) fn all() -> Vec<Seed> {
    let folder = Scratch::new();
    let node: NodeName = "bld-003".parse().expect("a good name");
    let series = Series::open(folder.path(), 2).expect("the folder is ours");
    let at = UnixMillis(1_796_126_400_000);
    let reading = PowerReading {
        watts: Watts(231.0),
        margin: Watts(11.55),
        source: PowerSource::Dcmi,
        kind: PowerKind::BladeInput,
        from: UnixMillis(at.0 - 1_000),
        to: at,
    };
    for power in [Ok(reading), Err(NoReading::BmcSilent), Ok(reading)] {
        series.append(&node, &Sample { at, power }).expect("good values");
    }
    series.flush().expect("the folder is ours");
    let path = folder.path().join("bld-003/2026-12-01.power");
    let whole = fs::read(path).expect("it was just written");
    let torn = whole.get(..whole.len() - 5).unwrap_or_default();
    let mut flipped = whole.clone();
    if let Some(byte) = flipped.get_mut(20) {
        *byte ^= 1;
    }
    let foreign = b"volpwr2\n and more than a header";
    vec![
        seed("series_file", "whole", &whole),
        seed("series_file", "torn", torn),
        seed("series_file", "flipped", flipped),
        seed("series_file", "zeros", [0; 40]),
        seed("series_file", "foreign", foreign),
    ]
}
