//! View structs: what templates show, worked out from API types. No request, no lab.

pub(crate) mod bay;
pub(crate) mod figure;
pub(crate) mod flight;
pub(crate) mod networks;
pub(crate) mod overview;
pub(crate) mod phases;
pub(crate) mod plot;
pub(crate) mod role;
pub(crate) mod time;

use std::fmt;

use askama::{Template, filters::HtmlSafe};

pub(crate) use self::{figure::Figure, role::RoleTag, time::Clock};

/// Markup made by one of our templates; other templates do not escape it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Html(String);

impl Html {
    /// Renders `template`. Templates write into memory and call nothing that fails.
    pub(crate) fn of(template: &impl Template) -> Self {
        Self(template.render().expect("templates render into memory and call nothing that fails"))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Html {}

/// `text` as one segment or value of a URL (RFC 3986, section 2.3: everything but unreserved is encoded).
pub(crate) fn url_part(text: &str) -> String {
    let encode = |byte: u8| {
        let character = char::from(byte);
        if character.is_ascii_alphanumeric() || "-._~".contains(character) {
            character.to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(encode).collect()
}

/// `text` as part of an element id: stable for real names, harmless for others.
pub(crate) fn id_part(text: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    text.chars().map(keep).collect()
}

/// `text` cut to `most` characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}

/// `text` as a sentence of a page: the plan's words begin small and have no full stop. A first word that is a
/// name (`bld-003`, `iPXE`) stays as it is.
pub(crate) fn sentence(text: &str) -> String {
    let text = text.trim();
    let word = text.split_whitespace().next().unwrap_or_default();
    let is_name = !word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'\'');
    let mut rest = text.chars();
    let first = rest.next().map(|first| if is_name { first } else { first.to_ascii_uppercase() });
    let ends = text.is_empty() || text.ends_with(['.', '!', '?', '…']);
    let stop = if ends { "" } else { "." };
    first.into_iter().chain(rest).chain(stop.chars()).collect()
}

/// `1 node`, `3 nodes`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The address of a node's page.
pub(crate) fn node_href(name: &str) -> String {
    format!("/nodes/{}", url_part(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_harmless_in_addresses_and_ids() {
        let name = "<img src=x onerror=alert(1)>";
        assert_eq!(node_href(name), "/nodes/%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E");
        assert_eq!(id_part("a\" b\r\n<"), "a__b___");
        assert_eq!(node_href("bld-003"), "/nodes/bld-003");
    }

    #[test]
    fn a_sentence_begins_large_unless_a_name_begins_it() {
        let cases = [
            ("no DHCP within 300 s", "No DHCP within 300 s."),
            ("its payload reported (while booting)", "Its payload reported (while booting)."),
            ("bld-003 is off", "bld-003 is off."),
            ("iPXE asked twice.", "iPXE asked twice."),
            ("", ""),
        ];
        for (text, want) in cases {
            assert_eq!(sentence(text), want);
        }
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(cut("ååååå", 3), "åå…");
        assert_eq!(cut("abc", 3), "abc");
    }
}
