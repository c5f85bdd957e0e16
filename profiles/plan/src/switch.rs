//! A switch: one node on its way from one profile to another.

use std::fmt;

use model::{NodeName, ProfileName, UnixMillis};
use serde::{Deserialize, Serialize};

use crate::{Phase, ProfileSpec};

/// Identity of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SwitchId(pub String);

impl fmt::Display for SwitchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What has been seen of the boot so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// First DHCP request after power-on.
    pub dhcp: Option<UnixMillis>,
    /// A boot script was given out.
    pub script: Option<UnixMillis>,
    /// The kernel was fetched whole.
    pub kernel: Option<UnixMillis>,
    /// The payload spoke.
    pub payload: Option<UnixMillis>,
}

/// One switch, whole: what is kept in the database and nothing else decides how it goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// Identity.
    pub id: SwitchId,
    /// The node.
    pub node: NodeName,
    /// Profile it was settled in before.
    pub from: Option<ProfileName>,
    /// Profile it goes to, as it was when the switch began.
    pub to: ProfileSpec,
    /// Whether its firmware is UEFI.
    pub efi: bool,
    /// Who asked.
    pub by: String,
    /// Hash of the preview that was confirmed.
    pub plan_hash: Option<String>,
    /// When it began.
    pub created: UnixMillis,
    /// Where it stands.
    pub phase: Phase,
    /// Since when.
    pub since: UnixMillis,
    /// Until when this phase may last.
    pub until: UnixMillis,
    /// One sentence: what it waits for, or why it ended.
    pub reason: String,
    /// One sentence: what a person can do about it.
    pub remedy: Option<String>,
    /// When soft shutdown was asked for.
    pub soft_sent: Option<UnixMillis>,
    /// When power was cut.
    pub hard_sent: Option<UnixMillis>,
    /// When power-on was sent.
    pub on_sent: Option<UnixMillis>,
    /// What has been seen of the boot.
    pub progress: Progress,
    /// Times the ticket was renewed because the node came back too soon.
    pub renewals: u8,
    /// Grows with each change; a stored switch is only ever replaced by a newer one.
    pub version: i64,
}

/// What begins a switch.
#[derive(Debug, Clone)]
pub struct Beginning {
    /// Identity.
    pub id: SwitchId,
    /// The node.
    pub node: NodeName,
    /// Profile before.
    pub from: Option<ProfileName>,
    /// Profile to reach.
    pub to: ProfileSpec,
    /// Whether the firmware is UEFI.
    pub efi: bool,
    /// Who asked.
    pub by: String,
    /// Hash of the confirmed preview.
    pub plan_hash: Option<String>,
}

impl Switch {
    /// A new switch, in its first phase.
    #[must_use]
    pub fn begin(what: Beginning, now: UnixMillis) -> Self {
        let Beginning { id, node, from, to, efi, by, plan_hash } = what;
        let until = now.plus(to.bounds.bmc);
        Self {
            id,
            node,
            from,
            to,
            efi,
            by,
            plan_hash,
            created: now,
            phase: Phase::Guarding,
            since: now,
            until,
            reason: "reads power and identity from the BMC".to_owned(),
            remedy: None,
            soft_sent: None,
            hard_sent: None,
            on_sent: None,
            progress: Progress::default(),
            renewals: 0,
            version: 1,
        }
    }
}
