//! One sample as 28 bytes, little-endian.
//!
//! | offset | bytes | meaning |
//! |---|---|---|
//! | 0 | 8 | moment, UTC milliseconds, signed |
//! | 8 | 4 | length of the window that ends there, in ms |
//! | 12 | 4 | value in mW |
//! | 16 | 4 | margin in mW, rounded up |
//! | 20 | 1 | source |
//! | 21 | 1 | kind |
//! | 22 | 1 | reason of absence; 0 for a reading |
//! | 23 | 1 | 0 |
//! | 24 | 4 | CRC-32 (ISO-HDLC) of the 24 before |

use model::{PowerKind, PowerReading, PowerSource, UnixMillis, Watts, power::NoReading};

use super::{Sample, SeriesError};

/// Bytes of a record.
pub(super) const LEN: usize = 28;
const PAYLOAD: usize = 24;

const SOURCES: [PowerSource; 2] = [PowerSource::Dcmi, PowerSource::TwinModel];
const KINDS: [PowerKind; 5] = [
    PowerKind::WallInput,
    PowerKind::BladeInput,
    PowerKind::Output,
    PowerKind::Part,
    PowerKind::Estimate,
];
const ABSENCES: [NoReading; 7] = [
    NoReading::NotReadYet,
    NoReading::BmcSilent,
    NoReading::NotSupported,
    NoReading::MeterSaysNone,
    NoReading::BelowFloor,
    NoReading::Stale,
    NoReading::Unusable,
];

/// Codes are never given twice: files outlive programs.
fn source_code(source: PowerSource) -> u8 {
    match source {
        PowerSource::Dcmi => 1,
        PowerSource::TwinModel => 2,
    }
}

fn kind_code(kind: PowerKind) -> u8 {
    match kind {
        PowerKind::WallInput => 1,
        PowerKind::BladeInput => 2,
        PowerKind::Output => 3,
        PowerKind::Part => 4,
        PowerKind::Estimate => 5,
    }
}

fn absence_code(absence: NoReading) -> u8 {
    match absence {
        NoReading::NotReadYet => 1,
        NoReading::BmcSilent => 2,
        NoReading::NotSupported => 3,
        NoReading::MeterSaysNone => 4,
        NoReading::BelowFloor => 5,
        NoReading::Stale => 6,
        NoReading::Unusable => 7,
    }
}

/// # Errors
/// [`SeriesError::Value`] for a number that has no place in 32 bits of milliwatts.
pub(super) fn encode(sample: &Sample) -> Result<[u8; LEN], SeriesError> {
    let at = sample.at.0.to_le_bytes();
    let tail = match &sample.power {
        Ok(reading) => {
            let window = u32::try_from(sample.at.since(reading.from).as_millis());
            let window = window.unwrap_or(u32::MAX).to_le_bytes();
            let value = milliwatts((reading.watts.0 * 1_000.0).round())?.to_le_bytes();
            // A product such as 3.35 * 1000 lies a hair above 3350: that is no reason to round up.
            let margin = milliwatts((reading.margin.0 * 1_000.0 - 1e-6).ceil())?.to_le_bytes();
            let codes = [source_code(reading.source), kind_code(reading.kind), 0, 0];
            [window, value, margin, codes]
        }
        Err(absence) => [[0; 4], [0; 4], [0; 4], [0, 0, absence_code(*absence), 0]],
    };
    let mut bytes = [0; LEN];
    let payload = at.into_iter().chain(tail.into_iter().flatten());
    bytes.iter_mut().zip(payload).for_each(|(place, byte)| *place = byte);
    let sum = crc32(bytes.iter().take(PAYLOAD)).to_le_bytes();
    bytes.iter_mut().skip(PAYLOAD).zip(sum).for_each(|(place, byte)| *place = byte);
    Ok(bytes)
}

