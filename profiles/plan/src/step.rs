//! One step of a switch: what was seen in, next phase and effects out.
//!
//! Power is never acted on from memory: an action follows a reading that shows it is needed, and the next
//! reading decides whether it worked. So a crash between an action and its record costs one more reading and
//! never a second action.

mod boot;
mod power;

use std::time::Duration;

use model::{UnixMillis, Uuid, permit::Protection};

use crate::{Act, Observed, Phase, Progress, Switch, Trouble};

use boot::{Heard, Milestone, payload, seen};
use power::{arm, armed_next, power_off, power_on, power_on_next, powered, refused, send_on};

/// Time between two readings while power is to change.
const POLL: Duration = Duration::from_millis(500);
/// Time between two tries at a silent BMC.
const RETRY: Duration = Duration::from_secs(3);
/// Least time a phase gets after a restart of volund.
const GRACE: Duration = Duration::from_secs(60);

/// What a step needs to know beside the switch.
#[derive(Debug, Clone)]
pub struct Around {
    /// The moment.
    pub now: UnixMillis,
    /// The node's protection.
    pub protection: Protection,
    /// System GUID on record for its BMC.
    pub recorded: Option<Uuid>,
}

/// An effect of a step, before it is addressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// What.
    pub act: Act,
    /// Not before.
    pub not_before: UnixMillis,
}

/// What a step gives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// Effects, in order.
    pub due: Vec<Due>,
    /// Whether the switch changed in a way worth a row in its history.
    pub moved: bool,
}

/// What can happen to a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It begins, or volund was restarted: (re-)enter the phase.
    Entered,
    /// An effect was carried out.
    Observed(Observed),
    /// The node asked DHCP from firmware.
    DhcpSeen,
    /// A boot script went out to it.
    ScriptGiven,
    /// Its kernel was fetched whole.
    KernelWhole,
    /// The payload spoke, but has not finished.
    PayloadSpoke,
    /// The payload reported or called back.
    PayloadDone,
    /// The engine holds it, for a reason found outside of this step.
    Hold {
        /// Why.
        reason: String,
        /// What to do.
        remedy: String,
    },
    /// Time passed.
    Tick,
}

/// One step. Pure; total over phase and event.
pub fn step(switch: &mut Switch, event: Event, around: &Around) -> Step {
    if !switch.phase.is_open() {
        return Step::default();
    }
    match event {
        Event::Entered => enter(switch, around.now),
        Event::Observed(observed) => observe(switch, observed, around),
        Event::Hold { reason, remedy } => hold(switch, reason, &remedy, around.now),
        Event::Tick if around.now >= switch.until => time_out(switch, around.now),
        Event::Tick => Step::default(),
        Event::DhcpSeen => seen(switch, Milestone::Dhcp, around.now),
        Event::ScriptGiven => seen(switch, Milestone::Script, around.now),
        Event::KernelWhole => seen(switch, Milestone::Kernel, around.now),
        Event::PayloadSpoke => payload(switch, Heard::Speaking, around.now),
        Event::PayloadDone => payload(switch, Heard::Done, around.now),
    }
}

fn enter(switch: &mut Switch, now: UnixMillis) -> Step {
    switch.until = switch.until.max(now.plus(GRACE.min(bound(switch, switch.phase))));
    // What was to take power away may have died with the process, and a reading comes before either is sent. Asking
    // a running machine twice harms nobody. A cut that was sent may take its bound to read off; only then it is due
    // again.
    if switch.phase == Phase::PoweringOff {
        let bounds = switch.to.bounds;
        switch.soft_sent = switch.hard_sent.take().map(|cut| {
            let due = cut.plus(bounds.hard_off);
            UnixMillis(due.0.saturating_sub(UnixMillis(0).plus(bounds.soft_off).0))
        });
    }
    let due = match switch.phase {
        Phase::Guarding | Phase::PoweringOff | Phase::PoweringOn | Phase::Verifying => {
            vec![read(now)]
        }
        // A machine that was running keeps its rest; one that was off needs none.
        Phase::Arming if switch.soft_sent.is_some() => {
            vec![arm(switch, now.max(switch.since.plus(switch.to.bounds.off_settle)))]
        }
        Phase::Arming => vec![arm(switch, now)],
        Phase::Booting | Phase::Installing | Phase::Done | Phase::Held | Phase::Failed => vec![],
    };
    Step { due, moved: false }
}

