//! Against tools nobody here wrote.

use std::{
    net::{SocketAddr, UdpSocket},
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use bmc::{
    Bmc, BootDevice, DcmiOutcome, FirmwareMode, LostBit, Options, PowerState, Suite, SuiteChoice,
};
use model::Verb;
use tokio::process::{Child, Command};

use crate::rig::{NOW, PASSWORD, Rig, client, node, permit, quick};

/// An address nothing listens on, as far as the kernel knows at this moment.
pub fn free_udp_address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Whether a tool is there. In CI it has to be.
fn have(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(tool).is_file());
    assert!(found || std::env::var_os("CI").is_none(), "{tool} is not installed");
    if !found {
        println!("not run: {tool} is not installed");
    }
    found
}

/// A folder of its own, gone with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("volund-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            println!("{} stays: {error}", self.0.display());
        }
    }
}

struct Ipmitool {
    address: SocketAddr,
    suite: &'static str,
}

impl Ipmitool {
    /// Output of one call that succeeds.
    async fn ask(&self, words: &str) -> String {
        let port = self.address.port().to_string();
        let output = Command::new("ipmitool")
            .args(["-I", "lanplus", "-C", self.suite, "-H", "127.0.0.1", "-p", &port])
            .args(["-U", "admin", "-E", "-N", "1", "-R", "3"])
            .args(words.split(' '))
            .env("IPMITOOL_PASSWORD", PASSWORD)
            .output()
            .await
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ipmitool -C {} {words}: {complaint}", self.suite);
        text
    }
}

#[tokio::test]
async fn ipmitool_drives_the_twin_by_both_suites() {
    if !have("ipmitool") {
        return;
    }
    for suite in ["17", "3"] {
        let rig = Rig::start().await;
        rig.board.watts.store(67, Ordering::SeqCst);
        let tool = Ipmitool { address: rig.address, suite };
        assert!(tool.ask("chassis power status").await.contains("is off"));
        for verb in ["on", "reset", "cycle", "soft", "on", "off"] {
            tool.ask(&format!("chassis power {verb}")).await;
        }
        assert_eq!(rig.board.log(), ["on", "reset", "cycle", "soft", "on", "off"]);

        tool.ask("chassis bootdev pxe options=efiboot").await;
        let held = rig.board.boot.lock().unwrap().unwrap();
        assert_eq!((held.device, held.mode), (BootDevice::Pxe, FirmwareMode::Uefi));
        let flags = tool.ask("chassis bootparam get 5").await;
        assert!(flags.contains("a004000000") && flags.contains("Force PXE"), "{flags}");
        tool.ask("chassis bootdev none").await;
        assert_eq!(*rig.board.boot.lock().unwrap(), None);

        let watts = tool.ask("dcmi power reading").await;
        assert!(watts.contains("67 Watts") && watts.contains("activated"), "{watts}");
        let info = tool.ask("mc info").await;
        assert!(info.contains("Firmware Revision         : 2.50"), "{info}");
        assert!(info.contains("Hewlett-Packard"), "{info}");
        // Without a mode it guesses the byte order, and HPE's text looks like no order at all.
        let guid = tool.ask("mc guid smbios").await.to_lowercase();
        assert!(guid.contains("39343536-3831-435a-3333-303039303033"), "{guid}");
        let ciphers = tool.ask("channel getciphers ipmi").await;
        assert!(ciphers.contains("sha256_128") && ciphers.contains("hmac_sha1_96"), "{ciphers}");
    }
}

#[tokio::test]
async fn ipmitool_with_a_wrong_password_is_turned_away() {
    if !have("ipmitool") {
        return;
    }
    let rig = Rig::start().await;
    let port = rig.address.port().to_string();
    let output = Command::new("ipmitool")
        .args(["-I", "lanplus", "-C", "17", "-H", "127.0.0.1", "-p", &port, "-U", "admin", "-E"])
        .args(["-N", "1", "-R", "1", "chassis", "power", "on"])
        .env("IPMITOOL_PASSWORD", "wrong")
        .output()
        .await
        .unwrap();
    assert!(!output.status.success());
    assert_eq!(rig.board.log(), [""; 0]);
}

/// A foreign BMC and a client of it that has reached it.
struct Peer {
    _child: Child,
    bmc: Bmc,
}

impl Peer {
    async fn start(mut command: Command, address: SocketAddr, options: Options) -> Self {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let give_up = Instant::now() + Duration::from_secs(8);
        let bmc = client(address, "secret", options);
        while let Err(error) = bmc.device_id().await {
            assert!(Instant::now() < give_up, "the peer does not come up: {error}");
        }
        Self { _child: child, bmc }
    }
}

const SIM_CONTROL: &str = r#"#!/bin/sh
# Keeps the power state in a file; every other property is accepted and forgotten.
file="$(dirname "$0")/power"
shift
mode="$1"
shift
while [ $# -gt 0 ]; do
    case "$mode $1" in
        "get power") echo "power:$(cat "$file" 2>/dev/null || echo 0)"; shift ;;
        get\ *) echo "$1:none"; shift ;;
        "set power") echo "$2" > "$file"; shift 2 ;;
        "set shutdown") echo 0 > "$file"; shift 2 ;;
        set\ *) shift 2 ;;
        *) shift ;;
    esac
done
"#;

