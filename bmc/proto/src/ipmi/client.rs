//! The console's half: a handshake whose steps are types, and the session that comes out of it.
//!
//! [`Opening`] → [`Challenged`] → [`Proving`] → [`Active`]. Each step consumes the one before, and only
//! [`Active`] can make a command packet: a command before RAKP 4 does not compile.

pub use super::refusal::{HandshakeError, HandshakeStep, Remedy};
use super::{
    cipher::{BLOCK, Suite},
    login::Login,
    message::{Command, Exchange, Reply},
    rakp::{
        OpenSessionRequest, OpenSessionResponse, Privilege, Rakp1, Rakp2, Rakp3, Rakp4, RakpStatus,
        Transcript,
    },
    session::{self, Frame, Keys, PayloadType, ReplayWindow},
};

/// "Look the user up by name alone" (RAKP 1, requested role, bit 4): what every tool sends.
const NAME_ONLY: u8 = 0x10;

/// The random numbers of one handshake. Draw them fresh for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chance {
    /// Message tag.
    pub tag: u8,
    /// Our session ID; 0 stands for "no session" and is replaced by 1.
    pub session_id: u32,
    /// Our random number in RAKP 1.
    pub random: [u8; 16],
}

/// What a datagram did to a step of the handshake.
#[must_use]
pub enum Step<This, Next> {
    /// A stray: keep waiting.
    NotForUs(This),
    /// The next step.
    Next(Next),
    /// It is over.
    Failed(HandshakeError),
}

/// A step of the handshake: a datagram is out, one is awaited.
pub trait Handshake: Sized {
    /// The step that follows.
    type Next;

    /// The datagram of this step, the same for each transmission.
    fn packet(&self) -> Vec<u8>;

    /// Takes a datagram.
    fn receive(self, datagram: &[u8]) -> Step<Self, Self::Next>;
}

/// The payload of a handshake message of `want` with our tag, which all of them begin with, if the datagram is one.
fn handshake_payload(datagram: &[u8], want: PayloadType, tag: u8) -> Option<&[u8]> {
    let Frame::V20(packet) = Frame::decode(datagram).ok()? else { return None };
    let plain = !packet.authenticated && !packet.encrypted && packet.session_id == 0;
    let ours = packet.payload_type == want && packet.payload.first() == Some(&tag);
    (plain && ours).then_some(packet.payload)
}

/// Whether a message with this status and session ID is for the session `own`. Refusals may lack the ID.
fn is_for(own: u32, id: u32, status: RakpStatus) -> bool {
    id == own || (status != RakpStatus::NoErrors && id == 0)
}

/// Step 1: Open Session Request is out.
pub struct Opening<'a> {
    login: &'a Login,
    suite: Suite,
    privilege: Privilege,
    chance: Chance,
}

impl<'a> Opening<'a> {
    /// Begins a handshake that proposes one suite and one specific privilege. RAKP 1 repeats the same
    /// privilege: some BMCs hash the one of Open Session.
    #[must_use]
    pub fn new(login: &'a Login, suite: Suite, privilege: Privilege, chance: Chance) -> Self {
        let session_id = chance.session_id.max(1);
        Self { login, suite, privilege, chance: Chance { session_id, ..chance } }
    }
}

impl<'a> Handshake for Opening<'a> {
    type Next = Challenged<'a>;

    fn packet(&self) -> Vec<u8> {
        let request = OpenSessionRequest {
            tag: self.chance.tag,
            privilege: self.privilege.number(),
            console_id: self.chance.session_id,
            algorithms: self.suite.algorithms(),
        };
        session::plain(PayloadType::OpenSessionRequest, &request.encode())
    }

