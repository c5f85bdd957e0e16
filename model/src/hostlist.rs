//! Hostlists: `bld-[003,006-010],oden` as Slurm writes them.

use std::collections::BTreeSet;

use crate::{NodeName, names::LONGEST};

/// At most this many names come out of one hostlist.
pub const MAX_NAMES: usize = 4_096;

/// What is wrong with a hostlist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostlistError {
    /// Nothing in it.
    #[error("the list of nodes is empty; write names such as bld-[003,006-010]")]
    Empty,
    /// Brackets do not pair.
    #[error("{0:?} has a bracket without its partner")]
    Bracket(String),
    /// A range in brackets is none.
    #[error("{0:?} is no range; write 006-010, lower number first")]
    Range(String),
    /// A name that results is no name.
    #[error(transparent)]
    Name(#[from] crate::names::NameError),
    /// Too many.
    #[error("the list names more than {MAX_NAMES} nodes")]
    TooMany,
}

/// The names in `text`, in order, duplicates left out.
///
/// # Errors
/// [`HostlistError`] names the piece that is wrong.
pub fn parse(text: &str) -> Result<Vec<NodeName>, HostlistError> {
    let mut names: Vec<NodeName> = Vec::new();
    let mut seen = BTreeSet::new();
    // Counts what comes twice too: a short text must not keep anybody busy for long.
    let mut room = MAX_NAMES;
    for piece in split(text)? {
        let more = expand(piece, room)?;
        room -= more.len();
        for name in more {
            let name: NodeName = name.parse()?;
            if seen.insert(name.clone()) {
                names.push(name);
            }
        }
    }
    if names.is_empty() { Err(HostlistError::Empty) } else { Ok(names) }
}

/// `names` as one hostlist: names that differ only in their last number share a bracket. [`parse`] gives the
/// same names again.
#[must_use]
pub fn fold(names: &[NodeName]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for name in names {
        let name = name.as_str();
        let (prefix, number) =
            name.split_at(name.trim_end_matches(|c: char| c.is_ascii_digit()).len());
        match groups.iter_mut().find(|(known, _)| *known == prefix) {
            Some((_, numbers)) => numbers.push(number),
            None => groups.push((prefix, vec![number])),
        }
    }
    let pieces = groups.into_iter().flat_map(|(prefix, numbers)| fold_group(prefix, numbers));
    pieces.collect::<Vec<_>>().join(",")
}

/// One piece, and one more for each number that does not fit into a range.
fn fold_group(prefix: &str, mut numbers: Vec<&str>) -> Vec<String> {
    let value = |text: &str| text.parse::<u32>().ok();
    if numbers.len() < 2 || numbers.iter().any(|number| value(number).is_none()) {
        return numbers.into_iter().map(|number| format!("{prefix}{number}")).collect();
    }
    numbers.sort_by_key(|number| (number.len(), value(number)));
    let follows = |left: &&str, right: &&str| {
        left.len() == right.len()
            && value(left).and_then(|number| number.checked_add(1)) == value(right)
    };
    let range = |run: &[&str]| match run {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first, .., last] => format!("{first}-{last}"),
    };
    let ranges: Vec<String> = numbers.chunk_by(follows).map(range).collect();
    vec![format!("{prefix}[{}]", ranges.join(","))]
}

/// Cuts at commas that stand outside brackets.
fn split(text: &str) -> Result<Vec<&str>, HostlistError> {
    let mut inside = false;
    let mut fault = false;
    let pieces: Vec<&str> = text
        .split(|c: char| {
            match c {
                '[' => fault |= std::mem::replace(&mut inside, true),
                ']' => fault |= !std::mem::replace(&mut inside, false),
                _ => (),
            }
            !inside && (c == ',' || c.is_whitespace())
        })
        .filter(|piece| !piece.is_empty())
        .collect();
    if fault || inside { Err(HostlistError::Bracket(text.to_owned())) } else { Ok(pieces) }
}

/// At most `room` names; none is made before it is known that they fit.
fn expand(piece: &str, room: usize) -> Result<Vec<String>, HostlistError> {
    let mut names = vec![String::new()];
    let mut rest = piece;
    while let Some((before, after)) = rest.split_once('[') {
        let (ranges, suffix) =
            after.split_once(']').ok_or_else(|| HostlistError::Bracket(piece.to_owned()))?;
        fits_a_name(before)?;
        let numbers = numbers(ranges, room)?;
        if names.len() * numbers.len() > room {
            return Err(HostlistError::TooMany);
        }
        let with = |name: &String| -> Vec<String> {
            numbers.iter().map(|number| format!("{name}{before}{number}")).collect()
        };
        names = names.iter().flat_map(with).collect();
        if let Some(long) = names.iter().find(|name| name.len() > LONGEST) {
            long.parse::<NodeName>()?;
        }
        rest = suffix;
    }
    if names.len() > room {
        return Err(HostlistError::TooMany);
    }
    fits_a_name(rest)?;
    names.iter_mut().for_each(|name| name.push_str(rest));
    Ok(names)
}

