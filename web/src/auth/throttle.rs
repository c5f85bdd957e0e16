//! Slows down whoever guesses passwords: five failures are free, then each one doubles the wait. Asks no clock.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

/// Failures without a wait.
const FREE: u32 = 5;

/// The longest wait.
const LONGEST: Duration = Duration::from_secs(60);

/// A quiet address is forgotten after this.
const MEMORY: Duration = Duration::from_secs(15 * 60);

/// At most this many addresses are remembered; the one that failed longest ago makes room.
const MAX_ADDRESSES: usize = 4_096;

struct Failures {
    count: u32,
    last: Instant,
    until: Instant,
}

#[derive(Default)]
pub(super) struct Throttle {
    by_address: HashMap<IpAddr, Failures>,
}

impl Throttle {
    /// How long `peer` has to wait before it may try again.
    pub(super) fn wait(&self, now: Instant, peer: IpAddr) -> Option<Duration> {
        let failures = self.by_address.get(&group(peer))?;
        let wait = failures.until.saturating_duration_since(now);
        (!wait.is_zero()).then_some(wait)
    }

    pub(super) fn note_failure(&mut self, now: Instant, peer: IpAddr) {
        self.by_address.retain(|_, failures| now.duration_since(failures.last) < MEMORY);
        self.make_room(peer);
        let failures = self.by_address.entry(group(peer)).or_insert(Failures {
            count: 0,
            last: now,
            until: now,
        });
        failures.count = failures.count.saturating_add(1);
        failures.last = now;
        failures.until = now + penalty(failures.count);
    }

    pub(super) fn note_success(&mut self, peer: IpAddr) {
        self.by_address.remove(&group(peer));
    }

    fn make_room(&mut self, peer: IpAddr) {
        if self.by_address.len() < MAX_ADDRESSES || self.by_address.contains_key(&group(peer)) {
            return;
        }
        let oldest = self.by_address.iter().min_by_key(|(_, failures)| failures.last);
        if let Some(oldest) = oldest.map(|(address, _)| *address) {
            self.by_address.remove(&oldest);
        }
    }
}

/// 1 s after the fifth failure, then 2 s, 4 s, up to a minute.
fn penalty(count: u32) -> Duration {
    match count.checked_sub(FREE) {
        None => Duration::ZERO,
        Some(beyond) => Duration::from_secs(1 << beyond.min(6)).min(LONGEST),
    }
}

/// A household has a /64: whoever guesses from one does so from all its addresses.
fn group(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn five_failures_are_free_then_the_wait_doubles_up_to_a_minute() {
        let mut throttle = Throttle::default();
        let t0 = Instant::now();
        let waits: Vec<u64> = (0..14)
            .map(|_| {
                throttle.note_failure(t0, PEER);
                throttle.wait(t0, PEER).map_or(0, |wait| wait.as_secs())
            })
            .collect();
        assert_eq!(waits, [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
        throttle.note_success(PEER);
        assert_eq!(throttle.wait(t0, PEER), None);
    }

    #[test]
    fn addresses_of_one_ipv6_network_share_their_failures() {
        let mut throttle = Throttle::default();
        let t0 = Instant::now();
        for last in 1..=5 {
            throttle.note_failure(t0, format!("2001:db8::{last}").parse().unwrap());
        }
        assert!(throttle.wait(t0, "2001:db8::ffff".parse().unwrap()).is_some());
        assert!(throttle.wait(t0, "2001:db8:0:1::1".parse().unwrap()).is_none());
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut throttle = Throttle::default();
        let t0 = Instant::now();
        for number in 0..5_000_u32 {
            let peer = IpAddr::V4(number.into());
            throttle.note_failure(t0 + Duration::from_millis(number.into()), peer);
        }
        assert_eq!(throttle.by_address.len(), MAX_ADDRESSES);
        throttle.note_failure(t0 + MEMORY * 2, PEER);
        assert_eq!(throttle.by_address.len(), 1);
    }
}
