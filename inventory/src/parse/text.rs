//! Text that machines wrote: trimmed, bounded, without control characters.

use model::Serial;

/// No text of a report is kept longer, in characters.
const MOST: usize = 128;

/// Text fit to be kept and shown, or `None` when nothing is left. Control characters, direction overrides
/// among them, become blanks; bytes that are no UTF-8 become replacement characters.
pub(super) fn clean(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let visible: String = text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect();
    let kept: String = visible.trim().chars().take(MOST).collect();
    (!kept.is_empty()).then_some(kept)
}

/// As [`clean`], and placeholders that boards leave the factory with are none.
pub(super) fn serial(bytes: &[u8]) -> Option<Serial> {
    Serial::new(&clean(bytes)?)
}

/// As [`serial`], for texts that are none: products, part numbers.
pub(super) fn product(bytes: &[u8]) -> Option<String> {
    serial(bytes).map(|text| text.as_str().to_owned())
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn text_is_trimmed_bounded_and_shows_all_it_has() {
        let cases: [(&[u8], Option<&str>); 8] = [
            ("\u{feff}LAB\u{61c}SN".as_bytes(), Some("LAB SN")),
            ("\u{200b}\u{feff}".as_bytes(), None),
            (b"  CZ3403YL03   ", Some("CZ3403YL03")),
            (b"   ", None),
            (b"a\nb\x1b[31m", Some("a b [31m")),
            (b"\xff\xfeA", Some("\u{fffd}\u{fffd}A")),
            ("abc\u{202e}def".as_bytes(), Some("abc def")),
            (b"<img src=x>", Some("<img src=x>")),
        ];
        for (bytes, want) in cases {
            assert_eq!(clean(bytes).as_deref(), want, "{bytes:?}");
        }
        assert_eq!(clean(&[b'x'; 999]).unwrap().len(), MOST);
    }
}
