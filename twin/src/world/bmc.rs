//! The management controllers of simulated nodes: effects arrive, observations go back.

use std::time::Duration;

use model::{NodeName, Permit, UnixMillis, Verb, permit::ObservedIdentity};
use plan::{Act, Effect, Input, Observation, Observed, Trouble, TroubleKind, effect::Permission};

use super::{Happening, SimNode, SimWorld};

/// How long a silent BMC is waited for (the bound of a verb).
const BMC_BOUND: Duration = Duration::from_secs(5);

/// Faults of a management controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BmcFaults {
    /// Answers nothing before this moment.
    pub silent_until: Option<UnixMillis>,
    /// Refuses the login.
    pub refuses_login: bool,
    /// Accepts power-on this many times without obeying.
    pub ignores_power_on: u8,
}

impl SimWorld {
    /// An effect at its BMC; the observation comes back a little later.
    pub(super) fn carry_out(&mut self, effect: Effect) {
        let Effect { node, cause, act, .. } = effect;
        let faults = self.faults.get(&node).copied().unwrap_or_default();
        let silent = faults.silent_until.is_some_and(|until| self.now < until);
        let (what, after) = if silent {
            (in_vain(&act, TroubleKind::Silent, "no answer from the BMC"), BMC_BOUND)
        } else if faults.refuses_login {
            (in_vain(&act, TroubleKind::Login, "the BMC refused the login"), Duration::ZERO)
        } else {
            (self.obey(&node, act), Duration::from_millis(self.chance.next_u64() % 300))
        };
        let observation = Observation { node, cause, what };
        self.schedule(after, Happening::Arrive(self.life, Input::Observed(observation)));
    }

    fn obey(&mut self, name: &NodeName, act: Act) -> Observed {
        let now = self.now;
        let ignored = act == Act::PowerOn && self.ignores_power_on(name);
        let Some(node) = self.nodes.get_mut(name) else {
            return in_vain(&act, TroubleKind::Silent, "there is no such machine");
        };
        let moves = match act {
            Act::ReadPower => return Observed::Power(Ok(node.is_on())),
            Act::Arm { target, .. } => {
                node.arm(target);
                return Observed::Armed(Ok(vec![]));
            }
            Act::PowerOn if ignored => vec![],
            Act::PowerOn => node.power_on(now, &mut self.chance),
            Act::SoftOff => node.button(),
            Act::Permitted(permission) => match permitted(*permission, name, node, now) {
                Ok(Verb::PowerOff) => {
                    node.power_cut(now);
                    vec![]
                }
                Ok(_) => node.reset(now, &mut self.chance),
                Err(text) => {
                    let kind = TroubleKind::NotPermitted;
                    return Observed::Accepted(Err(Trouble { kind, text }));
                }
            },
        };
        self.make(name, moves);
        Observed::Accepted(Ok(()))
    }

    fn ignores_power_on(&mut self, name: &NodeName) -> bool {
        let Some(faults) = self.faults.get_mut(name) else { return false };
        let less = faults.ignores_power_on.checked_sub(1);
        faults.ignores_power_on = less.unwrap_or(0);
        less.is_some()
    }
}

/// The gate, as the real world has it: identity is read at the moment of use.
fn permitted(
    permission: Permission,
    name: &NodeName,
    node: &SimNode,
    now: UnixMillis,
) -> Result<Verb, String> {
    let Permission { order, warrant, protection, recorded } = permission;
    let identity = ObservedIdentity { seen: Some(node.guid()), recorded };
    let verb = order.verb;
    let permit = Permit::issue(order, identity, &protection, &warrant, now);
    let spent = permit.and_then(|permit| permit.spend(name, verb, now));
    spent.map(|_| verb).map_err(|refusal| refusal.to_string())
}

fn in_vain(act: &Act, kind: TroubleKind, text: &str) -> Observed {
    let trouble = Trouble { kind, text: text.to_owned() };
    match act {
        Act::ReadPower => Observed::Power(Err(trouble)),
        Act::Arm { .. } => Observed::Armed(Err(trouble)),
        Act::SoftOff | Act::PowerOn | Act::Permitted(_) => Observed::Accepted(Err(trouble)),
    }
}
