//! Durations as people write them: `90s`, `8m`, `1h30m`.

use std::time::Duration;

/// The text is no duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a duration is written as 500ms, 90s, 8m, 1h30m or 2d")]
pub struct ParseDurationError;

/// A duration of whole numbers with units, largest first or not, without blanks.
///
/// # Errors
/// [`ParseDurationError`] when a number has no unit, a unit no number, or the sum is out of range.
pub fn parse(text: &str) -> Result<Duration, ParseDurationError> {
    let mut rest = text.trim();
    let mut sum = Duration::ZERO;
    if rest.is_empty() {
        return Err(ParseDurationError);
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or(ParseDurationError)?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let number: u64 = number.parse().map_err(|_| ParseDurationError)?;
        let span =
            Duration::from_millis(number.checked_mul(millis(unit)?).ok_or(ParseDurationError)?);
        sum = sum.checked_add(span).ok_or(ParseDurationError)?;
        rest = tail;
    }
    Ok(sum)
}

fn millis(unit: &str) -> Result<u64, ParseDurationError> {
    Ok(match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(ParseDurationError),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        let cases = [
            ("8m", Ok(480)),
            ("90s", Ok(90)),
            ("1h30m", Ok(5_400)),
            ("2d", Ok(172_800)),
            ("0s", Ok(0)),
            ("", Err(ParseDurationError)),
            ("8", Err(ParseDurationError)),
            ("m", Err(ParseDurationError)),
            ("-5s", Err(ParseDurationError)),
            ("5 s", Err(ParseDurationError)),
            ("99999999999999999999s", Err(ParseDurationError)),
            ("18446744073709551615d", Err(ParseDurationError)),
        ];
        for (text, want) in cases {
            assert_eq!(parse(text).map(|span| span.as_secs()), want, "{text:?}");
        }
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: String) {
            let _outcome = parse(&text);
        }
    }
}
