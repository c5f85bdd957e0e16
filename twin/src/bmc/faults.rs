//! Faults of a twin BMC, and what it counted: the handle tests hold while the server runs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bmc_proto::ipmi::{Suite, chassis::ChassisControl, rakp::RakpStatus};

/// How a listed suite is turned down all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuiteRefusal {
    /// With this status in the Open Session Response.
    Status(RakpStatus),
    /// By answering with this suite's algorithms instead of those proposed.
    AnswersWith(Suite),
}

#[derive(Debug, Default)]
struct Faults {
    silent: bool,
    drop_requests: u32,
    drop_answers: u32,
    drop_answers_of: BTreeMap<ChassisControl, u32>,
    /// The request at hand was carried out; its answer gets lost.
    lose_this: bool,
    late: Duration,
    twice: bool,
    busy: u32,
    forget_sessions: bool,
    forget_boot_override: bool,
    lie_about_power: Option<bool>,
    short_device_id: bool,
    refused_suites: BTreeMap<u8, SuiteRefusal>,
    datagrams: u64,
    opened: u32,
    controls: BTreeMap<ChassisControl, u32>,
}

/// Handle on the faults and counts of one BMC. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct IpmiControl(Arc<Mutex<Faults>>);

/// What the faults do to one datagram.
pub(super) struct Treatment {
    pub(super) lost: bool,
    pub(super) forget_sessions: bool,
    pub(super) late: Duration,
    pub(super) twice: bool,
}

/// Takes one of a countdown.
fn take(left: &mut u32) -> bool {
    let some = *left > 0;
    *left = left.saturating_sub(1);
    some
}

impl IpmiControl {
    /// Loses the next `count` datagrams that arrive.
    pub fn drop_requests(&self, count: u32) {
        self.faults().drop_requests = count;
    }

    /// Carries out the next `count` requests but loses their answers.
    pub fn drop_answers(&self, count: u32) {
        self.faults().drop_answers = count;
    }

    /// Carries out the next `count` chassis controls of this verb but loses their answers.
    pub fn drop_answers_of(&self, verb: ChassisControl, count: u32) {
        self.faults().drop_answers_of.insert(verb, count);
    }

    /// Sends every answer `late`; zero ends it.
    pub fn answer_late(&self, late: Duration) {
        self.faults().late = late;
    }

    /// Sends every answer twice.
    pub fn answer_twice(&self, on: bool) {
        self.faults().twice = on;
    }

    /// Answers the next `count` commands in sessions with "node busy", undone.
    pub fn busy(&self, count: u32) {
        self.faults().busy = count;
    }

    /// Answers nothing at all while on.
    pub fn silent(&self, on: bool) {
        self.faults().silent = on;
    }

    /// Forgets every session, as after a restart of the BMC.
    pub fn forget_sessions(&self) {
        self.faults().forget_sessions = true;
    }

    /// Says "done" to boot flags and does not keep them, while on.
    pub fn forget_boot_override(&self, on: bool) {
        self.faults().forget_boot_override = on;
    }

    /// Says this about the power, whatever is true; `None` ends it.
    pub fn lie_about_power(&self, says: Option<bool>) {
        self.faults().lie_about_power = says;
    }

    /// Leaves the auxiliary revision out of Get Device ID.
    pub fn short_device_id(&self, on: bool) {
        self.faults().short_device_id = on;
    }

    /// Goes on listing a suite but turns it down.
    pub fn refuse_suite(&self, suite: Suite, how: SuiteRefusal) {
        self.faults().refused_suites.insert(suite.id(), how);
    }

    /// Datagrams that arrived, lost ones included.
    #[must_use]
    pub fn datagrams(&self) -> u64 {
        self.faults().datagrams
    }

    /// Open Session Requests that were answered, refusals included.
    #[must_use]
    pub fn open_requests(&self) -> u32 {
        self.faults().opened
    }

    pub(super) fn counted(&self, verb: ChassisControl) -> u32 {
        self.faults().controls.get(&verb).copied().unwrap_or(0)
    }

    pub(super) fn count(&self, verb: ChassisControl) {
        let mut faults = self.faults();
        *faults.controls.entry(verb).or_default() += 1;
        faults.lose_this = faults.drop_answers_of.get_mut(&verb).is_some_and(take);
    }

    pub(super) fn on_datagram(&self) -> Treatment {
        let mut faults = self.faults();
        faults.datagrams += 1;
        let lost = faults.silent || take(&mut faults.drop_requests);
        let forget_sessions = !lost && std::mem::take(&mut faults.forget_sessions);
        Treatment { lost, forget_sessions, late: faults.late, twice: faults.twice }
    }

    pub(super) fn loses_answer(&self) -> bool {
        let mut faults = self.faults();
        std::mem::take(&mut faults.lose_this) || take(&mut faults.drop_answers)
    }

    pub(super) fn is_busy(&self) -> bool {
        take(&mut self.faults().busy)
    }

    pub(super) fn refusal(&self, suite: Suite) -> Option<SuiteRefusal> {
        let mut faults = self.faults();
        faults.opened += 1;
        faults.refused_suites.get(&suite.id()).copied()
    }

    pub(super) fn power_said(&self, really: bool) -> bool {
        self.faults().lie_about_power.unwrap_or(really)
    }

    pub(super) fn forgets_boot_override(&self) -> bool {
        self.faults().forget_boot_override
    }

    pub(super) fn device_id_is_short(&self) -> bool {
        self.faults().short_device_id
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        // Nothing panics while it is held; if a test does, its faults still stand.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
