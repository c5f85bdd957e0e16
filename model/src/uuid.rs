//! SMBIOS UUIDs, which travel in two byte orders.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize, de};

/// A machine's UUID, kept in the order people read (RFC 4122, big-endian fields).
///
/// SMBIOS since 2.6 and DHCP option 97 carry the first three fields little-endian, and some firmware does
/// not: [`Uuid::same_machine`] compares both orders.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(pub [u8; 16]);

/// What boards hold whose maker never wrote a UUID of their own: firmware makers' presets and documentation examples.
const PRESETS: [[u8; 16]; 3] = [
    *b"\x03\x00\x02\x00\x04\x00\x05\x00\x00\x06\x00\x07\x00\x08\x00\x09",
    *b"\x12\x34\x56\x78\x12\x34\x56\x78\x90\xab\xcd\xde\xef\xaa\xbb\xcc",
    *b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f",
];

/// The text is no UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a UUID has 32 hexadecimal digits, such as 39343536-3831-435a-3334-303359303033")]
pub struct ParseUuidError;

impl Uuid {
    /// From the bytes of SMBIOS type 1 (2.6 or newer) or DHCP option 97: first three fields little-endian.
    #[must_use]
    pub fn from_smbios(bytes: [u8; 16]) -> Self {
        Self(bytes).swapped()
    }

    /// The same value with the first three fields in the other byte order.
    #[must_use]
    pub fn swapped(self) -> Self {
        let [a, b, c, d, e, f, g, h, rest @ ..] = self.0;
        let [i, j, k, l, m, n, o, p] = rest;
        Self([d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p])
    }

    /// Whether both name one machine, whichever byte order either came in.
    #[must_use]
    pub fn same_machine(self, other: Self) -> bool {
        self == other || self == other.swapped()
    }

    /// One byte all over, or the value a board's firmware comes with, in either byte order: set by nobody, shared
    /// by many.
    #[must_use]
    pub fn is_junk(self) -> bool {
        let [first, ..] = self.0;
        self.0 == [first; 16] || PRESETS.iter().any(|preset| self.same_machine(Self(*preset)))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = ParseUuidError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
        let bytes = crate::hex::decode(&digits).map_err(|_| ParseUuidError)?;
        Ok(Self(bytes.try_into().map_err(|_| ParseUuidError)?))
    }
}

impl Serialize for Uuid {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Uuid {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_byte_orders_are_one_machine() {
        let read: Uuid = "a1b2c3d4-e5f6-0718-293a-4b5c6d7e8f90".parse().unwrap();
        let wire: [u8; 16] =
            crate::hex::decode("d4c3b2a1f6e51807293a4b5c6d7e8f90").unwrap().try_into().unwrap();
        assert_eq!(Uuid::from_smbios(wire), read);
        assert!(read.same_machine(Uuid(wire)));
        assert_eq!(read.to_string(), "a1b2c3d4-e5f6-0718-293a-4b5c6d7e8f90");
    }

    #[test]
    fn a_value_many_boards_share_names_no_machine() {
        let junk = [
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "11111111-1111-1111-1111-111111111111",
            "03000200-0400-0500-0006-000700080009",
            "00020003-0004-0005-0006-000700080009",
            "12345678-1234-5678-90ab-cddeefaabbcc",
            "00010203-0405-0607-0809-0a0b0c0d0e0f",
        ];
        for text in junk {
            let uuid: Uuid = text.parse().unwrap();
            assert!(uuid.is_junk() && uuid.swapped().is_junk(), "{text}");
        }
        let real: Uuid = "39343536-3831-435a-3334-303359303033".parse().unwrap();
        assert!(!real.is_junk());
    }
}
