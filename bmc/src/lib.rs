//! Out of band: BMC sessions over sockets, retries, quirks.
//!
//! One [`Bmc`] is one management controller: its own connected UDP socket, one command in flight, a session
//! that is opened when needed, kept while it is used and closed when it is not. A silent BMC delays only who
//! asked it, and nobody longer than the verb's deadline.
//!
//! It never sends a cycle, a reset or a soft shutdown twice, never answers a refused password with further
//! tries, and puts no password into any text.

mod error;
mod link;
mod login;
mod options;
mod power;
mod session;

use std::sync::{
    Arc,
    atomic::{AtomicU8, AtomicU64, Ordering},
};

use bmc_proto::ipmi::{
    Command, CompletionCode,
    boot_options::{self, GetBootOption, Reach, SetBootOption},
    dcmi::GetPowerReading,
    device_id::{GetDeviceId, GetSystemGuid},
};
use model::Uuid;
use tokio::{
    sync::{Mutex, MutexGuard},
    time::{Instant, timeout_at},
};

pub use self::{
    error::BmcError,
    options::{BmcAddress, Options, SuiteChoice},
    power::{Carried, PowerState},
};
use self::{
    link::Repeat,
    session::{Reaper, State},
};
pub use bmc_proto::ipmi::{Login, LoginError, Secret, Suite, rakp::Privilege};
pub use bmc_proto::ipmi::{
    boot_options::{BootDevice, BootFlags, FirmwareMode, LostBit},
    dcmi::{DcmiOutcome, Statistics},
    device_id::DeviceId,
};

/// One management controller. Clones share it.
#[derive(Clone)]
pub struct Bmc {
    inner: Arc<Inner>,
}

struct Inner {
    addr: std::net::SocketAddr,
    login: Login,
    options: Options,
    /// Number of the suite the last session used; 0 before the first.
    suite: AtomicU8,
    counters: CounterCells,
    state: Mutex<State>,
}

#[derive(Default)]
struct CounterCells {
    retransmits: AtomicU64,
    strays: AtomicU64,
    sessions: AtomicU64,
}

/// What happened on the wire since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Requests sent again.
    pub retransmits: u64,
    /// Datagrams that answered nothing we waited for.
    pub strays: u64,
    /// Sessions opened.
    pub sessions: u64,
}

/// What became of a boot override that was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootReadBack {
    /// What was asked for.
    pub sent: BootFlags,
    /// What the BMC holds; `None` when it would not say.
    pub got: Option<BootFlags>,
    /// What got lost on the way; empty when all was kept or nothing could be read.
    pub lost: Vec<LostBit>,
}

impl Bmc {
    /// Nothing is sent before the first verb.
    #[must_use]
    pub fn new(address: BmcAddress, login: Login, options: Options) -> Self {
        let state = Mutex::new(State::new());
        let (suite, counters) = (AtomicU8::new(0), CounterCells::default());
        let addr = address.socket();
        Self { inner: Arc::new(Inner { addr, login, options, suite, counters, state }) }
    }

    /// Where it is.
    #[must_use]
    pub fn addr(&self) -> std::net::SocketAddr {
        self.inner.addr
    }

    /// Number of the cipher suite in use, once a session stood.
    #[must_use]
    pub fn suite(&self) -> Option<u8> {
        Some(self.inner.suite.load(Ordering::Relaxed)).filter(|suite| *suite != 0)
    }