fn write_sim_files(folder: &Path, port: u16) {
    use std::os::unix::fs::PermissionsExt;
    let control = folder.join("control.sh");
    std::fs::write(&control, SIM_CONTROL).unwrap();
    std::fs::set_permissions(&control, std::fs::Permissions::from_mode(0o755)).unwrap();
    let lan = format!(
        "name \"peer\"\nset_working_mc 0x20\n startlan 1\n  addr 127.0.0.1 {port}\n  priv_limit admin\n\
         \x20 allowed_auths_admin none md5 straight\n  guid 39343536383134353a33303039303033\n endlan\n\
         \x20chassis_control \"{} 0x20\"\n user 2 true \"admin\" \"secret\" admin 4 none md5 straight\n",
        control.display()
    );
    std::fs::write(folder.join("lan.conf"), lan).unwrap();
    let mc = "mc_setbmc 0x20\nmc_add 0x20 0x20 no-device-sdrs 0x00 1 0x7 0x80 0x000b 0x2000\nmc_enable 0x20\n";
    std::fs::write(folder.join("mc.cmd"), mc).unwrap();
}

async fn power_verbs(bmc: &Bmc) {
    bmc.power_on().await.unwrap();
    assert_eq!(bmc.power_status().await.unwrap(), PowerState::On);
    let off = bmc.power_off(&node(), permit(Verb::PowerOff), NOW).await.unwrap();
    off.outcome.unwrap();
    assert_eq!(bmc.power_status().await.unwrap(), PowerState::Off);
}

#[tokio::test]
async fn our_client_drives_ipmi_sim_and_falls_back_to_suite_3() {
    if !have("ipmi_sim") {
        return;
    }
    let folder = Folder::new("ipmi-sim");
    let address = free_udp_address();
    write_sim_files(&folder.0, address.port());
    std::fs::create_dir_all(folder.0.join("state")).unwrap();
    let mut command = Command::new("ipmi_sim");
    command.args(["-c", "lan.conf", "-f", "mc.cmd", "-s", "state", "-n"]).current_dir(&folder.0);
    let peer = Peer::start(command, address, quick()).await;
    let bmc = &peer.bmc;
    assert_eq!(bmc.suite(), Some(3));
    assert_eq!(bmc.device_id().await.unwrap().manufacturer, 11);
    power_verbs(bmc).await;
    assert!(bmc.system_guid().await.unwrap().is_some());
    assert_eq!(bmc.power_reading().await.unwrap(), DcmiOutcome::NotSupported);
    let back = bmc.set_boot_once(BootDevice::Pxe, FirmwareMode::Uefi).await.unwrap();
    println!("ipmi_sim lost {:?}", back.lost);
    assert!(back.lost.contains(&LostBit::Uefi), "{back:?}");
    bmc.close().await;
}

/// The BMC in Python beside the repository, if it and what it needs are there.
fn python_bmc(address: SocketAddr, extra: &str) -> Option<Command> {
    if !have("python3") {
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/lab/bmc/bmcsim.py");
    let crypto = std::process::Command::new("python3")
        .args(["-c", "import cryptography"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    let missing = match (script.is_file(), crypto) {
        (true, true) => None,
        (false, _) => Some(script.display().to_string()),
        (true, false) => Some("Python package cryptography".to_owned()),
    };
    if let Some(missing) = missing {
        assert!(std::env::var_os("CI").is_none(), "{missing} is missing");
        println!("not run: {missing} is missing");
        return None;
    }
    let mut command = Command::new("python3");
    command.arg(script).args(["--port", &address.port().to_string(), "--maxsess", "500"]);
    command.args(extra.split(' ').filter(|word| !word.is_empty()));
    Some(command)
}

#[tokio::test]
async fn our_client_drives_a_bmc_in_python_by_both_suites() {
    for suite in [Suite::Seventeen, Suite::Three] {
        let address = free_udp_address();
        let Some(command) = python_bmc(address, "--shortid") else { return };
        let options = Options { suite: SuiteChoice::Only(suite), ..quick() };
        let peer = Peer::start(command, address, options).await;
        let bmc = &peer.bmc;
        assert_eq!(bmc.suite(), Some(suite.id()));
        power_verbs(bmc).await;
        let back = bmc.set_boot_once(BootDevice::Pxe, FirmwareMode::Uefi).await.unwrap();
        assert_eq!((back.got, back.lost), (Some(back.sent), vec![]));
        assert!(bmc.system_guid().await.unwrap().is_some());
        let DcmiOutcome::Reading { watts: 8, confirmed: true, .. } =
            bmc.power_reading().await.unwrap()
        else {
            panic!("no reading")
        };
    }
}

#[tokio::test]
async fn loss_and_doubles_on_the_way_to_a_foreign_bmc_give_no_wrong_state() {
    let address = free_udp_address();
    let Some(command) = python_bmc(address, "--drop 0.1 --dup 0.2") else { return };
    let options = Options { first_wait: Duration::from_millis(20), ..quick() };
    let peer = Peer::start(command, address, options).await;
    let bmc = &peer.bmc;
    let (mut wrong, mut errors) = (0, 0);
    for _ in 0..60 {
        for want in [PowerState::On, PowerState::Off] {
            let set = if want.is_on() {
                bmc.power_on().await
            } else {
                bmc.power_off(&node(), permit(Verb::PowerOff), NOW).await.unwrap().outcome
            };
            if set.is_err() {
                errors += 1;
                continue;
            }
            match bmc.power_status().await {
                Ok(got) => wrong += u32::from(got != want),
                Err(_) => errors += 1,
            }
        }
    }
    println!("{:?}, {errors} of 240 verbs failed", bmc.counters());
    assert_eq!(wrong, 0);
    assert!(errors <= 2, "{errors}");
    assert!(bmc.counters().retransmits > 20 && bmc.counters().strays > 10);
}
