//! What the corpus begins with: small inputs of our own making, good ones and the odd shapes parsers trip over.
//!
//! `tests/fuzz_corpus.rs` holds `corpus/` against them and writes them anew when `WRITE_SEEDS` is set.

use std::{fs, net::Ipv4Addr};

use bmc_proto::{
    asf::Presence,
    ipmi::{
        CompletionCode,
        boot_options::{BootDevice, BootFlags, BootOption, FirmwareMode, Reach, SetBootOption},
        chassis::{ChassisStatus, GetChassisStatus},
        client::{Handshake, Step},
        dcmi::PowerReadingRecord,
        device_id::DeviceId,
        message::{Command, Exchange, LanMessage, NetFn},
    },
};
use inventory::series::{Sample, Series};
use model::{
    BootAnswer, BootScript, ClientArch, MacAddr, NodeName, PowerKind, PowerReading, PowerSource,
    UnixMillis, Watts, power::NoReading, sighting::DhcpKind,
};
use pxe_proto::{
    dhcp::{Answer, ClientMessage, RelayInfo, code},
    ipxe::script::script,
    tftp::{Packet, packet},
};

use super::{dhcp, ipmi, ipxe, scratch::Scratch};

/// A file of the corpus.
pub struct Seed {
    /// Its target.
    pub target: &'static str,
    /// Its name.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Seed> {
    let groups = [
        dhcp_seeds(),
        tftp_seeds(),
        http_seeds(),
        ipxe_seeds(),
        ipmi_answers(),
        ipmi_messages(),
        rmcp_seeds(),
        hardware_seeds(),
        agent_seeds(),
        text_seeds(),
        series_seeds(),
    ];
    groups.into_iter().flatten().collect()
}

fn seed(target: &'static str, name: impl Into<String>, bytes: impl AsRef<[u8]>) -> Seed {
    Seed { target, name: name.into(), bytes: bytes.as_ref().to_vec() }
}

/// A piece as `Input::piece` takes it; all of ours are short.
fn piece(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    let length = u8::try_from(bytes.len()).expect("seeds are short");
    [&[length], bytes].concat()
}

const MAC: MacAddr = MacAddr([2, 0x5a, 0x10, 0, 0, 3]);

fn dhcp_seeds() -> Vec<Seed> {
    let messages = client_messages();
    let answers = messages.iter().filter_map(|(name, bytes)| {
        let answer = dhcp::answered(bytes)?;
        assert!(Answer::decode(&answer).is_ok());
        Some(seed("dhcp_reply", name, answer))
    });
    let answers: Vec<_> = answers.collect();
    let requests = messages.into_iter().map(|(name, bytes)| seed("dhcp_request", name, bytes));
    requests.chain(answers).collect()
}

fn client_messages() -> Vec<(String, Vec<u8>)> {
    let offered = Ipv4Addr::new(192, 0, 2, 73);
    let pxe = |kind, arch| ClientMessage::pxe(kind, 0x1000_0003, MAC, ClientArch(arch));
    let http = ClientMessage::http_boot(DhcpKind::Discover, 4, MAC, ClientArch(16));
    let ipxe = ClientMessage::ipxe(DhcpKind::Discover, 5, MAC, ClientArch(7));
    let system = ClientMessage::system(DhcpKind::Request, 6, MAC);
    let renewing = ClientMessage { ciaddr: offered, ..system.clone() };
    let elsewhere = ClientMessage { requested: Some(Ipv4Addr::new(10, 0, 0, 9)), ..system.clone() };
    let unknown = ClientMessage { chaddr: MacAddr([2, 0, 0, 0, 0, 9]), ..system };
    let long_id = ClientMessage { client_id: Some(vec![1; 300]), ..pxe(DhcpKind::Discover, 7) };
    let bios = ClientMessage { machine_id: Some([9; 16]), ..pxe(DhcpKind::Discover, 0) };
    let mut cases: Vec<(String, Vec<u8>)> = [
        ("bios-discover", bios),
        ("uefi-discover", pxe(DhcpKind::Discover, 7)),
        ("uefi-long-id", long_id),
        ("http-discover", http),
        ("ipxe-request", ipxe.selecting(offered, Ipv4Addr::new(192, 0, 2, 10))),
        ("system-renewing", renewing),
        ("system-elsewhere", elsewhere),
        ("unknown-machine", unknown),
        ("inform", pxe(DhcpKind::Inform, 7)),
        ("decline", pxe(DhcpKind::Decline, 7)),
    ]
    .map(|(name, message)| (name.to_owned(), message.encode()))
    .into();
    let info = RelayInfo { circuit_id: Some(b"bay 3".to_vec()), source_port: true };
    let relayed = pxe(DhcpKind::Discover, 7).message();
    let relayed = relayed.through_relay(Ipv4Addr::new(192, 0, 2, 254), &info);
    cases.push(("relayed".to_owned(), relayed.encode()));
    cases.push(("overloaded".to_owned(), overloaded(pxe(DhcpKind::Discover, 7))));
    cases
}

