//! The session of one BMC: opened when needed, by the suite and privilege that come about, kept, opened anew
//! when it has died, closed when idle.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use bmc_proto::ipmi::{
    Command, CompletionCode, Suite,
    channel::{CloseSession, GetCipherSuites, SetSessionPrivilege, order_to_try},
    client::{Active, Chance, Handshake, HandshakeError, Opening, Remedy, Step},
    message::{Exchange, Reply},
    rakp::Privilege,
    session::{self, Frame, PayloadType},
};
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    BmcError, Inner,
    link::{Link, Patience, Repeat, Talk},
    options::SuiteChoice,
};

/// Get Channel Cipher Suites is a hint and may be answered by nobody.
const SUITES_WAIT: Duration = Duration::from_millis(300);
/// Between two tries at a BMC that is busy or has no session free.
const BUSY_WAIT: Duration = Duration::from_millis(300);
/// How often "busy" is taken for an answer before it becomes one.
const BUSY_TRIES: u32 = 5;
/// Longest wait for the answer to a command that is sent once.
const ONCE_WAIT: Duration = Duration::from_secs(2);

/// What one BMC's queue guards.
pub(crate) struct State {
    link: Option<Link>,
    session: Option<Active>,
    used: Instant,
    suite: Option<Suite>,
    login_refused: Option<Instant>,
    firmware: Option<String>,
    no_dcmi: bool,
    reaper: Option<Reaper>,
}

impl State {
    pub(crate) fn new() -> Self {
        Self {
            link: None,
            session: None,
            used: Instant::now(),
            suite: None,
            login_refused: None,
            firmware: None,
            no_dcmi: false,
            reaper: None,
        }
    }

    pub(crate) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    pub(crate) fn has_no_dcmi(&self) -> bool {
        self.no_dcmi
    }

    pub(crate) fn note_no_dcmi(&mut self) {
        self.no_dcmi = true;
    }

    /// Another firmware may know other commands.
    pub(crate) fn note_firmware(&mut self, firmware: String) {
        if self.firmware.replace(firmware.clone()).is_some_and(|old| old != firmware) {
            self.no_dcmi = false;
        }
    }

    /// Sends a command, in a session that may have to be opened first, until it is answered or time is up.
    pub(crate) async fn reply<C: Command>(
        &mut self,
        inner: &Inner,
        command: &C,
        repeat: Repeat,
        deadline: Instant,
    ) -> Result<Reply, BmcError> {
        let mut reopened = false;
        let mut busy = 0;
        loop {
            let fresh = self.session.is_none();
            if fresh {
                self.open(inner, deadline).await?;
            }
            let patience = match repeat {
                Repeat::Never => once(deadline),
                // A kept session may have died on the other side: find out soon enough to open another.
                Repeat::Freely if !fresh && !reopened => {
                    patience(inner, inner.options.silent_tries, deadline)
                }
                Repeat::Freely => patience(inner, u32::MAX, deadline),
            };
            match self.exchange(inner, command, patience).await {
                Ok(reply) if is_busy(reply.code, repeat) && busy < BUSY_TRIES => {
                    busy += 1;
                    if Instant::now() + BUSY_WAIT >= deadline {
                        return Ok(reply);
                    }
                    sleep(BUSY_WAIT).await;
                }
                Ok(reply) => return Ok(reply),
                Err(error) => {
                    if repeat == Repeat::Never {
                        return Err(error);
                    }
                    // It may live on the other side, where places are few: given back unheard.
                    self.close(inner).await;
                    if fresh || reopened || Instant::now() >= deadline {
                        return Err(error);
                    }
                    tracing::debug!(addr = %inner.addr, "session is dead, opening another");
                    reopened = true;
                }
            }
        }
    }

    /// One command in the session that stands.
    async fn exchange<C: Command>(
        &mut self,
        inner: &Inner,
        command: &C,
        patience: Patience,
    ) -> Result<Reply, BmcError> {
        let (Some(link), Some(session)) = (&self.link, &mut self.session) else {
            return Err(BmcError::Unreachable { addr: inner.addr, attempts: 0 });
        };
        let exchange = session.begin(command);
        let mut talk = InSession { session, exchange };
        let reply = link.exchange(inner, patience, &mut talk).await?;
        self.used = Instant::now();
        Ok(reply)
    }

    /// Says good-bye without waiting for an answer.
    pub(crate) async fn close(&mut self, inner: &Inner) {
        let (Some(link), Some(mut session)) = (&self.link, self.session.take()) else { return };
        let exchange = session.begin(&CloseSession { bmc_id: session.bmc_id() });
        if link.send(&session.transmit(&exchange, chance())).await.is_ok() {
            tracing::debug!(addr = %inner.addr, "session closed");
        }
    }

