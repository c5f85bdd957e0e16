//! What `volund twin` is told: which QEMU machines to keep, and where their management controllers listen.

use std::{
    collections::BTreeSet,
    fmt,
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use model::{MacAddr, NodeName, Uuid};
use serde::Deserialize;

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwinConfig {
    /// Disks, firmware variables, consoles and sockets live here, a folder a machine. Paths must be short: a
    /// socket's name has at most 107 bytes.
    pub state_dir: PathBuf,
    /// User of every management controller.
    pub user: String,
    /// Its password.
    pub password: Password,
    /// Put before QEMU, such as `["ip", "netns", "exec", "lan"]`. A machine may have its own.
    #[serde(default)]
    pub launcher: Vec<String>,
    /// The QEMU program.
    #[serde(default = "default_qemu")]
    pub qemu: PathBuf,
    /// The QEMU program of ARM machines.
    #[serde(default = "default_qemu_arm64")]
    pub qemu_arm64: PathBuf,
    /// UEFI firmware.
    #[serde(default = "default_code")]
    pub ovmf_code: PathBuf,
    /// UEFI variables, copied for each machine.
    #[serde(default = "default_vars")]
    pub ovmf_vars: PathBuf,
    /// UEFI firmware of machines with Secure Boot.
    #[serde(default = "default_secure_code")]
    pub secure_code: PathBuf,
    /// Its variables, with Microsoft's keys enrolled: what Debian's shim is signed with.
    #[serde(default = "default_secure_vars")]
    pub secure_vars: PathBuf,
    /// UEFI firmware of ARM machines.
    #[serde(default = "default_aavmf_code")]
    pub aavmf_code: PathBuf,
    /// Its variables.
    #[serde(default = "default_aavmf_vars")]
    pub aavmf_vars: PathBuf,
    /// The machines.
    pub machines: Vec<MachineConfig>,
}

/// One machine.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineConfig {
    /// Its name; also that of its folder.
    pub name: NodeName,
    /// Its firmware, and with it the kind of machine.
    pub firmware: Firmware,
    /// Hardware address of its one network card.
    pub mac: MacAddr,
    /// TAP interface it hangs on, which must exist where QEMU runs; without one it has no network.
    pub tap: Option<String>,
    /// System UUID: SMBIOS type 1, DHCP option 97, IPMI system GUID.
    pub uuid: Uuid,
    /// Serial in SMBIOS type 1.
    pub serial: String,
    /// Manufacturer in SMBIOS type 1.
    #[serde(default = "default_manufacturer")]
    pub manufacturer: String,
    /// Product name in SMBIOS type 1.
    #[serde(default = "default_product")]
    pub product: String,
    /// Disks, made empty when they do not exist. At most two.
    #[serde(default)]
    pub disks: Vec<DiskConfig>,
    /// Memory in MiB.
    #[serde(default = "default_memory")]
    pub memory_mib: u32,
    /// Where its management controller listens.
    pub bmc: BmcConfig,
    /// Instead of the launcher of all machines.
    pub launcher: Option<Vec<String>>,
    /// Boot ROM of the network card, instead of QEMU's own iPXE (BIOS) or EDK2's stack (UEFI).
    pub rom: Option<PathBuf>,
    /// More words for QEMU's command line, after all others.
    #[serde(default)]
    pub args: Vec<String>,
}

/// A disk.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskConfig {
    /// Serial, at most 20 bytes: virtio has no room for more.
    pub serial: String,
    /// Size in MiB.
    pub size_mib: u32,
    /// How it is attached.
    #[serde(default)]
    pub bus: DiskBus,
}

/// How a disk is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskBus {
    /// virtio-blk.
    #[default]
    Virtio,
    /// IDE on `pc`, SATA on `q35`.
    Ide,
}

/// A machine's firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Firmware {
    /// SeaBIOS on a `pc` machine.
    Bios,
    /// OVMF on a `q35` machine.
    Uefi,
    /// OVMF with Secure Boot on a `q35` machine whose flash only firmware can write (SMM).
    UefiSecure,
    /// EDK2 on an ARM `virt` machine of 64 bits.
    UefiArm64,
}

