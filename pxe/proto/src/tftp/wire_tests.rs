//! Transfers over a modelled wire that loses, delays, doubles and swaps packets, by a seed; and recorded clients.

use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

use proptest::prelude::*;

use super::*;
use crate::pcap::{datagrams, shared};

/// Byte `offset` of the file.
fn byte(offset: u64) -> u8 {
    u8::try_from((offset * 31 + offset / 251) % 256).unwrap()
}

/// Numbers by a seed (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) % most
    }
}

/// What is on the wire.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Flying {
    OptionAck,
    Data { block: u16, payload: Vec<u8> },
    Ack(u16),
}

/// A wire: of a hundred packets `trouble` are lost, as many come twice, and as many take up to `jitter` microseconds
/// longer, so that others overtake them.
struct Line {
    dice: Dice,
    trouble: u64,
    jitter: u64,
    sent: u64,
    flying: BinaryHeap<Reverse<(Duration, u64, Flying)>>,
}

impl Line {
    fn send(&mut self, now: Duration, packet: &Flying) {
        for copy in 0..2 {
            let luck = self.dice.below(100);
            let arrives = if copy == 0 { luck >= self.trouble } else { luck < self.trouble };
            if arrives {
                let is_late = self.dice.below(100) < self.trouble;
                let late = if is_late { self.dice.below(self.jitter) } else { 0 };
                let trip = Duration::from_micros(200 + late);
                self.sent += 1;
                self.flying.push(Reverse((now + trip, self.sent, packet.clone())));
            }
        }
    }
}

/// A reader after RFC 7440: in order only; acknowledges a window's end, a gap, the last block. Block 0 follows 65,535.
#[derive(Default)]
struct Reader {
    blksize: usize,
    window: usize,
    file: Vec<u8>,
    blocks: u16,
    unacknowledged: usize,
    is_done: bool,
}

impl Reader {
    fn take(&mut self, block: u16, payload: &[u8]) -> Option<u16> {
        if self.is_done || block != self.blocks.wrapping_add(1) {
            self.unacknowledged = 0;
            return Some(self.blocks);
        }
        self.blocks = block;
        self.file.extend_from_slice(payload);
        self.unacknowledged += 1;
        self.is_done = payload.len() < self.blksize;
        let is_due = self.is_done || self.unacknowledged == self.window;
        is_due.then(|| {
            self.unacknowledged = 0;
            block
        })
    }
}

/// Runs a transfer over the line; how it ended, and the reader.
fn run(granted: &Granted, size: u64, line: &mut Line) -> (Ended, Reader) {
    let mut transfer = ReadTransfer::new(granted.clone(), size, Wrap::Zero);
    let mut reader = Reader {
        blksize: granted.blksize.into(),
        window: granted.windowsize.into(),
        ..Reader::default()
    };
    let mut now = Duration::ZERO;
    loop {
        while let Some(transmit) = transfer.poll_transmit(now) {
            let packet = match transmit {
                Transmit::OptionAck(_) => Flying::OptionAck,
                Transmit::Data { block, offset, length } => {
                    let end = offset + u64::try_from(length).unwrap();
                    Flying::Data { block, payload: (offset..end).map(byte).collect() }
                }
            };
            line.send(now, &packet);
        }
        let Some(due) = transfer.poll_timeout() else {
            return (transfer.ended().unwrap().clone(), reader);
        };
        match line.flying.peek() {
            Some(Reverse((at, ..))) if *at <= due => {
                let Reverse((at, _, packet)) = line.flying.pop().unwrap();
                now = at;
                let answer = match packet {
                    Flying::OptionAck => (reader.blocks == 0).then_some(0),
                    Flying::Data { block, payload } => reader.take(block, &payload),
                    Flying::Ack(block) => {
                        transfer.handle_packet(now, &Packet::Ack { block });
                        None
                    }
                };
                if let Some(block) = answer {
                    line.send(now, &Flying::Ack(block));
                }
            }
            _ => {
                now = due;
                transfer.handle_timeout(now);
            }
        }
    }
}

proptest! {
    #[test]
    fn exact_bytes_arrive_over_any_wire_with_any_window(
        size in 0..100_000_u64,
        windowsize in prop_oneof![1..=4_u16, 5..=64_u16],
        blksize in prop_oneof![Just(512_u16), Just(1468), 64..1468_u16],
        has_oack: bool,
        seed in 1..u64::MAX,
        trouble in 0..12_u64,
        jitter in 1..3_000_u64,
    ) {
        let oack = has_oack.then(|| vec![0, 6]);
        let granted = Granted { blksize, windowsize, timeout: None, asked_size: false, oack };
        let flying = BinaryHeap::new();
        let mut line = Line { dice: Dice(seed), trouble, jitter, sent: 0, flying };
        let (ended, reader) = run(&granted, size, &mut line);
        match ended {
            Ended::Complete => prop_assert!(reader.is_done),
            // Its first answers all got lost, or its very last.
            Ended::GaveUp { blocks } => prop_assert!(trouble > 0 && (blocks == 0 || reader.is_done)),
            other => prop_assert!(false, "{other:?}"),
        }
        if reader.is_done {
            prop_assert!(reader.file.iter().copied().eq((0..size).map(byte)));
        }
        // Nothing storms: each packet at most a few times.
        let packets = 2 * (size / u64::from(blksize) + 2);
        let often = if trouble == 0 { 1 } else { 40 };
        prop_assert!(line.sent <= packets * often, "{} packets for {packets}", line.sent);
    }
}

