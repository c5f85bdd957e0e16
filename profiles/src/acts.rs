//! Effects of the engine as verbs of a BMC, and what came of them.

use std::{collections::BTreeMap, sync::Arc};

use bmc::{Bmc, BmcError, BootDevice, Carried, FirmwareMode};
use model::{NodeName, Permit, Verb, permit::ObservedIdentity};
use plan::{Act, BootTarget, Observed, Trouble, TroubleKind, effect::Permission};

use crate::world::now;

/// BMCs by node.
pub type Boards = Arc<BTreeMap<NodeName, Arc<Bmc>>>;

/// Carries out one act and says what was seen. Every verb of [`Bmc`] has its own bound.
pub(crate) async fn carry_out(bmc: Option<Arc<Bmc>>, node: &NodeName, act: Act) -> Observed {
    let Some(bmc) = bmc else {
        let text = format!("{node} has no BMC in the configuration");
        return of_kind(&act, Trouble { kind: TroubleKind::Refused, text });
    };
    match act {
        Act::ReadPower => {
            let power = bmc.power_status().await;
            Observed::Power(power.map(bmc::PowerState::is_on).map_err(trouble))
        }
        Act::SoftOff => Observed::Accepted(bmc.soft_off().await.map_err(trouble)),
        Act::PowerOn => {
            tracing::info!(%node, "power on");
            Observed::Accepted(bmc.power_on().await.map_err(trouble))
        }
        Act::Arm { target, efi } => {
            let device = match target {
                BootTarget::Network => BootDevice::Pxe,
                BootTarget::Disk => BootDevice::Disk,
            };
            let mode = if efi { FirmwareMode::Uefi } else { FirmwareMode::Legacy };
            let read_back = bmc.set_boot_once(device, mode).await.map_err(trouble);
            Observed::Armed(
                read_back.map(|read| read.lost.iter().map(ToString::to_string).collect()),
            )
        }
        Act::Permitted(permission) => Observed::Accepted(permitted(&bmc, node, *permission).await),
    }
}

/// Reads the machine's identity, has the permit issued, and uses it up.
async fn permitted(bmc: &Bmc, node: &NodeName, permission: Permission) -> Result<(), Trouble> {
    let Permission { order, warrant, protection, recorded } = permission;
    let seen = bmc.system_guid().await.map_err(trouble)?;
    let identity = ObservedIdentity { seen, recorded };
    let verb = order.verb;
    let not_permitted = |refusal: model::permit::Refusal| Trouble {
        kind: TroubleKind::NotPermitted,
        text: refusal.to_string(),
    };
    let permit = Permit::issue(order, identity, &protection, &warrant, now());
    let permit = permit.map_err(not_permitted)?;
    let done = match verb {
        Verb::PowerOff => bmc.power_off(node, permit, now()).await,
        Verb::PowerCycle => bmc.power_cycle(node, permit, now()).await,
        Verb::Reset => bmc.reset(node, permit, now()).await,
        Verb::Install => {
            let text = format!("{verb} is no verb of a BMC");
            return Err(Trouble { kind: TroubleKind::NotPermitted, text });
        }
    };
    let Carried { audit, outcome } = done.map_err(not_permitted)?;
    let (by, warrant) = (audit.by, audit.warrant);
    tracing::info!(%node, %verb, by, warrant, error = outcome.as_ref().err().map(tracing::field::display), "permit used");
    outcome.map_err(trouble)
}

/// A BMC's error, sorted by what can be done about it.
fn trouble(error: BmcError) -> Trouble {
    let kind = match &error {
        BmcError::LoginRefused { .. } | BmcError::NoPrivilege { .. } => TroubleKind::Login,
        BmcError::Refused { .. } if !error.is_transient() => TroubleKind::Refused,
        BmcError::NoSuite { .. } => TroubleKind::Refused,
        // Silence, a busy BMC, an answer nobody can read, an outcome nobody knows: power is read next.
        BmcError::Unreachable { .. }
        | BmcError::PortClosed { .. }
        | BmcError::Queued { .. }
        | BmcError::Socket { .. }
        | BmcError::NoSessionFree { .. }
        | BmcError::Handshake { .. }
        | BmcError::Refused { .. }
        | BmcError::Malformed { .. }
        | BmcError::OutcomeUnknown { .. } => TroubleKind::Silent,
    };
    Trouble { kind, text: error.to_string() }
}

fn of_kind(act: &Act, trouble: Trouble) -> Observed {
    match act {
        Act::ReadPower => Observed::Power(Err(trouble)),
        Act::Arm { .. } => Observed::Armed(Err(trouble)),
        Act::SoftOff | Act::PowerOn | Act::Permitted(_) => Observed::Accepted(Err(trouble)),
    }
}