/// Options in `file` and `sname` too (RFC 2132, 9.3).
fn overloaded(message: ClientMessage) -> Vec<u8> {
    let mut message = message.message();
    message.options.set(code::OVERLOAD, [3]);
    let mut bytes = message.encode();
    for (at, piece) in [(44, [61, 1, 4, 255]), (108, [61, 1, 3, 255])] {
        bytes.splice(at..at + 4, piece);
    }
    bytes
}

fn tftp_seeds() -> Vec<Seed> {
    let asked: Vec<(&[u8], &[u8])> =
        vec![(b"tsize", b"0"), (b"blksize", b"1468"), (b"windowsize", b"4")];
    let read = packet::Request { file: b"snponly.efi", mode: b"octet", options: asked };
    let plain = packet::Request { options: vec![], ..read.clone() };
    let packets = [
        ("read", Packet::Read(read.clone())),
        ("read-plain", Packet::Read(plain.clone())),
        ("write", Packet::Write(plain.clone())),
        ("data", Packet::Data { block: 1, payload: b"bytes" }),
        ("ack", Packet::Ack { block: 65_535 }),
        ("error", Packet::Error { code: 8, message: b"not now" }),
        ("oack", Packet::OptionAck(vec![(b"tsize", b"9")])),
    ];
    let mut seeds: Vec<Seed> =
        packets.iter().map(|(name, packet)| seed("tftp_packet", *name, packet.encode())).collect();
    let ack = |delay: u8, block| [vec![delay], piece(Packet::Ack { block }.encode())].concat();
    let windowed = [ack(1, 0), ack(1, 2), ack(1, 2), vec![200, 0], ack(1, 5)].concat();
    let begin = |size: u16, request: packet::Request<'_>| {
        let head = [&size.to_le_bytes(), &[0, 0][..], &1_468_u16.to_le_bytes(), &[16]].concat();
        [head, piece(Packet::Read(request).encode())].concat()
    };
    seeds.push(seed("tftp_transfer", "windowed", [begin(9_000, read), windowed].concat()));
    let lock_step = [ack(1, 1), ack(0, 1), vec![255, 0, 255, 0], ack(9, 2)].concat();
    seeds.push(seed("tftp_transfer", "lock-step", [begin(1_024, plain), lock_step].concat()));
    seeds
}

