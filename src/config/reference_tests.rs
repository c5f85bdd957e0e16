//! docs/configuration.md says what the parser knows, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    fields::KNOWN,
    options,
    tests::{GOOD, good},
};

const REFERENCE: &str = include_str!("../../docs/configuration.md");

/// A configuration with every table there is.
const EVERYTHING: &str = r#"
[secure_boot]
shim = "vmlinuz"
grub = "vmlinuz"
[menu]
[metering]
[agent]
kernel = "vmlinuz"
initrd = "initrd.img"
[[node]]
name = "bld-002"
macs = ["9c:8e:99:00:01:02"]
address = "127.0.1.12"
protect = { reason = "it is the test's" }
loaders = {}
bmc = { kind = "ipmi", address = "127.0.2.12", user = "u", secret = "file:pw" }
"#;

/// In front of the networks.
const TOKEN: &str = r#"
[[operator.tokens]]
name = "ci"
sha256 = "00000000000000000000000000000000000000000000000000000000000000aa"
[[network]]
"#;

/// Section of the reference for a table as messages name it.
fn section(subject: &str) -> Option<&'static str> {
    Some(match subject {
        "[lab]" => "[lab]",
        "[operator]" => "[operator]",
        "[operator]: user \"admin\"" => "[[operator.users]]",
        "[operator]: token \"ci\"" => "[[operator.tokens]]",
        "[metering]" => "[metering]",
        "network \"boot\"" => "[[network]]",
        "[loaders]" => "[loaders]",
        "[secure_boot]" => "[secure_boot]",
        "[menu]" => "[menu]",
        "[agent]" => "[agent]",
        "enclosure \"c7000-1\"" => "[enclosure.NAME]",
        "node \"bld-002\"" => "[[node]]",
        "node \"bld-002\": loaders" => "loaders of a node",
        "node \"bld-002\": bmc" => "bmc of a node",
        "node \"bld-002\": protect" => "protect of a node",
        "profile \"ram\"" => "[profile.NAME]",
        "profile \"ram\": file \"user-data\"" => "files of a profile",
        "profile \"ram\": timeouts" => "timeouts of a profile",
        "[[assign]]" => "[[assign]]",
        _ => return None,
    })
}

/// The first column of each table, by the section it stands in.
fn written() -> BTreeMap<String, BTreeSet<String>> {
    let mut sections: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut here = String::new();
    for line in REFERENCE.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            here = title.replace('`', "");
        } else if line.starts_with("## ") {
            here.clear();
        } else if let Some((key, _)) = line.strip_prefix("| `").and_then(|row| row.split_once('`'))
        {
            sections.entry(here.clone()).or_default().insert(key.to_owned());
        }
    }
    sections
}

#[test]
fn the_reference_has_every_key_of_every_table_and_no_other() {
    let dir = good();
    std::fs::write(dir.file("everything.toml"), EVERYTHING).unwrap();
    std::fs::write(dir.file("volund.toml"), GOOD.replace("[[network]]", TOKEN)).unwrap();
    KNOWN.with_borrow_mut(Vec::clear);
    super::load(&dir.0).unwrap_or_else(|faults| panic!("{faults}"));
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut roots = BTreeSet::new();
    for (subject, keys) in KNOWN.take() {
        let keys = keys.into_iter().map(ToOwned::to_owned);
        match (section(&subject), subject.as_str()) {
            (Some(section), _) => known.entry(section.to_owned()).or_default().extend(keys),
            (None, "this file") => roots.extend(keys),
            (None, "node \"bld-001\"" | "node \"bld-001\": bmc") => (),
            (None, other) => panic!("the reference has no section for {other}"),
        }
    }
    let mut written = written();
    let names = written.remove("").unwrap();
    assert_eq!(written, known);
    let options: BTreeSet<String> = options::names().map(|(_, name)| name.to_owned()).collect();
    assert_eq!(names, options);
    for root in roots.iter().filter(|root| root.as_str() != "schema") {
        let forms = [
            format!("### `[{root}]`"),
            format!("### `[[{root}]]`"),
            format!("### `[{root}.NAME]`"),
        ];
        assert!(forms.iter().any(|form| REFERENCE.contains(form)), "{root} has no section");
    }
}

#[test]
fn the_reference_names_the_options_volund_sets_itself() {
    for (code, name) in options::names() {
        assert!(REFERENCE.contains(&format!("| `{name}` | {code} |")), "{name}");
    }
    for (code, name, why) in options::own() {
        let mut why = why.chars();
        let first = why.next().unwrap().to_ascii_uppercase();
        let row = format!("| {code} | {name} | {first}{}. |", why.as_str());
        assert!(REFERENCE.contains(&row), "{row}");
    }
}
