//! ACKs that wait until their lease is on the disk.
//!
//! Each is let go once: by the log thread when the disk has its record, or by whoever finds it overdue. Lines and
//! ACKs are kept in one order, so that one number says how far the disk has come.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use model::Lease;
use pxe_proto::lease_record;

/// How long an ACK waits for its record. With the way to the socket it is out within two milliseconds.
pub(super) const PATIENCE: Duration = Duration::from_micros(1_500);
/// Bytes of lines that wait for a slow disk. Beyond, the file is written anew from memory when the disk is back.
const WAITING_BYTES: usize = 8 * 1024 * 1024;

/// Records on their way to the disk, and the ACKs that wait for them.
#[derive(Debug)]
pub(super) struct Waiting<A> {
    inner: Mutex<Inner<A>>,
    filled: Condvar,
}

#[derive(Debug)]
struct Inner<A> {
    lines: String,
    /// Records taken in so far.
    taken_in: u64,
    acks: VecDeque<Ack<A>>,
    /// The file lacks records: nothing waits for it until it was written anew.
    is_behind: bool,
}

#[derive(Debug)]
struct Ack<A> {
    /// The record it waits for, counted from 1.
    record: u64,
    since: Instant,
    ack: A,
}

/// Lines for one write.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) lines: String,
    /// The last record in it.
    pub(super) last: u64,
}

impl<A> Default for Waiting<A> {
    fn default() -> Self {
        let inner =
            Inner { lines: String::new(), taken_in: 0, acks: VecDeque::new(), is_behind: false };
        Self { inner: Mutex::new(inner), filled: Condvar::new() }
    }
}

impl<A> Waiting<A> {
    /// Takes in a lease with the ACK that waits for it. The ACK comes back when there is nothing to wait for: the
    /// file lacks records already, or too many lines wait.
    pub(super) fn submit(&self, now: Instant, lease: &Lease, ack: Option<A>) -> Option<A> {
        let mut inner = self.lock();
        if inner.lines.len() >= WAITING_BYTES {
            inner.is_behind = true;
            return ack;
        }
        let was_empty = inner.lines.is_empty();
        inner.lines.push_str(&lease_record::encode(lease));
        inner.taken_in += 1;
        let record = inner.taken_in;
        let back = match ack {
            Some(ack) if !inner.is_behind => {
                inner.acks.push_back(Ack { record, since: now, ack });
                None
            }
            ack => ack,
        };
        drop(inner);
        if was_empty {
            self.filled.notify_one();
        }
        back
    }

