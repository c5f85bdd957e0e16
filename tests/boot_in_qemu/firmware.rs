//! Every firmware that can be had without hardware, one boot each, by `volund serve`: too long for the ordinary run, so
//! `tests/nightly/firmware.sh` asks for these. Each prints its row: name, result, seconds, what was seen.

use std::path::{Path, PathBuf};

use crate::{plain_rom, row::Row, segment::Machine};

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
    let dir = fetched("loaders");
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

/// The same machine without an address in volund's configuration: the other server gives it one.
fn undeclared(machine: Machine) -> Machine {
    let mut machine = machine.beside("192.0.2.77");
    machine.address = None;
    machine.node.push_str("network = \"boot\"\n");
    machine
}

/// A ROM without iPXE.
fn plain_bios(name: &'static str) -> Machine {
    let mut machine = Machine::plain(name, "bios");
    let words = plain_rom::arguments(&machine.sockets());
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    machine.twin = format!("rom = \"\"\nargs = [{}]\n", words.join(", "));
    machine.needs.push("/usr/lib/ipxe/ipxe.lkrn".into());
    machine
}

fn uefi_over_http(name: &'static str) -> Machine {
    Machine { twin: http_only(), ..Machine::plain(name, "uefi") }
}

/// Firmware that starts nothing unsigned, and Debian's signed shim and GRUB for it. Over TFTP only: over UEFI HTTP boot
/// both arrive, and then GRUB 2.06 stops at its prompt, since it finds no server in an HTTP device path.
fn secure(name: &'static str) -> Machine {
    let mut machine = Machine::plain(name, "uefi-secure");
    let (shim, grub) = (fetched("shimx64.efi.signed"), fetched("grubnetx64.efi.signed"));
    machine.node = "secure_boot = true\n".to_owned();
    machine.tables =
        format!("[secure_boot]\nshim = \"{}\"\ngrub = \"{}\"\n", shim.display(), grub.display());
    machine.needs.extend([shim, grub, "/usr/share/OVMF/OVMF_VARS_4M.ms.fd".into()]);
    machine
}