/// The two flash images of a machine with UEFI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flash<'a> {
    /// The firmware; shared and read only.
    pub(super) code: &'a Path,
    /// What its variables are copied from.
    pub(super) vars: &'a Path,
    /// The Debian package both are in.
    pub(super) package: &'static str,
}

/// Where a management controller listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BmcConfig {
    /// In 127.0.0.0/8.
    pub address: Ipv4Addr,
    /// UDP port; 0 lets the system choose one.
    pub port: u16,
}

/// A secret: never shown.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

fn default_qemu() -> PathBuf {
    "qemu-system-x86_64".into()
}

fn default_code() -> PathBuf {
    "/usr/share/OVMF/OVMF_CODE_4M.fd".into()
}

fn default_vars() -> PathBuf {
    "/usr/share/OVMF/OVMF_VARS_4M.fd".into()
}

fn default_qemu_arm64() -> PathBuf {
    "qemu-system-aarch64".into()
}

fn default_secure_code() -> PathBuf {
    "/usr/share/OVMF/OVMF_CODE_4M.ms.fd".into()
}

fn default_secure_vars() -> PathBuf {
    "/usr/share/OVMF/OVMF_VARS_4M.ms.fd".into()
}

fn default_aavmf_code() -> PathBuf {
    "/usr/share/AAVMF/AAVMF_CODE.fd".into()
}

fn default_aavmf_vars() -> PathBuf {
    "/usr/share/AAVMF/AAVMF_VARS.fd".into()
}

fn default_manufacturer() -> String {
    "volund".to_owned()
}

fn default_product() -> String {
    "twin".to_owned()
}

fn default_memory() -> u32 {
    512
}

/// Longest name of a unix socket, its closing zero not counted.
const MOST_SOCKET_PATH: usize = 107;

impl TwinConfig {
    /// Every fault of the file at once, each naming the machine and the remedy; empty when it can be used.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut seen = BTreeSet::new();
        if self.machines.is_empty() {
            faults.push("machines is empty: name at least one".to_owned());
        }
        for (name, text, most) in [("user", &self.user, 16), ("password", &self.password.0, 20)] {
            if text.is_empty() || text.len() > most {
                faults.push(format!("{name} must have 1 to {most} bytes (IPMI 2.0)"));
            }
        }
        for machine in &self.machines {
            let name = &machine.name;
            for key in [format!("name {name}"), format!("mac {}", machine.mac)] {
                if !seen.insert(key.clone()) {
                    faults.push(format!("{key} occurs twice: give each machine its own"));
                }
            }
            faults.extend(machine.faults().into_iter().map(|fault| format!("{name}: {fault}")));
            if self.socket(name).as_os_str().len() > MOST_SOCKET_PATH {
                faults.push(format!("{name}: state_dir is too long for a socket: shorten it"));
            }
        }
        faults
    }

    /// The folder of a machine.
    #[must_use]
    pub fn folder(&self, name: &NodeName) -> PathBuf {
        self.state_dir.join(name.as_str())
    }

    /// The QMP socket of a machine.
    #[must_use]
    pub fn socket(&self, name: &NodeName) -> PathBuf {
        self.folder(name).join("qmp.sock")
    }

    /// The launcher of a machine: its own, or that of all.
    #[must_use]
    pub fn launcher_of<'a>(&'a self, machine: &'a MachineConfig) -> &'a [String] {
        machine.launcher.as_ref().unwrap_or(&self.launcher)
    }

    /// The flash images of a firmware; BIOS has none.
    pub(super) fn flash(&self, firmware: Firmware) -> Option<Flash<'_>> {
        let (code, vars, package) = match firmware {
            Firmware::Bios => return None,
            Firmware::Uefi => (&self.ovmf_code, &self.ovmf_vars, "ovmf"),
            Firmware::UefiSecure => (&self.secure_code, &self.secure_vars, "ovmf"),
            Firmware::UefiArm64 => (&self.aavmf_code, &self.aavmf_vars, "qemu-efi-aarch64"),
        };
        Some(Flash { code, vars, package })
    }

    /// Firmware files this configuration needs and that do not exist, with the package that has them.
    #[must_use]
    pub fn missing_files(&self) -> Vec<String> {
        let flashes = self.machines.iter().filter_map(|machine| self.flash(machine.firmware));
        let wanted: BTreeSet<(&Path, &str)> = flashes
            .flat_map(|flash| [flash.code, flash.vars].map(|path| (path, flash.package)))
            .collect();
        let missing = wanted.into_iter().filter(|(path, _)| !path.exists());
        let mut missing: Vec<String> = missing
            .map(|(path, package)| {
                format!("{} does not exist: install the package {package}", path.display())
            })
            .collect();
        let roms = self.machines.iter().filter_map(|machine| machine.rom.as_ref());
        let gone = roms.filter(|rom| !rom.as_os_str().is_empty() && !rom.exists());
        missing.extend(gone.map(|rom| format!("rom {} does not exist", rom.display())));
        missing
    }
}

