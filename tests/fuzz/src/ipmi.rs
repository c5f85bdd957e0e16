//! IPMI over LAN: both halves of a session, the messages inside, and what commands ask and answer.

use std::hint::black_box;

use bmc_proto::{
    asf::Presence,
    ipmi::{
        Login, Privilege, RakpStatus, Suite,
        boot_options::{self, BootFlags, GetBootOption, SetBootOption},
        channel::{
            CloseSession, GetAuthCapabilities, GetCipherSuites, SetSessionPrivilege, SuiteRecord,
            order_to_try,
        },
        chassis::{ChassisControl, GetChassisStatus},
        client::{Active, Challenged, Chance, Handshake, Opening, Proving, Step},
        dcmi::GetPowerReading,
        device_id::{GetDeviceId, GetSystemGuid},
        login::Secret,
        message::{Command, Exchange, LanMessage, NetFn},
        rakp::{OpenSessionRequest, OpenSessionResponse, Rakp1, Rakp2, Rakp3, Rakp4},
        server::{self, Account, ServerSession},
        session::{Frame, Packet, PayloadType},
    },
};

use super::input::Input;

const CONSOLE_ID: u32 = 0xa0a1_a2a3;
const BMC_ID: u32 = 0x0201_0403;
const RANDOM: [u8; 16] = [0x5a; 16];

pub(super) fn login() -> Login {
    Login::new("admin", Secret::new("a password")).expect("it is short")
}

pub(super) fn opening(login: &Login) -> Opening<'_> {
    let chance = Chance { tag: 7, session_id: CONSOLE_ID, random: RANDOM };
    Opening::new(login, Suite::Seventeen, Privilege::Operator, chance)
}

/// A BMC with one session at most.
pub(super) struct Bmc {
    account: Account,
    session: Option<ServerSession>,
}

impl Bmc {
    pub(super) fn new() -> Self {
        Self { account: Account { login: login(), limit: Privilege::Administrator }, session: None }
    }

    /// Its answer to a datagram.
    pub(super) fn answer(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        if let Ok(Presence::Ping { tag }) = Presence::decode(datagram) {
            return Some(Presence::Pong { tag, ipmi: true }.encode());
        }
        match Frame::decode(datagram).ok()? {
            Frame::V15 { message } => {
                black_box(LanMessage::decode(message).is_ok());
                None
            }
            Frame::V20(packet) => self.packet(&packet),
        }
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Option<Vec<u8>> {
        match packet.payload_type {
            PayloadType::OpenSessionRequest => {
                let request = OpenSessionRequest::decode(packet.payload).ok()?;
                let Some(suite) = Suite::from_algorithms(request.algorithms) else {
                    return Some(server::refuse_open(&request, RakpStatus::NoCipherSuiteMatch));
                };
                let (session, answer) = ServerSession::open(&request, suite, BMC_ID);
                self.session = Some(session);
                Some(answer)
            }
            PayloadType::Rakp1 => {
                let rakp1 = Rakp1::decode(packet.payload).ok()?;
                let Some(session) = &mut self.session else {
                    return Some(server::unknown_session(&rakp1));
                };
                let account = Some(&self.account).filter(|a| *a.login.user() == rakp1.user);
                Some(session.rakp1(&rakp1, account, RANDOM, RANDOM))
            }
            PayloadType::Rakp3 => {
                self.session.as_mut()?.rakp3(&Rakp3::decode(packet.payload).ok()?)
            }
            PayloadType::Ipmi => self.command(packet),
            PayloadType::OpenSessionResponse
            | PayloadType::Rakp2
            | PayloadType::Rakp4
            | PayloadType::Other(_) => None,
        }
    }

    /// Every command is answered with its own body.
    fn command(&mut self, packet: &Packet<'_>) -> Option<Vec<u8>> {
        let session = self.session.as_mut()?;
        let message = session.receive(packet)?;
        let message = LanMessage::decode(&message).ok()?;
        let answer = message.response(bmc_proto::ipmi::CompletionCode::OK, message.body);
        session.transmit(&answer, RANDOM)
    }
}

/// Where a session stands, seen from the console.
enum Stage<'a> {
    Opening(Opening<'a>),
    Challenged(Challenged<'a>),
    Proving(Proving),
    Active(Box<Active>),
    Over,
}

impl<'a> Stage<'a> {
    /// What the console sends now.
    fn sends(&mut self) -> Option<Vec<u8>> {
        Some(match self {
            Self::Opening(opening) => opening.packet(),
            Self::Challenged(challenged) => challenged.packet(),
            Self::Proving(proving) => proving.packet(),
            Self::Active(active) => {
                let exchange = active.begin(&GetChassisStatus);
                active.transmit(&exchange, RANDOM)
            }
            Self::Over => return None,
        })
    }

    fn receive(self, datagram: &[u8]) -> Self {
        match self {
            Self::Opening(opening) => next(opening, datagram, Self::Opening, Self::Challenged),
            Self::Challenged(challenged) => {
                next(challenged, datagram, Self::Challenged, Self::Proving)
            }
            Self::Proving(proving) => {
                next(proving, datagram, Self::Proving, |active| Self::Active(Box::new(active)))
            }
            Self::Active(mut active) => {
                let exchange = active.begin(&GetChassisStatus);
                black_box(active.receive(&exchange, datagram));
                Self::Active(active)
            }
            Self::Over => Self::Over,
        }
    }
}

fn next<'a, T: Handshake>(
    this: T,
    datagram: &[u8],
    same: impl Fn(T) -> Stage<'a>,
    on: impl Fn(T::Next) -> Stage<'a>,
) -> Stage<'a> {
    match this.receive(datagram) {
        Step::NotForUs(this) => same(this),
        Step::Next(stage) => on(stage),
        Step::Failed(error) => {
            black_box((error.remedy(), error.to_string()));
            Stage::Over
        }
    }
}

