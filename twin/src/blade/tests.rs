use std::time::{Duration, Instant};

use bmc_proto::ipmi::boot_options::{BootDevice, FirmwareMode, Reach};
use model::agent::Report;

use super::*;
use crate::{
    lab::{Lab, LabBlade, LabSpec},
    testing::Services,
};

const NETWORK_ONCE: Option<BootOverride> =
    Some(BootOverride { device: BootDevice::Pxe, mode: FirmwareMode::Legacy, reach: Reach::Once });
const TICKET: &str = "00112233445566778899aabbccddeeff";

fn quick() -> Pace {
    let millis = Duration::from_millis;
    Pace {
        post: millis(5),
        post_spread: millis(5),
        install: millis(10),
        soft_off: millis(5),
        scale: 0.01,
    }
}

/// A lab of its own octet for each test, because tests run side by side.
async fn lab(octet: u8, bays: u8) -> (Lab, Services) {
    let services = Services::start(octet).await;
    let lab = Lab::bind(&LabSpec { octet, bays, pace: quick(), ..LabSpec::default() }).await;
    let lab = lab.unwrap();
    lab.connect(services.boot);
    (lab, services)
}

/// The script of a kernel with `args`.
fn script(services: &Services, args: &str) -> String {
    let http = services.http;
    format!(
        "#!ipxe\nkernel http://{http}/i/vmlinuz {args} || goto failed\ninitrd /i/initrd || goto failed\n\
         boot\n:failed\necho sorry\nexit 1\n"
    )
}

fn agent_script(services: &Services) -> String {
    let http = services.http;
    script(services, &format!("volund.url=http://{http} volund.ticket={TICKET}"))
}

