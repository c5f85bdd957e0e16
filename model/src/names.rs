//! Names people give: nodes, enclosures, profiles; and the serials makers give.

use std::{borrow::Borrow, fmt, str::FromStr};

use serde::{Deserialize, Serialize, de};

/// Why a text is no name. The message says what would be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no name: use 1 to 63 lower-case letters, digits and hyphens, starting with a letter or digit"
)]
pub struct NameError(pub String);

/// Longest name: a host label (RFC 1035, section 2.3.4).
pub(crate) const LONGEST: usize = 63;

/// RFC 1123 host label, lower case: safe in scripts, paths and URLs without escaping.
fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=LONGEST).contains(&text.len())
        && text.chars().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

macro_rules! label {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                if is_label(text) { Ok(Self(text.to_owned())) } else { Err(NameError(text.to_owned())) }
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    };
}

label!(
    /// A node as its operator calls it: a host label such as `bld-003`.
    NodeName
);
label!(
    /// An enclosure as its operator calls it, such as `c7000-1`.
    EnclosureName
);
label!(
    /// A profile as the configuration calls it, such as `inspect`.
    ProfileName
);

/// A serial number as a maker gave it, blanks trimmed. Known junk is no serial.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Serial(String);

impl Serial {
    /// The serial, or `None` for blanks and the placeholders boards leave the factory with.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        const JUNK: [&str; 24] = [
            "n/a",
            "none",
            "unknown",
            "not specified",
            "not available",
            "system serial number",
            "to be filled by o.e.m.",
            "default string",
            "empty",
            "na",
            "null",
            "no asset information",
            "not applicable",
            "not present",
            "invalid",
            "undefined",
            "o.e.m.",
            "oem",
            "serial number",
            "chassis serial number",
            "base board serial number",
            "0123456789",
            "123456789",
            "1234567890",
        ];
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        let lower = text.to_ascii_lowercase();
        let filler = |c: char| matches!(c, '0' | 'x' | 'f' | '.' | '-');
        if text.is_empty() || JUNK.contains(&lower.as_str()) || lower.chars().all(filler) {
            return None;
        }
        Some(Self(text.to_owned()))
    }

    /// The serial as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_be_script_or_path_is_refused() {
        for bad in ["", "-a", "a-", "A", "a b", "a/b", "../a", "a;b", "a\n", "é", &"a".repeat(64)]
        {
            assert!(bad.parse::<NodeName>().is_err(), "{bad:?}");
        }
        assert_eq!("bld-003".parse::<NodeName>().unwrap().to_string(), "bld-003");
    }

    #[test]
    fn placeholders_are_no_serials() {
        for junk in [
            "",
            "  ",
            "N/A",
            "To be filled by O.E.M.",
            "0000000",
            "xxxxxxx",
            "System Serial Number",
            "Chassis Serial Number",
            "NULL",
            "Not Applicable",
            "O.E.M.",
            "0123456789",
            "................",
        ] {
            assert_eq!(Serial::new(junk), None, "{junk:?}");
        }
        assert_eq!(Serial::new(" CZ3403YL03  ").unwrap().as_str(), "CZ3403YL03");
    }
}