/// What is longer than a name on its own is refused before thousands of copies are made of it.
fn fits_a_name(part: &str) -> Result<(), HostlistError> {
    if part.len() > LONGEST {
        part.parse::<NodeName>()?;
    }
    Ok(())
}

/// The numbers of `003,006-010`, at most `room`.
fn numbers(ranges: &str, room: usize) -> Result<Vec<String>, HostlistError> {
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        let fault = || HostlistError::Range(range.to_owned());
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let digits = |text: &str| {
            (1..=LONGEST).contains(&text.len()) && text.chars().all(|c| c.is_ascii_digit())
        };
        if !digits(first) || !digits(last) {
            return Err(fault());
        }
        let low: u32 = first.parse().map_err(|_| fault())?;
        let high: u32 = last.parse().map_err(|_| fault())?;
        if low > high {
            return Err(fault());
        }
        let fits = usize::try_from(high - low).is_ok_and(|more| numbers.len() + more < room);
        if !fits {
            return Err(HostlistError::TooMany);
        }
        numbers.extend((low..=high).map(|number| format!("{number:0width$}", width = first.len())));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(text: &str) -> Result<String, HostlistError> {
        let names = parse(text)?;
        Ok(names.iter().map(NodeName::as_str).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn hostlists_expand_as_slurm_writes_them() {
        let cases = [
            ("bld-003", "bld-003"),
            ("bld-[003,006-008]", "bld-003 bld-006 bld-007 bld-008"),
            ("oden,bld-[9-11]", "oden bld-9 bld-10 bld-11"),
            ("a[1-2]b[1-2]", "a1b1 a1b2 a2b1 a2b2"),
            ("a,a", "a"),
        ];
        for (text, want) in cases {
            assert_eq!(names(text).unwrap(), want, "{text}");
        }
    }

    #[test]
    fn a_bad_hostlist_says_what_is_wrong() {
        let bracket = |text: &str| HostlistError::Bracket(text.to_owned());
        let range = |text: &str| HostlistError::Range(text.to_owned());
        let cases = [
            ("", HostlistError::Empty),
            ("bld-[003", bracket("bld-[003")),
            ("bld-003]", bracket("bld-003]")),
            ("bld-[9-3]", range("9-3")),
            ("bld-[x]", range("x")),
            ("bld-[]", range("")),
            ("a[1-9999][1-9999]", HostlistError::TooMany),
        ];
        for (text, want) in cases {
            assert_eq!(parse(text), Err(want), "{text}");
        }
    }

    /// Each of these once took gigabytes, minutes or the whole stack.
    #[test]
    fn a_short_text_that_names_millions_is_refused_before_they_are_made() {
        let cases = [
            "a[1-4000][1-4000]".to_owned(),
            format!("a{}", "[1-2]".repeat(20_000)),
            "bld-[1-4096],".repeat(5_000),
            "a,".repeat(30_000),
            format!("a[{}]", "1-4096,".repeat(5_000)),
        ];
        for text in cases {
            assert_eq!(parse(&text), Err(HostlistError::TooMany), "{}", text.get(..20).unwrap());
        }
        let long = format!("a{}{}", "[1-2]".repeat(12), "[1]".repeat(20_000));
        assert!(matches!(parse(&long), Err(HostlistError::Name(_))));
        let letters = "a".repeat(500_000);
        for long in [format!("{letters}[1-4096]"), format!("a[1-4096]{letters}")] {
            assert!(matches!(parse(&long), Err(HostlistError::Name(_))));
        }
        let wide = format!("a[{}1-4000]", "0".repeat(60_000));
        assert!(matches!(parse(&wide), Err(HostlistError::Range(_))));
        assert_eq!(parse("a[1-4096]").unwrap().len(), MAX_NAMES);
    }

    #[test]
    fn names_fold_into_the_shortest_usual_form() {
        let cases = [
            ("bld-003", "bld-003"),
            ("bld-008,bld-001,bld-002", "bld-[001-002,008]"),
            ("oden,bld-9,bld-10,bld-11", "oden,bld-[9,10-11]"),
            ("a,b", "a,b"),
            ("a,a1", "a,a1"),
            ("", ""),
        ];
        for (text, want) in cases {
            let names: Vec<NodeName> =
                text.split(',').filter_map(|name| name.parse().ok()).collect();
            assert_eq!(fold(&names), want, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_was_folded_parses_into_the_same_names(
            texts in proptest::collection::hash_set("[a-z]{0,2}-?[0-9]{0,4}", 1..20)
        ) {
            let mut names: Vec<NodeName> =
                texts.iter().filter_map(|text| text.parse().ok()).collect();
            let folded = fold(&names);
            let mut again = if names.is_empty() { Vec::new() } else { parse(&folded).unwrap() };
            names.sort();
            again.sort();
            prop_assert_eq!(names, again);
        }

        #[test]
        fn no_text_makes_it_panic(text: String) {
            let _outcome = parse(&text);
        }
    }
}