    fn receive(self, datagram: &[u8]) -> Step<Self, Challenged<'a>> {
        let step = HandshakeStep::OpenSession;
        let Chance { tag, session_id, .. } = self.chance;
        let want = PayloadType::OpenSessionResponse;
        let Some(payload) = handshake_payload(datagram, want, tag) else {
            return Step::NotForUs(self);
        };
        let response = match OpenSessionResponse::decode(payload) {
            Ok(response) => response,
            Err(cause) => return Step::Failed(HandshakeError::Malformed { step, cause }),
        };
        let OpenSessionResponse { status, console_id, bmc_id, algorithms, .. } = response;
        if !is_for(session_id, console_id, status) {
            return Step::NotForUs(self);
        }
        if status != RakpStatus::NoErrors {
            return Step::Failed(HandshakeError::Status { step, status });
        }
        if algorithms != self.suite.algorithms() {
            let (asked, answered) = (self.suite, algorithms);
            return Step::Failed(HandshakeError::OtherAlgorithms { asked, answered });
        }
        Step::Next(Challenged { opening: self, bmc_id })
    }
}

/// Step 2: RAKP 1 is out.
pub struct Challenged<'a> {
    opening: Opening<'a>,
    bmc_id: u32,
}

impl Challenged<'_> {
    fn role(&self) -> u8 {
        NAME_ONLY | self.opening.privilege.number()
    }

    fn transcript(&self, rakp2: &Rakp2) -> Transcript {
        let Login { user, password } = self.opening.login;
        Transcript {
            suite: self.opening.suite,
            console_id: self.opening.chance.session_id,
            bmc_id: self.bmc_id,
            console_random: self.opening.chance.random,
            bmc_random: rakp2.bmc_random,
            guid: rakp2.guid,
            role: self.role(),
            user: user.clone(),
            password: password.clone(),
        }
    }
}

impl Handshake for Challenged<'_> {
    type Next = Proving;

    fn packet(&self) -> Vec<u8> {
        let rakp1 = Rakp1 {
            tag: self.opening.chance.tag,
            bmc_id: self.bmc_id,
            console_random: self.opening.chance.random,
            role: self.role(),
            user: self.opening.login.user.clone(),
        };
        session::plain(PayloadType::Rakp1, &rakp1.encode())
    }

    fn receive(self, datagram: &[u8]) -> Step<Self, Proving> {
        let step = HandshakeStep::Rakp2;
        let Chance { tag, session_id, .. } = self.opening.chance;
        let Some(payload) = handshake_payload(datagram, PayloadType::Rakp2, tag) else {
            return Step::NotForUs(self);
        };
        let rakp2 = match Rakp2::decode(payload) {
            Ok(rakp2) => rakp2,
            Err(cause) => return Step::Failed(HandshakeError::Malformed { step, cause }),
        };
        if !is_for(session_id, rakp2.console_id, rakp2.status) {
            return Step::NotForUs(self);
        }
        if rakp2.status != RakpStatus::NoErrors {
            return Step::Failed(HandshakeError::Status { step, status: rakp2.status });
        }
        let transcript = self.transcript(&rakp2);
        if !session::same(&transcript.rakp2_code(), &rakp2.code) {
            return Step::Failed(HandshakeError::WrongPassword);
        }
        Step::Next(Proving { tag, transcript })
    }
}

/// Step 3: RAKP 3 is out.
pub struct Proving {
    tag: u8,
    transcript: Transcript,
}

impl Handshake for Proving {
    type Next = Active;

    fn packet(&self) -> Vec<u8> {
        let rakp3 = Rakp3 {
            tag: self.tag,
            status: RakpStatus::NoErrors,
            bmc_id: self.transcript.bmc_id,
            code: self.transcript.rakp3_code(),
        };
        session::plain(PayloadType::Rakp3, &rakp3.encode())
    }

