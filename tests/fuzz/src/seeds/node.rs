//! What a node is made of and what its agent reads and hears.

use super::{Seed, seed};

pub(super) fn hardware() -> Vec<Seed> {
    let cpuinfo = "processor\t: 0\nmodel name\t: Own CPU @ 2.00GHz\nphysical id\t: 0\n\
        cpu cores\t: 1\n\nprocessor\t: 1\nmodel name\t: Own CPU @ 2.00GHz\nphysical id\t: 1\n\n";
    let report = r#"{"nonce":"00","dmi":"","dmi_entry":"5f534d335f","cpuinfo":"processor : 0",
        "memory_kib":1048576,"efi":true,"kernel":"6.1.0","disks":[{"name":"sda","bytes":1000,
        "model":"Own Disk","serial":"S1","rotational":false}],"nics":[{"name":"eth0",
        "mac":"02:5a:10:00:00:03","driver":"cdc_ether","speed_mbit":1000,"pci":"14e4:1639"}]}"#;
    vec![
        seed("smbios", "table", smbios_table()),
        seed(
            "smbios",
            "old-version",
            [&[2, 4], smbios_table().get(2..).unwrap_or_default()].concat(),
        ),
        seed("smbios", "cut", smbios_table().get(..100).unwrap_or_default()),
        seed("cpuinfo", "two-packages", cpuinfo),
        seed("cpuinfo", "arm", "processor\t: 0\nBogoMIPS\t: 50.00\n\n"),
        seed("agent_message", "report", report),
        seed("agent_message", "claim", r#"{"nonce":"00112233"}"#),
        seed("agent_message", "order", r#"{"do":"wait","seconds":5}"#),
        seed("agent_message", "claimed", r#"{"node":"bld-003","order":{"do":"report"}}"#),
        seed(
            "kernel_module",
            "module",
            module("license=GPL\0depends=a,b\0softdep=pre: c post: d\0"),
        ),
        seed("kernel_module", "nothing", b"\x7fELF\x02\x01"),
    ]
}

/// Version 3.2 and one structure of each kind that is read.
fn smbios_table() -> Vec<u8> {
    let mut table = vec![3, 2];
    let mut put = |kind: u8, body: &[u8], strings: &[&str]| {
        let length = u8::try_from(body.len() + 4).expect("structures are short");
        table.extend([kind, length, kind, 0]);
        table.extend(body);
        for string in strings {
            table.extend(string.bytes().chain([0]));
        }
        table.extend(if strings.is_empty() { &[0, 0][..] } else { &[0] });
    };
    put(0, &[1, 2, 0, 0, 3], &["Own", "P99", "12/01/2026"]);
    put(1, &[&[1, 2, 0, 3][..], &[7; 16], &[6, 0, 0]].concat(), &["Own", "Blade 1", "S-1"]);
    put(2, &[1, 2, 0, 3], &["Own", "Board", "S-2"]);
    put(3, &[1, 1, 0, 2], &["Own", "S-3"]);
    let mut processor = [0_u8; 44];
    for (at, value) in [(0, 1), (1, 3), (0x0c, 2), (0x14, 0x41), (0x1f, 4), (0x21, 8)] {
        if let Some(byte) = processor.get_mut(at) {
            *byte = value;
        }
    }
    put(4, &processor, &["CPU 1", "Own CPU"]);
    put(16, &[3, 3, 6, 0, 0, 0x40, 0, 0xff, 0xff, 2, 0], &[]);
    let memory = |size: [u8; 2]| {
        let head =
            [&[16, 0, 0xff, 0xff, 64, 0, 64, 0][..], &size, &[9, 0, 1, 0, 0x1a, 0, 0]].concat();
        [&head[..], &[0, 0, 0, 2, 0, 3], &[0, 0, 0x80, 0, 0]].concat()
    };
    put(17, &memory([0, 0x40]), &["DIMM 1", "S-4", "PART"]);
    put(17, &memory([0xff, 0x7f]), &["DIMM 2"]);
    put(127, &[], &[]);
    table
}

/// An ELF file with one `.modinfo`.
fn module(modinfo: &str) -> Vec<u8> {
    let names = b"\0.modinfo\0.shstrtab\0";
    let number = |number: usize| u64::try_from(number).expect("seeds are short").to_le_bytes();
    let (names_at, table_at) = (64 + modinfo.len(), 64 + modinfo.len() + names.len());
    let mut elf = [&b"\x7fELF\x02\x01"[..], &[0; 34], &number(table_at), &[0; 10]].concat();
    elf.extend([64, 0, 3, 0, 2, 0]);
    elf.extend(modinfo.bytes());
    elf.extend(names);
    for (name, at, size) in [(0, 0, 0), (1, 64, modinfo.len()), (10, names_at, names.len())] {
        elf.extend([name, 0, 0, 0]);
        elf.extend([0; 20]);
        elf.extend([number(at), number(size)].concat());
        elf.extend([0; 24]);
    }
    elf
}

pub(super) fn agent() -> Vec<Seed> {
    let good = "BOOT_IMAGE=kernel volund.ticket=00112233445566778899aabbccddeeff \
        volund.url=http://192.0.2.10:8067 volund.ip=192.0.2.73/24 volund.gw=192.0.2.254 \
        BOOTIF=01-02-5a-10-00-00-03 quiet\n";
    let bad = "volund.ticket=0011 volund.url=http://boot volund.ip=192.0.2.73/33";
    vec![
        seed("agent_cmdline", "good", good),
        seed("agent_cmdline", "bad", bad),
        seed(
            "agent_answer",
            "order",
            "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"do\":\"reboot\"}",
        ),
        seed("agent_answer", "until-the-end", "HTTP/1.0 403 Forbidden\r\n\r\nspent"),
        seed(
            "agent_answer",
            "chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
    ]
}
