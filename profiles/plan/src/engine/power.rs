//! Power verbs a person uses outside of a switch. Answered with power as read back, or why not.

use std::time::Duration;

use model::{
    NodeName, RootKind, UnixMillis,
    permit::{Order, Verb, Warrant},
};

use crate::{
    Act, BootTarget, Cause, Effect, Engine, NodeState, Observed, Output, Record, Replied, Reply,
    Token,
    effect::Permission,
    engine::wish::no_such_node,
    input::{PowerVerb, Refused},
};

/// How long the answer to a power verb may wait for the reading that proves it.
pub const POWER_BOUND: Duration = Duration::from_secs(20);

/// Time between two readings while a verb is to be proved: short enough to see the off time of a cycle.
const CYCLE_POLL: Duration = Duration::from_millis(250);

/// A power verb that is being carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerOrder {
    token: Token,
    verb: PowerVerb,
    by: String,
    until: UnixMillis,
    stage: Stage,
    /// Whether a running machine is to lose power and get it back.
    cycles: bool,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Reads power first.
    Look,
    /// Sets the boot device.
    Arm,
    /// The command is out.
    Sent,
    /// Reads until it is so.
    Check,
    /// A cycle was seen to take power away; reads until it is back.
    SawOff,
}

impl Engine {
    pub(crate) fn power_verb(
        &mut self,
        token: Token,
        node: &NodeName,
        verb: PowerVerb,
        by: &str,
        now: UnixMillis,
        output: &mut Output,
    ) {
        let refused = match self.nodes.get_mut(node) {
            None => no_such_node(node),
            Some(state) => match state.refuse_verb(verb) {
                Some(refused) => refused,
                None => {
                    let until = now.plus(POWER_BOUND);
                    let by = by.to_owned();
                    let (stage, cycles) = (Stage::Look, false);
                    state.order = Some(PowerOrder { token, verb, by, until, stage, cycles });
                    output.effects.push(effect(node, token, Act::ReadPower, now));
                    return;
                }
            },
        };
        output.replies.push(Reply { token, what: Replied::Power(Err(refused)) });
    }

    pub(crate) fn order_observed(
        &mut self,
        node: &NodeName,
        token: Token,
        what: Observed,
        now: UnixMillis,
        output: &mut Output,
    ) {
        let ram = self.nodes.get(node).is_some_and(|state| self.settled_in_ram(state));
        let Some(state) = self.nodes.get_mut(node) else { return };
        let Some(order) = state.order.clone().filter(|order| order.token == token) else { return };
        let next = state.order_step(&order, what, ram, now, output);
        match next {
            Ok((stage, act, not_before)) => {
                let on = state.power.is_some_and(|(on, _)| on);
                let cycles =
                    order.cycles || order.verb == PowerVerb::Cycle && stage == Stage::Sent && on;
                state.order = Some(PowerOrder { stage, cycles, ..order });
                output.effects.push(effect(node, token, act, not_before));
            }
            Err(answer) => {
                state.order = None;
                output.replies.push(Reply { token, what: Replied::Power(answer) });
            }
        }
    }

    fn settled_in_ram(&self, state: &NodeState) -> bool {
        let profile = state.settled.as_ref().and_then(|name| self.profiles.get(name));
        profile.is_some_and(|profile| profile.root == RootKind::Ram)
    }
}

impl PowerOrder {
    /// A cycle of a running machine is proved by reading off, then on; everything else by one reading.
    fn after_command(&self) -> Stage {
        if self.cycles { Stage::Check } else { Stage::SawOff }
    }

    fn check(&self, on: bool, now: UnixMillis) -> Next {
        let wanted = matches!(self.verb, PowerVerb::On | PowerVerb::Cycle);
        let proved = self.stage == Stage::SawOff && on == wanted;
        if proved {
            return Err(Ok(Some(on)));
        }
        if now >= self.until {
            return Err(self.unproved(on));
        }
        let stage = if self.stage == Stage::Check && !on { Stage::SawOff } else { self.stage };
        Ok((stage, Act::ReadPower, now.plus(CYCLE_POLL)))
    }

