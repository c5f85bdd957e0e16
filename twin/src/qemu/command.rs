//! The command line of a QEMU machine. Pure: configuration and boot order in, words out.

use std::{ffi::OsString, path::Path};

use super::config::{DiskBus, DiskConfig, Firmware, MachineConfig, TwinConfig};

/// What firmware tries first. The disk always keeps boot index 2 and only the network card moves, so that no
/// two devices ever share an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootOrder {
    /// Network, then disk.
    Network,
    /// Disk, then network.
    Disk,
}

impl BootOrder {
    /// Boot index of the network card.
    #[must_use]
    pub fn nic_index(self) -> u8 {
        match self {
            Self::Network => 1,
            Self::Disk => 3,
        }
    }
}

/// Program and arguments for `machine`, launcher included. Never `-accel kvm`: a `/dev/kvm` that opens does
/// not mean that it can run firmware (nested software hypervisors cannot).
#[must_use]
pub fn command_line(
    config: &TwinConfig,
    machine: &MachineConfig,
    order: BootOrder,
) -> Vec<OsString> {
    let folder = config.folder(&machine.name);
    let mut words: Vec<OsString> = config.launcher_of(machine).iter().map(OsString::from).collect();
    let (qemu, cpu) = match machine.firmware {
        // An emulated `max` signs every pointer, which costs an emulator half its speed.
        Firmware::UefiArm64 => (&config.qemu_arm64, "cortex-a57"),
        Firmware::Bios | Firmware::Uefi | Firmware::UefiSecure => (&config.qemu, "max"),
    };
    words.push(qemu.clone().into_os_string());
    let mut arg = |text: String| words.push(text.into());
    for text in ["-accel", "tcg,thread=multi", "-cpu", cpu, "-nodefaults", "-no-user-config"] {
        arg(text.to_owned());
    }
    for text in ["-display", "none", "-vga", "none", "-monitor", "none", "-device"] {
        arg(text.to_owned());
    }
    // OVMF since 2025 wants a source of chance for its network stack.
    arg("virtio-rng-pci".to_owned());
    for (option, value) in identity(machine) {
        arg(option.to_owned());
        arg(value);
    }
    arg("-qmp".to_owned());
    arg(format!("unix:{},server=on,wait=off", escaped(&config.socket(&machine.name))));
    arg("-chardev".to_owned());
    arg(format!("file,id=con0,append=on,path={}", escaped(&folder.join("serial.log"))));
    arg("-serial".to_owned());
    arg("chardev:con0".to_owned());
    for (option, value) in firmware(config, machine, &folder) {
        arg(option.to_owned());
        arg(value);
    }
    for (option, value) in network(machine, order) {
        arg(option.to_owned());
        arg(value);
    }
    for (number, disk) in machine.disks.iter().enumerate() {
        for (option, value) in block(disk, number, &folder) {
            arg(option.to_owned());
            arg(value);
        }
    }
    for text in &machine.args {
        arg(text.clone());
    }
    words
}

/// File of a disk inside the machine's folder.
#[must_use]
pub(super) fn disk_file(folder: &Path, number: usize) -> std::path::PathBuf {
    folder.join(format!("disk{number}.raw"))
}

fn identity(machine: &MachineConfig) -> Vec<(&'static str, String)> {
    let type_1 = format!(
        "type=1,manufacturer={},product={},serial={}",
        comma(&machine.manufacturer),
        comma(&machine.product),
        comma(&machine.serial)
    );
    vec![
        ("-name", machine.name.to_string()),
        ("-m", machine.memory_mib.to_string()),
        ("-uuid", machine.uuid.to_string()),
        ("-smbios", type_1),
    ]
}

fn firmware(
    config: &TwinConfig,
    machine: &MachineConfig,
    folder: &Path,
) -> Vec<(&'static str, String)> {
    // Without graphics SeaBIOS speaks on the serial port.
    let Some(flash) = config.flash(machine.firmware) else {
        return vec![("-machine", "pc,graphics=off".to_owned())];
    };
    let drive = |unit: u8, more: &str, file: &Path| {
        let file = escaped(file);
        ("-drive", format!("if=pflash,unit={unit},format=raw,{more}file={file}"))
    };
    let kind = match machine.firmware {
        Firmware::UefiArm64 => "virt",
        Firmware::UefiSecure => "q35,smm=on",
        Firmware::Bios | Firmware::Uefi => "q35",
    };
    let mut options = vec![
        ("-machine", kind.to_owned()),
        drive(0, "readonly=on,", flash.code),
        drive(1, "", &folder.join("vars.fd")),
    ];
    if machine.firmware == Firmware::UefiSecure {
        let locked = "driver=cfi.pflash01,property=secure,value=on";
        options.push(("-global", locked.to_owned()));
    }
    options
}

