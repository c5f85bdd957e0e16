//! Energy out of readings: the trapezoid rule, gaps kept as gaps.

use std::time::Duration;

use model::{PowerKind, PowerReading, Watts, power::Joules};

/// Two readings further apart than this many periods have a gap between them.
pub const GAP_AFTER_PERIODS: u32 = 3;

/// Energy over the time that readings cover.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Energy {
    /// The energy of the covered time only.
    pub joules: Joules,
    /// Half-width of its 95 % interval. Margins of one meter add up linearly: they are mostly one shared error
    /// of gain, which does not average out.
    pub margin: Joules,
    /// What was measured.
    pub kind: PowerKind,
    /// Time between neighbouring readings.
    pub covered: Duration,
    /// Time inside gaps: nothing is claimed for it.
    pub missing: Duration,
    /// Number of gaps.
    pub gaps: usize,
}

/// Why readings have no sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IntegrateError {
    /// Different sides of different conversions.
    #[error("cannot add energy of {first} to energy of {other}")]
    MixedKinds {
        /// Kind of the first reading.
        first: PowerKind,
        /// Another that came later.
        other: PowerKind,
    },
    /// Not in order of time.
    #[error("readings are not in order of time")]
    OutOfOrder,
}

/// The energy of `readings`, which are of one meter, one due each `period`, oldest first (by the end of their
/// windows). `None` when no two of them are neighbours: no energy is known then, which is not zero.
///
/// # Errors
/// [`IntegrateError`] when the kinds differ or time goes backwards.
pub fn integrate(
    readings: &[PowerReading],
    period: Duration,
) -> Result<Option<Energy>, IntegrateError> {
    let Some(first) = readings.first() else { return Ok(None) };
    let mut energy = Energy {
        joules: Joules(0.0),
        margin: Joules(0.0),
        kind: first.kind,
        covered: Duration::ZERO,
        missing: Duration::ZERO,
        gaps: 0,
    };
    for (before, after) in readings.iter().zip(readings.iter().skip(1)) {
        if after.kind != first.kind {
            return Err(IntegrateError::MixedKinds { first: first.kind, other: after.kind });
        }
        if after.to < before.to {
            return Err(IntegrateError::OutOfOrder);
        }
        energy.add(before, after, period.saturating_mul(GAP_AFTER_PERIODS));
    }
    Ok((energy.covered > Duration::ZERO).then_some(energy))
}

impl Energy {
    fn add(&mut self, before: &PowerReading, after: &PowerReading, longest: Duration) {
        let span = after.to.since(before.to);
        if span > longest {
            self.gaps += 1;
            self.missing += span;
            return;
        }
        let mean = |a: Watts, b: Watts| Watts(f64::midpoint(a.0, b.0));
        self.joules = self.joules + mean(before.watts, after.watts) * span;
        self.margin = self.margin + mean(before.margin, after.margin) * span;
        self.covered += span;
    }
}

#[cfg(test)]
mod tests {
    use model::{PowerSource, UnixMillis};
    use proptest::prelude::*;

    use super::*;

    const PERIOD: Duration = Duration::from_secs(10);

    fn reading(second: i64, watts: f64) -> PowerReading {
        PowerReading {
            watts: Watts(watts),
            margin: Watts(watts * 0.05),
            source: PowerSource::Dcmi,
            kind: PowerKind::BladeInput,
            from: UnixMillis((second - 10) * 1_000),
            to: UnixMillis(second * 1_000),
        }
    }

    #[test]
    fn energy_is_known_between_neighbours_only() {
        let cases = [
            ("nothing", vec![], None),
            ("one reading", vec![(0, 100.0)], None),
            ("two at one moment", vec![(0, 100.0), (0, 200.0)], None),
            ("constant draw", vec![(0, 100.0), (10, 100.0), (20, 100.0)], Some((2_000.0, 20, 0))),
            ("a ramp", vec![(0, 100.0), (10, 200.0)], Some((1_500.0, 10, 0))),
            ("three periods are no gap", vec![(0, 100.0), (30, 100.0)], Some((3_000.0, 30, 0))),
            ("more are one", vec![(0, 100.0), (31, 100.0)], None),
            (
                "a gap counts as nothing",
                vec![(0, 100.0), (10, 100.0), (100, 900.0), (110, 100.0)],
                Some((6_000.0, 20, 1)),
            ),
        ];
        for (name, points, want) in cases {
            let readings: Vec<_> =
                points.into_iter().map(|(at, watts)| reading(at, watts)).collect();
            let energy = integrate(&readings, PERIOD).unwrap();
            let got = energy.map(|e| (e.joules.0.round(), e.covered.as_secs(), e.gaps));
            assert_eq!(got, want, "{name}");
        }
    }

    #[test]
    fn kinds_do_not_mix_and_time_does_not_run_backwards() {
        let wall = PowerReading { kind: PowerKind::WallInput, ..reading(10, 100.0) };
        assert!(matches!(
            integrate(&[reading(0, 100.0), wall], PERIOD),
            Err(IntegrateError::MixedKinds { .. })
        ));
        assert_eq!(
            integrate(&[reading(10, 100.0), reading(0, 100.0)], PERIOD),
            Err(IntegrateError::OutOfOrder)
        );
    }

    proptest! {
        #[test]
        fn energy_lies_between_the_extremes_and_times_close(
            points in proptest::collection::vec((0_i64..60, 2.0_f64..500.0), 2..50),
        ) {
            let mut at = 0;
            let readings: Vec<_> = points
                .iter()
                .map(|(step, watts)| {
                    at += step;
                    reading(at, *watts)
                })
                .collect();
            let Some(energy) = integrate(&readings, PERIOD).unwrap() else { return Ok(()) };
            let seconds = energy.covered.as_secs_f64();
            let watts = |pick: fn(f64, f64) -> f64| {
                readings.iter().map(|r| r.watts.0).reduce(pick).unwrap()
            };
            prop_assert!(energy.joules.0 <= watts(f64::max) * seconds * 1.000_001);
            prop_assert!(energy.joules.0 >= watts(f64::min) * seconds * 0.999_999);
            prop_assert!((energy.margin.0 - energy.joules.0 * 0.05).abs() < 1e-6 * energy.joules.0);
            let span = readings.last().unwrap().to.since(readings[0].to);
            prop_assert_eq!(energy.covered + energy.missing, span);
        }

        #[test]
        fn cutting_at_a_reading_and_adding_up_changes_nothing(
            watts in proptest::collection::vec(2.0_f64..500.0, 3..40),
            cut in 1_usize..39,
        ) {
            let readings: Vec<_> =
                (0_i64..).zip(&watts).map(|(index, watts)| reading(index * 10, *watts)).collect();
            let cut = cut.min(readings.len() - 2);
            let joules = |part: &[PowerReading]| -> f64 {
                integrate(part, PERIOD).unwrap().map_or(0.0, |energy| energy.joules.0)
            };
            let (whole, left, right) =
                (joules(&readings), joules(&readings[..=cut]), joules(&readings[cut..]));
            prop_assert!((whole - left - right).abs() < 1e-6 * whole);
        }
    }
}