async fn until(blade: &LabBlade, step: &str, times: u64) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while blade.blade.log().count(step) < times {
        let log = blade.blade.log();
        assert!(
            Instant::now() < deadline,
            "no {step:?} in {:?}\n{:?}",
            log.steps(),
            log.console_lines()
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn boot_from_network(blade: &LabBlade) {
    blade.blade.set_boot_override(NETWORK_ONCE);
    blade.blade.power_on();
}

#[tokio::test]
async fn a_blade_boots_into_the_agent_reports_and_obeys() {
    let (lab, services) = lab(201, 3).await;
    services.serve("/boot.ipxe", &[(200, &agent_script(&services))]);
    services.serve("/i/vmlinuz", &[(200, &"k".repeat(300_000))]);
    services.serve("/i/initrd", &[(200, "initrd")]);
    services.serve("/agent/v1/claim", &[(200, r#"{"node":"bld-003","order":{"do":"report"}}"#)]);
    services.serve("/agent/v1/report", &[(200, r#"{"do":"wait","seconds":1}"#)]);
    services.serve(
        "/agent/v1/next",
        &[(200, r#"{"do":"wait","seconds":1}"#), (503, ""), (200, r#"{"do":"power-off"}"#)],
    );
    let third = lab.blade(3).unwrap();
    assert_eq!((third.blade.power(), third.blade.watts()), (false, None));
    boot_from_network(third);
    until(third, "power off", 1).await;
    let lease = ["dhcp discover", "dhcp request", "dhcp ack"];
    let want = [
        &["power on"][..],
        &lease,
        &["tftp undionly.kpxe"],
        &lease,
        &["http boot.ipxe", "http vmlinuz", "http initrd", "kernel", "agent claim"],
        &["agent report", "agent next", "agent next", "agent next"],
        &["agent powers off", "power off"],
    ];
    assert_eq!(third.blade.log().steps(), want.concat());
    assert!(third.blade.bytes_fetched() > 305_000);
    assert_eq!(third.blade.boot_override(), None, "the override was for one boot");
    let seen = services.seen();
    assert!(seen.iter().all(|request| request.from == third.address), "{seen:?}");
    assert_eq!(seen[0].line, "GET /boot.ipxe?mac=9c-8e-99-00-03-01 HTTP/1.1");
    let report = seen.iter().find(|request| request.line.contains("report")).unwrap();
    assert!(report.head.contains(&format!("Authorization: Ticket {TICKET}")));
    let report: Report = serde_json::from_str(&report.body).unwrap();
    let dmi = model::hex::decode(&report.dmi).unwrap();
    let serial = third.serial.as_str().as_bytes();
    assert!(dmi.windows(serial.len()).any(|part| part == serial));
    assert_eq!((report.disks.len(), report.nics.len(), report.dmi_entry.len()), (2, 2, 62));
    lab.shutdown().await;
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_with_the_same_nonce_and_a_refusal_ends_it() {
    let (lab, services) = lab(202, 4).await;
    services.serve("/boot.ipxe", &[(200, &agent_script(&services))]);
    services.serve("/i/vmlinuz", &[(200, "k")]);
    services.serve("/i/initrd", &[(200, "i")]);
    services.serve("/agent/v1/claim", &[(200, r#"{"node":"n","order":{"do":"report"}}"#)]);
    services.serve("/agent/v1/report", &[(403, "this ticket is spent")]);
    let fourth = lab.blade(4).unwrap();
    fourth.blade.lose_next_agent_answer();
    // No disk: the network is tried without an override.
    fourth.blade.power_on();
    until(fourth, "agent stays", 1).await;
    let steps = fourth.blade.log().steps();
    let end = steps.iter().position(|step| step == "kernel").unwrap() + 1;
    let want = ["agent claim", "answer lost", "agent claim", "agent report", "agent refused 403"];
    assert_eq!(steps[end..], [&want[..], &["agent stays"]].concat());
    let seen = services.seen();
    let claims: Vec<_> = seen.iter().filter(|request| request.line.contains("claim")).collect();
    assert_eq!((claims.len(), &claims[0].body), (2, &claims[1].body));
    fourth.blade.soft_off();
    until(fourth, "power off", 1).await;
    lab.shutdown().await;
}

#[tokio::test]
async fn a_foreign_system_calls_back_and_obeys_the_power_button() {
    let (lab, services) = lab(203, 1).await;
    let done = format!("volund.done=http://{}/t/{TICKET}/done", services.http);
    services.serve("/boot.ipxe", &[(200, &script(&services, &done))]);
    services.serve("/i/vmlinuz", &[(200, "k")]);
    services.serve("/i/initrd", &[(200, "i")]);
    services.serve(&format!("/t/{TICKET}/done"), &[(503, ""), (200, "")]);
    let first = lab.blade(1).unwrap();
    first.blade.soft_off();
    boot_from_network(first);
    until(first, "linux runs", 1).await;
    assert!(first.blade.power(), "a press before the start is not remembered");
    assert_eq!(first.blade.log().count("linux done"), 1);
    let watts = first.blade.watts().unwrap();
    assert!((60..=72).contains(&watts), "{watts} W");
    first.blade.soft_off();
    until(first, "power off", 1).await;
    assert_eq!(first.blade.log().count("soft off"), 1);
    assert!(!first.blade.log().steps().concat().contains(TICKET));
    lab.shutdown().await;
}

#[tokio::test]
async fn what_fails_on_the_network_falls_through_to_the_disk() {
    let (lab, services) = lab(204, 1).await;
    services.serve("/i/vmlinuz", &[(200, &"k".repeat(100_000))]);
    services.serve("/i/initrd", &[(200, "i")]);
    let first = lab.blade(1).unwrap();
    // No script at all; a page instead of a script; a script that gives up; a truncated kernel.
    let (page, gives_up) = ("<html>", "#!ipxe\nexit 1\n");
    let whole = script(&services, "");
    let scripts = [(404, ""), (200, page), (200, gives_up), (200, whole.as_str()), (200, &whole)];
    services.serve("/boot.ipxe", &scripts);
    for boot in 1..=4 {
        first.blade.truncate_download(u32::from(boot == 4));
        boot_from_network(first);
        until(first, "disk boot", boot).await;
        first.blade.power_off();
    }
    boot_from_network(first);
    until(first, "system started", 1).await;
    let log = first.blade.log();
    assert_eq!(log.count("disk boot"), 4, "{:?}", log.steps());
    assert_eq!(log.count("http vmlinuz failed"), 1);
    assert!(log.console_lines().iter().any(|line| line.contains("50000 of 100000 bytes")));
    lab.shutdown().await;
}

#[tokio::test]
async fn the_boot_order_follows_disk_and_link() {
    let (lab, services) = lab(205, 4).await;
    services.serve("/boot.ipxe", &[(200, "#!ipxe\nsanboot --drive 0x80 || exit\n")]);
    let first = lab.blade(1).unwrap();
    first.blade.power_on();
    until(first, "disk boot", 1).await;
    assert_eq!(first.blade.log().steps(), ["power on", "disk boot"]);
    // An empty disk: the network is tried, its script finds nothing either.
    first.blade.set_disk_boots(false);
    first.blade.reset();
    until(first, "no boot device", 1).await;
    assert_eq!(first.blade.log().count("http boot.ipxe"), 1);
    // The script starts the disk.
    first.blade.set_disk_boots(true);
    first.blade.set_boot_override(NETWORK_ONCE);
    first.blade.power_cycle();
    assert!(!first.blade.power());
    until(first, "disk boot", 2).await;
    assert!(first.blade.power());
    let fourth = lab.blade(4).unwrap();
    fourth.blade.never_asks_dhcp(true);
    boot_from_network(fourth);
    until(fourth, "no boot device", 1).await;
    assert_eq!(fourth.blade.log().steps(), ["power on", "no link", "no boot device"]);
    fourth.blade.soft_off();
    assert!(fourth.blade.power(), "firmware does not listen to the power button");
    lab.shutdown().await;
}

#[tokio::test]
async fn sixteen_blades_boot_at_once_and_a_looping_one_begins_again() {
    let (lab, services) = lab(206, 16).await;
    services.serve("/boot.ipxe", &[(200, &script(&services, "quiet"))]);
    services.serve("/i/vmlinuz", &[(200, &"k".repeat(200_000))]);
    services.serve("/i/initrd", &[(200, "i")]);
    lab.blade(16).unwrap().blade.boot_loop(2);
    lab.blades.iter().for_each(boot_from_network);
    for blade in &lab.blades {
        until(blade, "system started", 1).await;
    }
    let last = lab.blade(16).unwrap().blade.log();
    assert_eq!(
        (last.count("kernel panic"), last.count("restart"), last.count("kernel")),
        (2, 2, 3)
    );
    lab.shutdown().await;
}
