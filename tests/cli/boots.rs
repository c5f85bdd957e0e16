//! Boots and the doctor on the command line.

use std::fs;

use api::{
    BootDetail, BootList, BootMethodForgotten, BootStage, BootView, DiagnosisView, LabDoctor,
    LoopReleased, NodeDoctor, SightingView,
};
use serde_json::json;

use crate::fake::{Fake, problem};

/// 2026-11-30 13:20:00 UTC.
const NOW: i64 = 1_796_044_800_000;

fn diagnosis() -> DiagnosisView {
    DiagnosisView {
        id: "secure-boot".to_owned(),
        cause: "it fetched snponly.efi whole and did not start it".to_owned(),
        remedy: "let it load a signed shim".to_owned(),
        confidence: "likely".to_owned(),
        evidence: vec!["TFTP sent snponly.efi, 173792 bytes in 80 ms".to_owned()],
    }
}

fn boot(id: i64, outcome: &str, text: &str, diagnoses: Vec<DiagnosisView>) -> BootView {
    let stage = |name: &str, from: i64, to: i64| BootStage {
        name: name.to_owned(),
        from_ms: id + from,
        to_ms: id + to,
    };
    BootView {
        id,
        from_ms: id,
        to_ms: id + 9_400,
        outcome: outcome.to_owned(),
        text: text.to_owned(),
        stages: vec![stage("firmware DHCP", 0, 4_100), stage("loader", 9_320, 9_400)],
        packets: diagnoses.is_empty(),
        diagnoses,
    }
}

fn boots() -> BootList {
    let failed = boot(NOW, "failed", "failed after loader", vec![diagnosis()]);
    let good = boot(NOW - 600_000, "booted", "booted inspect", vec![]);
    BootList { node: "bld-003".to_owned(), boots: vec![failed, good] }
}

fn seen(after: i64, text: &str) -> SightingView {
    SightingView {
        at_ms: NOW + after,
        attempt_ms: Some(NOW),
        kind: "dhcp-in".to_owned(),
        text: text.to_owned(),
        detail: json!({}),
    }
}

fn detail() -> BootDetail {
    let timeline = vec![
        seen(0, "DHCP DISCOVER from x86-64 UEFI (7)"),
        seen(4_000, "DHCP DISCOVER from x86-64 UEFI (7)"),
        seen(4_100, "DHCP OFFER 192.0.2.13, boot file snponly.efi\u{1b}[2J"),
        seen(9_400, "TFTP sent snponly.efi, 173792 bytes in 80 ms"),
    ];
    BootDetail { node: "bld-003".to_owned(), boot: boots().boots.remove(0), timeline }
}

#[test]
fn boots_are_a_table_newest_first() {
    let fake = Fake::default().answers("GET /api/v1/nodes/bld-003/boots", 200, &boots());
    insta::assert_snapshot!(fake.run(&["boots", "bld-003"]).story());
}

#[test]
fn a_boot_is_shown_with_its_diagnosis_and_times_since_it_began() {
    let path = format!("GET /api/v1/nodes/bld-003/boots/{NOW}");
    let fake = Fake::default().answers("GET /api/v1/nodes/bld-003/boots", 200, &boots()).answers(
        &path,
        200,
        &detail(),
    );
    let ran = fake.run(&["boot", "bld-003"]);
    insta::assert_snapshot!(ran.story());
}

#[test]
fn a_node_that_was_never_seen_booting_has_no_last_boot() {
    let none = BootList { node: "bld-003".to_owned(), boots: vec![] };
    let fake = Fake::default().answers("GET /api/v1/nodes/bld-003/boots", 200, &none);
    let ran = fake.run(&["boot", "bld-003"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("volund doctor bld-003"), "{}", ran.err);
    assert_eq!(fake.run(&["boots", "bld-003"]).out, "no boot seen yet\n");
}

#[test]
fn packets_of_a_boot_are_saved_as_they_came_and_http_is_said_to_be_missing() {
    let file = std::env::temp_dir().join(format!("volund-cli-{}.pcap", std::process::id()));
    // The fake answers JSON: any bytes will do.
    let path = "GET /api/v1/nodes/bld-003/boots/7/pcap";
    let fake = Fake::default().answers(path, 200, &"packets");
    let ran = fake.run(&["boot", "bld-003", "7", "--pcap", file.to_str().unwrap()]);
    assert_eq!(fs::read(&file).unwrap(), b"\"packets\"");
    fs::remove_file(&file).unwrap();
    assert_eq!(ran.code, 0);
    assert!(ran.out.contains("HTTP is not in it"), "{}", ran.out);
    let help = crate::fake::volund(&["boot", "--help"], &[], "");
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.split_whitespace().collect::<Vec<_>>().join(" ").contains("HTTP is not in it"));

    let none = problem("no packets are kept of boot 8 of bld-003", &[]);
    let path = "GET /api/v1/nodes/bld-003/boots/8/pcap";
    let ran = Fake::default().answers(path, 404, &none).run(&[
        "boot",
        "bld-003",
        "8",
        "--pcap",
        file.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, 2);
    assert!(!file.exists() && ran.err.contains("no packets are kept"), "{}", ran.err);
}

#[test]
fn the_doctor_names_cause_remedy_and_what_shows_it() {
    let said =
        NodeDoctor { node: "bld-003".to_owned(), boot: Some(NOW), diagnoses: vec![diagnosis()] };
    let fake = Fake::default().answers("GET /api/v1/nodes/bld-003/doctor", 200, &said);
    insta::assert_snapshot!(fake.run(&["doctor", "bld-003"]).story());
    let well = NodeDoctor { diagnoses: vec![], ..said.clone() };
    let fake = Fake::default().answers("GET /api/v1/nodes/bld-003/doctor", 200, &well);
    let ran = fake.run(&["doctor", "bld-003"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "bld-003: no fault found in its last boot\n"));

    let cause = "boot: the neighbour table holds 1024 machines".to_owned();
    let networks = vec![DiagnosisView { cause, evidence: vec![], ..diagnosis() }];
    let lab = LabDoctor { nodes: vec![said], networks };
    let fake = Fake::default().answers("GET /api/v1/doctor", 200, &lab);
    insta::assert_snapshot!(fake.run(&["doctor"]).story());
    let lab = LabDoctor { nodes: vec![], networks: vec![] };
    let fake = Fake::default().answers("GET /api/v1/doctor", 200, &lab);
    assert_eq!(fake.run(&["doctor"]).out, "no fault found\n");
}

#[test]
fn a_node_is_let_out_of_its_loop() {
    for (was_held, word) in [(true, "boots as ordered"), (false, "was not kept out")] {
        let released = LoopReleased { node: "bld-003".to_owned(), was_held };
        let path = "POST /api/v1/nodes/bld-003/release-loop";
        let ran = Fake::default().answers(path, 200, &released).run(&[
            "node",
            "bld-003",
            "--release-loop",
        ]);
        assert_eq!(ran.code, 0);
        assert!(ran.out.contains(word), "{}", ran.out);
    }
}

#[test]
fn what_was_learnt_of_a_node_is_forgotten() {
    for (was_known, word) in [(true, "learnt anew"), (false, "nothing was learnt")] {
        let forgotten = BootMethodForgotten { node: "bld-003".to_owned(), was_known };
        let path = "POST /api/v1/nodes/bld-003/forget-boot-method";
        let ran = Fake::default().answers(path, 200, &forgotten).run(&[
            "node",
            "bld-003",
            "--forget-boot-method",
        ]);
        assert_eq!(ran.code, 0);
        assert!(ran.out.contains(word), "{}", ran.out);
    }
}
