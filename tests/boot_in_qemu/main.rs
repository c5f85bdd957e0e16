//! Real machines in QEMU, BIOS and UEFI, from off to a profile and to the next, by `volund serve` in a network
//! namespace of this test: power over IPMI, DHCP, TFTP and HTTP from volund, the agent, facts, a foreign payload.
//! `tcpdump` listens; the timeline in the database and the capture have to tell the same story.
//!
//! Needs root (namespaces, port 67), qemu-system-x86, ovmf, ipxe-qemu, ipxe, tcpdump, iproute2, busybox-static, cpio.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers fail by panic")]
#![allow(clippy::print_stdout, reason = "figures for the log of CI")]

mod capture;
mod firmware;
mod neighbour;
mod payload;
mod plain_rom;
mod row;
mod segment;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use capture::Seen;
use model::{NodeName, Sighted, Sighting, UnixMillis};
use segment::{Machine, Segment};
use serde_json::Value;

const UUID: &str = "39343536-3831-435a-3334-303359303033";

#[test]
fn a_bios_machine_is_switched_from_off_to_inspect_to_a_linux_that_calls_back() {
    tell_the_whole_story(&Machine::plain("q-bios", "bios"), &[]);
}

#[test]
fn a_uefi_machine_is_switched_from_off_to_inspect_to_a_linux_that_calls_back() {
    // EDK2 asks for the size first (RFC 2349), ends that transfer itself, then loads.
    tell_the_whole_story(&Machine::plain("q-uefi", "uefi"), &["snponly.efi", "snponly.efi"]);
}

#[test]
fn a_uefi_machine_boots_beside_a_dhcp_server_that_owns_the_addresses() {
    let machine = Machine::plain("q-proxy", "uefi").beside("192.0.2.11");
    let story = [
        "another DHCP server, 192.0.2.2",
        "TFTP sent snponly.efi",
        "fetched whole",
        "agent: report",
    ];
    row::Row::inspected(machine, &story).prove();
}

fn tell_the_whole_story(machine: &Machine, loaders: &[&str]) {
    let Some(segment) = Segment::up(machine) else { return };
    let begun = Instant::now();
    segment.volund(&["switch", machine.name, "inspect", "--yes", "--wait", "--timeout", "5m"]);
    let inspected = begun.elapsed();
    let node = segment.json(&["node", machine.name, "--json"]);
    check_facts(&node, machine);
    let begun = Instant::now();
    segment.volund(&["switch", machine.name, "live", "--yes", "--wait", "--timeout", "5m"]);
    let live = begun.elapsed();
    let node = segment.json(&["node", machine.name, "--json"]);
    assert_eq!(node["node"]["profile"], "live");
    assert_eq!(node["node"]["power"], "on");
    println!("FIGURE {} off to inspected {inspected:?}, inspected to live {live:?}", machine.name);
    let (dir, capture) = segment.down();
    let sightings = sightings(&dir, machine.name);
    let seen = capture_agrees(&capture, &sightings, machine);
    // Each of the two boots fetched its loader, after a size probe where the firmware makes one.
    assert_eq!(seen.tftp, [loaders, loaders].concat(), "loaders");
    assert!(seen.http.iter().any(|(_, path)| path == "/agent/v1/report"));
}

fn check_facts(node: &Value, machine: &Machine) {
    let facts = &node["facts"];
    assert_eq!(facts["serial"], format!("SN-{}", machine.name));
    assert_eq!(facts["uuid"], UUID);
    assert_eq!(facts["efi"], machine.firmware == "uefi");
    let disks = facts["disks"].as_array().unwrap();
    let serials: Vec<&str> = disks.iter().filter_map(|disk| disk["serial"].as_str()).collect();
    assert_eq!(serials, [format!("DISK-{}", machine.name)], "{disks:?}");
    let nics = facts["nics"].as_array().unwrap();
    assert!(nics.iter().any(|nic| nic["mac"] == machine.mac), "{nics:?}");
}

fn sightings(dir: &Path, node: &str) -> Vec<Sighting> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let node: NodeName = node.parse().unwrap();
    runtime.block_on(async {
        let book = dir.join("state/volund.db");
        let store = inventory::Store::open(&book.display().to_string()).await.unwrap();
        inventory::sighting::since(&store, &node, UnixMillis(0), 100_000).await.unwrap()
    })
}

/// A file's name without the slash some loaders put in front: the timeline shows it as volund's table has it.
fn plain(name: &str) -> String {
    name.trim_start_matches('/').to_owned()
}

/// What `tcpdump` saw, once the timeline has told the same.
fn capture_agrees(capture: &Path, sightings: &[Sighting], machine: &Machine) -> Seen {
    let seen = capture::read(capture, machine.mac.parse().unwrap(), machine.address());
    let dhcp: Vec<(String, u32)> = sightings
        .iter()
        .filter_map(|sighting| match &sighting.what {
            Sighted::DhcpIn { kind, xid, .. } | Sighted::DhcpOut { kind, xid, .. } => {
                Some((kind.to_string(), *xid))
            }
            _ => None,
        })
        .collect();
    assert_eq!(dhcp, seen.dhcp, "DHCP packets in the timeline (left) and on the wire (right)");
    let tftp: Vec<String> = sightings
        .iter()
        .filter_map(|sighting| match &sighting.what {
            Sighted::TftpRead { file } => Some(plain(file)),
            _ => None,
        })
        .collect();
    let on_the_wire: Vec<String> = seen.tftp.iter().map(|name| plain(name)).collect();
    assert_eq!(tftp, on_the_wire, "TFTP reads in the timeline (left) and on the wire (right)");
    let http: Vec<(String, String)> = sightings
        .iter()
        .filter_map(|sighting| match &sighting.what {
            Sighted::HttpDone { method, path, .. } => Some((method.clone(), path.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(http, seen.http, "HTTP requests in the timeline (left) and on the wire (right)");
    assert!(Duration::from_secs(600) > seen.span, "the capture is of this run");
    seen
}
