//! One read transfer without socket or clock: the caller brings packets and time, and reads the file.
//!
//! Time is the span since any moment the caller likes. Lost packets go out again after an adaptive time-out
//! (RFC 6298 with a floor of 10 ms); a repeated ACK never makes a block go out twice in lock-step (the
//! sorcerer's apprentice), and moves a window back at most once, and at most once per round trip.

use std::time::Duration;

use super::{error, options::Granted, packet::Packet, timer::Timer};

/// Longest time nothing is repeated to a client that asked anew.
const DOUBT: Duration = Duration::from_secs(3);

/// What follows block 65,535.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wrap {
    /// Block 0: what nearly all clients do.
    #[default]
    Zero,
    /// Block 1: a few odd clients.
    One,
}

impl Wrap {
    /// The number on the wire of a block counted from 1.
    #[must_use]
    pub fn on_wire(self, block: u64) -> u16 {
        let number = match self {
            Self::Zero => block % 65_536,
            Self::One if block == 0 => 0,
            Self::One => (block - 1) % 65_535 + 1,
        };
        u16::try_from(number).expect("the remainder fits 16 bits")
    }
}

/// What to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transmit {
    /// This packet.
    OptionAck(Vec<u8>),
    /// DATA with this number, and this part of the file.
    Data {
        /// Number on the wire.
        block: u16,
        /// First byte.
        offset: u64,
        /// Bytes, 0 to the block size.
        length: usize,
    },
}

/// How a transfer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The last block was acknowledged.
    Complete,
    /// The client asked for the size, got it, and ended the transfer. Normal: it comes back.
    Probe,
    /// The client ended the transfer.
    ClientError {
        /// Its error code.
        code: u16,
        /// Its text.
        message: String,
    },
    /// The client closed its port in the middle of the file.
    Closed {
        /// Blocks it had acknowledged.
        blocks: u64,
    },
    /// The client no longer answers.
    GaveUp {
        /// Blocks it had acknowledged.
        blocks: u64,
    },
    /// The client began anew from the same port: another transfer stands for this one.
    Superseded {
        /// Blocks it had acknowledged.
        blocks: u64,
    },
}

/// A read transfer.
#[derive(Debug)]
pub struct ReadTransfer {
    granted: Granted,
    size: u64,
    wrap: Wrap,
    /// Number of the last block, counted from 1.
    last: u64,
    /// Blocks the client has acknowledged.
    acked: u64,
    /// The block that goes out next.
    next: u64,
    /// The highest block that ever went out.
    highest: u64,
    /// What was acknowledged when the window went back last.
    rewound_to: Option<u64>,
    handshake: Handshake,
    timer: Timer,
    ended: Option<Ended>,
}

/// Where the OACK stands.
#[derive(Debug, PartialEq, Eq)]
enum Handshake {
    /// It has to go out.
    Due,
    /// It went out, ACK 0 has not come.
    Sent,
    /// It was acknowledged, or there is none.
    Done,
}

impl ReadTransfer {
    /// A transfer of a file of `size` bytes.
    #[must_use]
    pub fn new(granted: Granted, size: u64, wrap: Wrap) -> Self {
        let handshake = if granted.oack.is_some() { Handshake::Due } else { Handshake::Done };
        Self {
            last: size / u64::from(granted.blksize) + 1,
            timer: Timer::new(granted.timeout),
            granted,
            size,
            wrap,
            acked: 0,
            next: 1,
            highest: 0,
            rewound_to: None,
            handshake,
            ended: None,
        }
    }

    /// The next thing to send, if there is one now. Call until it gives nothing.
    pub fn poll_transmit(&mut self, now: Duration) -> Option<Transmit> {
        if self.ended.is_some() {
            return None;
        }
        match self.handshake {
            Handshake::Sent => None,
            Handshake::Due => {
                self.handshake = Handshake::Sent;
                self.timer.sent(0, now);
                self.granted.oack.clone().map(Transmit::OptionAck)
            }
            Handshake::Done => self.poll_data(now),
        }
    }

    /// The next block of the window.
    fn poll_data(&mut self, now: Duration) -> Option<Transmit> {
        let block = self.next;
        if block > self.last || block > self.acked + u64::from(self.granted.windowsize) {
            return None;
        }
        self.next += 1;
        if block > self.highest {
            self.highest = block;
            self.timer.sent(block, now);
        } else {
            self.timer.sent_again(now);
        }
        let blksize = u64::from(self.granted.blksize);
        let offset = (block - 1) * blksize;
        let length = usize::try_from(self.size.saturating_sub(offset).min(blksize));
        let length = length.expect("a block fits memory");
        Some(Transmit::Data { block: self.wrap.on_wire(block), offset, length })
    }