    async fn open(&mut self, inner: &Inner, deadline: Instant) -> Result<(), BmcError> {
        let pause = inner.options.login_pause;
        if self.login_refused.is_some_and(|at| at.elapsed() < pause) {
            return Err(login_refused(inner));
        }
        // A new socket each time: answers to an older session find no reader.
        let link = Link::connect(inner.addr).await?;
        let opened = self.open_by_ladder(inner, &link, deadline).await;
        let (active, suite, privilege) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                if let BmcError::LoginRefused { .. } = error {
                    self.login_refused = Some(Instant::now());
                }
                return Err(error);
            }
        };
        self.login_refused = None;
        self.link = Some(link);
        self.session = Some(active);
        self.used = Instant::now();
        self.suite = Some(suite);
        inner.suite.store(suite.id(), Ordering::Relaxed);
        inner.counters.sessions.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(addr = %inner.addr, suite = suite.id(), %privilege, "session open");
        self.raise(inner, privilege, deadline).await
    }

    async fn open_by_ladder(
        &self,
        inner: &Inner,
        link: &Link,
        deadline: Instant,
    ) -> Result<(Active, Suite, Privilege), BmcError> {
        let mut last = None;
        for suite in self.suites(inner, link, deadline).await {
            match Self::open_with(inner, link, suite, deadline).await? {
                Ok((active, privilege)) => return Ok((active, suite, privilege)),
                Err(refusal) => {
                    let id = suite.id();
                    tracing::info!(addr = %inner.addr, suite = id, %refusal, "suite not taken");
                    last = Some(refusal);
                }
            }
        }
        let addr = inner.addr;
        Err(match last {
            Some(source) => BmcError::NoSuite { addr, source },
            None => BmcError::Unreachable { addr, attempts: 0 },
        })
    }

    /// In which order suites are tried, each once. Nothing without authentication is among them.
    async fn suites(&self, inner: &Inner, link: &Link, deadline: Instant) -> Vec<Suite> {
        match (inner.options.suite, self.suite) {
            (SuiteChoice::Only(suite), _) => vec![suite],
            (SuiteChoice::Auto, Some(known)) => {
                let others = Suite::ALL.into_iter().filter(|suite| *suite != known);
                std::iter::once(known).chain(others).collect()
            }
            (SuiteChoice::Auto, None) => order_to_try(&listed_suites(inner, link, deadline).await),
        }
    }

    /// One suite, at the privilege the account has. The inner error means "try another suite".
    ///
    /// The ladder begins at the top for each session: an account may have been given more, and a BMC that was just
    /// starting may have refused what it allows now.
    async fn open_with(
        inner: &Inner,
        link: &Link,
        suite: Suite,
        deadline: Instant,
    ) -> Result<Result<(Active, Privilege), HandshakeError>, BmcError> {
        let addr = inner.addr;
        let mut privilege = inner.options.privilege;
        let mut started_over = false;
        loop {
            let refusal = match handshake(inner, link, suite, privilege, deadline).await? {
                Ok(active) => return Ok(Ok((active, privilege))),
                Err(refusal) => refusal,
            };
            match refusal.remedy() {
                Remedy::OtherSuite => return Ok(Err(refusal)),
                Remedy::LowerPrivilege => match privilege.lower() {
                    Some(lower) => privilege = lower,
                    // Some BMCs turn a suite down with this status.
                    None if suite != Suite::Three => return Ok(Err(refusal)),
                    None => {
                        let user = inner.login.user().clone();
                        return Err(BmcError::NoPrivilege { addr, user });
                    }
                },
                Remedy::Wait => {
                    if Instant::now() + BUSY_WAIT >= deadline {
                        return Err(BmcError::NoSessionFree { addr });
                    }
                    sleep(BUSY_WAIT).await;
                }
                Remedy::StartOver if !started_over => started_over = true,
                Remedy::BadLogin => return Err(login_refused(inner)),
                Remedy::StartOver | Remedy::GiveUp => {
                    return Err(BmcError::Handshake { addr, source: refusal });
                }
            }
        }
    }

    /// Sessions start at USER: raises this one to the privilege it was opened for, or as far as it goes.
    async fn raise(
        &mut self,
        inner: &Inner,
        privilege: Privilege,
        deadline: Instant,
    ) -> Result<(), BmcError> {
        let mut wanted = Some(privilege);
        while let Some(privilege) = wanted {
            let command = SetSessionPrivilege(privilege);
            let patience = patience(inner, u32::MAX, deadline);
            let reply = match self.exchange(inner, &command, patience).await {
                Ok(reply) => reply,
                Err(error) => {
                    self.close(inner).await;
                    return Err(error);
                }
            };
            if reply.code == CompletionCode::OK {
                return Ok(());
            }
            wanted = privilege.lower();
        }
        // It stays what it is; commands that need more are refused one by one, with their names.
        Ok(())
    }
}

/// "Busy" worth a repetition. After a time-out inside the BMC the deed may be done: only harmless ones again.
fn is_busy(code: CompletionCode, repeat: Repeat) -> bool {
    match repeat {
        Repeat::Freely => matches!(
            code,
            CompletionCode::NODE_BUSY | CompletionCode::TIMEOUT | CompletionCode::STARTING
        ),
        Repeat::Never => code == CompletionCode::NODE_BUSY,
    }
}

