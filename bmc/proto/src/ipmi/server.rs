//! The BMC's half of a session, as the twin uses it. One value is one session from Open Session on.
//!
//! It decides nothing about users, suites or commands: the caller looks those up.

use super::{
    cipher::{BLOCK, Suite},
    login::Login,
    rakp::{
        OpenSessionRequest, OpenSessionResponse, Privilege, Rakp1, Rakp2, Rakp3, Rakp4, RakpStatus,
        Transcript,
    },
    session::{self, Keys, Packet, PayloadType, ReplayWindow},
};

/// An account on the BMC.
#[derive(Clone)]
pub struct Account {
    /// Name and password.
    pub login: Login,
    /// The highest privilege it may have.
    pub limit: Privilege,
}

/// One session.
pub struct ServerSession {
    console_id: u32,
    bmc_id: u32,
    suite: Suite,
    state: State,
}

enum State {
    /// Open Session was answered.
    Opened,
    /// RAKP 2 is out. A repeated RAKP 1 gets the same answer again.
    Challenged(Challenge),
    /// RAKP 4 is out. A repeated RAKP 3 gets the same answer again.
    Active(Box<Established>),
}

struct Challenge {
    transcript: Transcript,
    limit: Privilege,
    answer: Vec<u8>,
}

struct Established {
    keys: Keys,
    limit: Privilege,
    privilege: Privilege,
    sequence: u32,
    window: ReplayWindow,
    proof: Vec<u8>,
    answer: Vec<u8>,
}

/// The answer to an Open Session Request that is refused.
#[must_use]
pub fn refuse_open(request: &OpenSessionRequest, status: RakpStatus) -> Vec<u8> {
    let OpenSessionRequest { tag, console_id, algorithms, .. } = *request;
    let response =
        OpenSessionResponse { tag, status, privilege: 0, console_id, bmc_id: 0, algorithms };
    session::plain(PayloadType::OpenSessionResponse, &response.encode())
}

fn refuse_rakp1(rakp1: &Rakp1, status: RakpStatus, console_id: u32) -> Vec<u8> {
    let empty = [0; 16];
    let rakp2 =
        Rakp2 { tag: rakp1.tag, status, console_id, bmc_random: empty, guid: empty, code: vec![] };
    session::plain(PayloadType::Rakp2, &rakp2.encode())
}

/// The answer to a RAKP 1 that names no session of ours.
#[must_use]
pub fn unknown_session(rakp1: &Rakp1) -> Vec<u8> {
    refuse_rakp1(rakp1, RakpStatus::InvalidSessionId, 0)
}

impl ServerSession {
    /// Opens a session with `suite` and answers. `bmc_id` must not be 0 nor in use.
    #[must_use]
    pub fn open(request: &OpenSessionRequest, suite: Suite, bmc_id: u32) -> (Self, Vec<u8>) {
        let this = Self { console_id: request.console_id, bmc_id, suite, state: State::Opened };
        let answer = this.open_answer(request);
        (this, answer)
    }

    /// The answer to `request` (also to its repetition).
    #[must_use]
    pub fn open_answer(&self, request: &OpenSessionRequest) -> Vec<u8> {
        let response = OpenSessionResponse {
            tag: request.tag,
            status: RakpStatus::NoErrors,
            privilege: Privilege::Administrator.number(),
            console_id: self.console_id,
            bmc_id: self.bmc_id,
            algorithms: self.suite.algorithms(),
        };
        session::plain(PayloadType::OpenSessionResponse, &response.encode())
    }

    /// The session ID the console chose.
    #[must_use]
    pub fn console_id(&self) -> u32 {
        self.console_id
    }

    /// Whether RAKP 4 went out.
    #[must_use]
    pub fn is_active(&self) -> bool {
        matches!(self.state, State::Active(_))
    }

    /// Whether this session still waits for its RAKP 1.
    #[must_use]
    pub fn is_unclaimed(&self) -> bool {
        matches!(self.state, State::Opened)
    }

