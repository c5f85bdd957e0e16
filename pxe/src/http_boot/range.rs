//! Byte ranges and preconditions (RFC 9110, sections 13 and 14): what of a file a request wants. Nothing here
//! touches a file.

use super::{date, request::Conditions};

/// What is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// 200 with everything.
    Whole,
    /// 206 with these bytes.
    Part {
        /// Offset of the first byte.
        first: u64,
        /// How many, at least one.
        length: u64,
    },
    /// 304: the client has it.
    Unchanged,
    /// 412: the client has, or expects, another file.
    Changed,
    /// 416: there are no such bytes.
    NoSuchBytes,
}

/// What a file is compared by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Validators<'a> {
    /// Bytes of the file.
    pub(super) length: u64,
    /// Its entity tag, quotes included.
    pub(super) etag: &'a str,
    /// When it was last changed, in seconds of Unix time.
    pub(super) modified: u64,
}

/// What a request with these conditions gets of a file, in the order of RFC 9110, section 13.2.2.
///
/// EDK2 resumes a download (tianocore/edk2#6066) with `If-Match` or `If-Unmodified-Since`: were they passed over, half of one image
/// could be joined to half of another. `If-Modified-Since` counts only when it is the very date we sent: a later
/// one tells of a clock or a copy that is not ours.
pub(super) fn wanted(asked: &Conditions, file: Validators<'_>) -> Wanted {
    let tagged = |list: &str| {
        list.split(',').any(|tag| matches!(tag.trim(), "*") || tag.trim() == file.etag)
    };
    let later = |date: &str| date::read(date).is_some_and(|date| file.modified > date);
    match (&asked.if_match, &asked.if_unmodified_since) {
        (Some(list), _) if !tagged(list) => return Wanted::Changed,
        (None, Some(date)) if later(date) => return Wanted::Changed,
        (Some(_) | None, Some(_) | None) => (),
    }
    let weakly = |list: &str| tagged(&list.replace("W/", ""));
    let is_same_date = |date: &String| *date == date::text(file.modified);
    match (&asked.if_none_match, &asked.if_modified_since) {
        (Some(list), _) if weakly(list) => return Wanted::Unchanged,
        (None, Some(date)) if is_same_date(date) => return Wanted::Unchanged,
        (Some(_) | None, Some(_) | None) => (),
    }
    match (&asked.range, &asked.if_range) {
        (Some(range), None) => part(range, file.length),
        (Some(range), Some(tag)) if tag == file.etag => part(range, file.length),
        (Some(_) | None, Some(_) | None) => Wanted::Whole,
    }
}

/// One range of a file of `length` bytes. More than one, another unit, or what cannot be read is passed over, as
/// section 14.2 allows: the whole file is never wrong.
fn part(range: &str, length: u64) -> Wanted {
    let Some((first, last)) = range.strip_prefix("bytes=").and_then(|set| set.split_once('-'))
    else {
        return Wanted::Whole;
    };
    let (first, last) = (first.trim(), last.trim());
    let (first, end) = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => (first, last.saturating_add(1).min(length)),
        (Some(first), None) if last.is_empty() => (first, length),
        // The last so many bytes.
        (None, Some(count)) if first.is_empty() => {
            (length.saturating_sub(count), if count == 0 { 0 } else { length })
        }
        (Some(_) | None, Some(_) | None) => return Wanted::Whole,
    };
    match end.checked_sub(first) {
        Some(length) if length > 0 => Wanted::Part { first, length },
        Some(_) | None => Wanted::NoSuchBytes,
    }
}