/// The first byte says how far the handshake has come, the rest are datagrams to the console.
pub(super) fn client(data: &[u8]) {
    let mut input = Input(data);
    let (login, mut bmc) = (login(), Bmc::new());
    let mut stage = Stage::Opening(opening(&login));
    for _ in 0..input.u8() % 4 {
        let sent = stage.sends().expect("two honest sides come to an end");
        let answer = bmc.answer(&sent).expect("an honest console is answered");
        stage = stage.receive(&answer);
    }
    while !input.is_empty() {
        stage = stage.receive(input.piece());
        if let Some(sent) = stage.sends() {
            black_box(bmc.answer(&sent));
        }
    }
}

/// The first byte says how far the handshake has come, the rest are datagrams to the BMC.
pub(super) fn server(data: &[u8]) {
    let mut input = Input(data);
    let (login, mut bmc) = (login(), Bmc::new());
    let mut stage = Stage::Opening(opening(&login));
    for _ in 0..input.u8() % 4 {
        let sent = stage.sends().expect("two honest sides come to an end");
        let answer = bmc.answer(&sent).expect("an honest console is answered");
        stage = stage.receive(&answer);
    }
    while !input.is_empty() {
        let Some(answer) = bmc.answer(input.piece()) else { continue };
        let is_ours = Frame::decode(&answer).is_ok() || Presence::decode(&answer).is_ok();
        assert!(is_ours, "an answer nobody can read: {answer:02x?}");
        if let Some(session) = &mut bmc.session {
            black_box((session.console_id(), session.privilege()));
        }
    }
}

/// Handshake payloads and IPMI messages without the packets around them.
pub(super) fn message(data: &[u8]) {
    let data = data.get(..1_024).unwrap_or(data);
    if let Ok(message) = LanMessage::decode(data) {
        is_taken_back(&message);
    }
    let mut input = Input(data);
    let [to, netfn, from, rq_seq, command] = input.array();
    is_taken_back(&LanMessage {
        to,
        netfn: NetFn(netfn & 0x3f),
        to_lun: netfn >> 6,
        from,
        rq_seq: rq_seq & 0x3f,
        from_lun: rq_seq >> 6,
        command,
        body: input.0,
    });
    if let Ok(request) = OpenSessionRequest::decode(data) {
        assert_eq!(OpenSessionRequest::decode(&request.encode()), Ok(request));
    }
    if let Ok(response) = OpenSessionResponse::decode(data) {
        assert_eq!(OpenSessionResponse::decode(&response.encode()), Ok(response));
    }
    if let Ok(rakp1) = Rakp1::decode(data) {
        assert_eq!(Rakp1::decode(&rakp1.encode()), Ok(rakp1));
    }
    if let Ok(rakp2) = Rakp2::decode(data) {
        assert_eq!(Rakp2::decode(&rakp2.encode()), Ok(rakp2));
    }
    if let Ok(rakp3) = Rakp3::decode(data) {
        assert_eq!(Rakp3::decode(&rakp3.encode()), Ok(rakp3));
    }
    if let Ok(rakp4) = Rakp4::decode(data) {
        assert_eq!(Rakp4::decode(&rakp4.encode()), Ok(rakp4));
    }
}

