//! Answers held back for clients that lose one which comes at once. A thread of its own sends them, so that nobody
//! else waits.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Answers held back at most.
const HELD: usize = 4096;
/// Longest delay (see `BootTraits::answer_delay_ms`).
const LONGEST: Duration = Duration::from_secs(5);

/// What is held back until its moment.
#[derive(Debug)]
pub(super) struct Delays<T> {
    held: Mutex<BinaryHeap<Reverse<Held<T>>>>,
    changed: Condvar,
}

/// One of them, ordered by its moment.
#[derive(Debug)]
struct Held<T> {
    due: Instant,
    what: T,
}

impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}
impl<T> Eq for Held<T> {}
impl<T> PartialOrd for Held<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Held<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

impl<T> Default for Delays<T> {
    fn default() -> Self {
        Self { held: Mutex::default(), changed: Condvar::new() }
    }
}

impl<T> Delays<T> {
    /// Holds one back. Full: it comes back, to be sent at once.
    pub(super) fn hold(&self, now: Instant, delay: Duration, what: T) -> Option<T> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= HELD {
            return Some(what);
        }
        held.push(Reverse(Held { due: now + delay.min(LONGEST), what }));
        drop(held);
        self.changed.notify_one();
        None
    }

    /// Those whose moment has come; waits for the first one, at most `limit`.
    pub(super) fn due(&self, limit: Duration) -> Vec<T> {
        let end = Instant::now() + limit;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            let next = held.peek().map(|Reverse(first)| first.due);
            if now >= end || next.is_some_and(|due| due <= now) {
                break;
            }
            let until = next.map_or(end, |due| due.min(end)) - now;
            held = self.changed.wait_timeout(held, until).unwrap_or_else(PoisonError::into_inner).0;
        }
        let now = Instant::now();
        let mut due = vec![];
        while held.peek().is_some_and(|Reverse(first)| first.due <= now) {
            due.extend(held.pop().map(|Reverse(first)| first.what));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_back_comes_out_in_the_order_of_its_moments() {
        let (delays, now) = (Delays::default(), Instant::now());
        for (delay, what) in [(40, "last"), (1, "first"), (20, "second")] {
            assert_eq!(delays.hold(now, Duration::from_millis(delay), what), None);
        }
        let mut order = vec![];
        while order.len() < 3 {
            let due = delays.due(Duration::from_secs(10));
            assert!(!due.is_empty());
            order.extend(due);
        }
        assert_eq!(order, ["first", "second", "last"]);
        assert!(delays.due(Duration::ZERO).is_empty());
    }

    #[test]
    fn nothing_comes_out_before_its_moment_and_too_many_go_out_at_once() {
        let (delays, now) = (Delays::default(), Instant::now());
        for n in 0..HELD {
            assert_eq!(delays.hold(now, LONGEST, n), None);
        }
        assert_eq!(delays.hold(now, LONGEST, HELD), Some(HELD));
        assert!(delays.due(Duration::ZERO).is_empty());
    }
}
