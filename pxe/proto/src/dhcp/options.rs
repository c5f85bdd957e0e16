//! The option list of a DHCP message: a tolerant walk over tag, length and value.
//!
//! It never judges a value. A damaged option ends at most its own area; whatever was read before and whatever
//! other areas hold stays, and what was wrong is kept as a [`Warning`].

use std::net::Ipv4Addr;

/// No option: a filler byte (RFC 2132, 3.1).
const PAD: u8 = 0;
/// End of options (RFC 2132, 3.2).
pub(super) const END: u8 = 255;

/// Something in a message that is not as it should be, yet does not make the rest unreadable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// The length byte of an option points behind its area: the option is dropped, its area ends there.
    #[error("option {code} runs over the end of {area}")]
    Truncated {
        /// Option code.
        code: u8,
        /// `options`, `file` or `sname`.
        area: &'static str,
    },
    /// An option's value has a length its definition does not allow: it is taken as absent.
    #[error("option {code} has {length} bytes")]
    Length {
        /// Option code.
        code: u8,
        /// Length found.
        length: usize,
    },
}

/// Options in the order they were first seen. A code occurs once: repeated ones are joined (RFC 3396).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    list: Vec<(u8, Vec<u8>)>,
}

impl Options {
    /// The value of an option, joined if it came in pieces.
    #[must_use]
    pub fn get(&self, code: u8) -> Option<&[u8]> {
        self.list.iter().find(|(have, _)| *have == code).map(|(_, value)| value.as_slice())
    }

    /// Sets an option, replacing an earlier value in its place.
    pub fn set(&mut self, code: u8, value: impl Into<Vec<u8>>) {
        let value = value.into();
        match self.list.iter_mut().find(|(have, _)| *have == code) {
            Some((_, old)) => *old = value,
            None => self.list.push((code, value)),
        }
    }

    /// Takes an option out.
    pub fn remove(&mut self, code: u8) -> Option<Vec<u8>> {
        let index = self.list.iter().position(|(have, _)| *have == code)?;
        Some(self.list.remove(index).1)
    }

    /// All options, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &[u8])> {
        self.list.iter().map(|(code, value)| (*code, value.as_slice()))
    }

    /// The value of an option of exactly `N` bytes; any other length is a warning and no value.
    pub fn fixed<const N: usize>(&self, code: u8, warnings: &mut Vec<Warning>) -> Option<[u8; N]> {
        let value = self.get(code)?;
        let fixed = value.try_into().ok();
        if fixed.is_none() {
            warnings.push(Warning::Length { code, length: value.len() });
        }
        fixed
    }

    /// The value of an option that is one address.
    pub fn address(&self, code: u8, warnings: &mut Vec<Warning>) -> Option<Ipv4Addr> {
        self.fixed::<4>(code, warnings).map(Ipv4Addr::from)
    }

    /// Reads one area of tag, length, value, joining what is already there (RFC 3396).
    pub(super) fn read(
        &mut self,
        mut area: &[u8],
        name: &'static str,
        warnings: &mut Vec<Warning>,
    ) {
        while let Some((&code, rest)) = area.split_first() {
            if code == END {
                return;
            }
            area = rest;
            if code == PAD {
                continue;
            }
            let value = rest
                .split_first()
                .and_then(|(length, rest)| rest.split_at_checked(usize::from(*length)));
            let Some((value, rest)) = value else {
                warnings.push(Warning::Truncated { code, area: name });
                return;
            };
            self.join(code, value);
            area = rest;
        }
    }

    /// Appends to an option, or begins it.
    fn join(&mut self, code: u8, value: &[u8]) {
        match self.list.iter_mut().find(|(have, _)| *have == code) {
            Some((_, old)) => old.extend_from_slice(value),
            None => self.list.push((code, value.to_vec())),
        }
    }

    /// Writes all options and END: `first` goes first, `last` goes last, no PAD anywhere. Values over 255 bytes
    /// are split (RFC 3396).
    pub(super) fn write(&self, first: u8, last: u8, out: &mut Vec<u8>) {
        let rank = |code: u8| match code {
            code if code == first => 0,
            code if code == last => 2,
            _ => 1,
        };
        for wanted in 0..=2 {
            for (code, value) in self.iter().filter(|(code, _)| rank(*code) == wanted) {
                write_one(code, value, out);
            }
        }
        out.push(END);
    }
}

/// Writes one option in as many pieces as it needs; an empty value is one empty piece.
pub(super) fn write_one(code: u8, value: &[u8], out: &mut Vec<u8>) {
    let (whole, rest) = value.as_chunks::<255>();
    for piece in whole {
        out.extend([code, 255]);
        out.extend_from_slice(piece);
    }
    if !rest.is_empty() || whole.is_empty() {
        out.extend([code, u8::try_from(rest.len()).unwrap_or(u8::MAX)]);
        out.extend_from_slice(rest);
    }
}

/// Bytes [`write_one`] writes for a value.
pub(super) fn written_length(value: &[u8]) -> usize {
    value.len() + 2 * value.len().div_ceil(255).max(1)
}

/// Tag, length, value inside an option (43, 82, 175): what is damaged at the end is left out.
pub(crate) fn sub_options(mut area: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let ([code, length], rest) = area.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(usize::from(*length))?;
        area = rest;
        Some((*code, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_option_does_not_hide_the_ones_before_it() {
        let (mut options, mut warnings) = (Options::default(), vec![]);
        options.read(&[53, 1, 1, 0, 0, 12, 9, b'x'], "options", &mut warnings);
        assert_eq!(options.get(53), Some(&[1][..]));
        assert_eq!(options.get(12), None);
        assert_eq!(warnings, [Warning::Truncated { code: 12, area: "options" }]);
    }

    #[test]
    fn a_long_value_is_split_and_joined_again() {
        for length in [0, 1, 254, 255, 256, 510, 511] {
            let mut options = Options::default();
            options.set(43, vec![7; length]);
            let mut bytes = vec![];
            options.write(53, 82, &mut bytes);
            let (mut again, mut warnings) = (Options::default(), vec![]);
            again.read(&bytes, "options", &mut warnings);
            assert_eq!((again, warnings), (options, vec![]), "{length}");
        }
    }

    #[test]
    fn an_option_of_a_wrong_length_is_absent_with_a_warning() {
        let mut options = Options::default();
        options.set(50, vec![192, 0, 2]);
        let mut warnings = vec![];
        assert_eq!(options.address(50, &mut warnings), None);
        assert_eq!(warnings, [Warning::Length { code: 50, length: 3 }]);
    }
}
