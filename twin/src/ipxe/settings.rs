//! iPXE settings: names, values and the `${name:type}` expansion.

use std::collections::BTreeMap;

/// Values a script sees. Names are kept without their scope for the booting interface: `net0/mac` and `mac`
/// are one setting, as long as there is one interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<String, String>);

/// More settings than any script of ours makes; a script in a loop cannot eat the twin's memory.
const MOST: usize = 256;
/// Nor can one that doubles a value again and again: a longer one is not stored, and no text grows further.
pub(super) const MOST_BYTES: usize = 8 * 1_024;

impl Settings {
    /// Stores `value` under `name`; an empty value deletes it, as in iPXE.
    pub fn set(&mut self, name: &str, value: &str) {
        let name = plain(name);
        if value.is_empty() {
            self.0.remove(name);
        } else if value.len() <= MOST_BYTES && (self.0.len() < MOST || self.0.contains_key(name)) {
            self.0.insert(name.to_owned(), value.to_owned());
        }
    }

    /// The value as text; empty when it is not set.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        self.0.get(plain(name)).map_or("", String::as_str)
    }

    /// Replaces every `${name}` and `${name:type}`, innermost first, as iPXE does. An opening without its
    /// brace stays as it is. Bounded: after 64 replacements, or beyond 8 KiB, the rest stays as written.
    #[must_use]
    pub fn expand(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for _ in 0..64 {
            if text.len() > MOST_BYTES {
                break;
            }
            let Some((start, end)) = innermost(&text) else { break };
            let inside = text.get(start + 2..end).unwrap_or_default();
            let value = self.typed(inside);
            text.replace_range(start..=end, &value);
        }
        text
    }

    /// The value of `name:type` in the form the type asks for.
    fn typed(&self, inside: &str) -> String {
        let (name, kind) = inside.split_once(':').unwrap_or((inside, "string"));
        let value = self.get(name);
        match kind {
            "hexhyp" if value.contains(':') => value.replace(':', "-"),
            "hexraw" if value.contains(':') => value.replace(':', ""),
            "uristring" => escaped(value),
            _ => value.to_owned(),
        }
    }
}

/// The name without the scope of the booting interface and without its type.
fn plain(name: &str) -> &str {
    let name = name.split(':').next().unwrap_or_default();
    name.strip_prefix("net0/").or_else(|| name.strip_prefix("netX/")).unwrap_or(name)
}

/// The last `${` that has a `}` behind it: nothing is nested inside it.
fn innermost(text: &str) -> Option<(usize, usize)> {
    let mut before = text.len();
    loop {
        let start = text.get(..before)?.rfind("${")?;
        let close = text.get(start..).and_then(|rest| rest.find('}'));
        match close {
            Some(close) => return Some((start, start + close)),
            None => before = start,
        }
    }
}

/// Percent-encodes everything but RFC 3986 unreserved characters.
fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blade() -> Settings {
        let mut settings = Settings::default();
        settings.set("net0/mac", "9c:8e:99:00:03:01");
        settings.set("hostname", "bld 3");
        settings.set("which", "mac");
        settings
    }

    #[test]
    fn settings_expand_as_ipxe_expands_them() {
        let cases = [
            ("${mac}", "9c:8e:99:00:03:01"),
            ("${net0/mac:hexhyp}", "9c-8e-99-00-03-01"),
            ("a=${hostname:uristring}&b", "a=bld%203&b"),
            ("${nobody}", ""),
            ("${${which}:hexraw}", "9c8e99000301"),
            ("${mac", "${mac"),
            ("}${", "}${"),
        ];
        for (text, want) in cases {
            assert_eq!(blade().expand(text), want, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_expand_panic(text in "[${}a:é]{0,40}") {
            let _expanded = blade().expand(&text);
        }
    }
}
