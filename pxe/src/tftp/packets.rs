//! Blocks of a file as they go out, header and bytes, read ahead: a window is one piece of memory and one send.

use std::{
    fs::File,
    io::{self, IoSliceMut, Read},
    ops::Range,
    os::unix::fs::FileExt,
};

use pxe_proto::tftp::{Granted, Wrap};

/// Bytes of a file read at once, or a window if that is more.
const AHEAD: usize = 32 * 1024;
/// Bytes of a DATA header.
pub(super) const HEADER: usize = 4;

/// Where the bytes of a transfer come from.
#[derive(Debug)]
pub(super) enum Source {
    /// A file of the boot table.
    File(File),
    /// A text made for the node.
    Text(Vec<u8>),
}

/// Consecutive DATA packets, each but the last of the file as long as the others.
#[derive(Debug)]
pub(super) struct Packets {
    source: Source,
    size: u64,
    blksize: usize,
    wrap: Wrap,
    /// Blocks held at most.
    most: usize,
    /// Index of the first block held, counted from 0.
    first: u64,
    bytes: Vec<u8>,
}

impl Packets {
    pub(super) fn new(source: Source, size: u64, granted: &Granted, wrap: Wrap) -> Self {
        let blksize = usize::from(granted.blksize);
        let window = usize::from(granted.windowsize);
        // Whole windows, so that the next one is not cut.
        let most = window * (AHEAD / (window * (blksize + HEADER))).max(1);
        Self { source, size, blksize, wrap, most, first: 0, bytes: vec![] }
    }

    /// Bytes of a full packet.
    pub(super) fn stride(&self) -> usize {
        self.blksize + HEADER
    }

    /// `count` packets, at most a window, from the block that begins at byte `offset` of the file.
    ///
    /// # Errors
    /// When the file cannot be read, or is shorter than it was.
    pub(super) fn from(&mut self, offset: u64, count: usize) -> io::Result<&[u8]> {
        let index = offset / block_bytes(self.blksize);
        let held = match self.held(index, count) {
            Some(held) => held,
            None => {
                self.fill(index)?;
                let missing = || io::Error::other("more blocks than a window");
                self.held(index, count).ok_or_else(missing)?
            }
        };
        Ok(self.bytes.get(held).unwrap_or_default())
    }

    /// Where these packets are, if they are held.
    fn held(&self, index: u64, count: usize) -> Option<Range<usize>> {
        let skipped = usize::try_from(index.checked_sub(self.first)?).ok()?;
        let start = skipped.checked_mul(self.stride())?;
        // The last packet may be short.
        let least = start + count.checked_sub(1)? * self.stride() + HEADER;
        let end = (start + count * self.stride()).min(self.bytes.len());
        (least <= self.bytes.len()).then_some(start..end)
    }

    /// Reads from block `index` on, in one call of the system.
    fn fill(&mut self, index: u64) -> io::Result<()> {
        let blksize = block_bytes(self.blksize);
        let offset = index * blksize;
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let full = left / self.blksize;
        // A file that ends with a block's end has an empty one behind it.
        let (count, tail) = match full < self.most {
            true => (full + 1, left % self.blksize),
            false => (self.most, self.blksize),
        };
        self.first = index;
        self.bytes.clear();
        self.bytes.resize((count - 1) * self.stride() + HEADER + tail, 0);
        let numbers = (index + 1..).map(|block| self.wrap.on_wire(block));
        let mut parts = Vec::with_capacity(count);
        for (packet, number) in self.bytes.chunks_mut(self.blksize + HEADER).zip(numbers) {
            let [high, low] = number.to_be_bytes();
            let (header, payload) = packet.split_at_mut(HEADER);
            header.copy_from_slice(&[0, 3, high, low]);
            parts.push(IoSliceMut::new(payload));
        }
        let read = self.source.read(&mut parts, offset);
        // What was not read must not be taken for blocks.
        read.inspect_err(|_| self.bytes.clear())
    }
}

impl Source {
    /// Fills the parts in turn with what stands from `offset` on.
    fn read(&self, parts: &mut [IoSliceMut<'_>], mut offset: u64) -> io::Result<()> {
        match self {
            Self::Text(text) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX);
                let mut rest = text.get(from..).unwrap_or_default();
                parts.iter_mut().try_for_each(|part| rest.read_exact(part))
            }
            Self::File(file) => {
                let wanted: usize = parts.iter().map(|part| part.len()).sum();
                if rustix::io::preadv(file, parts, offset) == Ok(wanted) {
                    return Ok(());
                }
                // Cut short, by a signal or the end of the file: block by block, which tells the two apart.
                for part in parts {
                    file.read_exact_at(part, offset)?;
                    offset += block_bytes(part.len());
                }
                Ok(())
            }
        }
    }
}

fn block_bytes(length: usize) -> u64 {
    u64::try_from(length).expect("a block is short")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(size: usize, blksize: u16, windowsize: u16) -> Packets {
        let granted = Granted { blksize, windowsize, timeout: None, asked_size: false, oack: None };
        let text = (0..size).map(|n| u8::try_from(n % 251).unwrap()).collect();
        Packets::new(Source::Text(text), u64::try_from(size).unwrap(), &granted, Wrap::Zero)
    }

    #[test]
    fn packets_are_the_file_with_headers_wherever_one_starts() {
        for (size, blksize, window) in
            [(0, 512, 1), (1, 512, 4), (1024, 512, 2), (100_000, 512, 16), (70_000, 8192, 7)]
        {
            let mut packets = packets(size, blksize, window);
            let blksize = usize::from(blksize);
            let last = size / blksize;
            // Forwards, then back: a window that goes out again.
            for index in (0..=last).chain((0..=last).rev()) {
                let count = usize::from(window).min(last + 1 - index);
                let offset = u64::try_from(index * blksize).unwrap();
                let bytes = packets.from(offset, count).unwrap().to_vec();
                let mut at = index * blksize;
                for (number, packet) in bytes.chunks(blksize + HEADER).enumerate() {
                    let block = u16::try_from(index + number + 1).unwrap().to_be_bytes();
                    assert_eq!(packet[..HEADER], [0, 3, block[0], block[1]]);
                    let want = (at..size.min(at + blksize)).map(|n| u8::try_from(n % 251).unwrap());
                    assert!(packet[HEADER..].iter().copied().eq(want), "{size} {blksize} {index}");
                    at += blksize;
                }
                assert_eq!(bytes.chunks(blksize + HEADER).len(), count);
            }
        }
    }

    #[test]
    fn memory_of_a_transfer_is_bounded_whatever_its_file() {
        for (blksize, window) in [(512, 1), (512, 64), (1468, 44), (8192, 7), (65_464, 1), (8, 1)] {
            let mut packets = packets(1_000_000, blksize, window);
            packets.from(0, 1).unwrap();
            assert!(packets.bytes.len() <= 65_536, "{blksize} x {window}");
        }
    }

    #[test]
    fn a_file_that_shrank_is_an_error_and_no_zeros() {
        let mut short = packets(1000, 512, 4);
        short.size = 5000;
        assert!(short.from(0, 4).is_err());
        assert!(short.from(0, 4).is_err(), "nothing of it is kept");
    }
}
