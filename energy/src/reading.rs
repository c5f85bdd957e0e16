//! From what a BMC answered to a reading, or to the reason there is none.

use std::time::Duration;

use model::{
    PowerKind, PowerReading, PowerSource, UnixMillis, Watts,
    power::{NoReading, PowerSample},
};

/// A reading stands for now as long as it is not older than this many periods.
pub const STALE_AFTER_PERIODS: u32 = 3;

/// How wide the 95 % interval around a value is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MarginRule {
    /// Half-width as a share of the value.
    pub share: f64,
    /// Half-width at least, in watts: the meter's resolution. A value not above it cannot be told from
    /// nothing.
    pub floor: Watts,
}

impl MarginRule {
    /// A BMC nobody has calibrated: 5 %, and the 1 W steps DCMI counts in.
    pub const UNCALIBRATED: Self = Self { share: 0.05, floor: Watts(1.0) };

    /// The margin of `value`.
    #[must_use]
    pub fn margin(&self, value: Watts) -> Watts {
        Watts((value.0 * self.share).max(self.floor.0))
    }
}

/// What is known of a meter apart from its numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Meter {
    /// Who answers.
    pub source: PowerSource,
    /// What it measures.
    pub kind: PowerKind,
    /// Time before the answer that a value speaks for.
    pub window: Duration,
    /// How well.
    pub margin: MarginRule,
}

/// The sample that `current`, the field "current power" of a DCMI Get Power Reading response (DCMI 1.5, section
/// 6.6.1) in watts, makes at `at`, the moment it was asked for.
///
/// 0 and 0xFFFF are no values: BMCs without a meter answer them for ever. The bit "measurement active" is not
/// asked: many BMCs leave it clear beside good values. An `Err` given goes through.
///
/// # Errors
/// The reason there is no reading.
pub fn from_dcmi(current: Result<u16, NoReading>, meter: &Meter, at: UnixMillis) -> PowerSample {
    let watts = match current? {
        0 | u16::MAX => return Err(NoReading::MeterSaysNone),
        watts => Watts(f64::from(watts)),
    };
    if watts <= meter.margin.floor {
        return Err(NoReading::BelowFloor);
    }
    let window = i64::try_from(meter.window.as_millis()).unwrap_or(i64::MAX);
    Ok(PowerReading {
        watts,
        margin: meter.margin.margin(watts),
        source: meter.source,
        kind: meter.kind,
        from: UnixMillis(at.0.saturating_sub(window)),
        to: at,
    })
}

/// Whether `reading` is too old at `now` to stand for now, when one is due each `period`.
#[must_use]
pub fn is_stale(reading: &PowerReading, now: UnixMillis, period: Duration) -> bool {
    now.since(reading.to) > period.saturating_mul(STALE_AFTER_PERIODS)
}

/// What may be shown as the draw at `now`: the sample, unless its reading has become stale.
///
/// # Errors
/// The sample's own reason, or [`NoReading::Stale`].
pub fn standing(sample: PowerSample, now: UnixMillis, period: Duration) -> PowerSample {
    sample.and_then(|reading| {
        if is_stale(&reading, now, period) { Err(NoReading::Stale) } else { Ok(reading) }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const METER: Meter = Meter {
        source: PowerSource::Dcmi,
        kind: PowerKind::BladeInput,
        window: Duration::from_secs(10),
        margin: MarginRule::UNCALIBRATED,
    };

    #[test]
    fn each_answer_becomes_a_reading_or_its_own_reason() {
        let meter_of_5_watts =
            Meter { margin: MarginRule { share: 0.05, floor: Watts(5.0) }, ..METER };
        let cases = [
            ("a good value", METER, Ok(67), Ok((67.0, 3.35))),
            ("the margin has a floor", METER, Ok(15), Ok((15.0, 1.0))),
            ("zero is none", METER, Ok(0), Err(NoReading::MeterSaysNone)),
            ("all ones is none", METER, Ok(0xffff), Err(NoReading::MeterSaysNone)),
            ("one watt is below the floor", METER, Ok(1), Err(NoReading::BelowFloor)),
            ("so are five here", meter_of_5_watts, Ok(5), Err(NoReading::BelowFloor)),
            ("but not six", meter_of_5_watts, Ok(6), Ok((6.0, 5.0))),
            ("silence", METER, Err(NoReading::BmcSilent), Err(NoReading::BmcSilent)),
            ("no command", METER, Err(NoReading::NotSupported), Err(NoReading::NotSupported)),
        ];
        for (name, meter, answer, want) in cases {
            let sample = from_dcmi(answer, &meter, UnixMillis(20_000));
            let got =
                sample.map(|reading| (reading.watts.0, (reading.margin.0 * 1e6).round() / 1e6));
            assert_eq!(got, want, "{name}");
        }
    }

    #[test]
    fn a_reading_says_which_window_it_speaks_for() {
        let reading = from_dcmi(Ok(67), &METER, UnixMillis(20_000)).unwrap();
        assert_eq!((reading.from, reading.to), (UnixMillis(10_000), UnixMillis(20_000)));
        assert_eq!(reading.to_string(), "67 W ±5 % (DCMI, blade input)");
    }

    #[test]
    fn a_reading_stands_for_three_periods_and_an_absence_stays_what_it_is() {
        let period = Duration::from_secs(10);
        let sample = from_dcmi(Ok(67), &METER, UnixMillis(20_000));
        let cases = [
            ("at once", 20_000, false),
            ("three periods later", 50_000, false),
            ("a moment after that", 50_001, true),
            ("the clock stepped back", 1_000, false),
        ];
        for (name, now, stale) in cases {
            let stands = standing(sample, UnixMillis(now), period);
            assert_eq!(stands == Err(NoReading::Stale), stale, "{name}");
        }
        let silent = standing(Err(NoReading::BmcSilent), UnixMillis(90_000), period);
        assert_eq!(silent, Err(NoReading::BmcSilent));
    }

    proptest! {
        #[test]
        fn a_reading_can_always_be_told_from_nothing(watts: u16, at: i64) {
            if let Ok(reading) = from_dcmi(Ok(watts), &METER, UnixMillis(at)) {
                prop_assert!(reading.watts > reading.margin);
                prop_assert!(reading.margin >= METER.margin.floor);
                prop_assert!(reading.from <= reading.to);
            }
        }
    }
}