    /// Answers RAKP 1. `account` is the one its user name belongs to, `random` must be fresh.
    #[must_use]
    pub fn rakp1(
        &mut self,
        rakp1: &Rakp1,
        account: Option<&Account>,
        random: [u8; 16],
        guid: [u8; 16],
    ) -> Vec<u8> {
        if let State::Challenged(challenge) = &self.state
            && challenge.transcript.console_random == rakp1.console_random
        {
            return challenge.answer.clone();
        }
        let refuse = |status| refuse_rakp1(rakp1, status, self.console_id);
        // A running session is not thrown away because somebody sends an unsigned datagram.
        if self.is_active() {
            return refuse(RakpStatus::InvalidSessionId);
        }
        let Some(account) = account else { return refuse(RakpStatus::UnauthorizedName) };
        // 0 asks for the highest level there is.
        let wanted = match rakp1.role & 0x0f {
            0 => Some(account.limit),
            role => Privilege::from_number(role),
        };
        let Some(wanted) = wanted else { return refuse(RakpStatus::InvalidRole) };
        if wanted > account.limit {
            return refuse(RakpStatus::UnauthorizedRole);
        }
        let transcript = Transcript {
            suite: self.suite,
            console_id: self.console_id,
            bmc_id: self.bmc_id,
            console_random: rakp1.console_random,
            bmc_random: random,
            guid,
            role: rakp1.role,
            user: account.login.user.clone(),
            password: account.login.password.clone(),
        };
        let rakp2 = Rakp2 {
            tag: rakp1.tag,
            status: RakpStatus::NoErrors,
            console_id: self.console_id,
            bmc_random: random,
            guid,
            code: transcript.rakp2_code(),
        };
        let answer = session::plain(PayloadType::Rakp2, &rakp2.encode());
        let challenge = Challenge { transcript, limit: wanted, answer: answer.clone() };
        self.state = State::Challenged(challenge);
        answer
    }

    /// Answers RAKP 3; `None` when the console gave up.
    #[must_use]
    pub fn rakp3(&mut self, rakp3: &Rakp3) -> Option<Vec<u8>> {
        if rakp3.status != RakpStatus::NoErrors {
            return None;
        }
        let answer = |status, code| {
            let rakp4 = Rakp4 { tag: rakp3.tag, status, console_id: self.console_id, code };
            session::plain(PayloadType::Rakp4, &rakp4.encode())
        };
        match &self.state {
            State::Opened => Some(answer(RakpStatus::InvalidSessionId, vec![])),
            State::Active(established) if session::same(&established.proof, &rakp3.code) => {
                Some(established.answer.clone())
            }
            State::Active(_) => Some(answer(RakpStatus::InvalidIntegrityCheck, vec![])),
            State::Challenged(Challenge { transcript, limit, .. }) => {
                if !session::same(&transcript.rakp3_code(), &rakp3.code) {
                    return Some(answer(RakpStatus::InvalidIntegrityCheck, vec![]));
                }
                let sik = transcript.sik();
                let answer = answer(RakpStatus::NoErrors, transcript.rakp4_code(&sik));
                let established = Established {
                    keys: Keys::derive(self.suite, &sik),
                    limit: *limit,
                    // Section 22.18: a session starts at USER, whatever was asked for.
                    privilege: Privilege::User.min(*limit),
                    sequence: 0,
                    window: ReplayWindow::default(),
                    proof: rakp3.code.clone(),
                    answer: answer.clone(),
                };
                self.state = State::Active(Box::new(established));
                Some(answer)
            }
        }
    }

    /// The IPMI message in a packet of this session; `None` when it is forged, a replay or too early.
    #[must_use]
    pub fn receive(&mut self, packet: &Packet<'_>) -> Option<Vec<u8>> {
        let State::Active(established) = &mut self.state else { return None };
        let message = established.keys.open(packet)?;
        established.window.take(packet.sequence).then_some(message)
    }

    /// A datagram with a response; `None` before RAKP 4. `iv` must be fresh and unpredictable.
    #[must_use]
    pub fn transmit(&mut self, message: &[u8], iv: [u8; BLOCK]) -> Option<Vec<u8>> {
        let State::Active(established) = &mut self.state else { return None };
        established.sequence = established.sequence.checked_add(1).unwrap_or(1);
        Some(established.keys.seal(self.console_id, established.sequence, message, iv))
    }

    /// The privilege the session has now; `None` before RAKP 4.
    #[must_use]
    pub fn privilege(&self) -> Option<Privilege> {
        match &self.state {
            State::Active(established) => Some(established.privilege),
            State::Opened | State::Challenged(_) => None,
        }
    }

    /// Raises or lowers the privilege; `None` when it is above what RAKP 1 asked for.
    pub fn set_privilege(&mut self, wanted: Privilege) -> Option<Privilege> {
        let State::Active(established) = &mut self.state else { return None };
        if wanted > established.limit {
            return None;
        }
        established.privilege = wanted;
        Some(wanted)
    }
}
