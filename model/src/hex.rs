//! Bytes as hexadecimal text.

/// The text is no even run of hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an even run of hexadecimal digits")]
pub struct HexError;

/// Lower-case digits, two a byte.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes that [`encode`] was given; upper case is taken too.
///
/// # Errors
/// When a character is no hexadecimal digit or one digit has no partner.
pub fn decode(text: &str) -> Result<Vec<u8>, HexError> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.ok_or(HexError)?;
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(HexError);
    }
    Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_encoded_decodes(bytes: Vec<u8>) {
            prop_assert_eq!(super::decode(&super::encode(&bytes)), Ok(bytes));
        }

        #[test]
        fn no_text_makes_decode_panic(text: String) {
            let _outcome = super::decode(&text);
        }
    }
}
