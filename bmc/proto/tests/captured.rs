//! Sessions captured from `ipmitool -C 17` and `-C 3` against another BMC implementation (in Python), replayed
//! with the captured random numbers: both our halves must make the very same bytes.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test may stop where it stands"
)]

use std::path::PathBuf;

use bmc_proto::ipmi::{
    Command, Login, Secret, Suite,
    boot_options::GetBootOption,
    channel::SetSessionPrivilege,
    chassis::GetChassisStatus,
    client::{Chance, Handshake, Opening, Step},
    dcmi::{DcmiOutcome, GetPowerReading},
    message::{Exchange, LanMessage},
    rakp::{OpenSessionRequest, OpenSessionResponse, Privilege, Rakp1, Rakp2, Rakp3},
    server::{Account, ServerSession},
    session::{Frame, Packet, PayloadType},
};

/// Data beside the repository. Absent outside CI: says so and gives `None`.
fn shared(path: &str) -> Option<PathBuf> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(path);
    if file.exists() {
        return Some(file);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is missing", file.display());
    println!("not run: {} is missing", file.display());
    None
}

/// UDP payloads of a little-endian Ethernet pcap, each with whether it goes to the BMC.
fn datagrams(pcap: &[u8]) -> Vec<(bool, Vec<u8>)> {
    let mut out = Vec::new();
    let mut rest = &pcap[24..];
    while let Some((head, tail)) = rest.split_first_chunk::<16>() {
        let length = u32::from_le_bytes(head[8..12].try_into().unwrap());
        let (frame, next) = tail.split_at(usize::try_from(length).unwrap());
        // Ethernet 14, IPv4 20, UDP 8 bytes; destination port at 36.
        let to_bmc = u16::from_be_bytes(frame[36..38].try_into().unwrap()) == 9201;
        out.push((to_bmc, frame[42..].to_vec()));
        rest = next;
    }
    out
}

/// One captured session.
struct Captured {
    suite: Suite,
    from_console: Vec<Vec<u8>>,
    from_bmc: Vec<Vec<u8>>,
}

fn packet(datagram: &[u8]) -> Packet<'_> {
    match Frame::decode(datagram) {
        Ok(Frame::V20(packet)) => packet,
        other => panic!("no RMCP+ packet: {other:?}"),
    }
}

fn is(datagram: &[u8], want: PayloadType) -> bool {
    matches!(Frame::decode(datagram), Ok(Frame::V20(packet)) if packet.payload_type == want)
}

fn sessions() -> Option<Vec<Captured>> {
    let file = shared("data/bmc-own/rmcpplus-c17-and-c3-vs-own-emulator.pcap")?;
    let mut sessions: Vec<Captured> = Vec::new();
    for (to_bmc, datagram) in datagrams(&std::fs::read(file).unwrap()) {
        if matches!(Frame::decode(&datagram), Ok(Frame::V15 { .. })) {
            continue;
        }
        if is(&datagram, PayloadType::OpenSessionRequest) {
            let request = OpenSessionRequest::decode(packet(&datagram).payload).unwrap();
            let suite = Suite::from_algorithms(request.algorithms).unwrap();
            sessions.push(Captured { suite, from_console: vec![], from_bmc: vec![] });
        }
        let session = sessions.last_mut().expect("Open Session comes first");
        let side = if to_bmc { &mut session.from_console } else { &mut session.from_bmc };
        side.push(datagram);
    }
    Some(sessions)
}

fn account() -> Account {
    let login = Login::new("admin", Secret::new("secret")).unwrap();
    Account { login, limit: Privilege::Administrator }
}

#[test]
fn our_server_half_answers_captured_ipmitool_sessions_byte_for_byte() {
    let Some(sessions) = sessions() else { return };
    let suites: Vec<Suite> = sessions.iter().map(|session| session.suite).collect();
    assert_eq!(suites, [Suite::Seventeen, Suite::Three]);
    for Captured { suite, from_console, from_bmc } in sessions {
        let open = OpenSessionRequest::decode(packet(&from_console[0]).payload).unwrap();
        let agreed = OpenSessionResponse::decode(packet(&from_bmc[0]).payload).unwrap();
        let (mut session, answer) = ServerSession::open(&open, suite, agreed.bmc_id);
        assert_eq!(answer, from_bmc[0], "Open Session Response");

        let rakp1 = Rakp1::decode(packet(&from_console[1]).payload).unwrap();
        let rakp2 = Rakp2::decode(packet(&from_bmc[1]).payload).unwrap();
        let answer = session.rakp1(&rakp1, Some(&account()), rakp2.bmc_random, rakp2.guid);
        assert_eq!(answer, from_bmc[1], "RAKP 2");

        let rakp3 = Rakp3::decode(packet(&from_console[2]).payload).unwrap();
        assert_eq!(session.rakp3(&rakp3).as_ref(), Some(&from_bmc[2]), "RAKP 4");

        for datagram in &from_console[3..] {
            let message = session.receive(&packet(datagram)).expect("ipmitool signed it");
            let request = LanMessage::decode(&message).unwrap();
            assert_eq!((request.to, request.from), (0x20, 0x81));
            assert_eq!(request.encode(), message);
            assert_eq!(session.receive(&packet(datagram)), None, "a replay");
        }
    }
}

