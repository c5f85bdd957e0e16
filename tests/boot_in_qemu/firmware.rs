//! Every firmware that can be had without hardware, one boot each, by `volund serve`: too long for the ordinary run, so
//! `tests/nightly/firmware.sh` asks for these. Each prints its row: name, result, seconds, what was seen.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use model::{Sighted, Sighting, UnixMillis};

use crate::{
    capture_agrees, plain_rom,
    segment::{Machine, Segment},
    sightings,
};

/// Longest boot, power-on to the last thing a row waits for, on two busy cores without KVM.
const BOUND: &str = "4m";

/// One row of the matrix.
struct Row {
    machine: Machine,
    /// What it is switched to.
    profile: &'static str,
    /// Parts of lines of its timeline that have to be there, in this order.
    story: Vec<&'static str>,
    /// What its console has to show at last, when no agent can say that the kernel runs.
    console: Option<&'static str>,
}

impl Row {
    /// A row that ends with the agent's report.
    fn inspected(machine: Machine, story: &[&'static str]) -> Self {
        Self { machine, profile: "inspect", story: story.to_vec(), console: None }
    }

    /// Boots once, holds the timeline against the wire and the row's story against the timeline, prints the row.
    fn prove(self) {
        let machine = &self.machine;
        let Some(segment) = Segment::up(machine) else {
            println!("ROW {} | not proved | - | something is missing here", machine.name);
            return;
        };
        let begun = Instant::now();
        segment.volund(&[
            "switch",
            machine.name,
            self.profile,
            "--yes",
            "--wait",
            "--timeout",
            BOUND,
        ]);
        let took = begun.elapsed();
        if let Some(text) = self.console {
            segment.console_shows(machine.name, text, Duration::from_secs(60));
        }
        let (dir, capture) = segment.down();
        let sightings = sightings(&dir, machine.name);
        let told: Vec<String> =
            sightings.iter().map(|sighting| sighting.what.to_string()).collect();
        let mut rest = told.iter();
        for part in &self.story {
            assert!(
                rest.any(|line| line.contains(part)),
                "{}: no {part:?} in its place:\n{}",
                machine.name,
                told.join("\n")
            );
        }
        capture_agrees(&capture, &sightings, machine);
        let seen = summary(&sightings);
        println!("ROW {} | passes | {} | {seen}", machine.name, took.as_secs());
    }
}

/// The boot in one line: each step once, with the seconds since the first packet.
fn summary(sightings: &[Sighting]) -> String {
    let first = sightings.first().map_or(UnixMillis(0), |sighting| sighting.at);
    let mut steps: Vec<(String, i64)> = Vec::new();
    for Sighting { at, what, .. } in sightings {
        let step = match what {
            Sighted::DhcpIn { client, proxy, .. } if !client.is_empty() => {
                format!("{client}{}", if *proxy { " on 4011" } else { "" })
            }
            Sighted::Rival { server, .. } => format!("beside {server}"),
            Sighted::TftpDone { file, .. } => format!("TFTP {file}"),
            Sighted::HttpDone { path, status: 200, .. } if !path.starts_with("/agent") => {
                format!("HTTP {path}")
            }
            Sighted::Agent { verb } if verb == "report" => "agent's report".to_owned(),
            _ => continue,
        };
        if !steps.iter().any(|(earlier, _)| *earlier == step) {
            steps.push((step, (at.0 - first.0) / 1_000));
        }
    }
    steps.iter().map(|(step, at)| format!("{step} ({at} s)")).collect::<Vec<_>>().join(" → ")
}

/// What `tests/nightly/firmware-files.sh` fetched.
fn fetched(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/firmware-files");
    folder.join(name)
}

/// Words that leave OVMF and AAVMF one way to boot from the network.
fn http_only() -> String {
    let off = |name| format!("\"-fw_cfg\", \"name=opt/org.tianocore/{name},string=n\"");
    let words = ["IPv4PXESupport", "IPv6PXESupport", "IPv6Support"].map(off);
    format!("args = [{}]\n", words.join(", "))
}

/// Loaders of a newer iPXE, ARM's among them.
fn newer_ipxe(mut machine: Machine) -> Machine {
    let dir = fetched("ipxe");
    machine.tables = format!(
        "{}[loaders]\ndir = \"{}\"\nefi_arm64 = \"ipxe-arm64.efi\"\n",
        machine.tables,
        dir.display()
    );
    machine.needs.extend([dir.join("ipxe-arm64.efi"), dir.join("snponly.efi")]);
    machine
}

/// A machine for whose architecture there is no agent: its kernel is fetched and begins.
fn arm64(name: &'static str) -> Machine {
    let mut machine = newer_ipxe(Machine::plain(name, "uefi-arm64"));
    let kernel = fetched("vmlinuz-arm64");
    machine.tables.push_str(&format!(
        "[profile.arm]\nkind = \"linux\"\nroot = \"ram\"\nkernel = \"{}\"\n\
         args = \"console=ttyAMA0\"\ncallback = false\n",
        kernel.display()
    ));
    let code = "/usr/share/AAVMF/AAVMF_CODE.fd";
    machine.needs.extend([kernel, "/usr/bin/qemu-system-aarch64".into(), code.into()]);
    machine
}

fn arm64_row(machine: Machine, story: &[&'static str]) -> Row {
    let story = story.to_vec();
    Row { machine, profile: "arm", story, console: Some("Booting Linux on physical CPU") }
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_bios_with_ipxe_in_rom() {
    let machine = Machine::plain("bios-rom", "bios");
    let story = ["iPXE", "HTTP GET /boot.ipxe", "kernel /i/inspect/kernel", "agent: report"];
    Row::inspected(machine, &story).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_bios_with_a_plain_rom() {
    let mut machine = Machine::plain("bios-plain", "bios");
    let words = plain_rom::arguments(&machine.sockets());
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    machine.twin = format!("rom = \"\"\nargs = [{}]\n", words.join(", "));
    machine.needs.push("/usr/lib/ipxe/ipxe.lkrn".into());
    let story = [
        "TFTP sent undionly.kpxe",
        "iPXE",
        "HTTP GET /boot.ipxe",
        "kernel /i/inspect/kernel",
        "agent: report",
    ];
    Row::inspected(machine, &story).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_uefi_over_pxe() {
    Row::inspected(Machine::plain("uefi-pxe", "uefi"), &OVER_TFTP).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_uefi_over_pxe_with_a_newer_ipxe() {
    Row::inspected(newer_ipxe(Machine::plain("uefi-newer", "uefi")), &OVER_TFTP).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_uefi_over_http() {
    let mut machine = Machine::plain("uefi-http", "uefi");
    machine.twin = http_only();
    Row::inspected(machine, &OVER_HTTP).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_arm64_over_pxe() {
    let story =
        ["TFTP sent ipxe-arm64.efi", "HTTP GET /boot.ipxe", "kernel /i/arm/kernel fetched whole"];
    arm64_row(arm64("arm64-pxe"), &story).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_arm64_over_http() {
    let mut machine = arm64("arm64-http");
    machine.twin = http_only();
    let story = ["ipxe-arm64.efi 200", "HTTP GET /boot.ipxe", "kernel /i/arm/kernel fetched whole"];
    arm64_row(machine, &story).prove();
}

const OVER_TFTP: [&str; 5] = [
    "TFTP sent snponly.efi",
    "iPXE",
    "HTTP GET /boot.ipxe",
    "kernel /i/inspect/kernel fetched whole",
    "agent: report",
];

const OVER_HTTP: [&str; 4] = [
    "snponly.efi 200",
    "HTTP GET /boot.ipxe",
    "kernel /i/inspect/kernel fetched whole",
    "agent: report",
];