fn patience(inner: &Inner, transmissions: u32, deadline: Instant) -> Patience {
    Patience { first_wait: inner.options.first_wait, transmissions, deadline }
}

/// One transmission, and time left to look at what came of it.
fn once(deadline: Instant) -> Patience {
    let left = deadline.saturating_duration_since(Instant::now());
    Patience { first_wait: (left / 2).min(ONCE_WAIT), transmissions: 1, deadline }
}

fn login_refused(inner: &Inner) -> BmcError {
    BmcError::LoginRefused { addr: inner.addr, user: inner.login.user().clone() }
}

/// Open Session to RAKP 4. The inner error is the BMC's answer.
async fn handshake(
    inner: &Inner,
    link: &Link,
    suite: Suite,
    privilege: Privilege,
    deadline: Instant,
) -> Result<Result<Active, HandshakeError>, BmcError> {
    let [tag] = chance();
    let random = Chance { tag, session_id: u32::from_le_bytes(chance()), random: chance() };
    let opening = Opening::new(&inner.login, suite, privilege, random);
    let patience = patience(inner, u32::MAX, deadline);
    let challenged = match link.exchange(inner, patience, &mut Stepping(Some(opening))).await? {
        Ok(challenged) => challenged,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let proving = match link.exchange(inner, patience, &mut Stepping(Some(challenged))).await? {
        Ok(proving) => proving,
        Err(refusal) => return Ok(Err(refusal)),
    };
    link.exchange(inner, patience, &mut Stepping(Some(proving))).await
}

/// One step of the handshake: the same datagram each time. Empty once it is answered.
struct Stepping<S>(Option<S>);

impl<S: Handshake> Talk for Stepping<S> {
    type Answer = Result<S::Next, HandshakeError>;

    fn next(&mut self) -> Vec<u8> {
        self.0.as_ref().map(S::packet).unwrap_or_default()
    }

    fn take(&mut self, datagram: &[u8]) -> Option<Self::Answer> {
        match self.0.take()?.receive(datagram) {
            Step::NotForUs(step) => {
                self.0 = Some(step);
                None
            }
            Step::Next(next) => Some(Ok(next)),
            Step::Failed(error) => Some(Err(error)),
        }
    }
}

/// One command in a session: a new session sequence number each time.
struct InSession<'a> {
    session: &'a mut Active,
    exchange: Exchange,
}

impl Talk for InSession<'_> {
    type Answer = Reply;

    fn next(&mut self) -> Vec<u8> {
        self.session.transmit(&self.exchange, chance())
    }

    fn take(&mut self, datagram: &[u8]) -> Option<Reply> {
        self.session.receive(&self.exchange, datagram)
    }
}

/// One command before a session.
struct BeforeSession {
    exchange: Exchange,
}

impl Talk for BeforeSession {
    type Answer = Reply;

    fn next(&mut self) -> Vec<u8> {
        session::plain(PayloadType::Ipmi, self.exchange.message())
    }

    fn take(&mut self, datagram: &[u8]) -> Option<Reply> {
        match Frame::decode(datagram).ok()? {
            Frame::V20(packet) => {
                let ours = packet.payload_type == PayloadType::Ipmi && packet.session_id == 0;
                self.exchange.matches(packet.payload).filter(|_| ours)
            }
            Frame::V15 { message } => self.exchange.matches(message),
        }
    }
}

/// The first block of the BMC's list of suites; empty when it does not say in time.
async fn listed_suites(inner: &Inner, link: &Link, deadline: Instant) -> Vec<u8> {
    let mut talk = BeforeSession { exchange: Exchange::new(&GetCipherSuites { block: 0 }, 1) };
    let deadline = deadline.min(Instant::now() + SUITES_WAIT);
    let patience = Patience { first_wait: SUITES_WAIT, transmissions: 1, deadline };
    let reply = link.exchange(inner, patience, &mut talk).await;
    let Ok(Reply { code: CompletionCode::OK, data }) = reply else { return vec![] };
    GetCipherSuites { block: 0 }.answer(&data).unwrap_or_default()
}

/// Fresh random bytes.
fn chance<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// The task that closes an idle session. One a BMC at most; it ends with the session or the BMC.
pub(crate) struct Reaper(AbortHandle);

impl Drop for Reaper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Reaper {
    /// Starts it unless it runs.
    pub(crate) fn ensure(state: &mut State, inner: &Arc<Inner>) {
        if state.reaper.as_ref().is_some_and(|reaper| !reaper.0.is_finished()) {
            return;
        }
        let idle = inner.options.idle;
        let task = tokio::spawn(reap(Arc::downgrade(inner), idle, state.used + idle));
        state.reaper = Some(Self(task.abort_handle()));
    }
}

async fn reap(bmc: Weak<Inner>, idle: Duration, mut due: Instant) {
    loop {
        sleep_until(due).await;
        let Some(inner) = bmc.upgrade() else { return };
        let mut state = inner.state.lock().await;
        due = state.used + idle;
        if due <= Instant::now() {
            state.close(&inner).await;
            return;
        }
    }
}
