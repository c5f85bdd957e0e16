//! Seeded chance: the same seed gives the same lab, the same spreads and the same curves.

/// SplitMix64. Small, fast, good enough for spreads; never for secrets.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// A stream for `seed` and `of`, so that two blades of one lab differ.
    #[must_use]
    pub fn new(seed: u64, of: u64) -> Self {
        Self(seed ^ of.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below 1, in steps of 2^-32.
    pub fn unit(&mut self) -> f64 {
        let [a, b, c, d, ..] = self.next_u64().to_be_bytes();
        f64::from(u32::from_be_bytes([a, b, c, d])) / 4_294_967_296.0
    }

    /// 16 bytes.
    pub fn bytes(&mut self) -> [u8; 16] {
        let (high, low) = (u128::from(self.next_u64()), u128::from(self.next_u64()));
        (high << 64 | low).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_again_and_another_blade_something_else() {
        let draw = |of| Chance::new(7, of).next_u64();
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
        let mut chance = Chance::new(7, 3);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&chance.unit())));
    }
}