    /// A packet of the client came.
    pub fn handle_packet(&mut self, now: Duration, packet: &Packet<'_>) {
        if self.ended.is_some() {
            return;
        }
        match packet {
            Packet::Ack { block } => self.handle_ack(now, *block),
            Packet::Error { code, message } => self.ended = Some(self.aborted(*code, message)),
            // Not what a reader sends in a transfer: as if it had not come.
            Packet::Read(_) | Packet::Write(_) | Packet::Data { .. } | Packet::OptionAck(_) => (),
        }
    }

    fn handle_ack(&mut self, now: Duration, number: u16) {
        if self.handshake != Handshake::Done {
            if number == 0 && self.handshake == Handshake::Sent {
                self.handshake = Handshake::Done;
                self.timer.heard(0, now);
            }
            return;
        }
        // The block meant is the one in flight with this number; late ones match none.
        let flight = self.acked..=self.highest;
        let Some(block) = flight.into_iter().find(|block| self.wrap.on_wire(*block) == number)
        else {
            return;
        };
        if block == self.acked {
            self.handle_repeated_ack(now);
            return;
        }
        self.acked = block;
        self.timer.heard(block, now);
        if block == self.last {
            self.ended = Some(Ended::Complete);
        } else if block + 1 < self.next {
            // Part of a window: the client misses what follows (RFC 7440, 4). An answer to blocks from before the
            // window went back says nothing about those sent since: the window moves on, and that is all.
            if self.timer.may_rewind(now) {
                self.rewind(now);
            }
        } else {
            self.next = block + 1;
        }
    }

    /// In lock-step nothing follows from it; in a window the client says what it misses. It says so for every block it
    /// has no use for, those that came twice among them: the window goes back once for it, then only by time-out.
    fn handle_repeated_ack(&mut self, now: Duration) {
        let in_flight = self.next > self.acked + 1;
        let is_new = self.rewound_to != Some(self.acked);
        if self.granted.windowsize > 1 && in_flight && is_new && self.timer.may_rewind(now) {
            self.rewind(now);
        }
    }

    fn rewind(&mut self, now: Duration) {
        self.next = self.acked + 1;
        self.rewound_to = Some(self.acked);
        self.timer.rewound(now);
    }

    /// The client's port is closed (ICMP port unreachable): it ended the transfer without a word, and nothing more
    /// is worth sending. Whoever asked for the size and got it wanted no more; whoever was sent the last block,
    /// with every block before it acknowledged, has the file, and the last ACK got lost.
    pub fn handle_closed(&mut self) {
        let asked_only = self.handshake == Handshake::Sent && self.granted.asked_size;
        let has_all = self.acked + 1 == self.last && self.highest == self.last;
        self.ended.get_or_insert(match () {
            () if asked_only => Ended::Probe,
            () if has_all => Ended::Complete,
            () => Ended::Closed { blocks: self.acked },
        });
    }

    /// The client asked once more from the same port after it had answered: it was restarted, or the network
    /// repeated its request. Nothing is repeated for a while, so that a restarted client does not take an old block
    /// for its first; an ACK shows that it is still here, and all goes on.
    pub fn handle_repeated_request(&mut self, now: Duration) {
        self.timer.postpone(now + DOUBT);
    }

    /// Another transfer to the same port stands for this one: nothing more is sent. Whoever was told the size it
    /// asked for and comes back with another request is a probe whose end got lost.
    pub fn handle_superseded(&mut self) {
        let asked_only = self.handshake == Handshake::Sent && self.granted.asked_size;
        let blocks = self.acked;
        let ended = if asked_only { Ended::Probe } else { Ended::Superseded { blocks } };
        self.ended.get_or_insert(ended);
    }

    fn aborted(&self, code: u16, message: &[u8]) -> Ended {
        let before_data = self.handshake == Handshake::Sent && self.granted.asked_size;
        if before_data && matches!(code, error::UNDEFINED | error::OPTIONS) {
            return Ended::Probe;
        }
        Ended::ClientError { code, message: String::from_utf8_lossy(message).into_owned() }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.ended.is_some() || self.timer.resend_at().is_none_or(|at| now < at) {
            return;
        }
        if !self.timer.expired() {
            self.ended = Some(Ended::GaveUp { blocks: self.acked });
            return;
        }
        if self.handshake == Handshake::Sent {
            self.handshake = Handshake::Due;
        }
        self.next = self.acked + 1;
    }

    /// When [`Self::handle_timeout`] has something to do; `None` when the transfer has ended or nothing was
    /// sent yet.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.timer.resend_at().filter(|_| self.ended.is_none())
    }

    /// Whether the client has answered at all.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.timer.is_heard()
    }

    /// Whether the block number goes round in it: some clients stop there.
    #[must_use]
    pub fn wraps(&self) -> bool {
        self.last > u64::from(u16::MAX)
    }

    /// How it ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<&Ended> {
        self.ended.as_ref()
    }
}
