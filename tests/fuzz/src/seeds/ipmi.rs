//! What console and BMC say to each other.

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

use super::super::ipmi;
use super::{Seed, piece, seed};

pub(super) fn answers() -> Vec<Seed> {
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

pub(super) fn messages() -> Vec<Seed> {
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

pub(super) fn datagrams() -> Vec<Seed> {
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