#[test]
fn a_clean_wire_carries_each_packet_once() {
    for (blksize, windowsize) in [(512, 1), (512, 64), (1468, 44), (1428, 16)] {
        let granted = Granted { blksize, windowsize, timeout: None, asked_size: false, oack: None };
        let flying = BinaryHeap::new();
        let mut line = Line { dice: Dice(7), trouble: 0, jitter: 1, sent: 0, flying };
        let size = 200_000;
        let (ended, reader) = run(&granted, size, &mut line);
        assert_eq!(ended, Ended::Complete);
        assert!(reader.file.iter().copied().eq((0..size).map(byte)));
        let blocks = size / u64::from(blksize) + 1;
        let acks = blocks.div_ceil(windowsize.into());
        assert_eq!(line.sent, blocks + acks, "{blksize} x {windowsize}");
    }
}

#[test]
fn a_client_that_asks_anew_is_not_sent_old_blocks_unless_it_answers() {
    let at = Duration::from_millis;
    let granted =
        Granted { blksize: 512, windowsize: 1, timeout: None, asked_size: false, oack: None };
    let mut transfer = ReadTransfer::new(granted, 5_000, Wrap::Zero);
    let blocks = |transfer: &mut ReadTransfer, now| {
        std::iter::from_fn(|| transfer.poll_transmit(now)).count()
    };
    assert_eq!(blocks(&mut transfer, at(0)), 1);
    assert!(!transfer.is_heard());
    transfer.handle_packet(at(1), &Packet::Ack { block: 1 });
    assert!(transfer.is_heard());
    assert_eq!(blocks(&mut transfer, at(1)), 1);
    transfer.handle_repeated_request(at(5));
    transfer.handle_timeout(at(3_004));
    assert_eq!(blocks(&mut transfer, at(3_004)), 0, "it holds back");
    transfer.handle_packet(at(3_004), &Packet::Ack { block: 2 });
    assert_eq!(blocks(&mut transfer, at(3_004)), 1, "the client is still here");
    let due = transfer.poll_timeout().unwrap();
    transfer.handle_timeout(due);
    assert_eq!(blocks(&mut transfer, due), 1, "and its losses are repeated as before");
    transfer.handle_superseded();
    assert_eq!(transfer.ended(), Some(&Ended::Superseded { blocks: 2 }));
    assert_eq!(blocks(&mut transfer, at(9_000)), 0);
}

#[test]
fn a_probe_whose_end_got_lost_is_still_a_probe() {
    let asked: [(&[u8], &[u8]); 1] = [(b"tsize", b"0")];
    let granted = Granted::negotiate(&asked, 5_000, Limits::default());
    let mut transfer = ReadTransfer::new(granted, 5_000, Wrap::Zero);
    transfer.poll_transmit(Duration::ZERO);
    transfer.handle_superseded();
    assert_eq!(transfer.ended(), Some(&Ended::Probe));
}

/// Every request of a capture, with what its client sent after it.
#[test]
fn recorded_clients_are_taken_through_their_transfers() {
    let captures = [
        ("data/pxe-own/ovmf2022-tftp.pcap", 173_792, [1, 1, 4]),
        ("data/pxe-own/ovmf2025-tftp.pcap", 173_792, [1, 1, 4]),
        ("data/rs_pxe/intel_bios_tftp.pcap", 345_455, [1, 1, 1]),
        ("data/rs_pxe/intel_efi_tftp.pcap", 1_052_672, [1, 1, 1]),
    ];
    // The recorded servers grant no windows.
    let limits = Limits { windowsize: 1, ..Limits::default().within(1500, None) };
    for (capture, size, want) in captures {
        let Some(pcap) = shared(capture) else { continue };
        let datagrams = datagrams(&pcap);
        let (mut probes, mut transfers, mut sent) = (0, 0, 0);
        for (index, asked) in datagrams.iter().enumerate() {
            let Ok(Packet::Read(request)) = Packet::decode(&asked.payload) else { continue };
            let granted = Granted::negotiate(&request.options, size, limits);
            let mut transfer = ReadTransfer::new(granted, size, Wrap::Zero);
            let mut now = Duration::from_millis(1);
            assert!(matches!(transfer.poll_transmit(now), Some(Transmit::OptionAck(_))));
            for datagram in datagrams[index + 1..].iter().filter(|d| d.from == asked.from) {
                let packet = Packet::decode(&datagram.payload).unwrap();
                now += Duration::from_millis(1);
                transfer.handle_packet(now, &packet);
                if let Packet::Ack { block } = packet {
                    let Some(Transmit::Data { block: next, .. }) = transfer.poll_transmit(now)
                    else {
                        panic!("{capture}: nothing after {packet:?}")
                    };
                    assert_eq!(next, block + 1, "{capture}");
                    assert_eq!(transfer.poll_transmit(now), None, "{capture}: lock-step");
                    sent += 1;
                }
            }
            match transfer.ended() {
                Some(Ended::Probe) => probes += 1,
                None => transfers += 1, // the capture ends before it does
                other => panic!("{capture}: {other:?}"),
            }
        }
        let [want_probes, want_transfers, least] = want;
        assert_eq!((probes, transfers), (want_probes, want_transfers), "{capture}");
        assert!(sent >= least, "{capture}: {sent}");
    }
}