/// A plain ROM that is given pxelinux. Its module is served because it stands behind it in the ladder of loaders.
fn pxelinux(name: &'static str) -> Machine {
    let mut machine = plain_bios(name);
    let dir = fetched("loaders");
    machine.tables = format!(
        "[loaders]\ndir = \"{}\"\nbios = [\"pxelinux.0\", \"ldlinux.c32\"]\n",
        dir.display()
    );
    machine.needs.extend([dir.join("pxelinux.0"), dir.join("ldlinux.c32")]);
    machine
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_bios_with_ipxe_in_rom() {
    Row::inspected(Machine::plain("bios-rom", "bios"), &FROM_ROM).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_bios_with_a_plain_rom() {
    Row::inspected(plain_bios("bios-plain"), &FROM_PLAIN_ROM).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_uefi_over_pxe() {
    Row::inspected(Machine::plain("uefi-pxe", "uefi"), &OVER_TFTP).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_uefi_over_pxe_without_router_advertisements() {
    let mut machine = Machine::plain("uefi-no-ra", "uefi");
    machine.network = "router_advertisements = false\n".to_owned();
    Row::inspected(machine, &OVER_TFTP).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_uefi_over_pxe_with_a_newer_ipxe() {
    Row::inspected(newer_ipxe(Machine::plain("uefi-newer", "uefi")), &OVER_TFTP).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_uefi_over_http() {
    Row::inspected(uefi_over_http("uefi-http"), &OVER_HTTP).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_arm64_over_pxe() {
    arm64_row(arm64("arm64-pxe"), &ARM_OVER_TFTP).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_arm64_over_http() {
    arm64_row(Machine { twin: http_only(), ..arm64("arm64-http") }, &ARM_OVER_HTTP).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_secure_boot() {
    Row::inspected(secure("secure"), &SIGNED).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_bios_with_pxelinux() {
    Row::inspected(pxelinux("bios-pxelinux"), &PXELINUX).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_proxy_bios_with_ipxe_in_rom() {
    let machine = Machine::plain("p-bios-rom", "bios").beside(RESERVED);
    Row::inspected(machine, &FROM_ROM).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_proxy_bios_with_a_plain_rom() {
    Row::inspected(plain_bios("p-bios-plain").beside(RESERVED), &FROM_PLAIN_ROM).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_proxy_uefi_over_pxe() {
    let machine = Machine::plain("p-uefi-pxe", "uefi").beside(RESERVED);
    Row::inspected(machine, &PROXY_OVER_TFTP).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_proxy_uefi_over_http() {
    Row::inspected(uefi_over_http("p-uefi-http").beside(RESERVED), &OVER_HTTP).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_proxy_arm64_over_pxe() {
    arm64_row(arm64("p-arm64-pxe").beside(RESERVED), &ARM_OVER_TFTP).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_proxy_arm64_over_http() {
    let machine = Machine { twin: http_only(), ..arm64("p-arm64-http") };
    arm64_row(machine.beside(RESERVED), &ARM_OVER_HTTP).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_proxy_bios_with_pxelinux() {
    Row::inspected(pxelinux("p-pxelinux").beside(RESERVED), &PXELINUX).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_proxy_secure_boot() {
    // GRUB looks for its configuration where the ACK's siaddr points, whoever sent the boot file: the server that owns
    // the addresses has to name volund there, or GRUB asks that server over TFTP for ever.
    let machine = Machine { neighbour_lines: "dhcp-boot=,,192.0.2.1", ..secure("p-secure") };
    Row::inspected(machine.beside(RESERVED), &SIGNED).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_proxy_uefi_at_an_address_nobody_told_volund() {
    Row::inspected(undeclared(Machine::plain("p-uefi-free", "uefi")), &PROXY_OVER_TFTP).prove();
}

#[test]
#[ignore = "nightly: tests/nightly/firmware.sh"]
fn firmware_proxy_bios_at_an_address_nobody_told_volund() {
    Row::inspected(undeclared(Machine::plain("p-bios-free", "bios")), &FROM_ROM).prove();
}

/// What the other server gives is what volund was told.
const RESERVED: &str = "192.0.2.11";

const KERNEL: &str = "kernel /i/inspect/kernel fetched whole";
const ARM_KERNEL: &str = "kernel /i/arm/kernel fetched whole";
const REPORT: &str = "agent: report";
const SCRIPT: &str = "HTTP GET /boot.ipxe 200";

const FROM_ROM: [&str; 4] = ["from iPXE", SCRIPT, KERNEL, REPORT];
const FROM_PLAIN_ROM: [&str; 6] =
    ["from x86 BIOS", "TFTP sent undionly.kpxe", "from iPXE", SCRIPT, KERNEL, REPORT];
const OVER_TFTP: [&str; 6] =
    ["from x86-64 UEFI", "TFTP sent snponly.efi", "from iPXE", SCRIPT, KERNEL, REPORT];
const PROXY_OVER_TFTP: [&str; 6] = [
    "DHCP OFFER without an address, boot file snponly.efi",
    "TFTP sent snponly.efi",
    "from iPXE",
    SCRIPT,
    KERNEL,
    REPORT,
];
const OVER_HTTP: [&str; 5] =
    ["from x86-64 UEFI HTTP", "HTTP GET /snponly.efi 200", SCRIPT, KERNEL, REPORT];
const ARM_OVER_TFTP: [&str; 5] =
    ["from arm64 UEFI", "TFTP sent ipxe-arm64.efi", "from iPXE", SCRIPT, ARM_KERNEL];
const ARM_OVER_HTTP: [&str; 4] =
    ["from arm64 UEFI HTTP", "HTTP GET /ipxe-arm64.efi 200", SCRIPT, ARM_KERNEL];
const PXELINUX: [&str; 5] = ["pxelinux.0", "ldlinux.c32", "pxelinux.cfg/", KERNEL, REPORT];
const SIGNED: [&str; 5] =
    ["TFTP sent shimx64.efi", "TFTP sent grubx64.efi", "grub.cfg", KERNEL, REPORT];