/// The sample, or `None` when the checksum or a code is wrong.
pub(super) fn decode(bytes: &[u8; LEN]) -> Option<Sample> {
    let (payload, sum) = bytes.split_first_chunk::<PAYLOAD>()?;
    if crc32(payload.iter()).to_le_bytes() != *sum {
        return None;
    }
    let (at, rest) = payload.split_first_chunk::<8>()?;
    let (window, rest) = rest.split_first_chunk::<4>()?;
    let (value, rest) = rest.split_first_chunk::<4>()?;
    let (margin, codes) = rest.split_first_chunk::<4>()?;
    let &[source, kind, absence, _reserved] = codes else { return None };
    let at = UnixMillis(i64::from_le_bytes(*at));
    if absence != 0 {
        let reason = ABSENCES.into_iter().find(|reason| absence_code(*reason) == absence)?;
        return Some(Sample { at, power: Err(reason) });
    }
    let window = i64::from(u32::from_le_bytes(*window));
    let reading = PowerReading {
        watts: Watts(f64::from(u32::from_le_bytes(*value)) / 1_000.0),
        margin: Watts(f64::from(u32::from_le_bytes(*margin)) / 1_000.0),
        source: SOURCES.into_iter().find(|known| source_code(*known) == source)?,
        kind: KINDS.into_iter().find(|known| kind_code(*known) == kind)?,
        from: UnixMillis(at.0.saturating_sub(window)),
        to: at,
    };
    Some(Sample { at, power: Ok(reading) })
}

fn milliwatts(number: f64) -> Result<u32, SeriesError> {
    if !(0.0..=f64::from(u32::MAX)).contains(&number) {
        return Err(SeriesError::Value { milliwatts: number });
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked on the line above, and the number is whole"
    )]
    Ok(number as u32)
}

/// CRC-32 as zip and Ethernet use it (reflected polynomial 0xEDB88320), a bit at a time: samples are few.
fn crc32<'a>(bytes: impl Iterator<Item = &'a u8>) -> u32 {
    !bytes.fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _bit| {
            if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 }
        })
    })
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_everybody_knows() {
        assert_eq!(crc32(b"123456789".iter()), 0xcbf4_3926);
    }

    #[test]
    fn a_record_has_the_bytes_the_table_says() {
        let reading = PowerReading {
            watts: Watts(67.0),
            margin: Watts(3.35),
            source: PowerSource::Dcmi,
            kind: PowerKind::BladeInput,
            from: UnixMillis(0),
            to: UnixMillis(10_000),
        };
        let sample = Sample { at: reading.to, power: Ok(reading) };
        let bytes = encode(&sample).unwrap();
        let text = model::hex::encode(&bytes[..PAYLOAD]);
        assert_eq!(text, "102700000000000010270000b8050100160d000001020000");
        assert_eq!(decode(&bytes), Some(sample));
    }

    #[test]
    fn every_source_kind_and_reason_comes_back() {
        for source in SOURCES {
            for kind in KINDS {
                let reading = PowerReading {
                    watts: Watts(1.5),
                    margin: Watts(1.0),
                    source,
                    kind,
                    from: UnixMillis(-5),
                    to: UnixMillis(5),
                };
                let sample = Sample { at: reading.to, power: Ok(reading) };
                assert_eq!(decode(&encode(&sample).unwrap()), Some(sample));
            }
        }
        for reason in ABSENCES {
            let sample = Sample { at: UnixMillis(7), power: Err(reason) };
            assert_eq!(decode(&encode(&sample).unwrap()), Some(sample));
        }
    }

    #[test]
    fn a_number_no_meter_can_mean_is_refused() {
        for watts in [f64::NAN, f64::INFINITY, -0.1, 4_294_968.0] {
            let reading = PowerReading {
                watts: Watts(watts),
                margin: Watts(1.0),
                source: PowerSource::Dcmi,
                kind: PowerKind::BladeInput,
                from: UnixMillis(0),
                to: UnixMillis(0),
            };
            let refused = encode(&Sample { at: UnixMillis(0), power: Ok(reading) });
            assert!(matches!(refused, Err(SeriesError::Value { .. })), "{watts}");
        }
    }

    #[test]
    fn one_flipped_bit_anywhere_is_noticed() {
        let sample = Sample { at: UnixMillis(7), power: Err(NoReading::BmcSilent) };
        let good = encode(&sample).unwrap();
        for bit in 0..LEN * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&bytes), None, "bit {bit}");
        }
        assert_eq!(decode(&[0; LEN]), None, "zeros are no record");
    }
}
