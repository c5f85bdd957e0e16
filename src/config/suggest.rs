//! "Did you mean …?"

/// The word of `known` that `word` was most likely meant to be, if any comes close.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    known
        .into_iter()
        .filter_map(|candidate| Some((distance(word, candidate)?, candidate)))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edit distance where it is small for the words' length; a beginning counts as one edit.
fn distance(word: &str, candidate: &str) -> Option<usize> {
    let short = word.len().min(candidate.len());
    if short >= 3 && (candidate.starts_with(word) || word.starts_with(candidate)) {
        return Some(1);
    }
    let edits = levenshtein(word, candidate);
    (edits <= (short / 3).max(1)).then_some(edits)
}

fn levenshtein(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.chars().count()).collect();
    for (index, a) in left.chars().enumerate() {
        let mut next = vec![index + 1];
        for ((b, above), diagonal) in right.chars().zip(row.iter().skip(1)).zip(&row) {
            let beside = next.last().copied().unwrap_or(0);
            next.push((above + 1).min(beside + 1).min(diagonal + usize::from(a != b)));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_key_finds_the_one_that_was_meant() {
        let known = ["address", "macs", "bmc", "name", "profiles"];
        let cases = [
            ("adress", Some("address")),
            ("addr", Some("address")),
            ("mac", Some("macs")),
            ("profile", Some("profiles")),
            ("nmae", None),
            ("disks", None),
            ("", None),
        ];
        for (word, want) in cases {
            assert_eq!(nearest(word, known), want, "{word}");
        }
    }
}
