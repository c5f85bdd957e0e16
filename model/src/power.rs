//! Electrical quantities and readings of them.

use std::{
    fmt,
    ops::{Add, Mul},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::UnixMillis;

/// Power, in watts.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Watts(pub f64);

/// Energy, in joules.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Joules(pub f64);

impl Mul<Duration> for Watts {
    type Output = Joules;
    fn mul(self, span: Duration) -> Joules {
        Joules(self.0 * span.as_secs_f64())
    }
}

impl Add for Joules {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

/// Which side of which conversion a reading was taken on. Different kinds never enter one sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PowerKind {
    /// Alternating current out of the wall.
    WallInput,
    /// What a blade takes from its enclosure's backplane.
    BladeInput,
    /// Direct current behind a power supply.
    Output,
    /// A part of a machine, such as its processors.
    Part,
    /// Not measured: computed by a model.
    Estimate,
}

/// Who said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PowerSource {
    /// DCMI Get Power Reading over IPMI (DCMI 1.5, section 6.6.1).
    Dcmi,
    /// The twin's model of a machine.
    TwinModel,
}

/// One reading: a value, its margin (half-width of the 95 % interval) and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PowerReading {
    /// The value.
    pub watts: Watts,
    /// Half-width of the 95 % interval, in watts.
    pub margin: Watts,
    /// Who said it.
    pub source: PowerSource,
    /// What was measured.
    pub kind: PowerKind,
    /// Start of the window the value speaks for.
    pub from: UnixMillis,
    /// End of that window: when it was read.
    pub to: UnixMillis,
}

/// Why there is no number. Absence is never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoReading {
    /// Nobody asked yet.
    NotReadYet,
    /// The BMC did not answer.
    BmcSilent,
    /// The BMC has no such command.
    NotSupported,
    /// The meter answered 0 or 0xFFFF, which it uses for "none".
    MeterSaysNone,
    /// The value lies under what the meter can tell from nothing.
    BelowFloor,
    /// The last reading is too old to stand for now.
    Stale,
    /// The BMC answered, but with a refusal (of the log-in, too) or with something unreadable.
    Unusable,
}

/// A reading, or the reason there is none.
pub type PowerSample = Result<PowerReading, NoReading>;

impl fmt::Display for PowerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::WallInput => "wall input",
            Self::BladeInput => "blade input",
            Self::Output => "output",
            Self::Part => "part",
            Self::Estimate => "estimate",
        })
    }
}

impl fmt::Display for PowerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Dcmi => "DCMI",
            Self::TwinModel => "twin model",
        })
    }
}

impl fmt::Display for NoReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NotReadYet => "not read yet",
            Self::BmcSilent => "the BMC does not answer",
            Self::NotSupported => "the BMC has no power meter",
            Self::MeterSaysNone => "the meter says it has no reading",
            Self::BelowFloor => "below what the meter can tell",
            Self::Stale => "the last reading is too old",
            Self::Unusable => "the BMC gave no usable answer",
        })
    }
}

impl PowerReading {
    /// The margin as a share of the value, in per cent.
    #[must_use]
    pub fn margin_percent(&self) -> f64 {
        100.0 * self.margin.0 / self.watts.0
    }
}

impl fmt::Display for PowerReading {
    /// `67 W ±5 % (DCMI, blade input)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.margin_percent();
        write!(f, "{:.0} W ±{percent:.0} % ({}, {})", self.watts.0, self.source, self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_says_its_margin_its_source_and_its_kind() {
        let reading = PowerReading {
            watts: Watts(67.0),
            margin: Watts(3.35),
            source: PowerSource::Dcmi,
            kind: PowerKind::BladeInput,
            from: UnixMillis(0),
            to: UnixMillis(10_000),
        };
        assert_eq!(reading.to_string(), "67 W ±5 % (DCMI, blade input)");
        assert_eq!(reading.watts * Duration::from_secs(10), Joules(670.0));
    }
}
