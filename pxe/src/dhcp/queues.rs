//! Which of the datagrams that wait is answered next.
//!
//! Under overload a server that answers in the order of arrival answers only clients that gave up: so REQUEST,
//! RELEASE, DECLINE and INFORM go first, since the work of their exchange is half done, and then the newest
//! DISCOVER, whose client waits still. One DISCOVER is answered after some of the others, so that whoever floods us with
//! REQUESTs does not shut out machines that begin. What is too old is given up, and counted.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// DISCOVERs that wait at most: a lab that powers on at once sends thousands within a few milliseconds.
const DISCOVERS: usize = 4096;
/// Other messages that wait at most.
const REQUESTS: usize = 4096;
/// Other messages answered before a DISCOVER has its turn.
const IN_A_ROW: u32 = 15;
/// Clients ask again after a second (iPXE) or later, and listen to no answer from before.
const PATIENCE: Duration = Duration::from_secs(1);

/// Datagrams that wait.
#[derive(Debug)]
pub(super) struct Queues<T> {
    requests: VecDeque<T>,
    /// Oldest first, with the moment each was heard.
    discovers: VecDeque<(Instant, T)>,
    /// Messages answered since the last DISCOVER had its turn.
    in_a_row: u32,
    dropped: Dropped,
}

/// What was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Dropped {
    pub(super) discovers: u64,
    pub(super) requests: u64,
}

impl<T> Default for Queues<T> {
    fn default() -> Self {
        let (requests, discovers) = (VecDeque::new(), VecDeque::new());
        Self { requests, discovers, in_a_row: 0, dropped: Dropped::default() }
    }
}

impl<T> Queues<T> {
    /// Takes in a DISCOVER. Full: the oldest one is given up.
    pub(super) fn push_discover(&mut self, heard: Instant, discover: T) {
        if self.discovers.len() >= DISCOVERS {
            self.discovers.pop_front();
            self.dropped.discovers += 1;
        }
        self.discovers.push_back((heard, discover));
    }

    /// Takes in any other message. Full: this one is given up.
    pub(super) fn push_request(&mut self, request: T) {
        if self.requests.len() >= REQUESTS {
            self.dropped.requests += 1;
        } else {
            self.requests.push_back(request);
        }
    }

    /// The one to answer next.
    pub(super) fn pop(&mut self, now: Instant) -> Option<T> {
        if self.in_a_row >= IN_A_ROW {
            self.in_a_row = 0;
            if let Some(discover) = self.pop_discover(now) {
                return Some(discover);
            }
        }
        match self.requests.pop_front() {
            Some(request) => {
                self.in_a_row += 1;
                Some(request)
            }
            None => self.pop_discover(now),
        }
    }

    /// The newest DISCOVER, unless its client has given up.
    fn pop_discover(&mut self, now: Instant) -> Option<T> {
        let (heard, discover) = self.discovers.pop_back()?;
        if now.saturating_duration_since(heard) < PATIENCE {
            return Some(discover);
        }
        // All the others are older still.
        self.dropped.discovers += 1 + u64::try_from(self.discovers.len()).unwrap_or(u64::MAX);
        self.discovers.clear();
        None
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.discovers.is_empty()
    }

    /// What was given up since the last call.
    pub(super) fn take_dropped(&mut self) -> Dropped {
        std::mem::take(&mut self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_requests_does_not_shut_out_who_begins() {
        let (mut queues, now) = (Queues::default(), Instant::now());
        (0..100).for_each(|_| queues.push_request("request"));
        (0..3).for_each(|_| queues.push_discover(now, "discover"));
        let order: Vec<_> = std::iter::from_fn(|| queues.pop(now)).collect();
        let places = order.iter().enumerate().filter(|(_, what)| **what == "discover");
        assert_eq!(places.map(|(place, _)| place).collect::<Vec<_>>(), [15, 31, 47]);
        assert_eq!(order.len(), 103);
    }

    #[test]
    fn requests_go_first_in_their_order_then_the_newest_discover() {
        let (mut queues, now) = (Queues::default(), Instant::now());
        queues.push_discover(now, "discover 1");
        queues.push_request("request 1");
        queues.push_discover(now, "discover 2");
        queues.push_request("request 2");
        let order: Vec<_> = std::iter::from_fn(|| queues.pop(now)).collect();
        assert_eq!(order, ["request 1", "request 2", "discover 2", "discover 1"]);
        assert!(queues.is_empty());
        assert_eq!(queues.take_dropped(), Dropped::default());
    }

    #[test]
    fn a_burst_of_three_thousand_waits_and_the_oldest_beyond_four_thousand_are_given_up() {
        let (mut queues, now) = (Queues::default(), Instant::now());
        (0..DISCOVERS + 10).for_each(|n| queues.push_discover(now, n));
        let kept: Vec<_> = std::iter::from_fn(|| queues.pop(now)).collect();
        assert_eq!((kept.len(), kept[0], kept[DISCOVERS - 1]), (DISCOVERS, DISCOVERS + 9, 10));
        assert_eq!(queues.take_dropped(), Dropped { discovers: 10, requests: 0 });
    }

    #[test]
    fn a_discover_older_than_its_clients_patience_is_given_up_with_all_before_it() {
        let (mut queues, begin) = (Queues::default(), Instant::now());
        queues.push_discover(begin, 1);
        queues.push_discover(begin + Duration::from_millis(500), 2);
        queues.push_discover(begin + Duration::from_millis(900), 3);
        assert_eq!(queues.pop(begin + Duration::from_millis(1600)), Some(3));
        assert_eq!(queues.pop(begin + Duration::from_millis(1600)), None);
        assert_eq!(queues.take_dropped(), Dropped { discovers: 2, requests: 0 });
        assert!(queues.is_empty());
    }

    #[test]
    fn a_request_is_never_too_old_and_lost_only_when_its_queue_is_full() {
        let (mut queues, now) = (Queues::default(), Instant::now());
        (0..=REQUESTS).for_each(|n| queues.push_request(n));
        assert_eq!(queues.pop(now + Duration::from_secs(9)), Some(0));
        assert_eq!(queues.take_dropped(), Dropped { discovers: 0, requests: 1 });
    }
}
