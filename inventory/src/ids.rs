//! Keys of rows that are only appended: ULIDs (26 digits of Crockford's base 32; 48 bits of milliseconds, 80 of
//! chance), each greater than the one before.

use std::time::{SystemTime, UNIX_EPOCH};

/// Crockford's alphabet: digits and letters without I, L, O, U. Sorted as ASCII sorts.
const ALPHABET: [u8; 32] = *b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const RANDOM_BITS: u32 = 80;

/// Makes keys for one store.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    last: u128,
}

impl Ids {
    /// Goes on after `last`, the greatest key in the database, so that a clock that stepped back does not
    /// put new rows before old ones.
    pub(crate) fn after(last: Option<&str>) -> Self {
        Self { last: last.and_then(decode).unwrap_or(0) }
    }

    /// The next key by the host's clock.
    pub(crate) fn next(&mut self) -> String {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut chance = [0; 8];
        // Without chance the keys still grow; only several instances could then collide.
        if getrandom::fill(&mut chance).is_err() {
            chance = [0; 8];
        }
        self.next_at(since_epoch.as_millis(), u64::from_ne_bytes(chance))
    }

    fn next_at(&mut self, millis: u128, chance: u64) -> String {
        let fresh = (millis << RANDOM_BITS) | (u128::from(chance) << 8);
        self.last = fresh.max(self.last.saturating_add(1));
        encode(self.last)
    }
}

fn encode(value: u128) -> String {
    (0..26_u32)
        .rev()
        .filter_map(|place| {
            let digit = usize::try_from((value >> (5 * place)) & 31).ok()?;
            ALPHABET.get(digit).map(|byte| char::from(*byte))
        })
        .collect()
}

fn decode(text: &str) -> Option<u128> {
    if text.len() != 26 {
        return None;
    }
    text.bytes().try_fold(0_u128, |value, byte| {
        let digit = ALPHABET.iter().position(|letter| *letter == byte)?;
        Some((value << 5) | u128::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_grow_whatever_the_clock_does(steps: Vec<(u32, u64)>) {
            let mut ids = Ids::default();
            let mut before = String::new();
            for (millis, chance) in steps {
                let id = ids.next_at(u128::from(millis), chance);
                prop_assert!(id > before, "{} after {}", id, before);
                before = id;
            }
        }

        #[test]
        fn a_key_read_back_is_followed_by_a_greater_one(millis: u32, chance: u64) {
            let first = Ids::default().next_at(u128::from(millis), chance);
            let second = Ids::after(Some(&first)).next_at(0, 0);
            prop_assert!(second > first);
        }
    }

    #[test]
    fn a_key_that_is_none_starts_anew() {
        for text in ["", "not a key", "IIIIIIIIIIIIIIIIIIIIIIIIII"] {
            assert_eq!(Ids::after(Some(text)).last, 0, "{text}");
        }
        assert_eq!(Ids::default().next().len(), 26);
    }
}
