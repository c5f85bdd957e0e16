//! How a session with a BMC comes about: the ladder of suites and privileges, and the handshake.
//!
//! It tries no suite without authentication, integrity and confidentiality, and no password twice.

use std::time::Duration;

use bmc_proto::ipmi::{
    Command, CompletionCode, Suite,
    channel::{GetCipherSuites, order_to_try},
    client::{Active, Chance, Handshake, HandshakeError, Opening, Remedy, Step},
    message::{Exchange, Reply},
    rakp::Privilege,
    session::{self, Frame, PayloadType},
};
use tokio::time::{Instant, sleep};

use crate::{
    BmcError, Inner,
    link::{Link, Patience, Talk},
    options::SuiteChoice,
    session::{BUSY_WAIT, chance, patience},
};

/// Get Channel Cipher Suites is a hint and may be answered by nobody.
const SUITES_WAIT: Duration = Duration::from_millis(300);

/// Opens a session: suite after suite, at the highest privilege the account has. `known` is the suite that came about
/// the last time.
pub(crate) async fn log_in(
    inner: &Inner,
    link: &Link,
    known: Option<Suite>,
    deadline: Instant,
) -> Result<(Active, Suite, Privilege), BmcError> {
    let mut last = None;
    for suite in suites(inner, link, known, deadline).await {
        match open_with(inner, link, suite, deadline).await? {
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
async fn suites(inner: &Inner, link: &Link, known: Option<Suite>, deadline: Instant) -> Vec<Suite> {
    match (inner.options.suite, known) {
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

/// What [`BmcError::LoginRefused`] says of this BMC.
pub(crate) fn login_refused(inner: &Inner) -> BmcError {
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
