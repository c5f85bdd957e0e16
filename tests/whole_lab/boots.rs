//! What is kept of a boot, as the running program tells it.

use std::{fs, process::Command};

use api::{BootDetail, BootList, LabDoctor, NodeDoctor};
use plan::Phase;

use crate::rig::{BOUND, Rig, Setup, until};

/// A boot that went well is told in its stages, is no patient, and its packets are read by tcpdump.
#[tokio::test]
async fn a_boot_is_told_kept_and_found_well() {
    let rig = Rig::ready(Setup::default()).await;
    rig.switch("bld-001", "inspect").await;
    rig.in_phase("bld-001", Phase::Done).await;
    let boot = until("boot with its packets", BOUND, async || {
        let list: BootList = rig.read("/api/v1/nodes/bld-001/boots").await;
        let [boot] = list.boots.try_into().ok()?;
        boot.packets.then_some(boot)
    })
    .await;
    assert_eq!((boot.outcome.as_str(), boot.text.as_str()), ("booted", "booted inspect"));
    let stages: Vec<&str> = boot.stages.iter().map(|stage| stage.name.as_str()).collect();
    for stage in ["firmware DHCP", "loader", "iPXE DHCP", "script", "kernel", "call-back"] {
        assert!(stages.contains(&stage), "{stage} in {stages:?}");
    }
    assert_eq!(boot.diagnoses, []);
    let path = format!("/api/v1/nodes/bld-001/boots/{}", boot.id);
    let detail: BootDetail = rig.read(&path).await;
    assert!(detail.timeline.len() > 8, "{}", detail.timeline.len());

    let said: NodeDoctor = rig.read("/api/v1/nodes/bld-001/doctor").await;
    assert_eq!((said.boot, said.diagnoses), (Some(boot.id), vec![]));
    let lab: LabDoctor = rig.read("/api/v1/doctor").await;
    assert_eq!(lab.nodes, []);

    let unknown = rig.text("/api/v1/nodes/bld-001/boots/7").await;
    assert!(unknown.contains("volund boots bld-001"), "{unknown}");
    read_by_tcpdump(&rig, &format!("{path}/pcap")).await;
}

/// tcpdump is in `tests/packages.txt`: it has to be there in CI.
async fn read_by_tcpdump(rig: &Rig, path: &str) {
    let file = std::env::temp_dir().join(format!("volund-boots-{}.pcap", std::process::id()));
    fs::write(&file, rig.bytes(path).await).unwrap();
    let ran = Command::new("tcpdump").args(["-nn", "-v", "-r"]).arg(&file).output();
    fs::remove_file(&file).unwrap();
    let output = match ran {
        Ok(output) => output,
        Err(error) if std::env::var_os("CI").is_some_and(|ci| ci == "true") => {
            panic!("tcpdump: {error}")
        }
        Err(error) => return println!("skipped: tcpdump: {error}"),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // DHCP and TFTP have other ports here than tcpdump knows them by: it takes the datagrams apart, and no further.
    for part in [".6767: UDP, length 332", ".6969: UDP", "length 1500"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("truncated"), "{text}");
}