fn is_taken_back(message: &LanMessage<'_>) {
    assert_eq!(LanMessage::decode(&message.encode()).as_ref(), Ok(message));
    let exchange = Exchange::new(&GetChassisStatus, message.rq_seq);
    black_box(exchange.matches(&message.encode()));
    let response = message.response(bmc_proto::ipmi::CompletionCode::OK, message.body);
    assert!(LanMessage::decode(&response).is_ok());
}

/// The first byte names a command, the rest is the data of its answer.
pub(super) fn answer(data: &[u8]) {
    let mut input = Input(data);
    let (which, data) = (input.u8(), input.0);
    match which % 8 {
        0 => again(&GetPowerReading, data, |reading| {
            black_box(reading.outcome());
            reading.encode()
        }),
        1 => again(&GetDeviceId, data, |id| {
            black_box(id.firmware());
            id.encode()
        }),
        2 => again(&GetSystemGuid, data, |guid| {
            black_box(guid.uuid());
            guid.0.to_vec()
        }),
        3 => again(&GetChassisStatus, data, |status| status.encode().to_vec()),
        4 => again(&GetBootOption { parameter: which >> 3 }, data, |option| {
            black_box(option.flags().is_ok());
            option.encode()
        }),
        5 => again(&SetSessionPrivilege(Privilege::Operator), data, |level| vec![*level]),
        6 => {
            let records = GetCipherSuites { block: 0 }.answer(data).unwrap_or_default();
            let mut order = order_to_try(&records);
            order.sort_by_key(|suite| suite.id());
            assert_eq!(order, [Suite::Three, Suite::Seventeen], "each once, whatever is listed");
            let suites = SuiteRecord::list(&records);
            assert!(suites.len() <= records.len());
            let written: Vec<u8> = suites.iter().flat_map(SuiteRecord::encode).collect();
            black_box(SuiteRecord::list(&written));
        }
        _ => {
            if let Ok(flags) = BootFlags::decode(data) {
                assert_eq!(BootFlags::decode(&flags.encode()), Ok(flags));
                let lost = BootFlags::CLEAR.lost_in(&flags);
                black_box(lost.iter().map(ToString::to_string).collect::<Vec<_>>());
            }
        }
    }
}

/// An answer that can be read is written so that it reads the same.
fn again<C: Command<Answer: PartialEq + std::fmt::Debug>>(
    command: &C,
    data: &[u8],
    encode: impl Fn(&C::Answer) -> Vec<u8>,
) {
    let Ok(answer) = command.answer(data) else { return };
    assert_eq!(command.answer(&encode(&answer)).as_ref(), Ok(&answer));
}

/// The first byte names a command, the rest is the data of its request, as a BMC reads it.
pub(super) fn request(data: &[u8]) {
    let mut input = Input(data);
    let (which, data) = (input.u8(), input.0);
    match which % 6 {
        0 => {
            if let Ok(control) = ChassisControl::decode(data) {
                black_box(control.to_string());
                assert_eq!(ChassisControl::decode(&control.data()), Ok(control));
            }
        }
        1 => {
            if let Ok(close) = CloseSession::decode(data) {
                assert_eq!(CloseSession::decode(&close.data()), Ok(close));
            }
        }
        2 => {
            if let Ok(suites) = GetCipherSuites::decode(data) {
                assert_eq!(GetCipherSuites::decode(&suites.data()), Ok(suites));
                assert!(suites.encode_answer(1, data).len() <= 17);
            }
        }
        3 => {
            if let Ok(capabilities) = GetAuthCapabilities::decode(data) {
                black_box(capabilities.encode_answer(1));
            }
        }
        4 => {
            if let Ok(option) = GetBootOption::decode(data) {
                assert_eq!(GetBootOption::decode(&option.data()), Ok(option));
            }
        }
        _ => {
            let Ok((parameter, value)) = boot_options::decode_set(data) else { return };
            if let (boot_options::BOOT_FLAGS, Ok(flags)) = (parameter, BootFlags::decode(value)) {
                let written = SetBootOption::Flags(flags).data();
                let (parameter, value) = boot_options::decode_set(&written).expect("we wrote it");
                assert_eq!(parameter, boot_options::BOOT_FLAGS);
                assert_eq!(BootFlags::decode(value), Ok(flags));
            }
        }
    }
}