    fn receive(self, datagram: &[u8]) -> Step<Self, Active> {
        let step = HandshakeStep::Rakp4;
        let Some(payload) = handshake_payload(datagram, PayloadType::Rakp4, self.tag) else {
            return Step::NotForUs(self);
        };
        let rakp4 = match Rakp4::decode(payload) {
            Ok(rakp4) => rakp4,
            Err(cause) => return Step::Failed(HandshakeError::Malformed { step, cause }),
        };
        if !is_for(self.transcript.console_id, rakp4.console_id, rakp4.status) {
            return Step::NotForUs(self);
        }
        if rakp4.status != RakpStatus::NoErrors {
            return Step::Failed(HandshakeError::Status { step, status: rakp4.status });
        }
        let sik = self.transcript.sik();
        if !session::same(&self.transcript.rakp4_code(&sik), &rakp4.code) {
            return Step::Failed(HandshakeError::Unproven);
        }
        let Transcript { suite, console_id, bmc_id, .. } = self.transcript;
        let keys = Keys::derive(suite, &sik);
        Step::Next(Active {
            keys,
            console_id,
            bmc_id,
            sequence: 0,
            rq_seq: 0,
            window: ReplayWindow::default(),
        })
    }
}

/// A session. Privilege starts at USER: send Set Session Privilege Level first.
pub struct Active {
    keys: Keys,
    console_id: u32,
    bmc_id: u32,
    sequence: u32,
    rq_seq: u8,
    window: ReplayWindow,
}

impl Active {
    /// The BMC's session ID, which Close Session names.
    #[must_use]
    pub fn bmc_id(&self) -> u32 {
        self.bmc_id
    }

    /// Begins a request with the next requester's sequence number.
    pub fn begin<C: Command>(&mut self, command: &C) -> Exchange {
        self.rq_seq = (self.rq_seq + 1) & 0x3f;
        Exchange::new(command, self.rq_seq)
    }

    /// A datagram with the request. Each transmission takes a new session sequence number and keeps the
    /// requester's: a repeated datagram would be dropped as a replay, a repeated request is recognised.
    pub fn transmit(&mut self, exchange: &Exchange, iv: [u8; BLOCK]) -> Vec<u8> {
        self.sequence = self.sequence.checked_add(1).unwrap_or(1);
        self.keys.seal(self.bmc_id, self.sequence, exchange.message(), iv)
    }

