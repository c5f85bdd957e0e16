//! One line of the lease log.
//!
//! A line is a checksum and tab-separated fields:
//! `CRC STATE AT UNTIL ADDRESS MAC NETWORK HOST [LOCATION]`, times in UTC milliseconds, free text with `\\`, `\t`,
//! `\n` and `\r` written out. A line that was cut or spoilt does not pass its checksum; the last line of an address
//! counts. It reads and writes no file.

use std::fmt::Write as _;

use model::{Lease, UnixMillis, lease::LeaseState};

/// Why a line is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The checksum is missing or another: the line was cut or changed.
    #[error("the line does not pass its checksum")]
    Checksum,
    /// A whole line, but not of this form: written by a later version.
    #[error("the line is whole, but it is no lease of this version")]
    Form,
}

/// The line of a lease, with its line feed.
#[must_use]
pub fn encode(lease: &Lease) -> String {
    let Lease { network, address, mac, state, at, until, host_name, location } = lease;
    let mut body = format!("{state}\t{}\t{}\t{address}\t{mac}\t", at.0, until.0);
    escape(network, &mut body);
    body.push('\t');
    escape(host_name, &mut body);
    if let Some(location) = location {
        body.push('\t');
        escape(location, &mut body);
    }
    format!("{:08x}\t{body}\n", crc(body.as_bytes()))
}

/// The lease of a line, its line feed taken off.
///
/// # Errors
/// When the line was cut, changed, or is of another version.
pub fn decode(line: &[u8]) -> Result<Lease, RecordError> {
    let text = str::from_utf8(line).map_err(|_| RecordError::Checksum)?;
    let (sum, body) = text.split_once('\t').ok_or(RecordError::Checksum)?;
    let is_whole = sum.len() == 8 && u32::from_str_radix(sum, 16) == Ok(crc(body.as_bytes()));
    if !is_whole {
        return Err(RecordError::Checksum);
    }
    fields(body).ok_or(RecordError::Form)
}

fn fields(body: &str) -> Option<Lease> {
    let mut fields = body.split('\t');
    let state = match fields.next()? {
        "bound" => LeaseState::Bound,
        "released" => LeaseState::Released,
        "taken" => LeaseState::Taken,
        _ => return None,
    };
    let at = UnixMillis(fields.next()?.parse().ok()?);
    let until = UnixMillis(fields.next()?.parse().ok()?);
    let address = fields.next()?.parse().ok()?;
    let mac = fields.next()?.parse().ok()?;
    let (network, host_name) = (unescape(fields.next()?)?, unescape(fields.next()?)?);
    let location = match fields.next() {
        Some(location) => Some(unescape(location)?),
        None => None,
    };
    let is_all = fields.next().is_none();
    is_all.then_some(Lease { network, address, mac, state, at, until, host_name, location })
}

fn escape(text: &str, into: &mut String) {
    for c in text.chars() {
        match c {
            '\\' => into.push_str("\\\\"),
            '\t' => into.push_str("\\t"),
            '\n' => into.push_str("\\n"),
            '\r' => into.push_str("\\r"),
            c => into.write_char(c).expect("a String takes every character"),
        }
    }
}

fn unescape(text: &str) -> Option<String> {
    let (mut out, mut chars) = (String::with_capacity(text.len()), text.chars());
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next()? {
                '\\' => '\\',
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                _ => return None,
            },
            c => c,
        });
    }
    Some(out)
}

/// CRC-32 of IEEE 802.3, bit by bit: a line is a hundred bytes, and goes to a disk.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 }
        })
    })
}

#[cfg(test)]
mod tests {
    use model::MacAddr;
    use proptest::prelude::*;

    use super::*;

    fn lease() -> Lease {
        Lease {
            network: "boot".to_owned(),
            address: [192, 0, 2, 77].into(),
            mac: MacAddr([2, 0x5a, 0x10, 0, 0, 3]),
            state: LeaseState::Bound,
            at: UnixMillis(1_764_590_000_000),
            until: UnixMillis(1_764_590_600_000),
            host_name: "bld-003".to_owned(),
            location: Some("192.0.2.1 bay\t3".to_owned()),
        }
    }

    #[test]
    fn a_line_as_it_stands_in_the_file() {
        assert_eq!(crc(b"123456789"), 0xcbf4_3926, "the check value of CRC-32");
        insta::assert_snapshot!(
            encode(&lease()).trim_end().replace('\t', "|"),
            @r"eea0aafa|bound|1764590000000|1764590600000|192.0.2.77|02:5a:10:00:00:03|boot|bld-003|192.0.2.1 bay\t3"
        );
    }

    #[test]
    fn every_cut_of_a_line_and_every_changed_byte_is_seen() {
        let line = encode(&lease()).trim_end().to_owned().into_bytes();
        for cut in 0..line.len() {
            assert_eq!(decode(&line[..cut]), Err(RecordError::Checksum), "cut at {cut}");
        }
        for at in 0..line.len() {
            let mut spoilt = line.clone();
            spoilt[at] ^= 1;
            assert!(decode(&spoilt).is_err(), "changed at {at}");
        }
    }

    #[test]
    fn a_whole_line_of_another_version_is_told_from_a_torn_one() {
        let body = "held\t1\t2\t192.0.2.7\t02:00:00:00:00:01\tboot\t";
        let line = format!("{:08x}\t{body}", crc(body.as_bytes()));
        assert_eq!(decode(line.as_bytes()), Err(RecordError::Form));
    }

    proptest! {
        #[test]
        fn a_lease_comes_back_from_its_line(
            network in any::<String>(),
            host_name in any::<String>(),
            location in any::<Option<String>>(),
            state in prop::sample::select(vec![LeaseState::Bound, LeaseState::Released, LeaseState::Taken]),
            at in any::<i64>(),
        ) {
            let lease = Lease { network, host_name, location, state, at: UnixMillis(at), ..lease() };
            let line = encode(&lease);
            prop_assert_eq!(line.matches('\n').count(), 1);
            prop_assert_eq!(decode(line.trim_end_matches('\n').as_bytes()), Ok(lease));
        }

        #[test]
        fn no_line_makes_it_panic(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _unused = decode(&line);
        }
    }
}
