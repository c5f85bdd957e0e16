use std::fs;

use model::{PowerKind, PowerReading, PowerSource, Watts, power::NoReading};
use proptest::prelude::*;

use super::*;
use crate::testing::{TempDir, node};

const DAY_MS: i64 = 86_400_000;
/// 2026-12-01T00:00:00Z
const START: i64 = 1_796_083_200_000;

fn sample(at: i64, milliwatts: u32) -> Sample {
    let at = UnixMillis(at);
    if milliwatts == 0 {
        return Sample { at, power: Err(NoReading::BmcSilent) };
    }
    let watts = f64::from(milliwatts) / 1_000.0;
    let reading = PowerReading {
        watts: Watts(watts),
        margin: Watts(5.0),
        source: PowerSource::Dcmi,
        kind: PowerKind::BladeInput,
        from: UnixMillis(at.0 - 10_000),
        to: at,
    };
    Sample { at, power: Ok(reading) }
}

fn written(dir: &TempDir, samples: &[Sample]) -> PathBuf {
    let series = Series::open(&dir.0, 90).unwrap();
    samples.iter().for_each(|sample| series.append(&node("bld-003"), sample).unwrap());
    series.flush().unwrap();
    Day::of(UnixMillis(START)).unwrap().path(&dir.0, &node("bld-003"))
}

#[test]
fn the_last_hour_is_there_at_once_and_after_a_restart() {
    let dir = TempDir::new();
    let now = UnixMillis(START + 30 * 60_000);
    // The hour reaches over midnight into the file of the day before.
    let samples: Vec<_> =
        (0..500).map(|n| sample(START - 3_000_000 + n * 10_000, 67_000)).collect();
    let want: Vec<_> =
        samples.iter().copied().filter(|s| s.at.0 >= now.0 - 3_600_000 && s.at <= now).collect();
    assert!(want.len() > 300 && want.len() < samples.len());
    let series = Series::open(&dir.0, 90).unwrap();
    samples.iter().for_each(|sample| series.append(&node("bld-003"), sample).unwrap());
    assert_eq!(series.last_hour(&node("bld-003"), now), want);
    assert_eq!(series.last_hour(&node("bld-004"), now), []);
    drop(series);
    let again = Series::open(&dir.0, 90).unwrap();
    assert_eq!(again.recovery(), Recovery::default());
    assert_eq!(again.last_hour(&node("bld-003"), now), want);
}

#[test]
fn a_file_is_named_by_its_utc_day() {
    let dir = TempDir::new();
    let path = written(&dir, &[sample(START, 1_000), sample(START + DAY_MS - 1, 1_000)]);
    assert!(path.ends_with("bld-003/2026-12-01.power"), "{path:?}");
    assert_eq!(fs::metadata(path).unwrap().len(), 16 + 2 * 28);
}

#[test]
fn zeros_after_a_crash_are_cut_and_a_bad_record_in_between_is_passed_over() {
    let dir = TempDir::new();
    let samples = [sample(START, 1_000), sample(START + 1, 2_000), sample(START + 2, 3_000)];
    let path = written(&dir, &samples);
    let mut bytes = fs::read(&path).unwrap();
    bytes[16 + 28] ^= 1;
    bytes.extend([0; 100]);
    fs::write(&path, &bytes).unwrap();
    let series = Series::open(&dir.0, 90).unwrap();
    let want = Recovery { files_cut: 1, bytes_cut: 100, records_bad: 1 };
    assert_eq!(series.recovery(), want);
    let day = series.day(&node("bld-003"), UnixMillis(START)).unwrap();
    assert_eq!(day, [samples[0], samples[2]]);
    assert_eq!(fs::metadata(&path).unwrap().len(), 16 + 3 * 28);
}

#[test]
fn only_the_newest_days_are_kept() {
    let dir = TempDir::new();
    let series = Series::open(&dir.0, 3).unwrap();
    for day in 0..6 {
        series.append(&node("bld-003"), &sample(START + day * DAY_MS, 1_000)).unwrap();
        series.flush().unwrap();
    }
    let names: Vec<_> = day_file::days(&dir.0, &node("bld-003")).unwrap();
    let want: Vec<_> =
        (3..6).map(|day| Day::of(UnixMillis(START + day * DAY_MS)).unwrap()).collect();
    assert_eq!(names, want);
}

