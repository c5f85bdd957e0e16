//! TFTP packets, and a read transfer whose client sends what it likes.

use std::{collections::BTreeMap, hint::black_box, net::Ipv4Addr, time::Duration};

use model::{BootEntry, BootIntent, MacAddr, boot::BootTraits};
use pxe_proto::{
    generated::generated,
    path::{find_file, tftp_name},
    tftp::{Granted, Limits, Packet, ReadTransfer, Transmit, Wrap},
};

use super::input::Input;

/// A datagram on port 69 or on a transfer's port.
pub(super) fn packet(data: &[u8]) {
    let Ok(packet) = Packet::decode(data) else { return };
    assert_eq!(Packet::decode(&packet.encode()).as_ref(), Ok(&packet));
    if let Packet::Read(request) = &packet {
        black_box(request.is_octet());
        if let Some(name) = tftp_name(request.file) {
            named(&name);
        }
        let granted =
            Granted::negotiate(&request.options, 4_096, Limits::default().within(1_500, None));
        assert!((8..=1_468).contains(&granted.blksize), "{granted:?}");
        assert!((1..=64).contains(&granted.windowsize), "{granted:?}");
        let window = u32::from(granted.windowsize) * (u32::from(granted.blksize) + 4);
        assert!(window <= 65_507, "{granted:?}");
        if let Some(oack) = &granted.oack {
            assert!(matches!(Packet::decode(oack), Ok(Packet::OptionAck(_))), "{oack:?}");
        }
    }
}

/// A name only ever means a file of the table, or a text for one of the node's own MACs.
fn named(name: &str) {
    let files = BTreeMap::from(
        ["snponly.efi", "debian/grubx64.efi", "/i/inspect/kernel"]
            .map(|name| (name.to_owned(), ())),
    );
    if let Some((found, ())) = find_file(&files, name) {
        assert!(files.contains_key(found), "{found}");
    }
    let entry = BootEntry {
        node: "bld-001".parse().expect("a good name"),
        macs: vec![MacAddr([2, 0, 0, 0, 0, 1])],
        address: Ipv4Addr::new(192, 0, 2, 17),
        intent: BootIntent::Ask,
        attempt: None,
        traits: BootTraits::default(),
    };
    if let Some((_, mac)) = generated(name, &entry, entry.address) {
        assert!(entry.macs.contains(&mac), "{mac}");
    }
}

/// Two numbers for the file's size, one for the kind of client, a read request; then delays and packets.
pub(super) fn transfer(data: &[u8]) {
    let mut input = Input(data);
    let (size, is_huge) = (u64::from(input.u16()), input.u8() == 1);
    let size = if is_huge { u64::MAX - size } else { size };
    let wrap = if input.u8().is_multiple_of(2) { Wrap::Zero } else { Wrap::One };
    let limits = Limits { blksize: input.u16(), windowsize: input.u8().into() };
    let Ok(Packet::Read(request)) = Packet::decode(input.piece()) else { return };
    let granted = Granted::negotiate(&request.options, size, limits);
    let transfer = ReadTransfer::new(granted.clone(), size, wrap);
    let mut run = Run { transfer, granted, size, now: Duration::ZERO, last: None };
    run.send();
    while !input.is_empty() {
        run.now += Duration::from_millis(input.u8().into());
        match Packet::decode(input.piece()) {
            // On the transfer's own port it means nothing; here it stands for the same request on port 69.
            Ok(Packet::Read(_)) => run.transfer.handle_repeated_request(run.now),
            Ok(packet) => run.transfer.handle_packet(run.now, &packet),
            Err(_) => run.transfer.handle_timeout(run.now),
        }
        run.send();
    }
    if !is_huge {
        run.finish();
    }
}

struct Run {
    transfer: ReadTransfer,
    granted: Granted,
    size: u64,
    now: Duration,
    /// Number of the last packet that went out.
    last: Option<u16>,
}

impl Run {
    /// Sends what there is: never more than a window, never a byte that is not in the file.
    fn send(&mut self) {
        self.last = None;
        for _ in 0..=self.granted.windowsize {
            match self.transfer.poll_transmit(self.now) {
                None => return,
                Some(Transmit::OptionAck(_)) => self.last = Some(0),
                Some(Transmit::Data { block, offset, length }) => {
                    let length = u64::try_from(length).expect("a block is short");
                    assert!(length <= self.granted.blksize.into());
                    assert!(offset <= self.size && length <= self.size - offset);
                    self.last = Some(block);
                }
            }
        }
        assert_eq!(self.transfer.poll_transmit(self.now), None, "more than a window");
    }

    /// Whatever went before: a client that acknowledges all it gets brings the transfer to an end.
    fn finish(&mut self) {
        let blocks = self.size / u64::from(self.granted.blksize) + 1;
        for _ in 0..blocks + 20 {
            if self.transfer.ended().is_some() {
                assert_eq!(self.transfer.poll_timeout(), None);
                return;
            }
            match self.last {
                Some(block) => self.transfer.handle_packet(self.now, &Packet::Ack { block }),
                None => {
                    let due = self.transfer.poll_timeout().expect("it waits for something");
                    self.now = self.now.max(due);
                    self.transfer.handle_timeout(self.now);
                }
            }
            self.send();
        }
        panic!("{blocks} blocks were not done: {:?}", self.transfer);
    }
}