#[test]
fn our_client_half_makes_the_bytes_ipmitool_made_and_reads_what_it_was_answered() {
    let Some(sessions) = sessions() else { return };
    for Captured { suite, from_console, from_bmc } in sessions {
        let open = OpenSessionRequest::decode(packet(&from_console[0]).payload).unwrap();
        let rakp1 = Rakp1::decode(packet(&from_console[1]).payload).unwrap();
        let chance =
            Chance { tag: open.tag, session_id: open.console_id, random: rakp1.console_random };
        let account = account();
        let opening = Opening::new(&account.login, suite, Privilege::Administrator, chance);
        let mut want = from_console[0].clone();
        // ipmitool asks for "the highest possible" here; we name the level, as some BMCs need it.
        want[17] = 4;
        assert_eq!(opening.packet(), want, "Open Session Request");
        let Step::NotForUs(opening) = opening.receive(&from_bmc[1]) else {
            panic!("RAKP 2 is no answer to Open Session")
        };
        let Step::Next(challenged) = opening.receive(&from_bmc[0]) else { panic!("Open Session") };
        assert_eq!(challenged.packet(), from_console[1], "RAKP 1");
        let Step::Next(proving) = challenged.receive(&from_bmc[1]) else { panic!("RAKP 2") };
        assert_eq!(proving.packet(), from_console[2], "RAKP 3");
        let Step::Next(active) = proving.receive(&from_bmc[2]) else { panic!("RAKP 4") };
        read_answers(active, &account, &from_console, &from_bmc, suite);
    }
}

/// The requests as ipmitool numbered them (from the server half), the answers by our client half.
fn read_answers(
    mut active: bmc_proto::ipmi::client::Active,
    account: &Account,
    from_console: &[Vec<u8>],
    from_bmc: &[Vec<u8>],
    suite: Suite,
) {
    let mut server = server_half(account, from_console, from_bmc, suite);
    let mut read = Vec::new();
    for (request, answer) in from_console[3..].iter().zip(&from_bmc[3..]) {
        let message = server.receive(&packet(request)).unwrap();
        let asked = LanMessage::decode(&message).unwrap();
        let mut take = |exchange: Exchange| {
            assert_eq!(exchange.message(), message, "our request");
            let reply = active.receive(&exchange, answer).expect("the answer is this request's");
            assert!(active.receive(&exchange, answer).is_none(), "doubled on the way");
            reply
        };
        match (asked.netfn.0, asked.command) {
            (0x06, SetSessionPrivilege::CODE) => {
                let command = SetSessionPrivilege(Privilege::Administrator);
                let reply = take(Exchange::new(&command, asked.rq_seq));
                assert_eq!(command.answer(&reply.data), Ok(4));
                read.push("privilege");
            }
            (0x00, GetChassisStatus::CODE) => {
                let reply = take(Exchange::new(&GetChassisStatus, asked.rq_seq));
                assert!(GetChassisStatus.answer(&reply.data).unwrap().power_on);
                read.push("chassis");
            }
            (0x00, GetBootOption::CODE) => {
                let command = GetBootOption { parameter: asked.body[0] };
                let reply = take(Exchange::new(&command, asked.rq_seq));
                assert!(command.answer(&reply.data).is_ok());
                read.push("boot option");
            }
            (0x2c, GetPowerReading::CODE) => {
                let reply = take(Exchange::new(&GetPowerReading, asked.rq_seq));
                let record = GetPowerReading.answer(&reply.data).unwrap();
                let DcmiOutcome::Reading { watts, confirmed: true, .. } = record.outcome() else {
                    panic!("no reading: {record:?}")
                };
                assert!((180..=220).contains(&watts), "{watts} W");
                read.push("power");
            }
            _ => (),
        }
    }
    println!("suite {}: read {read:?}", suite.id());
    assert!(read.contains(&"privilege") && read.len() >= 2, "{read:?}");
}

fn server_half(
    account: &Account,
    from_console: &[Vec<u8>],
    from_bmc: &[Vec<u8>],
    suite: Suite,
) -> ServerSession {
    let open = OpenSessionRequest::decode(packet(&from_console[0]).payload).unwrap();
    let agreed = OpenSessionResponse::decode(packet(&from_bmc[0]).payload).unwrap();
    let (mut session, _) = ServerSession::open(&open, suite, agreed.bmc_id);
    let rakp1 = Rakp1::decode(packet(&from_console[1]).payload).unwrap();
    let rakp2 = Rakp2::decode(packet(&from_bmc[1]).payload).unwrap();
    let answer = session.rakp1(&rakp1, Some(account), rakp2.bmc_random, rakp2.guid);
    assert_eq!(answer, from_bmc[1]);
    let rakp3 = Rakp3::decode(packet(&from_console[2]).payload).unwrap();
    assert!(session.rakp3(&rakp3).is_some());
    session
}
