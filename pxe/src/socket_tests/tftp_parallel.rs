//! Many TFTP transfers at once, windows, clients that begin anew, and what is kept of them.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use model::Sighted;
use pxe_proto::tftp::Packet;

use super::{
    Lab, NODE, lines,
    tftp::{Reader, content},
};

/// Reads a windowed transfer from its OACK on; one packet of `lose` is thrown away, by chance, so that a window that
/// goes out again does not lose the same one again.
fn read_windows(reader: &Reader, blksize: usize, window: usize, lose: u64) -> Vec<u8> {
    let (mut file, mut blocks, mut unacknowledged, mut dice) = (vec![], 0_u16, 0, 1_u64);
    loop {
        let (bytes, from) = reader.hear();
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if lose > 0 && (dice >> 33) % lose == 0 {
            continue;
        }
        match Packet::decode(&bytes).unwrap() {
            Packet::OptionAck(_) => reader.say(&Packet::Ack { block: 0 }, from),
            Packet::Data { block, payload } if block == blocks.wrapping_add(1) => {
                file.extend_from_slice(payload);
                blocks = block;
                unacknowledged += 1;
                let is_last = payload.len() < blksize;
                if is_last || unacknowledged == window {
                    unacknowledged = 0;
                    reader.say(&Packet::Ack { block }, from);
                }
                if is_last {
                    return file;
                }
            }
            Packet::Data { .. } => {
                unacknowledged = 0;
                reader.say(&Packet::Ack { block: blocks }, from);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_of_every_size_bring_the_whole_file_over_a_wire_that_loses() {
    let lab = Lab::start();
    let loader = content(400_000);
    lab.serve("snponly.efi", &loader);
    let cases =
        [(512, 64, 0), (512, 7, 11), (1468, 16, 0), (1468, 44, 13), (8192, 7, 0), (20_000, 3, 7)];
    for (blksize, window, lose) in cases {
        let reader = Reader::new(&lab);
        let (blk, win) = (blksize.to_string(), window.to_string());
        reader.ask(b"snponly.efi", &[("blksize", &blk), ("windowsize", &win)]);
        let got = read_windows(&reader, blksize, window, lose);
        assert!(got == loader, "{blksize} x {window}, one of {lose} lost: {}", got.len());
    }
}

/// Field case 15: the least a client may ask for, with windows. The system cuts windows into blocks, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn an_oack_longer_than_the_blocks_comes_in_one_piece() {
    let lab = Lab::start();
    let loader = content(5_000);
    lab.serve("snponly.efi", &loader);
    for (blksize, window) in [(8, 2), (8, 64), (9, 16), (40, 64), (68, 64), (128, 64)] {
        let reader = Reader::new(&lab);
        let (blk, win) = (blksize.to_string(), window.to_string());
        let options = [("tsize", "0"), ("timeout", "9"), ("windowsize", &win), ("blksize", &blk)];
        reader.ask(b"snponly.efi", &options);
        let (bytes, from) = reader.hear();
        let Packet::OptionAck(granted) = Packet::decode(&bytes).unwrap() else {
            panic!("{blksize} x {window}: {bytes:?}")
        };
        assert_eq!(granted.len(), 4, "{blksize} x {window}: {granted:?}");
        reader.say(&Packet::Ack { block: 0 }, from);
        let got = read_windows(&reader, blksize, window, 0);
        assert!(got == loader, "{blksize} x {window}: {}", got.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_transfers_at_once_all_bring_their_file() {
    let lab = Lab::start();
    lab.change(|table| table.networks[0].prefix = 16);
    let loader = content(100_000);
    lab.serve("snponly.efi", &loader);
    // Ten from each of a hundred addresses; all have begun before the first goes on.
    let addresses = (0..100).map(|n| Ipv4Addr::new(127, 77, 3, n + 1));
    let readers: Vec<Reader> = addresses
        .flat_map(|at| (0..10).map(move |_| at))
        .map(|at| Reader::from(&lab, at))
        .collect();
    assert_eq!(readers.len(), 1_000);
    for reader in &readers {
        reader.ask(b"snponly.efi", &[("blksize", "8192"), ("windowsize", "7")]);
    }
    for reader in &readers {
        let (oack, from) = reader.hear();
        assert!(oack.starts_with(b"\0\x06"), "{oack:?}");
        reader.say(&Packet::Ack { block: 0 }, from);
    }
    for reader in readers {
        assert!(read_windows(&reader, 8192, 7, 0) == loader);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_has_a_bounded_number_of_transfers_and_the_next_is_served_when_one_ends() {
    let lab = Lab::start();
    lab.serve("snponly.efi", &content(5_000));
    let held: Vec<Reader> = (0..16).map(|_| Reader::new(&lab)).collect();
    for reader in &held {
        reader.ask(b"snponly.efi", &[("blksize", "1024")]);
        assert!(reader.hear().0.starts_with(b"\0\x06"));
    }
    let next = Reader::new(&lab);
    next.socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    next.ask(b"snponly.efi", &[]);
    assert!(next.socket.recv(&mut [0; 1024]).is_err(), "no seventeenth");
    drop(held);
    let mut buffer = [0; 1024];
    let served = (0..200).any(|_| {
        next.ask(b"snponly.efi", &[]);
        next.socket.recv(&mut buffer).is_ok()
    });
    assert!(served, "places are free again");
}

/// The first packet from another port than `old`.
fn hear_from_elsewhere(reader: &Reader, old: SocketAddr) -> (Vec<u8>, SocketAddr) {
    loop {
        let heard = reader.hear();
        if heard.1 != old {
            return heard;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_restarted_on_the_same_port_begins_anew_at_once() {
    let lab = Lab::start();
    let loader = content(3_000);
    lab.serve("snponly.efi", &loader);
    let reader = Reader::new(&lab);
    let ask = || reader.ask(b"snponly.efi", &[("blksize", "512")]);
    ask();
    let (_, first) = reader.hear();
    reader.say(&Packet::Ack { block: 0 }, first);
    assert!(reader.hear().0.starts_with(b"\0\x03\0\x01"));
    reader.say(&Packet::Ack { block: 1 }, first);
    assert!(reader.hear().0.starts_with(b"\0\x03\0\x02"));

    ask();
    let (oack, second) = hear_from_elsewhere(&reader, first);
    assert!(oack.starts_with(b"\0\x06"), "{oack:?}");
    reader.say(&Packet::Ack { block: 0 }, second);
    let mut blocks = vec![];
    while blocks.len() < 6 {
        let (bytes, from) = hear_from_elsewhere(&reader, first);
        let Ok(Packet::Data { block, .. }) = Packet::decode(&bytes) else { continue };
        reader.say(&Packet::Ack { block }, from);
        if !blocks.contains(&block) {
            blocks.push(block);
        }
    }
    assert_eq!(blocks, [1, 2, 3, 4, 5, 6]);
    let mut told = BTreeMap::new();
    while told.len() < 2 {
        let seen = lab
            .until("both ends", |what| {
                matches!(what, Sighted::TftpDone { .. } | Sighted::TftpFailed { .. })
            })
            .await;
        for line in lines(&seen).into_iter().filter(|line| !line.starts_with("TFTP asked for")) {
            let kind = line.contains("failed");
            told.insert(kind, line);
        }
    }
    assert_eq!(told[&true], "TFTP snponly.efi failed: the client began anew after 1 blocks");
    assert!(told[&false].starts_with("TFTP sent snponly.efi, 3000 bytes"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_the_network_repeats_late_does_not_break_the_transfer() {
    let lab = Lab::start();
    let loader = content(3_000);
    lab.serve("snponly.efi", &loader);
    let reader = Reader::new(&lab);
    reader.ask(b"snponly.efi", &[("blksize", "512")]);
    let (_, first) = reader.hear();
    reader.say(&Packet::Ack { block: 0 }, first);
    let mut file = vec![];
    let mut next = 1;
    while next <= 6 {
        let (bytes, from) = reader.hear();
        if from != first {
            // RFC 1350, 4: a wrong port is told so, and the transfer goes on.
            reader.say(&Packet::Error { code: 5, message: b"unknown transfer" }, from);
            continue;
        }
        let Ok(Packet::Data { block, payload }) = Packet::decode(&bytes) else { continue };
        if block == next {
            file.extend_from_slice(payload);
            next += 1;
        }
        if next == 3 {
            reader.ask(b"snponly.efi", &[("blksize", "512")]);
        }
        reader.say(&Packet::Ack { block: next - 1 }, first);
    }
    assert!(file == loader);
    let seen = lab.until("the end", |what| matches!(what, Sighted::TftpDone { .. })).await;
    assert!(!seen.iter().any(|s| matches!(s.what, Sighted::TftpFailed { .. })), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_and_its_transfer_from_one_port_need_no_wait() {
    let lab = Lab::start();
    lab.serve("snponly.efi", &content(600));
    let reader = Reader::new(&lab);
    reader.ask(b"snponly.efi", &[("tsize", "0")]);
    let (_, probe) = reader.hear();
    // The ERROR gets lost; the next request names other options.
    reader.ask(b"snponly.efi", &[("blksize", "1024")]);
    let (oack, from) = hear_from_elsewhere(&reader, probe);
    assert_eq!(oack, b"\0\x06blksize\x001024\0");
    reader.say(&Packet::Ack { block: 0 }, from);
    assert!(hear_from_elsewhere(&reader, probe).0.starts_with(b"\0\x03\0\x01"));
    reader.say(&Packet::Ack { block: 1 }, from);
    let seen = lab.until("the end", |what| matches!(what, Sighted::TftpDone { .. })).await;
    assert!(!seen.iter().any(|s| matches!(s.what, Sighted::TftpFailed { .. })), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_copes_with_less_is_granted_less() {
    let lab = Lab::start();
    lab.serve("snponly.efi", &content(600));
    lab.change_entry(|entry| entry.traits.tftp_blksize = Some(1024));
    let reader = Reader::new(&lab);
    reader.ask(b"snponly.efi", &[("blksize", "1468")]);
    assert_eq!(reader.hear().0, b"\0\x06blksize\x001024\0");
    let other = Reader::from(&lab, Ipv4Addr::new(127, 77, 0, 99));
    other.ask(b"snponly.efi", &[("blksize", "1468")]);
    assert_eq!(other.hear().0, b"\0\x06blksize\x001468\0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_boot_keeps_where_its_transfers_begin_and_end_and_not_the_bulk() {
    let lab = Lab::start();
    lab.serve("snponly.efi", &content(3_000));
    let reader = Reader::new(&lab);
    reader.ask(b"snponly.efi", &[("blksize", "512")]);
    assert_eq!(reader.read(512, 0).len(), 3_000);
    lab.until("the end", |what| matches!(what, Sighted::TftpDone { .. })).await;
    reader.ask(b"nope", &[]);
    reader.hear();
    lab.until("the refusal", |what| matches!(what, Sighted::TftpFailed { .. })).await;
    let stranger = Reader::from(&lab, Ipv4Addr::new(127, 77, 0, 99));
    stranger.ask(b"nope", &[]);
    stranger.hear();
    let mut kept = vec![];
    while kept.len() < 8 {
        let packet = tokio::time::timeout(super::BOUND, lab.packets.recv()).await.unwrap();
        let from_us = packet.to.ip() == &NODE;
        assert!(from_us || packet.from.ip() == &NODE, "only of nodes: {packet:?}");
        let arrow = if from_us { ">" } else { "<" };
        kept.push(match Packet::decode(&packet.payload).unwrap() {
            Packet::Read(_) => format!("{arrow} RRQ"),
            Packet::OptionAck(_) => format!("{arrow} OACK"),
            Packet::Data { block, .. } => format!("{arrow} DATA {block}, {}", packet.length),
            Packet::Ack { block } => format!("{arrow} ACK {block}"),
            Packet::Error { code, .. } => format!("{arrow} ERROR {code}"),
            Packet::Write(_) => "WRQ".to_owned(),
        });
    }
    let want = [
        "< RRQ",
        "> OACK",
        "< ACK 0",
        "> DATA 1, 516",
        "> DATA 6, 444",
        "< ACK 6",
        "< RRQ",
        "> ERROR 1",
    ];
    assert_eq!(kept, want);
}