impl MachineConfig {
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.mac.is_junk() {
            faults.push(format!("mac {} is a group address", self.mac));
        }
        if !self.bmc.address.is_loopback() {
            let address = self.bmc.address;
            faults.push(format!("bmc.address {address} must lie in 127.0.0.0/8"));
        }
        if self.disks.len() > 2 {
            faults.push("more than two disks".to_owned());
        }
        let serials = self.disks.iter().map(|disk| &disk.serial);
        for serial in serials {
            if serial.is_empty()
                || serial.len() > 20
                || !serial.bytes().all(|b| b.is_ascii_graphic())
            {
                faults.push(format!("disk serial {serial:?} must have 1 to 20 printable bytes"));
            }
        }
        if self.disks.iter().any(|disk| disk.size_mib == 0) {
            faults.push("a disk of 0 MiB".to_owned());
        }
        if self.memory_mib < 160 {
            let memory = self.memory_mib;
            faults.push(format!("memory_mib {memory} is too little: firmware hangs below 160"));
        }
        if self.tap.as_ref().is_some_and(|tap| tap.is_empty() || tap.len() > 15) {
            faults.push("tap must have 1 to 15 bytes".to_owned());
        }
        faults
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const TWO: &str = r#"
        state_dir = "/tmp/t"
        user = "ADMIN"
        password = "secret"
        launcher = ["ip", "netns", "exec", "lan"]
        [[machines]]
        name = "bios-1"
        firmware = "bios"
        mac = "52:54:00:00:00:11"
        tap = "tbios1"
        uuid = "00000000-0000-4000-8000-525400000011"
        serial = "SN,1"
        disks = [{ serial = "D1", size_mib = 64 }, { serial = "D2", size_mib = 8, bus = "ide" }]
        bmc = { address = "127.0.0.1", port = 0 }
        [[machines]]
        name = "uefi-1"
        firmware = "uefi"
        mac = "52:54:00:00:00:21"
        uuid = "00000000-0000-4000-8000-525400000021"
        serial = "SN2"
        memory_mib = 256
        bmc = { address = "127.0.0.1", port = 9623 }
        launcher = []
    "#;

    #[test]
    fn a_good_file_has_no_faults_and_hides_its_password() {
        let config: TwinConfig = toml::from_str(TWO).unwrap();
        assert_eq!(config.faults(), Vec::<String>::new());
        assert!(!format!("{config:?}").contains("secret"));
    }

    #[test]
    fn a_bad_file_says_every_fault_at_once() {
        let bad = TWO
            .replace("52:54:00:00:00:21", "52:54:00:00:00:11")
            .replace("uefi-1", "bios-1")
            .replace("\"D1\"", "\"\"")
            .replace("memory_mib = 256", "memory_mib = 32")
            .replace("127.0.0.1\", port = 9623", "192.0.2.1\", port = 9623")
            .replace("/tmp/t", &"/tmp/t".repeat(20));
        let config: TwinConfig = toml::from_str(&bad).unwrap();
        insta::assert_snapshot!(config.faults().join("\n"), @r#"
        bios-1: disk serial "" must have 1 to 20 printable bytes
        bios-1: state_dir is too long for a socket: shorten it
        name bios-1 occurs twice: give each machine its own
        mac 52:54:00:00:00:11 occurs twice: give each machine its own
        bios-1: bmc.address 192.0.2.1 must lie in 127.0.0.0/8
        bios-1: memory_mib 32 is too little: firmware hangs below 160
        bios-1: state_dir is too long for a socket: shorten it
        "#);
        assert!(toml::from_str::<TwinConfig>(&TWO.replace("tap =", "tab =")).is_err());
    }
}
