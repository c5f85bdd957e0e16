//! The fuzz targets of `tests/fuzz` on their corpus, in the ordinary test run: what the fuzzer once found stays found.
//!
//! The targets' code is included, not linked: their crate needs libFuzzer. With it come a few parsers of other crates
//! by their files, and those files' own tests, which then run here a second time.
#![allow(clippy::unwrap_used, reason = "a test's helpers fail by panic")]

use std::{collections::BTreeSet, fs, path::PathBuf};

#[allow(unreachable_pub, reason = "to the fuzzer it is a crate")]
#[path = "fuzz/src/lib.rs"]
mod fuzz;

use fuzz::{TARGETS, seeds};

fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz")
}

/// Names in a folder, but for what a fuzzer working here has added: 40 hexadecimal digits.
fn names(folder: &str) -> BTreeSet<String> {
    let is_find =
        |name: &str| name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let entries = fs::read_dir(home().join(folder)).unwrap_or_else(|e| panic!("{folder}: {e}"));
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !is_find(name)).collect()
}

#[test]
fn no_target_breaks_on_its_corpus() {
    for (target, run) in TARGETS {
        let folder = format!("corpus/{target}");
        for name in names(&folder) {
            let bytes = fs::read(home().join(&folder).join(&name)).unwrap();
            let outcome = std::panic::catch_unwind(|| run(&bytes));
            assert!(outcome.is_ok(), "{target} breaks on {folder}/{name}: see above");
        }
    }
}

#[test]
fn no_target_breaks_on_nothing_on_cut_or_on_doubled_seeds() {
    for seeds::Seed { target, bytes, .. } in seeds::all() {
        let half = bytes.get(..bytes.len() / 2).unwrap_or_default();
        for bytes in [&[][..], half, &[bytes.as_slice(), bytes.as_slice()].concat()] {
            fuzz::run(target, bytes);
        }
    }
}

#[test]
fn every_target_has_seeds_and_the_corpus_holds_them() {
    let missing = "run this test with WRITE_SEEDS=1 to write the seeds anew, and commit them";
    let seeds = seeds::all();
    for seeds::Seed { target, name, bytes } in &seeds {
        let path = home().join("corpus").join(target).join(name);
        if std::env::var_os("WRITE_SEEDS").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, bytes).unwrap();
        }
        assert_eq!(fs::read(&path).ok().as_ref(), Some(bytes), "{target}/{name}: {missing}");
    }
    let targets: BTreeSet<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(seeds.iter().map(|seed| seed.target).collect::<BTreeSet<_>>(), targets);
    assert_eq!(names("corpus"), targets.iter().map(|&name| name.to_owned()).collect());
}

#[test]
fn the_fuzzer_is_given_the_targets_that_run_here() {
    let files: BTreeSet<String> = TARGETS.iter().map(|(name, _)| format!("{name}.rs")).collect();
    assert_eq!(names("fuzz_targets"), files);
    let manifest = fs::read_to_string(home().join("Cargo.toml")).unwrap();
    for (name, _) in TARGETS {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
        let text = fs::read_to_string(home().join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(text.contains(&format!("fuzz::run(\"{name}\", data)")), "{name}");
    }
}