    /// The bound is over and the effect was not seen. A soft shutdown may take longer: it answers with power as it
    /// reads; every other verb has failed.
    fn unproved(&self, on: bool) -> Result<Option<bool>, Refused> {
        let reads = if on { "on" } else { "off" };
        let bound = POWER_BOUND.as_secs();
        let text = match (self.verb, self.stage) {
            (PowerVerb::Soft, _) => return Ok(Some(on)),
            (PowerVerb::Cycle, Stage::Check) if on => {
                "the BMC accepted the power cycle, but power was never read off; \
                 look whether the machine restarted"
                    .to_owned()
            }
            (PowerVerb::On | PowerVerb::Off | PowerVerb::Cycle, _) => format!(
                "the BMC accepted the command, but power still reads {reads} after {bound} s; \
                 look at the BMC's own log"
            ),
        };
        Err(Refused::Unavailable(text))
    }
}

type Next = Result<(Stage, Act, UnixMillis), Result<Option<bool>, Refused>>;

impl NodeState {
    fn refuse_verb(&self, verb: PowerVerb) -> Option<Refused> {
        let takes = matches!(verb, PowerVerb::Off | PowerVerb::Soft | PowerVerb::Cycle);
        let protected = || self.refuse_protected().filter(|_| takes);
        self.refuse_busy().or_else(protected)
    }

    fn order_step(
        &mut self,
        order: &PowerOrder,
        what: Observed,
        ram: bool,
        now: UnixMillis,
        output: &mut Output,
    ) -> Next {
        match what {
            Observed::Power(Err(trouble))
            | Observed::Armed(Err(trouble))
            | Observed::Accepted(Err(trouble)) => {
                Err(Err(Refused::Unavailable(format!("{}; {}", trouble.text, trouble.remedy()))))
            }
            Observed::Power(Ok(on)) if order.stage == Stage::Look => {
                self.first_act(order, on, ram, now, output)
            }
            Observed::Armed(Ok(_)) => self.command(order, now, output),
            // The off time of a cycle is a second or more; the first reading must not come after it.
            Observed::Accepted(Ok(())) => Ok((order.after_command(), Act::ReadPower, now)),
            Observed::Power(Ok(on)) => order.check(on, now),
        }
    }

    fn first_act(
        &mut self,
        order: &PowerOrder,
        on: bool,
        ram: bool,
        now: UnixMillis,
        output: &mut Output,
    ) -> Next {
        match order.verb {
            PowerVerb::On if on => Err(Ok(Some(true))),
            PowerVerb::Off | PowerVerb::Soft if !on => Err(Ok(Some(false))),
            // A RAM profile needs the network at its next start, whatever its boot order says.
            PowerVerb::On | PowerVerb::Cycle if ram => {
                let efi = self.spec.efi;
                Ok((Stage::Arm, Act::Arm { target: BootTarget::Network, efi }, now))
            }
            PowerVerb::On | PowerVerb::Off | PowerVerb::Soft | PowerVerb::Cycle => {
                self.command(order, now, output)
            }
        }
    }

    fn command(&mut self, order: &PowerOrder, now: UnixMillis, output: &mut Output) -> Next {
        let on = self.power.is_some_and(|(on, _)| on);
        let act = match order.verb {
            PowerVerb::On => Act::PowerOn,
            // Many BMCs refuse to cycle a machine that is off.
            PowerVerb::Cycle if !on => Act::PowerOn,
            PowerVerb::Soft => Act::SoftOff,
            PowerVerb::Off => self.permitted(order, Verb::PowerOff, now, output),
            PowerVerb::Cycle => self.permitted(order, Verb::PowerCycle, now, output),
        };
        if matches!(order.verb, PowerVerb::On | PowerVerb::Cycle) {
            self.ordered = Some(now);
        }
        Ok((Stage::Sent, act, now))
    }

    fn permitted(
        &self,
        order: &PowerOrder,
        verb: Verb,
        now: UnixMillis,
        output: &mut Output,
    ) -> Act {
        let node = self.spec.name.clone();
        let (by, deadline) = (order.by.clone(), order.until);
        let id = format!("order-{}-{}", now.0, order.token.0);
        let order =
            Order { node: node.clone(), verb, disks: vec![], plan_hash: None, by, deadline };
        let warrant = Warrant { id, node, expires: deadline };
        let (protection, recorded) = (self.protection(), self.recorded);
        let permission = Permission { order, warrant, protection, recorded };
        output.records.push(Record::Audit(permission.audit(now)));
        Act::Permitted(Box::new(permission))
    }
}

fn effect(node: &NodeName, token: Token, act: Act, not_before: UnixMillis) -> Effect {
    Effect { node: node.clone(), cause: Cause::Order(token), act, not_before }
}