fn observe(switch: &mut Switch, observed: Observed, around: &Around) -> Step {
    let now = around.now;
    match (switch.phase, observed) {
        (_, Observed::Power(Err(trouble)) | Observed::Armed(Err(trouble))) => {
            stumble(switch, &trouble, now)
        }
        (_, Observed::Accepted(Err(trouble))) => refused(switch, &trouble, now),
        (_, Observed::Accepted(Ok(()))) => again(read(now.plus(POLL))),
        (Phase::Guarding, Observed::Power(Ok(true))) => {
            go(switch, Phase::PoweringOff, "asks the running system to shut down", now);
            power_off(switch, around)
        }
        (Phase::Guarding, Observed::Power(Ok(false))) => armed_next(switch, now, now),
        (Phase::PoweringOff, Observed::Power(Ok(false))) => {
            let settled = now.plus(switch.to.bounds.off_settle);
            armed_next(switch, now, settled)
        }
        (Phase::PoweringOff, Observed::Power(Ok(true))) => power_off(switch, around),
        (Phase::Arming, Observed::Armed(Ok(lost))) => power_on_next(switch, &lost, now),
        (Phase::PoweringOn, Observed::Power(Ok(false))) => power_on(switch, now),
        (Phase::PoweringOn, Observed::Power(Ok(true))) => powered(switch, now),
        (Phase::PoweringOn, Observed::Armed(Ok(_))) => send_on(switch, now),
        (Phase::Verifying, Observed::Power(Ok(true))) => done(switch, now),
        (Phase::Verifying, Observed::Power(Ok(false))) => {
            let reason = "power reads off although its payload had reported".to_owned();
            hold(switch, reason, "look at its console, then switch again", now)
        }
        (
            Phase::Arming
            | Phase::Booting
            | Phase::Installing
            | Phase::Done
            | Phase::Held
            | Phase::Failed,
            Observed::Power(Ok(_)),
        )
        | (
            Phase::Guarding
            | Phase::PoweringOff
            | Phase::Booting
            | Phase::Installing
            | Phase::Verifying
            | Phase::Done
            | Phase::Held
            | Phase::Failed,
            Observed::Armed(Ok(_)),
        ) => Step::default(),
    }
}

fn done(switch: &mut Switch, now: UnixMillis) -> Step {
    let seen = match (switch.to.boots_network(), switch.to.calls_back) {
        (true, true) => "its payload reported and power reads on",
        (true, false) => "its kernel was fetched whole and power reads on",
        (false, _) => "power reads on; what its disk boots cannot be seen from here",
    };
    go(switch, Phase::Done, seen, now);
    Step { due: vec![], moved: true }
}

/// A reading or arming went wrong: again while it may pass and the phase lasts, else hold.
fn stumble(switch: &mut Switch, trouble: &Trouble, now: UnixMillis) -> Step {
    if !trouble.may_pass() || now >= switch.until {
        return hold(switch, trouble.text.clone(), trouble.remedy(), now);
    }
    // Kept as the reason: should the phase run out of time, this is why.
    switch.reason = format!("{}; trying again", trouble.text);
    let next = now.plus(RETRY);
    match switch.phase {
        Phase::Arming => again(arm(switch, next)),
        Phase::Guarding | Phase::PoweringOff | Phase::PoweringOn | Phase::Verifying => {
            again(read(next))
        }
        Phase::Booting | Phase::Installing | Phase::Done | Phase::Held | Phase::Failed => {
            Step::default()
        }
    }
}

fn time_out(switch: &mut Switch, now: UnixMillis) -> Step {
    let waited = now.since(switch.since).as_secs();
    let (reason, remedy) = match (switch.phase, switch.progress) {
        (Phase::Booting, Progress { dhcp: None, .. }) => (
            format!("no DHCP within {waited} s of power-on: POST hang, boot order or uplink"),
            "look at its console; check its boot order and the port of its boot NIC",
        ),
        (Phase::Booting, Progress { script: None, .. }) => (
            format!("asked DHCP but never asked for its boot script within {waited} s"),
            "its timeline shows the last loader it fetched; check the loader for this firmware",
        ),
        (Phase::Booting, Progress { .. }) => (
            format!("has its boot script but did not fetch its kernel whole within {waited} s"),
            "its timeline shows what was cut short; check the network, then switch again",
        ),
        (Phase::Installing, Progress { payload: None, .. }) => (
            format!("started its kernel {waited} s ago and has not been heard of since"),
            "look at its console: a missing driver or a wrong kernel argument is likely",
        ),
        (Phase::Installing, Progress { .. }) => (
            format!("its payload spoke but did not finish within {waited} s"),
            "look at its console, then switch again",
        ),
        (
            Phase::Guarding
            | Phase::PoweringOff
            | Phase::Arming
            | Phase::PoweringOn
            | Phase::Verifying,
            _,
        ) => (
            format!("{}; no end of it within {waited} s", switch.reason),
            "check the BMC; then switch again",
        ),
        (Phase::Done | Phase::Held | Phase::Failed, _) => return Step::default(),
    };
    hold(switch, reason, remedy, now)
}

fn hold(switch: &mut Switch, reason: String, remedy: &str, now: UnixMillis) -> Step {
    let at = switch.phase;
    go(switch, Phase::Held, &format!("{reason} (while {at})"), now);
    switch.remedy = Some(remedy.to_owned());
    Step { due: vec![], moved: true }
}

fn go(switch: &mut Switch, phase: Phase, reason: &str, now: UnixMillis) {
    switch.phase = phase;
    switch.since = now;
    switch.until = now.plus(bound(switch, phase));
    reason.clone_into(&mut switch.reason);
}

fn bound(switch: &Switch, phase: Phase) -> Duration {
    let bounds = &switch.to.bounds;
    match phase {
        Phase::Guarding | Phase::Arming | Phase::PoweringOn | Phase::Verifying => bounds.bmc,
        Phase::PoweringOff => bounds.soft_off + bounds.hard_off + bounds.bmc,
        Phase::Booting if switch.progress.dhcp.is_some() => bounds.boot,
        Phase::Booting => bounds.post,
        Phase::Installing => bounds.ready,
        Phase::Done | Phase::Held | Phase::Failed => Duration::ZERO,
    }
}

fn read(not_before: UnixMillis) -> Due {
    Due { act: Act::ReadPower, not_before }
}

fn again(due: Due) -> Step {
    Step { due: vec![due], moved: false }
}
