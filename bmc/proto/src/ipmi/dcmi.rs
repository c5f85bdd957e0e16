//! DCMI Get Power Reading (DCMI 1.5, section 6.6.1).
//!
//! The state bit alone never rejects a value: some BMCs say "inactive" for ever beside good watts. 0 and
//! 0xFFFF are how BMCs say "none". Minimum, maximum and average mostly run since the BMC's start and are
//! never used as a window.

use super::message::{Command, NetFn};
use crate::wire::{DecodeError, Reader};

/// Group extension identification of DCMI.
pub const GROUP: u8 = 0xdc;

/// Get Power Reading, system power statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GetPowerReading;

/// The answer as it stands on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerReadingRecord {
    /// Watts now.
    pub now: u16,
    /// Least watts since the statistics began.
    pub min: u16,
    /// Most watts.
    pub max: u16,
    /// Average watts.
    pub average: u16,
    /// The BMC's clock, in seconds since 1970, as far as it was ever set.
    pub timestamp: u32,
    /// Length of the statistics, in milliseconds.
    pub period_ms: u32,
    /// "Power measurement active".
    pub active: bool,
}

/// Statistics that came with a reading. For people to look at, not to compute with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Least watts.
    pub min: u16,
    /// Most watts.
    pub max: u16,
    /// Average watts.
    pub average: u16,
    /// Over how long, in milliseconds.
    pub period_ms: u32,
}

/// What a power reading amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DcmiOutcome {
    /// A value.
    Reading {
        /// Watts now.
        watts: u16,
        /// The BMC said that it measures. If not, another source is preferred while there is one.
        confirmed: bool,
        /// Statistics, unless the BMC says it does not measure.
        statistics: Option<Statistics>,
    },
    /// 0 or 0xFFFF: no value.
    Absent,
    /// The BMC has no such command.
    NotSupported,
}

impl PowerReadingRecord {
    /// Value in, response data out.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![GROUP];
        for watts in [self.now, self.min, self.max, self.average] {
            out.extend(watts.to_le_bytes());
        }
        out.extend(self.timestamp.to_le_bytes());
        out.extend(self.period_ms.to_le_bytes());
        out.push(if self.active { 0x40 } else { 0 });
        out
    }

    /// What it amounts to.
    #[must_use]
    pub fn outcome(&self) -> DcmiOutcome {
        if matches!(self.now, 0 | u16::MAX) || self.is_impossible() {
            return DcmiOutcome::Absent;
        }
        let Self { min, max, average, period_ms, .. } = *self;
        let statistics = Statistics { min, max, average, period_ms };
        DcmiOutcome::Reading {
            watts: self.now,
            confirmed: self.active,
            statistics: self.active.then_some(statistics),
        }
    }

    /// More than `FAR` times the most the BMC itself says it ever measured, where its own statistics are
    /// consistent: a broken sensor or a marker such as 0xFFFE, no watts.
    fn is_impossible(&self) -> bool {
        const FAR: u16 = 4;
        let Self { now, min, max, average, active, .. } = *self;
        let is_consistent = active && 0 < min && min <= average && average <= max;
        is_consistent && now / FAR > max
    }
}

impl Command for GetPowerReading {
    const NAME: &'static str = "DCMI Get Power Reading";
    const NETFN: NetFn = NetFn::GROUP;
    const CODE: u8 = 0x02;
    type Answer = PowerReadingRecord;

    fn data(&self) -> Vec<u8> {
        vec![GROUP, 0x01, 0x00, 0x00]
    }

    fn answer(&self, data: &[u8]) -> Result<PowerReadingRecord, DecodeError> {
        let mut reader = Reader::new(Self::NAME, data);
        reader.expect("group extension", GROUP)?;
        Ok(PowerReadingRecord {
            now: reader.u16()?,
            min: reader.u16()?,
            max: reader.u16()?,
            average: reader.u16()?,
            timestamp: reader.u32()?,
            period_ms: reader.u32()?,
            active: reader.u8()? & 0x40 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipmi::CompletionCode;

    fn unconfirmed(watts: u16) -> DcmiOutcome {
        DcmiOutcome::Reading { watts, confirmed: false, statistics: None }
    }

    #[test]
    fn the_eight_answers_of_case_41_give_what_it_wants() {
        let statistics = Statistics { min: 10, max: 182, average: 89, period_ms: 1_000 };
        let measured =
            DcmiOutcome::Reading { watts: 90, confirmed: true, statistics: Some(statistics) };
        let tail = "0a00b6005900eb54645be803000040";
        let cases = [
            (
                "a: all zero",
                "00dc0000000000000000000000000000000000".to_owned(),
                Some(DcmiOutcome::Absent),
            ),
            (
                "b: inactive, good value",
                "00dc690000000000 0000a8b77464e093040000".replace(' ', ""),
                Some(unconfirmed(105)),
            ),
            (
                "c: inactive, all equal",
                "00dc3f013f013f013f01000000000000000000".to_owned(),
                Some(unconfirmed(319)),
            ),
            ("d: normal", format!("00dc5a00{tail}"), Some(measured)),
            ("e: 65535", format!("00dcffff{tail}"), Some(DcmiOutcome::Absent)),
            ("f: no such command", "c1".to_owned(), Some(DcmiOutcome::NotSupported)),
            ("g: other group", "00dd0000000000000000000000000000000000".to_owned(), None),
            ("h: cut", "00dc5a000a00b60059".to_owned(), None),
        ];
        for (name, answer, want) in cases {
            let bytes = model::hex::decode(&answer).unwrap();
            let (code, data) = bytes.split_first().unwrap();
            let got = match code {
                0 => GetPowerReading.answer(data).ok().map(|record| record.outcome()),
                code => {
                    CompletionCode(*code).means_unsupported().then_some(DcmiOutcome::NotSupported)
                }
            };
            assert_eq!(got, want, "{name}");
        }
    }

    #[test]
    fn a_value_far_above_the_bmcs_own_maximum_is_none() {
        let record = |now, active| PowerReadingRecord {
            now,
            min: 10,
            max: 182,
            average: 89,
            timestamp: 0,
            period_ms: 1_000,
            active,
        };
        let is_absent = |record: PowerReadingRecord| record.outcome() == DcmiOutcome::Absent;
        for now in [0xfffe, 0x8000, 0x7fff, 2_000, 732] {
            assert!(is_absent(record(now, true)), "{now}");
        }
        // A peak between two updates of the statistics, and statistics that mean nothing.
        assert!(!is_absent(record(200, true)) && !is_absent(record(700, true)));
        assert!(!is_absent(record(2_000, false)));
        let zeros = PowerReadingRecord { min: 0, max: 0, average: 0, ..record(105, true) };
        let swapped = PowerReadingRecord { min: 182, max: 10, ..record(105, true) };
        assert!(!is_absent(zeros) && !is_absent(swapped));
    }

    #[test]
    fn a_record_comes_back_as_it_was() {
        let record = PowerReadingRecord {
            now: 210,
            min: 120,
            max: 310,
            average: 190,
            timestamp: 1_796_110_408,
            period_ms: 60_000,
            active: true,
        };
        assert_eq!(GetPowerReading.answer(&record.encode()), Ok(record));
    }
}
