//! The session of one BMC: opened when needed, kept, opened anew when it has died, closed when idle.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use bmc_proto::ipmi::{
    Command, CompletionCode, Suite,
    channel::{CloseSession, SetSessionPrivilege},
    client::Active,
    message::{Exchange, Reply},
    rakp::Privilege,
};
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    BmcError, Inner,
    link::{Link, Patience, Repeat, Talk},
    login::{log_in, login_refused},
};

/// Between two tries at a BMC that is busy or has no session free.
pub(crate) const BUSY_WAIT: Duration = Duration::from_millis(300);
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
        let opened = log_in(inner, &link, self.suite, deadline).await;
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

pub(crate) fn patience(inner: &Inner, transmissions: u32, deadline: Instant) -> Patience {
    Patience { first_wait: inner.options.first_wait, transmissions, deadline }
}

/// One transmission, and time left to look at what came of it.
fn once(deadline: Instant) -> Patience {
    let left = deadline.saturating_duration_since(Instant::now());
    Patience { first_wait: (left / 2).min(ONCE_WAIT), transmissions: 1, deadline }
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

/// Fresh random bytes.
pub(crate) fn chance<const N: usize>() -> [u8; N] {
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
