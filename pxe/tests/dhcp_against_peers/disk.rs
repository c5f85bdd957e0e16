//! The lease log: a server that is killed, a log that is torn, a disk that is full.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    clients::{dhclient, udhcpc},
    rig::{POOL, STRANGER_MAC, Segment, Server, config, until},
};

/// Set: this process is the server of [`a_lease_survives_a_kill`], with its log there.
const LOG: &str = "VOLUND_TEST_LEASE_LOG";

/// The server of [`a_lease_survives_a_kill`], in a process of its own.
#[test]
#[ignore = "run by a_lease_survives_a_kill"]
fn serve_until_killed() {
    let Some(log) = env::var_os(LOG) else { return };
    let server = Server::start(&config(Some(log.into())), POOL);
    for finding in server.network().findings {
        println!("finding: {}: {}", finding.what, finding.remedy);
    }
    println!("serving");
    loop {
        std::thread::park();
    }
}

/// Starts a server of its own process; it serves when this returns.
fn start_server(segment: &mut Segment, log: &Path) {
    start_server_under(segment, log, &[]);
}

/// The same, under another program.
fn start_server_under(segment: &mut Segment, log: &Path, program: &[&str]) -> PathBuf {
    let assignment = format!("{LOG}={}", log.display());
    let own = env::current_exe().unwrap();
    let test =
        [own.to_str().unwrap(), "--ignored", "--exact", "disk::serve_until_killed", "--nocapture"];
    let args = [&[assignment.as_str()], program, &test].concat();
    let output = segment.start("srv", "env", &args);
    until("it serves", || fs::read_to_string(&output).unwrap().contains("serving").then_some(()));
    output
}

#[test]
fn a_lease_survives_a_kill() {
    let Some(mut segment) = Segment::up("kill", &["busybox", "dhclient"]) else { return };
    segment.host("cli", Some(STRANGER_MAC), None);
    segment.host("other", Some("02:5a:20:00:00:02"), None);
    let log = segment.dir.join("leases");
    start_server(&mut segment, &log);
    let first = udhcpc(&segment, "cli", &[]).unwrap();
    segment.kill_last();
    let record = fs::read_to_string(&log).unwrap();
    assert!(record.contains(&format!("\t{first}\t{STRANGER_MAC}\t")), "{record}");

    // Killed in the middle of the next line.
    fs::write(&log, format!("{record}0badf00d\tbound\t17645")).unwrap();
    start_server(&mut segment, &log);
    let other = udhcpc(&segment, "other", &[]).unwrap();
    assert_ne!(other, first, "the address is still promised");
    assert_eq!(dhclient(&segment, "cli", Some("after the restart")), first);
    let text = fs::read_to_string(&log).unwrap();
    assert!(!text.contains("0badf00d"), "the torn line is gone: {text}");
    segment.kill_last();
}

