//! When a packet goes out again: round trips measured (RFC 6298, Karn), time-outs doubled and brought back.

use std::time::Duration;

/// First time-out, before anything was measured.
const FIRST_RTO: Duration = Duration::from_millis(100);
/// Shortest time-out: a busy machine answers late now and then.
const MIN_RTO: Duration = Duration::from_millis(10);
/// Longest time-out unless the client named one.
const MAX_RTO: Duration = Duration::from_secs(5);
/// Times the first packet goes out again: the client may be a forged address.
const RESENDS_UNHEARD: u32 = 4;
/// Times a packet goes out again to a client that has answered before.
const RESENDS_HEARD: u32 = 10;

/// Round trips and time-outs.
#[derive(Debug)]
pub(super) struct Timer {
    resend_at: Option<Duration>,
    rto: Duration,
    longest: Duration,
    /// Smoothed round trip and its variation (RFC 6298).
    measured: Option<(Duration, Duration)>,
    /// A packet that went out once, and when (Karn).
    probe: Option<(u64, Duration)>,
    rewound_at: Option<Duration>,
    resends: u32,
    /// Packets in a row that had to be repeated before they were acknowledged.
    repeated: u32,
    is_heard: bool,
}

impl Timer {
    /// No packet yet. `longest` bounds the time-out, if the client named a bound.
    pub(super) fn new(longest: Option<Duration>) -> Self {
        Self {
            resend_at: None,
            rto: FIRST_RTO,
            longest: longest.unwrap_or(MAX_RTO),
            measured: None,
            probe: None,
            rewound_at: None,
            resends: 0,
            repeated: 0,
            is_heard: false,
        }
    }

    /// A packet went out; measured by it unless it had to be repeated.
    pub(super) fn sent(&mut self, block: u64, now: Duration) {
        self.probe = (self.resends == 0).then_some((block, now));
        self.resend_at = Some(now + self.rto);
    }

    /// A packet went out that had gone out before: it measures nothing.
    pub(super) fn sent_again(&mut self, now: Duration) {
        self.probe = None;
        self.resend_at = Some(now + self.rto);
    }

    /// Something new was acknowledged.
    pub(super) fn heard(&mut self, block: u64, now: Duration) {
        self.is_heard = true;
        self.settle();
        if let Some((_, sent)) = self.probe.take_if(|(probe, _)| *probe <= block) {
            self.measure(now.saturating_sub(sent));
        }
        self.resend_at = Some(now + self.rto);
    }

    /// An ACK of a repeated packet measures nothing (Karn). The doubled time-out is kept for one packet, which so
    /// is measured cleanly if the round trip is just longer than thought; when that one too had to be repeated,
    /// the wire loses a lot, and the time-out goes back instead of doubling for ever.
    fn settle(&mut self) {
        self.repeated = if self.resends == 0 { 0 } else { self.repeated + 1 };
        if self.repeated >= 2 {
            self.rto = (self.rto / 2_u32.saturating_pow(self.resends)).max(self.base());
        }
        self.resends = 0;
    }

    /// The time-out by what was measured.
    fn base(&self) -> Duration {
        let base = self.measured.map_or(FIRST_RTO, |(smooth, variation)| smooth + variation * 4);
        base.clamp(MIN_RTO, self.longest)
    }

    fn measure(&mut self, trip: Duration) {
        let (smooth, variation) = self.measured.map_or((trip, trip / 2), |(smooth, variation)| {
            ((smooth * 7 + trip) / 8, (variation * 3 + smooth.abs_diff(trip)) / 4)
        });
        self.measured = Some((smooth, variation));
        self.rto = self.base();
    }

    /// At most one step back per round trip: an answer that comes sooner is none to what was sent again.
    pub(super) fn may_rewind(&self, now: Duration) -> bool {
        let trip = self.measured.map_or(FIRST_RTO, |(smooth, _)| smooth);
        self.rewound_at.is_none_or(|at| now.saturating_sub(at) >= trip)
    }

    /// The window went back.
    pub(super) fn rewound(&mut self, now: Duration) {
        self.rewound_at = Some(now);
        self.probe = None;
    }

    /// When something is to be repeated.
    pub(super) fn resend_at(&self) -> Option<Duration> {
        self.resend_at
    }

    /// Nothing is repeated before `until`.
    pub(super) fn postpone(&mut self, until: Duration) {
        self.resend_at = self.resend_at.map(|at| at.max(until));
    }

    /// Whether anything was ever acknowledged.
    pub(super) fn is_heard(&self) -> bool {
        self.is_heard
    }

    /// The time-out passed: counts it, doubles it; false when it was one too many.
    pub(super) fn expired(&mut self) -> bool {
        self.resends += 1;
        self.probe = None;
        self.rto = (self.rto * 2).min(self.longest);
        self.resends <= if self.is_heard { RESENDS_HEARD } else { RESENDS_UNHEARD }
    }
}
