//! What the engine knows of one node.

use std::collections::BTreeMap;

use model::{
    ProfileName, RootKind, UnixMillis, Uuid,
    boot::{Attempt, BootIntent},
    permit::Protection,
};

use crate::{
    Issued, NodeSpec, Output, Phase, ProfileSpec, Record, Switch, engine::PowerOrder, step::Around,
};

/// What the engine knows of one node.
#[derive(Debug, Clone)]
pub struct NodeState {
    /// What the configuration says.
    pub spec: NodeSpec,
    /// The profile it has settled in.
    pub settled: Option<ProfileName>,
    /// Its open or last switch.
    pub switch: Option<Switch>,
    /// The last boot answer under a ticket.
    pub last: Option<Issued>,
    /// Power as last read, and when.
    pub power: Option<(bool, UnixMillis)>,
    /// Since when every reading of power has been off; one that failed or read on begins anew.
    pub off_since: Option<UnixMillis>,
    /// When its payload last spoke.
    pub alive: Option<UnixMillis>,
    /// When volund last ordered it to start outside of a switch.
    pub ordered: Option<UnixMillis>,
    /// System GUID on record for its BMC.
    pub recorded: Option<Uuid>,
    /// System GUID its BMC last told since the start.
    pub told: Option<Uuid>,
    /// Cipher suite in use with its BMC.
    pub suite: Option<u8>,
    /// What is wrong with its BMC.
    pub bmc_trouble: Option<String>,
    /// A power verb that is being carried out.
    pub order: Option<PowerOrder>,
}

impl NodeState {
    /// A node nothing is known of yet.
    #[must_use]
    pub fn new(spec: NodeSpec) -> Self {
        Self {
            spec,
            settled: None,
            switch: None,
            last: None,
            power: None,
            off_since: None,
            alive: None,
            ordered: None,
            recorded: None,
            told: None,
            suite: None,
            bmc_trouble: None,
            order: None,
        }
    }

    /// The open switch.
    #[must_use]
    pub fn open_switch(&self) -> Option<&Switch> {
        self.switch.as_ref().filter(|switch| switch.phase.is_open())
    }

    /// Whether the last switch stopped and waits for a person.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.switch.as_ref().is_some_and(|s| matches!(s.phase, Phase::Held | Phase::Failed))
    }

    /// The last attempt, for the boot table.
    #[must_use]
    pub fn attempt(&self) -> Option<Attempt> {
        let last = self.last.as_ref()?;
        Some(Attempt { id: last.attempt, kernel_whole: last.kernel_whole })
    }

    /// Its protection as a permit asks for it.
    #[must_use]
    pub fn protection(&self) -> Protection {
        match &self.spec.protected {
            Some(reason) => Protection::Protected { reason: reason.clone() },
            None => Protection::Open,
        }
    }

    pub(super) fn around(&self, now: UnixMillis) -> Around {
        Around { now, protection: self.protection(), recorded: self.recorded }
    }

    /// A switch has just ended: settle the node or not, and close its ticket where nothing may use it again.
    pub(super) fn close(&mut self, now: UnixMillis, output: &mut Output) {
        let Some(switch) = &self.switch else { return };
        let ended_well = switch.phase == Phase::Done;
        if ended_well {
            let (node, profile) = (switch.node.clone(), switch.to.name.clone());
            self.settled = Some(profile.clone());
            output.records.push(Record::Settled { node, profile, at: now });
        }
        let keep = ended_well && switch.to.root == RootKind::Ram;
        let mine = |last: &&mut Issued| last.switch.as_ref() == Some(&switch.id);
        if let Some(last) = self.last.as_mut().filter(mine)
            && !keep
            && std::mem::replace(&mut last.live, false)
        {
            output.records.push(Record::Issued(Box::new(last.clone())));
        }
    }

    pub(super) fn intent(&self, profiles: &BTreeMap<ProfileName, ProfileSpec>) -> BootIntent {
        if let Some(switch) = self.open_switch() {
            return if switch.to.boots_network() { BootIntent::Ask } else { BootIntent::Local };
        }
        let settled = self.settled.as_ref().and_then(|name| profiles.get(name));
        match settled {
            Some(profile) if profile.root == RootKind::Ram && !self.is_held() => BootIntent::Ask,
            Some(_) | None => BootIntent::Local,
        }
    }
}