/// Digits and nothing else; more than a u64 holds is its largest.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ETAG: &str = "\"3e8-1\"";
    const MODIFIED: u64 = 784_111_777; // Sun, 06 Nov 1994 08:49:37 GMT

    fn of(length: u64, asked: &Conditions) -> Wanted {
        wanted(asked, Validators { length, etag: ETAG, modified: MODIFIED })
    }

    fn range(range: &str) -> Conditions {
        Conditions { range: Some(range.to_owned()), ..Conditions::default() }
    }

    #[test]
    fn a_range_is_the_bytes_it_names_or_the_whole_file() {
        let part = |first, length| Wanted::Part { first, length };
        let cases = [
            ("bytes=0-", part(0, 1000)),
            ("bytes=0-0", part(0, 1)),
            ("bytes=5-6", part(5, 2)),
            ("bytes= 5 - 6 ", part(5, 2)),
            ("bytes=999-", part(999, 1)),
            ("bytes=990-5000", part(990, 10)),
            ("bytes=0-99999999999999999999999", part(0, 1000)),
            ("bytes=-5", part(995, 5)),
            ("bytes=-5000", part(0, 1000)),
            ("bytes=1000-", Wanted::NoSuchBytes),
            ("bytes=99999999999999999999999-", Wanted::NoSuchBytes),
            ("bytes=-0", Wanted::NoSuchBytes),
            ("bytes=9-5", Wanted::Whole),
            ("bytes=0-0,5-9", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("bytes=", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("bytes=a-b", Wanted::Whole),
            ("lines=1-2", Wanted::Whole),
            ("", Wanted::Whole),
        ];
        for (text, want) in cases {
            assert_eq!(of(1000, &range(text)), want, "{text}");
        }
        assert_eq!(of(0, &range("bytes=0-")), Wanted::NoSuchBytes, "an empty file has no bytes");
    }

    #[test]
    fn conditions_are_held_against_tag_and_date() {
        let (same, earlier, later) = (
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:36 GMT",
            "Sun, 06 Nov 1994 08:49:38 GMT",
        );
        let with = |name: &str, value: &str| {
            let value = Some(value.to_owned());
            let mut asked = range("bytes=1-2");
            match name {
                "if-match" => asked.if_match = value,
                "if-none-match" => asked.if_none_match = value,
                "if-modified-since" => asked.if_modified_since = value,
                "if-unmodified-since" => asked.if_unmodified_since = value,
                _ => asked.if_range = value,
            }
            of(1000, &asked)
        };
        let part = Wanted::Part { first: 1, length: 2 };
        let cases = [
            ("if-match", ETAG, part),
            ("if-match", "*", part),
            ("if-match", "\"a\", \"3e8-1\"", part),
            ("if-match", "\"a\"", Wanted::Changed),
            ("if-match", "W/\"3e8-1\"", Wanted::Changed),
            ("if-unmodified-since", same, part),
            ("if-unmodified-since", later, part),
            ("if-unmodified-since", earlier, Wanted::Changed),
            ("if-unmodified-since", "no date", part),
            ("if-none-match", "\"a\"", part),
            ("if-none-match", "\"a\", W/\"3e8-1\"", Wanted::Unchanged),
            ("if-none-match", "*", Wanted::Unchanged),
            ("if-modified-since", same, Wanted::Unchanged),
            ("if-modified-since", earlier, part),
            ("if-modified-since", later, part),
            ("if-range", ETAG, part),
            ("if-range", "\"a\"", Wanted::Whole),
            ("if-range", "W/\"3e8-1\"", Wanted::Whole),
            ("if-range", same, Wanted::Whole),
        ];
        for (name, value, want) in cases {
            assert_eq!(with(name, value), want, "{name}: {value}");
        }
    }

    proptest! {
        #[test]
        fn a_part_lies_in_the_file_whatever_is_asked(text in "bytes=[0-9]{0,20}-[0-9]{0,20}", length: u64) {
            if let Wanted::Part { first, length: bytes } = part(&text, length) {
                prop_assert!(bytes > 0 && first.checked_add(bytes).is_some_and(|end| end <= length));
            }
        }

        #[test]
        fn no_header_makes_it_panic(text: String, length: u64) {
            let asked = Conditions {
                range: Some(text.clone()),
                if_match: Some(text.clone()),
                if_none_match: Some(text.clone()),
                if_modified_since: Some(text.clone()),
                if_unmodified_since: Some(text.clone()),
                if_range: Some(text),
            };
            let _wanted = of(length, &asked);
        }
    }
}
