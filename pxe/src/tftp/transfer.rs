//! Drives the machine of a read transfer over its socket.

use std::{
    io,
    time::{Duration, Instant},
};

use pxe_proto::tftp::{Ended, Granted, Packet, ReadTransfer, Transmit, Wrap, error};

use super::{
    live::Live,
    notes::Notes,
    packets::{HEADER, Packets, Source},
    wire::{Buffer, Heard, Sent, Wire, buffer},
};

/// Longest transfer, however slowly a client acknowledges.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// A transfer under way.
pub(super) struct Transfer<'a> {
    machine: ReadTransfer,
    wire: Wire,
    packets: Packets,
    begun: Instant,
    notes: &'a Notes<'a>,
    live: &'a Live,
}

/// Blocks that go out together: neighbours in the file.
#[derive(Debug, Clone, Copy)]
struct Batch {
    offset: u64,
    count: usize,
    /// Whether the short block is among them that ends the file.
    is_last: bool,
}

impl<'a> Transfer<'a> {
    /// A transfer with these options over `wire`.
    pub(super) fn new(
        (source, size): (Source, u64),
        granted: Granted,
        wrap: Wrap,
        mut wire: Wire,
        (notes, live): (&'a Notes<'a>, &'a Live),
    ) -> Self {
        let packets = Packets::new(source, size, &granted, wrap);
        if granted.windowsize > 1 {
            wire.segment(packets.stride());
        }
        let machine = ReadTransfer::new(granted, size, wrap);
        Self { machine, wire, packets, begun: Instant::now(), notes, live }
    }

    /// Whether the block number goes round in it.
    pub(super) fn wraps(&self) -> bool {
        self.machine.wraps()
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// When file or socket fail, or at [`LONGEST`].
    pub(super) fn run(mut self) -> io::Result<Ended> {
        let mut buffer = buffer();
        while self.begun.elapsed() <= LONGEST {
            if self.live.is_superseded() {
                self.machine.handle_superseded();
            }
            self.send_due()?;
            if let Some(ended) = self.machine.ended() {
                return Ok(ended.clone());
            }
            self.hear(&mut buffer)?;
            if self.live.take_doubt() {
                self.machine.handle_repeated_request(self.begun.elapsed());
            }
            self.machine.handle_timeout(self.begun.elapsed());
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "the transfer took over 30 minutes"))
    }

    /// Sends what the machine wants sent now.
    fn send_due(&mut self) -> io::Result<()> {
        let now = self.begun.elapsed();
        let stride = self.packets.stride();
        let mut batch: Option<Batch> = None;
        while let Some(transmit) = self.machine.poll_transmit(now) {
            match transmit {
                Transmit::OptionAck(oack) => {
                    self.notes.sent(self.wire.local(), &oack);
                    if self.wire.send(&oack)? == Sent::Closed {
                        self.machine.handle_closed();
                    }
                }
                Transmit::Data { offset, length, .. } => {
                    let batch = batch.get_or_insert(Batch { offset, count: 0, is_last: false });
                    batch.count += 1;
                    batch.is_last |= length + HEADER < stride;
                }
            }
        }
        batch.map_or(Ok(()), |batch| self.send_batch(batch))
    }

    fn send_batch(&mut self, batch: Batch) -> io::Result<()> {
        let stride = self.packets.stride();
        let packets = match self.packets.from(batch.offset, batch.count) {
            Ok(packets) => packets,
            Err(failed) => {
                self.give_up();
                return Err(failed);
            }
        };
        let local = self.wire.local();
        if batch.offset == 0
            && let Some(first) = packets.chunks(stride).next()
        {
            self.notes.sent(local, first);
        }
        if let Some(last) = packets.chunks(stride).last().filter(|_| batch.is_last) {
            self.notes.sent(local, last);
        }
        if self.wire.send_all(packets, stride)? == Sent::Closed {
            self.machine.handle_closed();
        }
        Ok(())
    }

    /// Tells the client that there is no more.
    fn give_up(&self) {
        let message = b"file cannot be read";
        let packet = Packet::Error { code: error::UNDEFINED, message }.encode();
        self.notes.sent(self.wire.local(), &packet);
        // The client may be gone already; the read error is what is told.
        self.wire.send(&packet).ok();
    }

    /// Waits for a packet of the client, at most until something is to be sent again.
    fn hear(&mut self, buffer: &mut Buffer) -> io::Result<()> {
        let wait = self.machine.poll_timeout().unwrap_or(LONGEST);
        let length = match self.wire.hear(wait.saturating_sub(self.begun.elapsed()), buffer)? {
            Heard::Packet(length) => length,
            Heard::Closed => {
                self.machine.handle_closed();
                return Ok(());
            }
            Heard::Nothing => return Ok(()),
        };
        let bytes = buffer.get(..length).unwrap_or_default();
        let Ok(packet) = Packet::decode(bytes) else { return Ok(()) };
        let was_heard = self.machine.is_heard();
        self.machine.handle_packet(self.begun.elapsed(), &packet);
        if self.machine.is_heard() && !was_heard {
            self.live.heard();
        }
        // The first, the last, and an ERROR, which ends it too.
        if !was_heard || self.machine.ended().is_some() {
            self.notes.heard(self.wire.local(), bytes);
        }
        Ok(())
    }
}