    /// Takes a datagram. `None` means "not for us, keep waiting": other session, forged, seen before, or the
    /// answer to another request.
    pub fn receive(&mut self, exchange: &Exchange, datagram: &[u8]) -> Option<Reply> {
        let Frame::V20(packet) = Frame::decode(datagram).ok()? else { return None };
        if packet.payload_type != PayloadType::Ipmi || packet.session_id != self.console_id {
            return None;
        }
        let payload = self.keys.open(&packet)?;
        if !self.window.take(packet.sequence) {
            return None;
        }
        exchange.matches(&payload)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ipmi::{
        Secret,
        channel::SetSessionPrivilege,
        server::{Account, ServerSession},
    };

    const CHANCE: Chance = Chance { tag: 7, session_id: 0xa0a2_a3a4, random: [5; 16] };

    fn login(password: &str) -> Login {
        Login::new("admin", Secret::new(password)).unwrap()
    }

    fn payload(datagram: &[u8]) -> &[u8] {
        match Frame::decode(datagram) {
            Ok(Frame::V20(packet)) => packet.payload,
            other => panic!("no RMCP+ packet: {other:?}"),
        }
    }

    /// Both halves against each other; the console may use another password and the account another limit.
    fn meet(
        suite: Suite,
        password: &str,
        limit: Privilege,
    ) -> Result<(Active, ServerSession), HandshakeError> {
        let login = login(password);
        let account = Account { login: Login::new("admin", Secret::new("secret")).unwrap(), limit };
        let opening = Opening::new(&login, suite, Privilege::Administrator, CHANCE);
        let request = OpenSessionRequest::decode(payload(&opening.packet())).unwrap();
        let (mut server, answer) = ServerSession::open(&request, suite, 0x4378_bcb7);
        let Step::Next(challenged) = opening.receive(&answer) else { panic!("Open Session") };
        let rakp1 = Rakp1::decode(payload(&challenged.packet())).unwrap();
        let answer = server.rakp1(&rakp1, Some(&account), [6; 16], [1; 16]);
        let again = server.rakp1(&rakp1, Some(&account), [9; 16], [1; 16]);
        let proving = match challenged.receive(&answer) {
            Step::Next(proving) => proving,
            Step::Failed(error) => return Err(error),
            Step::NotForUs(_) => panic!("RAKP 2"),
        };
        assert_eq!(answer, again, "a repeated RAKP 1 gets the same answer");
        let rakp3 = Rakp3::decode(payload(&proving.packet())).unwrap();
        let answer = server.rakp3(&rakp3).unwrap();
        assert_eq!(server.rakp3(&rakp3).as_ref(), Some(&answer), "a repeated RAKP 3 likewise");
        match proving.receive(&answer) {
            Step::Next(active) => Ok((active, server)),
            Step::Failed(error) => Err(error),
            Step::NotForUs(_) => panic!("RAKP 4"),
        }
    }

    #[test]
    fn a_retransmission_has_a_new_session_sequence_and_the_same_request_sequence() {
        for suite in Suite::ALL {
            let (mut active, mut server) = meet(suite, "secret", Privilege::Administrator).unwrap();
            let exchange = active.begin(&SetSessionPrivilege(Privilege::Operator));
            let (first, second) =
                (active.transmit(&exchange, [1; 16]), active.transmit(&exchange, [2; 16]));
            let sequences = [&first, &second].map(|datagram| match Frame::decode(datagram) {
                Ok(Frame::V20(packet)) => (packet.sequence, server.receive(&packet).unwrap()),
                other => panic!("{other:?}"),
            });
            let [(one, message), (two, again)] = sequences;
            assert_eq!((one, two), (1, 2));
            assert_eq!(message, again, "same rqSeq, same bytes");
        }
    }

    #[test]
    fn a_wrong_password_is_noticed_at_rakp_2_and_ends_it() {
        for suite in Suite::ALL {
            let Err(error) = meet(suite, "secreT", Privilege::Administrator) else {
                panic!("logged in")
            };
            assert_eq!((error, error.remedy()), (HandshakeError::WrongPassword, Remedy::BadLogin));
        }
        let Err(error) = meet(Suite::Three, "secret", Privilege::User) else { panic!("raised") };
        assert_eq!(error.remedy(), Remedy::LowerPrivilege);
    }

    #[test]
    fn an_answer_with_other_algorithms_asks_for_another_suite() {
        let login = login("secret");
        let opening = Opening::new(&login, Suite::Seventeen, Privilege::Administrator, CHANCE);
        let request = OpenSessionRequest::decode(payload(&opening.packet())).unwrap();
        let (_, answer) = ServerSession::open(&request, Suite::Three, 9);
        let Step::Failed(error) = opening.receive(&answer) else { panic!("taken") };
        assert_eq!(error.remedy(), Remedy::OtherSuite);
    }

    proptest! {
        #[test]
        fn no_datagram_makes_a_step_panic_or_succeed(tail: Vec<u8>, kind in 0x10_u8..0x16) {
            let payload_len = u16::try_from(tail.len() + 2).unwrap().to_le_bytes();
            let mut datagram = vec![6, 0, 0xff, 7, 6, kind, 0, 0, 0, 0, 0, 0, 0, 0];
            datagram.extend(payload_len);
            datagram.extend([CHANCE.tag, 0]);
            datagram.extend(&tail);
            let login = login("secret");
            let suite = Suite::Three;
            let opening = || Opening::new(&login, suite, Privilege::User, CHANCE);
            prop_assert!(!matches!(opening().receive(&datagram), Step::Next(_)));
            let challenged = Challenged { opening: opening(), bmc_id: 1 };
            prop_assert!(!matches!(challenged.receive(&datagram), Step::Next(_)));
        }
    }
}