#[test]
fn a_foreign_file_is_named_and_left_alone() {
    let dir = TempDir::new();
    let path = written(&dir, &[sample(START, 1_000)]);
    fs::write(&path, "somebody's notes").unwrap();
    let error = Series::open(&dir.0, 90).unwrap_err();
    assert!(matches!(&error, SeriesError::Foreign { path: named } if *named == path), "{error:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "somebody's notes");
}

#[test]
fn what_the_disk_refuses_is_written_when_it_takes_it_again() {
    let dir = TempDir::new();
    let series = Series::open(&dir.0, 90).unwrap();
    let in_the_way = dir.0.join("bld-003");
    fs::write(&in_the_way, "a file where the folder should be").unwrap();
    series.append(&node("bld-003"), &sample(START, 1_000)).unwrap();
    assert!(matches!(series.flush(), Err(SeriesError::Behind)));
    fs::remove_file(&in_the_way).unwrap();
    series.flush().unwrap();
    assert_eq!(series.day(&node("bld-003"), UnixMillis(START)).unwrap(), [sample(START, 1_000)]);
}

#[test]
fn a_part_of_a_record_left_by_a_failed_write_does_not_shift_the_next() {
    let dir = TempDir::new();
    let path = written(&dir, &[sample(START, 1_000)]);
    let series = Series::open(&dir.0, 90).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([7; 11]);
    fs::write(&path, &bytes).unwrap();
    series.append(&node("bld-003"), &sample(START + 1, 2_000)).unwrap();
    series.flush().unwrap();
    let want = [sample(START, 1_000), sample(START + 1, 2_000)];
    assert_eq!(series.day(&node("bld-003"), UnixMillis(START)).unwrap(), want);
}

#[test]
fn a_moment_no_file_can_be_named_for_is_refused() {
    let dir = TempDir::new();
    let series = Series::open(&dir.0, 90).unwrap();
    for at in [i64::MIN, i64::MAX, -70_000_000_000_000] {
        let absent = Sample { at: UnixMillis(at), power: Err(NoReading::BmcSilent) };
        let refused = series.append(&node("bld-003"), &absent);
        assert!(matches!(refused, Err(SeriesError::Time(_))), "{at}: {refused:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_appended_is_read_back(values in proptest::collection::vec((0_i64..DAY_MS, any::<u32>()), 0..60)) {
        let dir = TempDir::new();
        let samples: Vec<_> = values.iter().map(|(at, mw)| sample(START + at, *mw)).collect();
        written(&dir, &samples);
        let series = Series::open(&dir.0, 90).unwrap();
        prop_assert_eq!(series.recovery(), Recovery::default());
        prop_assert_eq!(series.day(&node("bld-003"), UnixMillis(START)).unwrap(), samples);
    }

    #[test]
    fn a_file_cut_anywhere_loses_its_tail_only_and_goes_on(
        count in 1_u32..20,
        cut in any::<prop::sample::Index>(),
    ) {
        let dir = TempDir::new();
        let mut samples: Vec<_> = (0..count).map(|n| sample(START + i64::from(n), n)).collect();
        let path = written(&dir, &samples);
        let bytes = fs::read(&path).unwrap();
        let len = cut.index(bytes.len());
        fs::write(&path, &bytes[..len]).unwrap();

        let series = Series::open(&dir.0, 90).unwrap();
        samples.truncate(len.saturating_sub(16) / 28);
        prop_assert_eq!(&series.day(&node("bld-003"), UnixMillis(START)).unwrap(), &samples);
        let whole = if len < 16 { 0 } else { 16 + samples.len() * 28 };
        let bytes_cut = u64::try_from(len - whole).unwrap();
        prop_assert_eq!(series.recovery().bytes_cut, bytes_cut);

        let next = sample(START + 99, 7);
        series.append(&node("bld-003"), &next).unwrap();
        series.flush().unwrap();
        samples.push(next);
        prop_assert_eq!(series.day(&node("bld-003"), UnixMillis(START)).unwrap(), samples);
    }

    #[test]
    fn no_file_makes_opening_panic(bytes: Vec<u8>, header: bool) {
        let dir = TempDir::new();
        let path = written(&dir, &[sample(START, 1_000)]);
        let mut all = if header { fs::read(&path).unwrap()[..16].to_vec() } else { vec![] };
        all.extend(bytes);
        fs::write(&path, all).unwrap();
        let _series = Series::open(&dir.0, 90);
    }
}