fn http_seeds() -> Vec<Seed> {
    let two = "HEAD //a HTTP/1.1\r\nHost: x\r\n\r\nPOST /agent/v1/claim HTTP/1.1\r\n\
        Authorization: Ticket 00112233445566778899aabbccddeeff\r\nContent-Length: 2\r\n\r\n{}";
    let odd = "POST /x HTTP/1.0\r\nExpect: 100-continue\r\nConnection: a, close\r\n\
        Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc";
    let requests = [
        ("two-on-one", two),
        ("odd", odd),
        ("chunked", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("bare", "GET http://192.0.2.10:8067/boot.ipxe?mac=02-5a HTTP/1.1\n\n"),
    ];
    let paths = [
        ("tftp", "\\EFI\\BOOT\\grubx64.efi"),
        ("c-string", "undionly.kpxe\0"),
        ("up", "boot/../../etc/shadow"),
        ("coded", "//i//a%20b/%2e%2e?x=1#f"),
        ("absolute", "http://192.0.2.1:8067/t/00/done"),
    ];
    let requests = requests.map(|(name, text)| seed("http_request", name, text));
    requests.into_iter().chain(paths.map(|(name, text)| seed("boot_paths", name, text))).collect()
}

fn ipxe_seeds() -> Vec<Seed> {
    let boot = BootScript {
        title: "inspect".to_owned(),
        kernel: "/i/inspect/vmlinuz".to_owned(),
        initrds: vec!["/i/inspect/initrd.img".to_owned()],
        args: "console=ttyS0 quiet".to_owned(),
        ticket: None,
    };
    let wait = BootAnswer::Wait { why: "the plan changed".to_owned() };
    let node: NodeName = "bld-003".parse().expect("a good name");
    let text = |answer| script(answer, &ipxe::network(), &node, MAC).expect("harmless words");
    let own = "#!ipxe\nset a ${net0/mac:hexhyp}\nisset ${b} || set b 1\n:top\ninc b\n\
        iseq ${b} 4 && goto out ||\nkernel http://192.0.2.1/${a} x=${b} \\\n y || goto top\n:out\n\
        imgargs k z ; initrd -n i /i ; boot k || sanboot --drive 0x80 || prompt -t 1 || exit 1\n";
    let scripts = [
        ("kernel", text(&BootAnswer::Kernel(boot))),
        ("wait", text(&wait)),
        ("own", own.to_owned()),
        ("loop", "#!ipxe\n:a\nset x ${x}${x}y\ngoto a\n".to_owned()),
    ];
    let scripts = scripts.into_iter().flat_map(|(name, text)| {
        [("lucky", 0), ("unlucky", 0xff_u8)].map(|(luck, byte)| {
            seed("ipxe_script", format!("{name}-{luck}"), [&[byte], text.as_bytes()].concat())
        })
    });
    let made = |kind: u8, texts: &[&str]| {
        let texts = texts.iter().flat_map(piece);
        [kind].into_iter().chain(texts).collect::<Vec<u8>>()
    };
    let harmless = made(2, &["install", "i/vmlinuz", "a=1 b=#2", "i/one", "i/two words"]);
    let harmful = made(1, &["${x} || exit", "k ${y}", "a ; reboot ||", "i"]);
    let written =
        [seed("ipxe_written", "harmless", harmless), seed("ipxe_written", "harmful", harmful)];
    scripts.chain(written).collect()
}

fn ipmi_answers() -> Vec<Seed> {
    let (now, average, period_ms) = (231, 214, 60_000);
    let power = PowerReadingRecord {
        now,
        min: 90,
        max: 310,
        average,
        timestamp: 1_796_126_400,
        period_ms,
        active: true,
    };
    let id = DeviceId {
        device: 0x20,
        revision: 1,
        firmware_major: 2,
        firmware_minor: 60,
        ipmi: (2, 0),
        support: 0xbf,
        manufacturer: 11,
        product: 0x2000,
        auxiliary: vec![1, 2, 3, 4],
    };
    let flags = BootFlags {
        valid: true,
        reach: Reach::Once,
        mode: FirmwareMode::Uefi,
        device: BootDevice::Pxe,
    };
    let option = BootOption { parameter: 5, invalid: false, data: flags.encode().to_vec() };
    let status = ChassisStatus { power_on: true, ..ChassisStatus::default() };
    let guid = [0x33, 0x22, 0x11, 0, 0x55, 0x44, 0x77, 0x46, 0x88, 0x99, 10, 11, 12, 13, 14, 15];
    let suites = [1, 0xc0, 17, 3, 0x44, 0x81, 0xc1, 0x80, 1, 2, 3, 1, 0xc0, 3, 1, 0x41, 0x81];
    let answers = [
        ("power", 0, power.encode()),
        ("device-id", 1, id.encode()),
        ("guid", 2, guid.to_vec()),
        ("chassis-status", 3, status.encode().to_vec()),
        ("boot-option", 5 << 3 | 4, option.encode()),
        ("privilege", 5, vec![3]),
        ("cipher-suites", 6, suites.to_vec()),
        ("boot-flags", 7, flags.encode().to_vec()),
    ];
    let requests = [
        ("control", 0, vec![3]),
        ("close", 1, vec![1, 2, 3, 4]),
        ("cipher-suites", 2, vec![0x0e, 0, 0x81]),
        ("capabilities", 3, vec![0x8e, 4]),
        ("get-boot-option", 4, vec![5, 0, 0]),
        ("set-boot-option", 5, SetBootOption::Flags(flags).data()),
    ];
    let answers = answers.map(|(name, which, data)| ("ipmi_answer", name, which, data));
    let requests = requests.map(|(name, which, data)| ("ipmi_request", name, which, data));
    let all = answers.into_iter().chain(requests);
    all.map(|(target, name, which, data)| seed(target, name, [vec![which], data].concat()))
        .collect()
}

fn ipmi_messages() -> Vec<Seed> {
    let request = Exchange::new(&GetChassisStatus, 2).message().to_vec();
    let response = LanMessage {
        to: 0x20,
        netfn: NetFn::CHASSIS,
        to_lun: 0,
        from: 0x81,
        rq_seq: 2,
        from_lun: 0,
        command: 1,
        body: &[],
    };
    let response = response.response(CompletionCode::OK, &[0x21, 0, 0]);
    let mut seeds =
        vec![seed("ipmi_message", "request", request), seed("ipmi_message", "response", response)];
    // The payloads of a handshake stand behind 16 bytes of RMCP and session header.
    for (name, datagram) in handshake() {
        let payload = datagram.get(16..).unwrap_or_default();
        seeds.push(seed("ipmi_message", name, payload));
    }
    seeds
}

/// The datagrams of a handshake and one command, in order, each with its name.
fn handshake() -> Vec<(&'static str, Vec<u8>)> {
    let (login, mut bmc) = (ipmi::login(), ipmi::Bmc::new());
    let mut wire = vec![];
    let mut ask = |names: [&'static str; 2], sent: Vec<u8>| {
        let answer = bmc.answer(&sent).expect("an honest console is answered");
        wire.push((names[0], sent));
        wire.push((names[1], answer.clone()));
        answer
    };
    let opening = ipmi::opening(&login);
    let answer = ask(["open-request", "open-response"], opening.packet());
    let Step::Next(challenged) = opening.receive(&answer) else { unreachable!("both are honest") };
    let answer = ask(["rakp-1", "rakp-2"], challenged.packet());
    let Step::Next(proving) = challenged.receive(&answer) else { unreachable!("both are honest") };
    let answer = ask(["rakp-3", "rakp-4"], proving.packet());
    let Step::Next(mut active) = proving.receive(&answer) else { unreachable!("both are honest") };
    let exchange = active.begin(&GetChassisStatus);
    ask(["command", "result"], active.transmit(&exchange, [0x5a; 16]));
    wire
}

fn rmcp_seeds() -> Vec<Seed> {
    let wire = handshake();
    let of_side = |side: usize| wire.iter().skip(side).step_by(2);
    let mut seeds = vec![];
    for (target, side) in [("rmcp_server", 0), ("rmcp_client", 1)] {
        let whole: Vec<u8> = of_side(side).flat_map(|(_, datagram)| piece(datagram)).collect();
        seeds.push(seed(target, "whole", [vec![0], whole].concat()));
        for (stage, (name, datagram)) in (0_u8..).zip(of_side(side)) {
            seeds.push(seed(target, *name, [vec![stage], piece(datagram)].concat()));
        }
        let ping = piece(Presence::Ping { tag: 9 }.encode());
        seeds.push(seed(target, "ping", [vec![0], ping].concat()));
        let capabilities = LanMessage {
            to: 0x20,
            netfn: NetFn::APP,
            to_lun: 0,
            from: 0x81,
            rq_seq: 1,
            from_lun: 0,
            command: 0x38,
            body: &[0x8e, 4],
        };
        let v15 = bmc_proto::ipmi::session::plain_v15(&capabilities.encode());
        seeds.push(seed(target, "v15", [vec![0], piece(v15)].concat()));
    }
    seeds
}

fn hardware_seeds() -> Vec<Seed> {
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

fn agent_seeds() -> Vec<Seed> {
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

const CONFIG: &str = r#"schema = 1

[lab]
name = "own"
state_dir = "state"

[operator]
listen = "127.0.0.1:8443"

[[network]]
name = "boot"
interface = "eth1"
subnet = "192.0.2.0/24"
server = "192.0.2.10"
router = "192.0.2.254"
dns = ["192.0.2.53"]
lease_s = 600
dhcp = "reserved"

[loaders]
dir = "loaders"
bios = "undionly.kpxe"
efi_x64 = "snponly.efi"

[metering]
period_s = 10
margin_percent = 5

[enclosure.c7000-1]
model = "Own enclosure"
bays = 16

[profile.debian]
kind = "linux"
root = "installer"
kernel = "linux"
initrd = ["initrd.gz"]
args = "url={{ volund.files }}/p.cfg hostname={{ node.name }} quiet"
files = { "p.cfg" = { template = "p.cfg" } }
timeouts = { post = "8m", boot = "6m", ready = "45m" }
min_boot_s = 300

[[node]] # blade
name = "bld-003"
enclosure = "c7000-1"
bay = 3
serial = "S-1"
macs = ["02:5a:10:00:00:03", "02-5a-10-00-00-04"]
address = "192.0.2.73"
bmc = { kind = "ipmi", address = "192.0.2.173", user = "admin", secret = "env:BMC" }
boot_mode = "uefi"
profiles = ["local", "debian"]

[[assign]]
nodes = "bld-[003]"
profile = "debian"
"#;

fn text_seeds() -> Vec<Seed> {
    let lists = [
        ("ranges", "bld-[003,006-010],oden"),
        ("two-brackets", "r[1-2]n[01-03] x"),
        ("unpaired", "a[1-2"),
        ("backwards", "a[9-2]"),
        ("large", "a[0-4095]"),
    ];
    let words = [
        ("mac", "02-5A-10-00-00-03"),
        ("mac-dots", "025a.1000.0003"),
        ("uuid", "33221100-5544-7746-8899-0a0b0c0d0e0f"),
        ("ticket", "00112233445566778899aabbccddeeff"),
        ("subnet", "192.0.2.0/24"),
        ("duration", "1h30m500ms"),
        ("secret", "cmd:pass show bmc"),
        ("name", "bld-003"),
    ];
    let configs = [
        ("whole", CONFIG),
        ("least", "schema = 1\n[lab]\nname = \"own\"\n"),
        ("broken", "schema = 1\n[lab\nname = \n[[node]]\nname = 'x'\nmacs = [1, 'é', [[]]]\n"),
        ("dotted", "schema = 1\nlab.name = \"own\"\nnode = 3\nnetwork = [{}]\n\"\" = 1\n"),
    ];
    let lists = lists.map(|(name, text)| seed("hostlist", name, text));
    let words = words.map(|(name, text)| seed("words", name, text));
    let configs = configs.map(|(name, text)| seed("config", name, text));
    lists.into_iter().chain(words).chain(configs).collect()
}

/// A day's file as the program writes it, and the same torn and flipped.
fn series_seeds() -> Vec<Seed> {
    let folder = Scratch::new();
    let node: NodeName = "bld-003".parse().expect("a good name");
    let series = Series::open(folder.path(), 2).expect("the folder is ours");
    let at = UnixMillis(1_796_126_400_000);
    let reading = PowerReading {
        watts: Watts(231.0),
        margin: Watts(11.55),
        source: PowerSource::Dcmi,
        kind: PowerKind::BladeInput,
        from: UnixMillis(at.0 - 1_000),
        to: at,
    };
    for power in [Ok(reading), Err(NoReading::BmcSilent), Ok(reading)] {
        series.append(&node, &Sample { at, power }).expect("good values");
    }
    series.flush().expect("the folder is ours");
    let path = folder.path().join("bld-003/2026-12-01.power");
    let whole = fs::read(path).expect("it was just written");
    let torn = whole.get(..whole.len() - 5).unwrap_or_default();
    let mut flipped = whole.clone();
    if let Some(byte) = flipped.get_mut(20) {
        *byte ^= 1;
    }
    let foreign = b"volpwr2\n and more than a header";
    vec![
        seed("series_file", "whole", &whole),
        seed("series_file", "torn", torn),
        seed("series_file", "flipped", flipped),
        seed("series_file", "zeros", [0; 40]),
        seed("series_file", "foreign", foreign),
    ]
}
