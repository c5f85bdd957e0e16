//! Power verbs. The destructive ones take a [`Permit`] by value and give its audit line back.

use bmc_proto::ipmi::{
    CompletionCode,
    chassis::{ChassisControl, GetChassisStatus},
};
use model::{
    NodeName, Permit, UnixMillis, Verb as PermitVerb,
    permit::{AuditLine, Refusal},
};

use crate::{Bmc, BmcError, Verb, link::Repeat};

/// Whether a machine has power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PowerState {
    /// On.
    On,
    /// Off.
    Off,
}

impl PowerState {
    /// `on` or `off`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }

    /// Whether it is on.
    #[must_use]
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

/// A permit that was good and is spent: what to write down, and what came of the verb.
#[derive(Debug)]
#[must_use]
pub struct Carried {
    /// To be written down whatever the outcome: the verb may have been carried out even if it is an error.
    pub audit: AuditLine,
    /// What came of it.
    pub outcome: Result<(), BmcError>,
}

impl Bmc {
    /// Whether the machine has power.
    ///
    /// # Errors
    /// [`BmcError`].
    pub async fn power_status(&self) -> Result<PowerState, BmcError> {
        self.begin().await?.power().await
    }

    /// Switches on. Harmless when it is on.
    ///
    /// # Errors
    /// [`BmcError`].
    pub async fn power_on(&self) -> Result<(), BmcError> {
        self.begin().await?.ask(&ChassisControl::On, Repeat::Freely).await
    }

    /// Asks the operating system to shut down. Sent once: two presses of the power button are a hard off on some
    /// machines. Whether the system obeys is for the caller to watch.
    ///
    /// # Errors
    /// [`BmcError`]; [`BmcError::OutcomeUnknown`] when the answer was lost.
    pub async fn soft_off(&self) -> Result<(), BmcError> {
        self.begin().await?.control_once(ChassisControl::SoftOff).await
    }

    /// Hard off.
    ///
    /// # Errors
    /// [`Refusal`] when the permit is for something else or too old: nothing was sent.
    pub async fn power_off(
        &self,
        node: &NodeName,
        permit: Permit,
        now: UnixMillis,
    ) -> Result<Carried, Refusal> {
        let audit = permit.spend(node, PermitVerb::PowerOff, now)?;
        let outcome = match self.begin().await {
            Ok(mut verb) => verb.ask(&ChassisControl::Off, Repeat::Freely).await,
            Err(error) => Err(error),
        };
        Ok(Carried { audit, outcome })
    }

    /// Off and on again; on, if it is off (many BMCs ignore a cycle then). Never sent twice.
    ///
    /// # Errors
    /// [`Refusal`] when the permit is for something else or too old: nothing was sent.
    pub async fn power_cycle(
        &self,
        node: &NodeName,
        permit: Permit,
        now: UnixMillis,
    ) -> Result<Carried, Refusal> {
        let audit = permit.spend(node, PermitVerb::PowerCycle, now)?;
        let outcome = match self.begin().await {
            Ok(mut verb) => verb.cycle().await,
            Err(error) => Err(error),
        };
        Ok(Carried { audit, outcome })
    }

    /// Hard reset of a running machine. Never sent twice.
    ///
    /// # Errors
    /// [`Refusal`] when the permit is for something else or too old: nothing was sent.
    pub async fn reset(
        &self,
        node: &NodeName,
        permit: Permit,
        now: UnixMillis,
    ) -> Result<Carried, Refusal> {
        let audit = permit.spend(node, PermitVerb::Reset, now)?;
        let outcome = match self.begin().await {
            Ok(mut verb) => verb.control_once(ChassisControl::Reset).await,
            Err(error) => Err(error),
        };
        Ok(Carried { audit, outcome })
    }
}

impl Verb<'_> {
    async fn power(&mut self) -> Result<PowerState, BmcError> {
        let status = self.ask(&GetChassisStatus, Repeat::Freely).await?;
        Ok(if status.power_on { PowerState::On } else { PowerState::Off })
    }

    async fn cycle(&mut self) -> Result<(), BmcError> {
        match self.power().await? {
            PowerState::On => self.once(ChassisControl::Cycle).await,
            PowerState::Off => self.ask(&ChassisControl::On, Repeat::Freely).await,
        }
    }

    /// Reads the power first: that proves the session alive, which the one transmission then relies on.
    async fn control_once(&mut self, control: ChassisControl) -> Result<(), BmcError> {
        self.power().await?;
        self.once(control).await
    }

    async fn once(&mut self, control: ChassisControl) -> Result<(), BmcError> {
        let outcome = self.ask(&control, Repeat::Never).await;
        match outcome {
            // A socket that fails says nothing about a datagram sent before: the answer may be what it lost.
            Err(
                BmcError::Unreachable { addr, .. }
                | BmcError::PortClosed { addr }
                | BmcError::Socket { addr, .. }
                | BmcError::Refused { addr, code: CompletionCode::TIMEOUT, .. },
            ) => {
                let power = self.power().await.ok();
                Err(BmcError::OutcomeUnknown { addr, verb: control, power })
            }
            other => other,
        }
    }
}
