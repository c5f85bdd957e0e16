//! Power in a switch: off first, then the boot device, then on again.

use std::time::Duration;

use model::{
    UnixMillis,
    permit::{Order, Verb, Warrant},
};

use super::{Around, Due, POLL, Step, again, boot::verify, bound, go, hold, read};
use crate::{Act, BootTarget, Phase, Progress, Switch, Trouble, TroubleKind, effect::Permission};

/// A boot device that was set longer ago is set again before power-on: BMCs that do not take "do not expire" drop it
/// after 60 s, and one that restarted has lost it.
const ARMED_FOR: Duration = Duration::from_secs(45);
/// How long a sent power-on may take before a reading of "off" sends it again.
const ON_GRACE: Duration = Duration::from_secs(20);

/// Power reads on in [`Phase::PoweringOff`]: soft first, then by permit, each at most once per bound.
pub(super) fn power_off(switch: &mut Switch, around: &Around) -> Step {
    let (now, bounds) = (around.now, switch.to.bounds);
    let Some(soft) = switch.soft_sent else {
        switch.soft_sent = Some(now);
        switch.until = now.plus(bound(switch, Phase::PoweringOff));
        return Step { due: vec![Due { act: Act::SoftOff, not_before: now }], moved: true };
    };
    if now.since(soft) < bounds.soft_off {
        return again(read(now.plus(POLL)));
    }
    match switch.hard_sent {
        None => {
            switch.hard_sent = Some(now);
            let waited = bounds.soft_off.as_secs();
            switch.reason = format!("did not shut down within {waited} s; power is cut");
            Step { due: vec![cut(switch, around)], moved: true }
        }
        Some(cut_at) if now.since(cut_at) < bounds.hard_off => again(read(now.plus(POLL))),
        Some(_) => {
            let waited = bounds.hard_off.as_secs();
            let reason = format!("{}; power still reads on {waited} s later", switch.reason);
            hold(switch, reason, "look at the machine: its BMC does not switch it off", now)
        }
    }
}

fn cut(switch: &Switch, around: &Around) -> Due {
    let deadline = around.now.plus(switch.to.bounds.hard_off);
    let order = Order {
        node: switch.node.clone(),
        verb: Verb::PowerOff,
        disks: vec![],
        plan_hash: switch.plan_hash.clone(),
        by: switch.by.clone(),
        deadline,
    };
    let warrant =
        Warrant { id: switch.id.0.clone(), node: switch.node.clone(), expires: switch.until };
    let protection = around.protection.clone();
    let permission = Permission { order, warrant, protection, recorded: around.recorded };
    Due { act: Act::Permitted(Box::new(permission)), not_before: around.now }
}

pub(super) fn armed_next(switch: &mut Switch, now: UnixMillis, not_before: UnixMillis) -> Step {
    go(switch, Phase::Arming, "sets the boot device and reads it back", now);
    switch.until = switch.until.plus(not_before.since(now));
    let due = arm(switch, not_before);
    Step { due: vec![due], moved: true }
}

pub(super) fn arm(switch: &Switch, not_before: UnixMillis) -> Due {
    let target = if switch.to.boots_network() { BootTarget::Network } else { BootTarget::Disk };
    Due { act: Act::Arm { target, efi: switch.efi }, not_before }
}

pub(super) fn power_on_next(switch: &mut Switch, lost: &[String], now: UnixMillis) -> Step {
    let reason = if lost.is_empty() {
        "boot device reads back as set; switches on".to_owned()
    } else {
        format!("switches on, though the BMC lost part of the boot device: {}", lost.join(", "))
    };
    go(switch, Phase::PoweringOn, &reason, now);
    Step { due: vec![read(now)], moved: true }
}

pub(super) fn power_on(switch: &mut Switch, now: UnixMillis) -> Step {
    if switch.on_sent.is_some_and(|sent| now.since(sent) < ON_GRACE) {
        return again(read(now.plus(POLL)));
    }
    if now.since(switch.since) >= ARMED_FOR {
        return again(arm(switch, now));
    }
    send_on(switch, now)
}

pub(super) fn send_on(switch: &mut Switch, now: UnixMillis) -> Step {
    switch.on_sent = Some(now);
    Step { due: vec![Due { act: Act::PowerOn, not_before: now }], moved: false }
}

pub(super) fn powered(switch: &mut Switch, now: UnixMillis) -> Step {
    if !switch.to.boots_network() {
        go(switch, Phase::Verifying, "power reads on; boots its own disk", now);
        return Step { due: vec![read(now.plus(POLL))], moved: true };
    }
    // The node may have been faster than our reading: what was seen meanwhile counts.
    let (phase, reason) = match switch.progress {
        Progress { payload: Some(_), .. } | Progress { kernel: Some(_), .. } => {
            (Phase::Installing, "its kernel was fetched whole; waits for the payload to report")
        }
        Progress { dhcp: Some(_), .. } => (Phase::Booting, "asked DHCP; waits for its kernel"),
        Progress { .. } => (Phase::Booting, "power reads on; waits for its first DHCP request"),
    };
    go(switch, phase, reason, now);
    let mut step = Step { due: vec![], moved: true };
    if phase == Phase::Installing && !switch.to.calls_back {
        step = verify(switch, now);
    }
    step
}

/// A power command was refused or got no answer: read before anything else, unless it cannot pass.
pub(super) fn refused(switch: &mut Switch, trouble: &Trouble, now: UnixMillis) -> Step {
    let soft = switch.phase == Phase::PoweringOff && switch.hard_sent.is_none();
    if trouble.may_pass() || soft && trouble.kind == TroubleKind::Refused {
        // Kept as the reason: where power stays as it is, this is why.
        switch.reason.clone_from(&trouble.text);
        return again(read(now.plus(POLL)));
    }
    hold(switch, trouble.text.clone(), trouble.remedy(), now)
}