/// A small file system of its own; gone when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: PathBuf) -> Self {
        fs::create_dir_all(&at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(&at)
            .status();
        assert!(mounted.unwrap().success());
        Self(at)
    }

    fn fill(&self) {
        let mut bytes = vec![0; 256 * 1024];
        // The last page is written too.
        while fs::write(self.0.join("full"), &bytes).is_err() && bytes.len() > 1 {
            let _half = fs::remove_file(self.0.join("full"));
            bytes.truncate(bytes.len() - 4096);
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _gone = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_stops_no_answer_is_a_finding_and_is_made_up_for() {
    let Some(mut segment) = Segment::up("full", &["busybox", "mount"]) else { return };
    segment.host("cli", Some(STRANGER_MAC), None);
    let disk = SmallDisk::mount(segment.dir.join("disk"));
    let log = disk.0.join("leases");
    segment.enter("srv");
    let server = Server::start(&config(Some(log.clone())), POOL);
    assert_eq!(server.network().findings, []);
    disk.fill();
    let address = udhcpc(&segment, "cli", &[]).unwrap();
    // An empty page may have been left in the file: the first lines go there.
    let finding = until("a finding", || {
        assert_eq!(udhcpc(&segment, "cli", &[]), Some(address), "answered all the same");
        server.network().findings.first().cloned()
    });
    assert!(finding.what.contains("cannot be written"), "{finding:?}");
    assert!(server.network().dhcp.late_acks > 0);
    fs::remove_file(disk.0.join("full")).unwrap();
    until("no longer so", || server.network().findings.is_empty().then_some(()));
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains(&format!("\t{address}\t{STRANGER_MAC}\t")), "{text}");
    drop(server);
}

/// The system calls of the server, in their order, as `strace` saw them: `O` an OFFER sent, `A` an ACK sent, `S` a
/// sync that ended well.
fn order(trace: &Path) -> String {
    let text = fs::read_to_string(trace).unwrap_or_default();
    let calls = text.lines().filter_map(|line| {
        // Option 53 as bytes of a datagram sent by either way; a call another thread interrupted ends on a line
        // of its own.
        let is_sync = line.contains("fdatasync") && line.ends_with("= 0");
        match line {
            _ if is_sync => Some('S'),
            _ if line.contains(r"\x35\x01\x02") => Some('O'),
            _ if line.contains(r"\x35\x01\x05") => Some('A'),
            _ => None,
        }
    });
    calls.collect()
}

#[test]
fn a_record_is_synced_before_its_ack_leaves() {
    let Some(mut segment) = Segment::up("sync", &["busybox", "strace"]) else { return };
    segment.host("cli", Some(STRANGER_MAC), None);
    let (log, trace) = (segment.dir.join("leases"), segment.dir.join("trace"));
    let calls = "trace=fdatasync,sendto,sendmmsg";
    let tracer = ["strace", "-f", "--seccomp-bpf", "-xx", "-s", "600", "-e", calls, "-o"];
    start_server_under(&mut segment, &log, &[&tracer[..], &[trace.to_str().unwrap()]].concat());
    // A sync that takes longer than the bound is overtaken; on a disk that is alive not every one does.
    until("an OFFER, a sync, an ACK", || {
        assert!(udhcpc(&segment, "cli", &[]).is_some());
        order(&trace).contains("OSA").then_some(())
    });
    segment.kill_last();
}

#[test]
fn a_log_that_is_mostly_history_is_written_anew_while_it_is_in_use() {
    let Some(mut segment) = Segment::up("history", &["perfdhcp"]) else { return };
    segment.host("load", None, Some("192.0.2.9/24"));
    segment.enter("srv");
    let log = segment.dir.join("leases");
    let server = Server::start(&config(Some(log.clone())), POOL);
    let args =
        ["-4", "-n", "2500", "-R", "5", "-r", "1000", "-W", "2000000", "-l", "eth0", "192.0.2.1"];
    segment.run("load", "perfdhcp", &args);
    let acks = server.network().dhcp.acks;
    assert!(acks > 1500, "{acks} ACKs are more than a log keeps of five machines");
    let text = until("history is gone", || {
        let text = fs::read_to_string(&log).unwrap();
        (u64::try_from(text.lines().count()).unwrap() < acks).then_some(text)
    });
    let addresses: BTreeSet<&str> =
        text.lines().filter_map(|line| line.split('\t').nth(4)).collect();
    assert_eq!(addresses.len(), 5, "nobody is forgotten: {addresses:?}");
}

#[test]
fn without_the_right_to_raw_sockets_clients_are_answered_by_broadcast_and_it_is_a_finding() {
    let Some(mut segment) = Segment::up("rights", &["busybox", "setpriv", "tcpdump"]) else {
        return;
    };
    segment.host("cli", Some(STRANGER_MAC), None);
    let wire = segment.listen("cli", "udp port 67");
    let lacking = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"];
    let log = segment.dir.join("leases");
    let output = start_server_under(&mut segment, &log, &lacking);
    let findings = fs::read_to_string(output).unwrap();
    assert!(findings.contains("answered by broadcast"), "{findings}");
    assert!(findings.contains("AmbientCapabilities="), "the remedy: {findings}");
    assert!(udhcpc(&segment, "cli", &[]).is_some());
    until("a broadcast", || {
        let text = fs::read_to_string(&wire).unwrap();
        text.contains("192.0.2.1.67 > 255.255.255.255.68: BOOTP/DHCP, Reply").then_some(())
    });
    segment.kill_last();
}