    /// What waits for the disk; waits for it itself, at most `limit`.
    pub(super) fn take(&self, limit: Duration) -> Option<Group> {
        let is_empty = |inner: &mut Inner<A>| inner.lines.is_empty();
        let waited = self.filled.wait_timeout_while(self.lock(), limit, is_empty);
        let (mut inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let lines = std::mem::take(&mut inner.lines);
        (!lines.is_empty()).then_some(Group { lines, last: inner.taken_in })
    }

    /// The disk has every record up to this one: the ACKs that may go.
    pub(super) fn synced(&self, last: u64) -> Vec<A> {
        let mut inner = self.lock();
        let ready = inner.acks.iter().take_while(|ack| ack.record <= last).count();
        inner.acks.drain(..ready).map(|ack| ack.ack).collect()
    }

    /// The disk does not take them: every ACK goes, and none waits until [`Waiting::begin_anew`].
    pub(super) fn failed(&self) -> Vec<A> {
        let mut inner = self.lock();
        inner.is_behind = true;
        inner.acks.drain(..).map(|ack| ack.ack).collect()
    }

    /// The file is about to be written anew from memory, where all that waits stands already. Called before memory is
    /// read: what comes from then on is appended, and too much of it leaves the file behind again.
    pub(super) fn begin_anew(&self) {
        let mut inner = self.lock();
        inner.lines.clear();
        inner.is_behind = false;
    }

    /// Whether the file lacks records.
    pub(super) fn is_behind(&self) -> bool {
        self.lock().is_behind
    }

    /// ACKs that waited long enough.
    pub(super) fn overdue(&self, now: Instant) -> Vec<A> {
        let mut inner = self.lock();
        let waited = |ack: &&Ack<A>| now.saturating_duration_since(ack.since) >= PATIENCE;
        let overdue = inner.acks.iter().take_while(waited).count();
        inner.acks.drain(..overdue).map(|ack| ack.ack).collect()
    }

    /// When the next ACK is overdue, if one waits.
    pub(super) fn next_overdue(&self) -> Option<Instant> {
        self.lock().acks.front().map(|ack| ack.since + PATIENCE)
    }

    fn lock(&self) -> MutexGuard<'_, Inner<A>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use model::{MacAddr, UnixMillis, lease::LeaseState};

    use super::*;

    fn lease() -> Lease {
        Lease {
            network: "boot".to_owned(),
            address: [192, 0, 2, 1].into(),
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
            state: LeaseState::Bound,
            at: UnixMillis(1),
            until: UnixMillis(2),
            host_name: String::new(),
            location: None,
        }
    }

    #[test]
    fn an_ack_goes_when_the_disk_has_its_record_and_not_before() {
        let (waiting, now) = (Waiting::default(), Instant::now());
        assert_eq!(waiting.submit(now, &lease(), Some("a")), None);
        assert_eq!(waiting.submit(now, &lease(), None), None);
        assert_eq!(waiting.submit(now, &lease(), Some("b")), None);
        let group = waiting.take(Duration::ZERO).unwrap();
        assert_eq!((group.lines.lines().count(), group.last), (3, 3));
        assert_eq!(waiting.submit(now, &lease(), Some("c")), None, "came while the disk worked");
        assert_eq!(waiting.synced(group.last), ["a", "b"]);
        assert_eq!(waiting.synced(group.last), [] as [&str; 0], "each one once");
        assert_eq!(waiting.take(Duration::ZERO).unwrap().last, 4);
        assert_eq!(waiting.take(Duration::ZERO), None);
        assert_eq!(waiting.synced(4), ["c"]);
    }

    #[test]
    fn a_slow_disk_holds_no_ack_longer_than_the_bound() {
        let (waiting, now) = (Waiting::default(), Instant::now());
        assert_eq!(waiting.next_overdue(), None);
        waiting.submit(now, &lease(), Some("a"));
        waiting.submit(now + Duration::from_millis(1), &lease(), Some("b"));
        assert_eq!(waiting.next_overdue(), Some(now + PATIENCE));
        assert_eq!(waiting.overdue(now + PATIENCE - Duration::from_nanos(1)), [] as [&str; 0]);
        assert_eq!(waiting.overdue(now + PATIENCE), ["a"]);
        let group = waiting.take(Duration::ZERO).unwrap();
        assert_eq!(waiting.synced(group.last), ["b"], "the overdue one is not sent again");
    }

    #[test]
    fn while_the_disk_takes_nothing_no_ack_waits_and_the_lines_are_bounded() {
        let (waiting, now) = (Waiting::default(), Instant::now());
        waiting.submit(now, &lease(), Some("a"));
        assert_eq!(waiting.failed(), ["a"]);
        assert!(waiting.is_behind());
        assert_eq!(waiting.submit(now, &lease(), Some("b")), Some("b"));
        waiting.begin_anew();
        assert_eq!(waiting.submit(now, &lease(), Some("c")), None);
        let line = lease_record::encode(&lease()).len();
        for _ in 0..WAITING_BYTES / line + 2 {
            waiting.submit(now, &lease(), None);
        }
        assert!(waiting.is_behind(), "the file has to be written anew");
        assert_eq!(waiting.submit(now, &lease(), Some("d")), Some("d"));
        assert!(waiting.take(Duration::ZERO).unwrap().lines.len() < WAITING_BYTES + 2 * line);
        waiting.begin_anew();
        for _ in 0..WAITING_BYTES / line + 2 {
            waiting.submit(now, &lease(), None);
        }
        assert!(waiting.is_behind(), "too much came while it was written: once more");
        assert!(waiting.overdue(now + PATIENCE) == ["c"], "it waited no longer than others");
    }
}
