//! The house keeps its own rules: arrows between crates, purity, fenced crates and licences, read from
//! `cargo metadata` and held against the table in ARCHITECTURE.md.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers fail by panic")]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

use serde_json::Value;

const PURE: [&str; 5] = ["model", "pxe-proto", "bmc-proto", "plan", "energy"];
const IMPURE: [&str; 9] =
    ["tokio", "sqlx", "reqwest", "axum", "socket2", "nix", "rustix", "getrandom", "rand"];
const FENCED: [(&str, &[&str]); 6] = [
    ("sqlx", &["inventory"]),
    ("axum", &["web", "volund"]),
    ("native-tls", &[]),
    ("aws-lc-sys", &[]),
    ("openssl-sys", &[]),
    ("async-io", &[]),
];
const LICENCES: [&str; 10] = [
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unlicense",
    "Unicode-3.0",
    "0BSD",
    "CC0-1.0",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        // What other systems would need was never downloaded.
        .args(["--filter-platform", "host-tuple"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Direct, ordinary dependencies of each package, by name.
fn dependencies(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .map(|package| {
            let listed = package["dependencies"].as_array().unwrap().iter();
            let ordinary = listed.filter(|dependency| dependency["kind"].is_null());
            let names = ordinary.map(|dependency| dependency["name"].as_str().unwrap().to_owned());
            (package["name"].as_str().unwrap().to_owned(), names.collect())
        })
        .collect()
}

fn ours(metadata: &Value) -> BTreeSet<String> {
    let packages = metadata["packages"].as_array().unwrap().iter();
    let local = packages.filter(|package| package["source"].is_null());
    local.map(|package| package["name"].as_str().unwrap().to_owned()).collect()
}

/// The table under "## Arrows" in ARCHITECTURE.md.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, section) = text.split_once("## Arrows").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ") && !line.contains("may use"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let may = cells[1].split(',').map(str::trim).filter(|name| !name.is_empty());
        (cells[0].to_owned(), may.map(str::to_owned).collect())
    })
    .collect()
}

#[test]
fn every_crate_uses_only_whom_the_architecture_allows() {
    let metadata = metadata();
    let (ours, allowed, all) = (ours(&metadata), arrows(), dependencies(&metadata));
    for name in &ours {
        let may = allowed.get(name).unwrap_or_else(|| panic!("{name} has no row under Arrows"));
        let used: BTreeSet<String> = all[name].intersection(&ours).cloned().collect();
        let forbidden: Vec<_> = used.difference(may).collect();
        assert!(forbidden.is_empty(), "{name} may not use {forbidden:?}");
    }
    let gone: Vec<_> = allowed.keys().filter(|name| !ours.contains(*name)).collect();
    assert!(gone.is_empty(), "rows without a crate: {gone:?}");
}

#[test]
fn pure_crates_reach_no_runtime_no_socket_and_no_chance() {
    let metadata = metadata();
    let all = dependencies(&metadata);
    for pure in PURE {
        // Crypto crates list `getrandom` as an optional dependency that nobody switches on; asked for directly it is one.
        let direct = &all[pure];
        for impure in IMPURE {
            assert!(!direct.contains(impure), "{pure} uses {impure}");
        }
        let built = active(pure);
        for runtime in ["tokio", "sqlx", "axum", "reqwest"] {
            assert!(!built.contains(runtime), "{pure} reaches {runtime}");
        }
        assert!(
            root_of(&metadata, pure).join("clippy.toml").exists(),
            "{pure} needs a clippy.toml"
        );
    }
}

/// What really gets built for a crate.
fn active(name: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "-e", "normal", "--prefix", "none", "-p", name])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn root_of(metadata: &Value, name: &str) -> std::path::PathBuf {
    let packages = metadata["packages"].as_array().unwrap().iter();
    let package = packages.filter(|package| package["source"].is_null());
    let found = package.into_iter().find(|package| package["name"] == name).unwrap();
    Path::new(found["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned()
}

#[test]
fn fenced_crates_are_used_only_where_the_fence_is_open() {
    let metadata = metadata();
    let (ours, all) = (ours(&metadata), dependencies(&metadata));
    let built = active("volund");
    for (fenced, open_to) in FENCED {
        let users: Vec<_> =
            ours.iter().filter(|name| all[*name].contains(fenced)).map(String::as_str).collect();
        let strangers: Vec<_> = users.iter().filter(|name| !open_to.contains(name)).collect();
        assert!(strangers.is_empty(), "{fenced} is used by {strangers:?}");
        assert!(!open_to.is_empty() || !built.contains(fenced), "{fenced} is built");
    }
}

#[test]
fn every_licence_is_on_our_list_and_every_source_is_the_registry() {
    let metadata = metadata();
    let built = active("volund");
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        if package["source"].is_null() || !built.contains(name) {
            continue;
        }
        let licence = package["license"].as_str().unwrap_or("none").replace('/', " OR ");
        let acceptable = licence.split(" OR ").any(|choice| {
            let choice = choice.trim_matches(|c| matches!(c, '(' | ')' | ' '));
            choice.split(" AND ").all(|one| {
                let one = one.trim_matches(|c| matches!(c, '(' | ')' | ' '));
                LICENCES.contains(&one.split(" WITH ").next().unwrap_or(one))
            })
        });
        assert!(acceptable, "{name} is under {licence}");
        let source = package["source"].as_str().unwrap();
        assert!(source.starts_with("registry+"), "{name} comes from {source}");
    }
}

#[test]
fn every_crate_takes_the_lints_of_the_house() {
    let metadata = metadata();
    for name in ours(&metadata) {
        let manifest = root_of(&metadata, &name).join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).unwrap();
        // The agent alone has its own, stricter where it can be and open for one module.
        let own = name == "agent" && text.contains("unsafe_code");
        assert!(text.contains("[lints]\nworkspace = true") || own, "{}", manifest.display());
    }
}

#[test]
fn no_path_of_a_developers_machine_stands_in_the_repository() {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().unwrap();
    let files = String::from_utf8(output.stdout).unwrap();
    let marks = [concat!("/wor", "k/"), concat!(".lib", "rary")];
    for file in files.split('\0').filter(|file| !file.is_empty()) {
        let Ok(text) = std::fs::read_to_string(root().join(file)) else { continue };
        for mark in marks {
            assert!(!text.contains(mark), "{file} contains {mark}");
        }
    }
}
