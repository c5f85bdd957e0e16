//! Hardware addresses.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize, de};

/// A hardware address: always six octets inside, always shown as `aa:bb:cc:dd:ee:ff`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MacAddr(pub [u8; 6]);

/// The text is no hardware address of six octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a MAC address has six octets, such as 9c:8e:99:00:03:01")]
pub struct ParseMacError;

impl MacAddr {
    /// The octets as sent on the wire.
    #[must_use]
    pub fn octets(self) -> [u8; 6] {
        self.0
    }

    /// `aa-bb-cc-dd-ee-ff`, the form of iPXE's `:hexhyp` and of pxelinux file names.
    #[must_use]
    pub fn hyphenated(self) -> String {
        self.to_string().replace(':', "-")
    }

    /// All zeros, all ones or a group address: never the identity of one interface.
    #[must_use]
    pub fn is_junk(self) -> bool {
        self.0 == [0; 6] || self.0[0] & 1 == 1
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for MacAddr {
    type Err = ParseMacError;

    /// Takes colons, hyphens, Cisco dots or bare hex, in either case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits: String =
            text.trim().chars().filter(|c| !matches!(c, ':' | '-' | '.')).collect();
        let octets = crate::hex::decode(&digits).map_err(|_| ParseMacError)?;
        Ok(Self(octets.try_into().map_err(|_| ParseMacError)?))
    }
}

impl Serialize for MacAddr {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MacAddr {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_accepts_the_spellings_vendors_use() {
        let want: MacAddr = "00:25:90:aa:bb:cc".parse().unwrap();
        let cases = [
            ("colons, upper case", "00:25:90:AA:BB:CC", Ok(want)),
            ("iPXE hexhyp", "00-25-90-aa-bb-cc", Ok(want)),
            ("Cisco dots", "0025.90aa.bbcc", Ok(want)),
            ("bare hex", "002590aabbcc", Ok(want)),
            ("one octet short", "00:25:90:aa:bb", Err(ParseMacError)),
            ("not hex", "00:25:90:aa:bb:zz", Err(ParseMacError)),
            ("not ascii", "00:25:90:aa:bb:é", Err(ParseMacError)),
        ];
        for (name, input, want) in cases {
            assert_eq!(input.parse::<MacAddr>(), want, "{name}");
        }
    }
}
