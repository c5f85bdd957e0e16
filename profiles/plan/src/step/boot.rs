//! What shows how far a boot has come: DHCP, script, kernel, payload.

use model::UnixMillis;

use super::{Step, go, read};
use crate::{Phase, Switch};

/// What was seen of a node on its way to its kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Milestone {
    Dhcp,
    Script,
    Kernel,
}

/// How the payload was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    Speaking,
    Done,
}

pub(super) fn seen(switch: &mut Switch, milestone: Milestone, now: UnixMillis) -> Step {
    if !switch.phase.expects_boot() {
        return Step::default();
    }
    let progress = &mut switch.progress;
    let slot = match milestone {
        Milestone::Dhcp => &mut progress.dhcp,
        Milestone::Script => &mut progress.script,
        Milestone::Kernel => &mut progress.kernel,
    };
    let is_news = slot.is_none();
    slot.get_or_insert(now);
    if !is_news || switch.phase != Phase::Booting {
        return Step::default();
    }
    if switch.progress.kernel.is_some() {
        return kernel_whole(switch, now);
    }
    let reason = match milestone {
        Milestone::Dhcp => {
            switch.until = now.plus(switch.to.bounds.boot);
            "asked DHCP; waits for it to ask for its boot script"
        }
        Milestone::Script => "has its boot script; waits for its kernel",
        Milestone::Kernel => return Step::default(),
    };
    reason.clone_into(&mut switch.reason);
    Step { due: vec![], moved: true }
}

fn kernel_whole(switch: &mut Switch, now: UnixMillis) -> Step {
    go(
        switch,
        Phase::Installing,
        "its kernel was fetched whole; waits for the payload to report",
        now,
    );
    if switch.to.calls_back { Step { due: vec![], moved: true } } else { verify(switch, now) }
}

pub(super) fn payload(switch: &mut Switch, heard: Heard, now: UnixMillis) -> Step {
    if !switch.phase.expects_boot() {
        return Step::default();
    }
    switch.progress.kernel.get_or_insert(now);
    switch.progress.payload.get_or_insert(now);
    let moved = switch.phase == Phase::Booting;
    if moved {
        go(switch, Phase::Installing, "its payload spoke; waits for it to report", now);
    }
    match heard {
        Heard::Done if switch.phase != Phase::Verifying => verify(switch, now),
        Heard::Done | Heard::Speaking => Step { due: vec![], moved },
    }
}

pub(super) fn verify(switch: &mut Switch, now: UnixMillis) -> Step {
    let reason = if switch.to.calls_back {
        "its payload has reported; reads power back"
    } else {
        "its kernel was fetched whole; reads power back"
    };
    go(switch, Phase::Verifying, reason, now);
    Step { due: vec![read(now)], moved: true }
}