fn network(machine: &MachineConfig, order: BootOrder) -> Vec<(&'static str, String)> {
    let netdev = match &machine.tap {
        Some(tap) => format!("tap,id=n0,ifname={},script=no,downscript=no", comma(tap)),
        // A hub with one port: a card with a link and nobody there.
        None => "hubport,id=n0,hubid=0".to_owned(),
    };
    let rom = match (&machine.rom, machine.firmware) {
        (Some(rom), _) => format!(",romfile={}", escaped(rom)),
        // QEMU's own ROM of this card is iPXE.
        (None, Firmware::Bios) => String::new(),
        // No ROM: OVMF's own network stack rather than iPXE's driver.
        (None, _) => ",romfile=".to_owned(),
    };
    let (mac, index) = (machine.mac, order.nic_index());
    let device = format!("virtio-net-pci,id=nic0,netdev=n0,mac={mac},bootindex={index}{rom}");
    vec![("-netdev", netdev), ("-device", device)]
}

fn block(disk: &DiskConfig, number: usize, folder: &Path) -> Vec<(&'static str, String)> {
    let file = escaped(&disk_file(folder, number));
    let drive = format!("if=none,id=d{number},format=raw,discard=unmap,file={file}");
    // 2 for the first disk, 4 for the second: 1 and 3 belong to the network card.
    let index = 2 + 2 * number;
    let kind = match disk.bus {
        DiskBus::Virtio => "virtio-blk-pci".to_owned(),
        DiskBus::Ide => format!("ide-hd,bus=ide.{number}"),
    };
    let serial = comma(&disk.serial);
    let device =
        format!("{kind},id=disk{number},drive=d{number},serial={serial},bootindex={index}");
    vec![("-drive", drive), ("-device", device)]
}

/// QEMU splits option values at commas; a doubled one is meant.
fn comma(text: &str) -> String {
    text.replace(',', ",,")
}

fn escaped(path: &Path) -> String {
    comma(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(machine: usize, order: BootOrder) -> String {
        let config: TwinConfig = toml::from_str(super::super::config::tests::TWO).unwrap();
        let words = command_line(&config, &config.machines[machine], order);
        let words = words.iter().map(|word| word.to_string_lossy().into_owned());
        words.collect::<Vec<_>>().join(" ").replace(" -", "\n-")
    }

    #[test]
    fn a_bios_machine_starts_on_pc_with_the_roms_of_qemu() {
        insta::assert_snapshot!(shown(0, BootOrder::Network));
    }

    #[test]
    fn secure_boot_and_arm_have_their_own_flash_and_words_come_last() {
        let mut config: TwinConfig = toml::from_str(super::super::config::tests::TWO).unwrap();
        config.machines[1].args = vec!["-fw_cfg".into(), "name=opt/x,string=n".into()];
        let mut tail = |firmware| {
            config.machines[1].firmware = firmware;
            let words = command_line(&config, &config.machines[1], BootOrder::Network);
            let words = words.iter().map(|word| word.to_string_lossy().into_owned());
            let words = words.collect::<Vec<_>>().join(" ").replace(" -", "\n-");
            let kept = ["qemu", "-cpu", "-machine", "-global", "-drive if=pflash", "-fw_cfg"];
            let lines = words.lines().filter(|line| kept.iter().any(|word| line.starts_with(word)));
            lines.collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(tail(Firmware::UefiSecure), @r#"
        qemu-system-x86_64
        -cpu max
        -machine q35,smm=on
        -drive if=pflash,unit=0,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.ms.fd
        -drive if=pflash,unit=1,format=raw,file=/tmp/t/uefi-1/vars.fd
        -global driver=cfi.pflash01,property=secure,value=on
        -fw_cfg name=opt/x,string=n
        "#);
        insta::assert_snapshot!(tail(Firmware::UefiArm64), @r#"
        qemu-system-aarch64
        -cpu cortex-a57
        -machine virt
        -drive if=pflash,unit=0,format=raw,readonly=on,file=/usr/share/AAVMF/AAVMF_CODE.fd
        -drive if=pflash,unit=1,format=raw,file=/tmp/t/uefi-1/vars.fd
        -fw_cfg name=opt/x,string=n
        "#);
    }

    #[test]
    fn a_uefi_machine_starts_on_q35_with_ovmf_and_no_rom() {
        insta::assert_snapshot!(shown(1, BootOrder::Disk));
    }
}