    /// What happened on the wire so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let CounterCells { retransmits, strays, sessions } = &self.inner.counters;
        Counters {
            retransmits: retransmits.load(Ordering::Relaxed),
            strays: strays.load(Ordering::Relaxed),
            sessions: sessions.load(Ordering::Relaxed),
        }
    }

    /// Which controller this is.
    ///
    /// # Errors
    /// [`BmcError`].
    pub async fn device_id(&self) -> Result<DeviceId, BmcError> {
        let mut verb = self.begin().await?;
        let id = verb.ask(&GetDeviceId, Repeat::Freely).await?;
        verb.state.note_firmware(id.firmware());
        Ok(id)
    }

    /// The machine's UUID; `None` when the BMC has no such command or only zeros.
    ///
    /// # Errors
    /// [`BmcError`].
    pub async fn system_guid(&self) -> Result<Option<Uuid>, BmcError> {
        let mut verb = self.begin().await?;
        match verb.ask(&GetSystemGuid, Repeat::Freely).await {
            Ok(guid) => Ok(guid.uuid()),
            Err(BmcError::Refused { code, .. }) if code.means_unsupported() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Watts by DCMI. "Not supported" is remembered until the BMC's firmware changes.
    ///
    /// # Errors
    /// [`BmcError`]; a malformed answer is one, absence is not.
    pub async fn power_reading(&self) -> Result<DcmiOutcome, BmcError> {
        let mut verb = self.begin().await?;
        if verb.state.has_no_dcmi() {
            return Ok(DcmiOutcome::NotSupported);
        }
        match verb.ask(&GetPowerReading, Repeat::Freely).await {
            Ok(record) => Ok(record.outcome()),
            Err(BmcError::Refused { code, .. }) if code.means_unsupported() => {
                verb.state.note_no_dcmi();
                Ok(DcmiOutcome::NotSupported)
            }
            Err(error) => Err(error),
        }
    }

    /// Boots from `device` once, and reads back what the BMC made of it. The power command follows separately.
    ///
    /// # Errors
    /// [`BmcError`]. Lost bits are no error: see [`BootReadBack::lost`].
    pub async fn set_boot_once(
        &self,
        device: BootDevice,
        mode: FirmwareMode,
    ) -> Result<BootReadBack, BmcError> {
        let flags = BootFlags { valid: true, reach: Reach::Once, mode, device };
        let mut verb = self.begin().await?;
        // Keep it longer than 60 s: the power command may come later. Some BMCs know neither parameter.
        verb.try_option(SetBootOption::NO_EXPIRY).await?;
        verb.try_option(SetBootOption::InfoAcknowledge { mask: 1, data: 1 }).await?;
        verb.set_flags(flags).await
    }

    /// Takes a boot override back.
    ///
    /// # Errors
    /// [`BmcError`].
    pub async fn clear_boot_override(&self) -> Result<BootReadBack, BmcError> {
        self.begin().await?.set_flags(BootFlags::CLEAR).await
    }

    /// Closes the session, if one stands. Needed only to be polite at the end of the program.
    pub async fn close(&self) {
        let deadline = Instant::now() + self.inner.options.deadline;
        if let Ok(mut state) = timeout_at(deadline, self.inner.state.lock()).await {
            state.close(&self.inner).await;
        }
    }

    /// Waits for its turn. The deadline runs from here: what waited too long is not sent at all.
    async fn begin(&self) -> Result<Verb<'_>, BmcError> {
        let inner = &*self.inner;
        let deadline = Instant::now() + inner.options.deadline;
        let state = timeout_at(deadline, inner.state.lock());
        let state = state.await.map_err(|_| BmcError::Queued { addr: inner.addr })?;
        Ok(Verb { inner: &self.inner, state, deadline })
    }
}

/// One verb, whose turn it is.
struct Verb<'a> {
    inner: &'a Arc<Inner>,
    state: MutexGuard<'a, State>,
    deadline: Instant,
}

impl Verb<'_> {
    async fn ask<C: Command>(
        &mut self,
        command: &C,
        repeat: Repeat,
    ) -> Result<C::Answer, BmcError> {
        let addr = self.inner.addr;
        let reply = self.state.reply(self.inner, command, repeat, self.deadline).await;
        if self.state.has_session() {
            Reaper::ensure(&mut self.state, self.inner);
        }
        let reply = reply?;
        if reply.code != CompletionCode::OK {
            return Err(BmcError::Refused { addr, command: C::NAME, code: reply.code });
        }
        command.answer(&reply.data).map_err(|source| BmcError::Malformed {
            addr,
            command: C::NAME,
            source,
        })
    }

    /// Sets an option that a BMC may refuse.
    async fn try_option(&mut self, option: SetBootOption) -> Result<(), BmcError> {
        match self.ask(&option, Repeat::Freely).await {
            Ok(()) => Ok(()),
            Err(BmcError::Refused { code, .. }) if code != CompletionCode::PRIVILEGE => {
                tracing::debug!(addr = %self.inner.addr, ?option, %code, "boot option not taken");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn set_flags(&mut self, sent: BootFlags) -> Result<BootReadBack, BmcError> {
        self.ask(&SetBootOption::Flags(sent), Repeat::Freely).await?;
        let read = GetBootOption { parameter: boot_options::BOOT_FLAGS };
        let got = match self.ask(&read, Repeat::Freely).await {
            Ok(option) => option.flags().ok(),
            Err(BmcError::Refused { .. } | BmcError::Malformed { .. }) => None,
            Err(error) => return Err(error),
        };
        let lost = got.map(|got| sent.lost_in(&got)).unwrap_or_default();
        Ok(BootReadBack { sent, got, lost })
    }
}

/// Verbs run in tasks: their futures must be `Send`.
#[cfg(test)]
mod tests {
    use super::*;

    fn assert_send<T: Send>(_: &T) {}

    #[tokio::test]
    async fn verbs_can_run_in_any_task() {
        let address = BmcAddress { host: std::net::Ipv4Addr::LOCALHOST.into(), port: 9 };
        let login = Login::new("admin", Secret::new("secret")).unwrap();
        let bmc = Bmc::new(address, login, Options::default());
        assert_send(&bmc.power_status());
        assert_send(&bmc.set_boot_once(BootDevice::Pxe, FirmwareMode::Uefi));
    }
}
