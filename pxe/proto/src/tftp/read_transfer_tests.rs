//! Transfers against a modelled reader in virtual time, with loss.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{
    pcap::{datagrams, shared},
    tftp::options::DEFAULT_BLKSIZE,
};

fn plain() -> Granted {
    Granted {
        blksize: DEFAULT_BLKSIZE,
        windowsize: 1,
        timeout: None,
        asked_size: false,
        oack: None,
    }
}

fn with_oack() -> Granted {
    let asked: [(&[u8], &[u8]); 3] =
        [(b"tsize", b"0"), (b"blksize", b"1468"), (b"windowsize", b"4")];
    Granted::negotiate(&asked, 1_052_672, Limits::default())
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn drain(transfer: &mut ReadTransfer, now: Duration) -> Vec<Transmit> {
    std::iter::from_fn(|| transfer.poll_transmit(now)).collect()
}

/// A correct reader (RFC 7440): takes blocks in order, acknowledges a window's end, a gap, the last block.
struct Reader {
    blksize: usize,
    window: u64,
    wrap: Wrap,
    /// Blocks taken.
    taken: u64,
    bytes: u64,
    since_ack: u64,
    is_done: bool,
}

impl Reader {
    fn new(granted: &Granted, wrap: Wrap) -> Self {
        Self {
            blksize: granted.blksize.into(),
            window: granted.windowsize.into(),
            wrap,
            taken: 0,
            bytes: 0,
            since_ack: 0,
            is_done: false,
        }
    }

    fn number(&self, block: u64) -> u16 {
        match self.wrap {
            Wrap::Zero => u16::try_from(block & 0xffff).unwrap(),
            Wrap::One if block > 65_535 => u16::try_from((block - 1) % 65_535 + 1).unwrap(),
            Wrap::One => u16::try_from(block).unwrap(),
        }
    }

    fn take(&mut self, sent: &Transmit) -> Option<u16> {
        let Transmit::Data { block, offset, length } = sent else { return Some(0) };
        if *block != self.number(self.taken + 1) {
            self.since_ack = 0;
            return Some(self.number(self.taken)); // a gap or a repetition: say what is missing
        }
        if self.is_done {
            return Some(self.number(self.taken));
        }
        assert_eq!(*offset, self.bytes, "nothing skipped, nothing twice");
        self.taken += 1;
        self.bytes += *length as u64;
        self.since_ack += 1;
        self.is_done = *length < self.blksize;
        (self.is_done || self.since_ack == self.window).then(|| {
            self.since_ack = 0;
            self.number(self.taken)
        })
    }
}

/// Runs to the end; `lost` says of each packet in turn whether the wire eats it. Gives packets sent.
fn run(transfer: &mut ReadTransfer, reader: &mut Reader, mut lost: impl FnMut() -> bool) -> usize {
    let (mut now, mut sent) = (Duration::ZERO, 0);
    let mut pending = drain(transfer, now);
    while transfer.ended().is_none() {
        let packets = std::mem::take(&mut pending);
        sent += packets.len();
        now += ms(1);
        let mut answers = vec![];
        for packet in packets {
            if !lost() {
                answers.extend(reader.take(&packet));
            }
        }
        for block in answers {
            if !lost() {
                transfer.handle_packet(now, &Packet::Ack { block });
            }
        }
        pending = drain(transfer, now);
        if pending.is_empty()
            && let Some(at) = transfer.poll_timeout()
        {
            now = now.max(at);
            transfer.handle_timeout(now);
            pending = drain(transfer, now);
        }
    }
    sent
}

#[test]
fn a_lost_block_goes_out_again_and_not_too_early() {
    let mut transfer = ReadTransfer::new(plain(), 600, Wrap::Zero);
    let first = Transmit::Data { block: 1, offset: 0, length: 512 };
    assert_eq!(drain(&mut transfer, ms(0)), std::slice::from_ref(&first));
    assert_eq!(transfer.poll_timeout(), Some(ms(100)));
    transfer.handle_timeout(ms(99));
    assert_eq!(drain(&mut transfer, ms(99)), []);
    transfer.handle_timeout(ms(100));
    assert_eq!(drain(&mut transfer, ms(100)), [first]);
    assert_eq!(transfer.poll_timeout(), Some(ms(300)), "doubled");
    transfer.handle_packet(ms(110), &Packet::Ack { block: 1 });
    assert_eq!(
        drain(&mut transfer, ms(110)),
        [Transmit::Data { block: 2, offset: 512, length: 88 }]
    );
    transfer.handle_packet(ms(111), &Packet::Ack { block: 2 });
    assert_eq!(transfer.ended(), Some(&Ended::Complete));
    assert_eq!(transfer.poll_timeout(), None);
}

#[test]
fn recorded_firmware_is_served_as_the_recorded_server_did() {
    let captures = [
        ("data/pxe-own/ovmf2022-tftp.pcap", 2),
        ("data/pxe-own/ovmf2025-tftp.pcap", 2),
        ("data/rs_pxe/intel_bios_tftp.pcap", 2),
        ("data/rs_pxe/intel_efi_tftp.pcap", 2),
    ];
    for (capture, least) in captures {
        let Some(pcap) = shared(capture) else { continue };
        let datagrams = datagrams(&pcap);
        let mut requests = 0;
        for (index, datagram) in datagrams.iter().enumerate().filter(|(_, d)| d.to.port() == 69) {
            let Ok(Packet::Read(request)) = Packet::decode(&datagram.payload) else {
                continue; // a server of one port: the rest of the transfer comes here too
            };
            requests += 1;
            assert!(request.is_octet() && crate::path::tftp_name(request.file).is_some());
            let answer = datagrams[index..].iter().find(|d| d.to == datagram.from).unwrap();
            let Ok(Packet::OptionAck(theirs)) = Packet::decode(&answer.payload) else { continue };
            let size = theirs
                .iter()
                .find(|(name, _)| *name == b"tsize")
                .map_or(0, |(_, value)| std::str::from_utf8(value).unwrap().parse().unwrap());
            let granted = Granted::negotiate(&request.options, size, Limits::default());
            let oack = granted.oack.unwrap();
            let Ok(Packet::OptionAck(ours)) = Packet::decode(&oack) else { panic!("no OACK") };
            // That server grants no windows.
            for option in theirs.iter().filter(|(name, _)| *name != b"windowsize") {
                assert!(ours.contains(option), "{capture}: {option:?} in {ours:?}");
            }
        }
        assert!(requests >= least, "{capture}: {requests}");
    }
}

#[test]
fn sizes_at_the_edge_of_a_block_end_with_a_short_block() {
    for (size, blocks) in [(0, 1), (1, 1), (511, 1), (512, 2), (513, 2), (1024, 3)] {
        let mut transfer = ReadTransfer::new(plain(), size, Wrap::Zero);
        let mut reader = Reader::new(&plain(), Wrap::Zero);
        assert_eq!(run(&mut transfer, &mut reader, || false), blocks, "{size}");
        assert_eq!((reader.bytes, transfer.ended()), (size, Some(&Ended::Complete)), "{size}");
    }
}

#[test]
fn a_silent_client_is_left_alone_after_four_repetitions() {
    for granted in [plain(), with_oack()] {
        let mut transfer = ReadTransfer::new(granted, 5000, Wrap::Zero);
        let (mut sent, mut now) = (0, ms(0));
        while transfer.ended().is_none() {
            sent += drain(&mut transfer, now).len();
            now = transfer.poll_timeout().unwrap();
            transfer.handle_timeout(now);
        }
        assert_eq!((sent, transfer.ended()), (5, Some(&Ended::GaveUp { blocks: 0 })));
        assert!(now <= Duration::from_secs(4), "{now:?}");
    }
}

#[test]
fn a_size_probe_is_no_failure() {
    // Field case 11: EDK2 ends with error 8, a BIOS ROM with error 0.
    for code in [error::OPTIONS, error::UNDEFINED] {
        let mut transfer = ReadTransfer::new(with_oack(), 1_052_672, Wrap::Zero);
        assert!(matches!(drain(&mut transfer, ms(0))[..], [Transmit::OptionAck(_)]));
        let abort = Packet::Error { code, message: b"User aborted the transfer" };
        transfer.handle_packet(ms(1), &abort);
        assert_eq!(transfer.ended(), Some(&Ended::Probe));
        transfer.handle_timeout(ms(10_000));
        assert_eq!(drain(&mut transfer, ms(10_000)), [], "nothing goes out any more");
    }
}

#[test]
fn a_client_that_just_closes_its_port_is_judged_by_what_it_had() {
    let after = |acks: &[u16], granted: Granted, size| {
        let mut transfer = ReadTransfer::new(granted, size, Wrap::Zero);
        drain(&mut transfer, ms(0));
        for ack in acks {
            transfer.handle_packet(ms(1), &Packet::Ack { block: *ack });
            drain(&mut transfer, ms(1));
        }
        transfer.handle_closed();
        assert_eq!(drain(&mut transfer, ms(10_000)), [], "nothing goes out any more");
        transfer.ended().unwrap().clone()
    };
    assert_eq!(after(&[], with_oack(), 1_052_672), Ended::Probe);
    assert_eq!(after(&[0], with_oack(), 1_052_672), Ended::Closed { blocks: 0 });
    assert_eq!(after(&[], plain(), 2_000), Ended::Closed { blocks: 0 });
    assert_eq!(after(&[1, 2], plain(), 2_000), Ended::Closed { blocks: 2 });
    assert_eq!(after(&[1, 2, 3], plain(), 2_000), Ended::Complete, "the fourth is the last");
    assert_eq!(after(&[1, 2, 3, 4], plain(), 2_000), Ended::Complete);
}

#[test]
fn an_error_that_is_no_probe_is_told_as_it_is() {
    let failed = |transfer: &mut ReadTransfer, code| {
        transfer.handle_packet(ms(1), &Packet::Error { code, message: b"disk full" });
        let message = "disk full".to_owned();
        assert_eq!(transfer.ended(), Some(&Ended::ClientError { code, message }));
    };
    let mut other_code = ReadTransfer::new(with_oack(), 1, Wrap::Zero);
    drain(&mut other_code, ms(0));
    failed(&mut other_code, 3);
    let mut size_not_asked = ReadTransfer::new(plain(), 1, Wrap::Zero);
    drain(&mut size_not_asked, ms(0));
    failed(&mut size_not_asked, 0);
    let mut after_data = ReadTransfer::new(with_oack(), 1_000_000, Wrap::Zero);
    drain(&mut after_data, ms(0));
    after_data.handle_packet(ms(1), &Packet::Ack { block: 0 });
    failed(&mut after_data, 8);
}

#[test]
fn a_repeated_ack_in_lock_step_sends_nothing_twice() {
    let mut transfer = ReadTransfer::new(plain(), 2000, Wrap::Zero);
    drain(&mut transfer, ms(0));
    transfer.handle_packet(ms(1), &Packet::Ack { block: 1 });
    assert_eq!(drain(&mut transfer, ms(1)).len(), 1);
    for _ in 0..5 {
        transfer.handle_packet(ms(50), &Packet::Ack { block: 1 });
        assert_eq!(drain(&mut transfer, ms(50)), []);
    }
}

#[test]
fn a_window_goes_back_once_to_what_is_missing() {
    let mut transfer = ReadTransfer::new(with_oack(), 1_052_672, Wrap::Zero);
    drain(&mut transfer, ms(0));
    transfer.handle_packet(ms(1), &Packet::Ack { block: 0 });
    assert_eq!(drain(&mut transfer, ms(1)).len(), 4);
    // Block 3 was lost: the client says 2, and says it again for the block after the gap.
    transfer.handle_packet(ms(2), &Packet::Ack { block: 2 });
    let again: Vec<u16> = drain(&mut transfer, ms(2))
        .iter()
        .map(|sent| match sent {
            Transmit::Data { block, .. } => *block,
            Transmit::OptionAck(_) => 0,
        })
        .collect();
    assert_eq!(again, [3, 4, 5, 6]);
    let soon = Duration::from_micros(2_500);
    transfer.handle_packet(soon, &Packet::Ack { block: 2 });
    assert_eq!(drain(&mut transfer, soon), [], "once a round trip");
    // Block 3 of the old window was late, not lost: what follows it is on its way.
    transfer.handle_packet(soon, &Packet::Ack { block: 3 });
    assert_eq!(drain(&mut transfer, soon).len(), 1, "the window moves on by one");
}

#[test]
fn the_block_number_wraps_and_late_acks_do_no_harm() {
    // Field case 13.
    let size = 100_000_000;
    for wrap in [Wrap::Zero, Wrap::One] {
        let granted = Granted { blksize: 1428, ..plain() };
        let mut transfer = ReadTransfer::new(granted.clone(), size, wrap);
        let mut reader = Reader::new(&granted, wrap);
        let (mut now, mut blocks, mut last) = (ms(0), 0_u64, 0);
        while transfer.ended().is_none() {
            let packets = drain(&mut transfer, now);
            assert_eq!(packets.len(), 1);
            blocks += 1;
            now += ms(1);
            let ack = reader.take(&packets[0]).unwrap();
            if blocks > 65_530 && blocks < 65_545 {
                transfer.handle_packet(now, &Packet::Ack { block: last }); // late, twice
                transfer.handle_packet(now, &Packet::Ack { block: last });
                assert_eq!(drain(&mut transfer, now), [], "block {blocks}");
            }
            transfer.handle_packet(now, &Packet::Ack { block: ack });
            last = ack;
        }
        assert_eq!((blocks, reader.bytes), (70_029, size));
        assert_eq!(last, if wrap == Wrap::Zero { 0x118d } else { 0x118e });
    }
}

#[test]
fn the_time_out_follows_the_round_trip_down_to_its_floor() {
    let mut transfer = ReadTransfer::new(plain(), 100_000, Wrap::Zero);
    let mut now = ms(0);
    for block in 1..50 {
        drain(&mut transfer, now);
        now += Duration::from_micros(200);
        transfer.handle_packet(now, &Packet::Ack { block });
    }
    drain(&mut transfer, now);
    assert_eq!(transfer.poll_timeout(), Some(now + ms(10)));
}

#[test]
fn a_round_trip_longer_than_the_first_time_out_is_learnt() {
    let mut transfer = ReadTransfer::new(plain(), 10_000, Wrap::Zero);
    drain(&mut transfer, ms(0));
    transfer.handle_timeout(ms(100));
    assert_eq!(drain(&mut transfer, ms(100)).len(), 1, "one needless repetition");
    let mut now = ms(150);
    transfer.handle_packet(now, &Packet::Ack { block: 1 });
    for block in 2..15 {
        assert_eq!(drain(&mut transfer, now).len(), 1);
        now += ms(150);
        transfer.handle_timeout(now);
        assert_eq!(drain(&mut transfer, now), [], "and no more");
        transfer.handle_packet(now, &Packet::Ack { block });
    }
}

#[test]
fn a_time_out_does_not_double_for_ever_while_blocks_arrive() {
    let mut transfer = ReadTransfer::new(plain(), 100 * 512, Wrap::Zero);
    let mut now = ms(0);
    for block in 1..=100 {
        // The first of each block is lost, the second arrives.
        assert_eq!(drain(&mut transfer, now).len(), 1);
        now = transfer.poll_timeout().unwrap();
        transfer.handle_timeout(now);
        assert_eq!(drain(&mut transfer, now).len(), 1);
        now += ms(1);
        transfer.handle_packet(now, &Packet::Ack { block });
    }
    assert!(now < Duration::from_secs(30), "{now:?}");
}

proptest! {
    #[test]
    fn every_byte_arrives_once_whatever_is_lost(
        size in 0..60_000_u64, window in 1..16_u16, blksize in 8..1468_u16, seed: u64, loss in 0..20_u64,
    ) {
        let granted = Granted { blksize: blksize.max(64), windowsize: window, ..plain() };
        let mut transfer = ReadTransfer::new(granted.clone(), size, Wrap::Zero);
        let mut reader = Reader::new(&granted, Wrap::Zero);
        let mut state = seed | 1;
        let dice = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % 100 < loss
        };
        run(&mut transfer, &mut reader, dice);
        match transfer.ended().unwrap() {
            Ended::Complete => prop_assert_eq!(reader.bytes, size),
            // The last ACK may be lost for good; a lossy wire may look dead.
            Ended::GaveUp { .. } => prop_assert!(loss > 0),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn no_packets_make_it_panic(packets: Vec<(u16, u8, u16)>) {
        let mut transfer = ReadTransfer::new(with_oack(), 1_052_672, Wrap::Zero);
        let mut now = ms(0);
        for (wait, kind, number) in packets {
            now += ms(wait.into());
            drain(&mut transfer, now);
            let packet = match kind % 4 {
                0 | 1 => Packet::Ack { block: number % 64 },
                2 => Packet::Data { block: number, payload: b"x" },
                _ => Packet::Ack { block: number },
            };
            transfer.handle_packet(now, &packet);
            transfer.handle_timeout(now);
        }
    }
}
