//! Packets of a boot as a pcap file, which tcpdump and Wireshark read.
//!
//! What volund keeps is a UDP datagram and who sent it; the frame around it is made here, with right lengths and
//! checksums, so that a foreign reader takes it apart like any other. It writes into memory, and reads nothing.

use std::net::{Ipv4Addr, SocketAddrV4};

use model::{MacAddr, UnixMillis};

use crate::frame;

#[cfg(test)]
mod reader;
#[cfg(test)]
pub(crate) use reader::{Datagram, datagrams, shared};

/// Media type of such a file.
pub const CONTENT_TYPE: &str = "application/vnd.tcpdump.pcap";

/// Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;
/// Where the UDP checksum stands in a frame.
const UDP_CHECKSUM: std::ops::Range<usize> = 40..42;
/// Longest frame a record may hold, as the file's header says.
const SNAP: u32 = 65_535;

/// A UDP datagram to be written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured<'p> {
    /// When it was heard or sent.
    pub at: UnixMillis,
    /// Hardware address of the sender; [`stand_in`] where nobody knows it.
    pub source: MacAddr,
    /// Hardware address of the receiver; [`stand_in`] where nobody knows it.
    pub target: MacAddr,
    /// Sender.
    pub from: SocketAddrV4,
    /// Receiver.
    pub to: SocketAddrV4,
    /// UDP payload, as much of it as was kept.
    pub payload: &'p [u8],
    /// Bytes the payload had on the wire.
    pub length: usize,
}

/// The head of a file: version 2.4, little endian, microseconds, Ethernet.
#[must_use]
pub fn file_header() -> Vec<u8> {
    let mut header = Vec::with_capacity(24);
    header.extend(0xa1b2_c3d4_u32.to_le_bytes());
    header.extend(2_u16.to_le_bytes());
    header.extend(4_u16.to_le_bytes());
    header.extend([0; 8]);
    header.extend(SNAP.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    header
}

/// One record of a file. Of a datagram that was kept in part, the lengths are those on the wire and the UDP
/// checksum is zero, which means that there is none (RFC 768). `None` for what cannot have been one datagram.
#[must_use]
pub fn record(packet: &Captured<'_>) -> Option<Vec<u8>> {
    let Captured { at, source, target, from, to, payload, length } = *packet;
    let kept = payload.len().min(length);
    let payload = payload.get(..kept)?;
    let frame = if kept == length {
        frame::udp_frame(source, target, from, to, payload)?
    } else {
        let mut whole = payload.to_vec();
        whole.resize(length.min(usize::from(u16::MAX)), 0);
        let mut frame = frame::udp_frame(source, target, from, to, &whole)?;
        frame.get_mut(UDP_CHECKSUM)?.fill(0);
        frame.truncate(HEADERS + kept);
        frame
    };
    let millis = u64::try_from(at.0).unwrap_or(0);
    let seconds = u32::try_from(millis / 1_000).unwrap_or(u32::MAX);
    let micros = u32::try_from(millis % 1_000).unwrap_or(0) * 1_000;
    let included = u32::try_from(frame.len()).ok()?;
    let original = u32::try_from(HEADERS + length).ok()?;
    let mut record = Vec::with_capacity(16 + frame.len());
    for field in [seconds, micros, included, original] {
        record.extend(field.to_le_bytes());
    }
    record.extend(frame);
    Some(record)
}

/// A hardware address for a machine of which only the address is known: locally administered, its last four octets
/// those of the address. Broadcasts go to everybody.
#[must_use]
pub fn stand_in(address: Ipv4Addr) -> MacAddr {
    if address.is_broadcast() {
        return frame::EVERYBODY;
    }
    let [a, b, c, d] = address.octets();
    MacAddr([2, 0, a, b, c, d])
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;
    use crate::dhcp::client::ClientMessage;
    use model::{ClientArch, sighting::DhcpKind};

    const NODE: MacAddr = MacAddr([0x9c, 0x8e, 0x99, 0, 3, 1]);

    fn packet(payload: &[u8], length: usize) -> Captured<'_> {
        let from = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 68);
        let to = SocketAddrV4::new(Ipv4Addr::BROADCAST, 67);
        let target = stand_in(*to.ip());
        Captured {
            at: UnixMillis(1_700_000_000_123),
            source: NODE,
            target,
            from,
            to,
            payload,
            length,
        }
    }

    fn discover() -> Vec<u8> {
        ClientMessage::pxe(DhcpKind::Discover, 0xdead_beef, NODE, ClientArch(7)).message().encode()
    }

    #[test]
    fn what_is_written_reads_back() {
        let bytes = discover();
        let file = [file_header(), record(&packet(&bytes, bytes.len())).unwrap()].concat();
        let [read] = datagrams(&file).try_into().unwrap();
        assert_eq!(read.from.port(), 68);
        assert_eq!(read.to, SocketAddrV4::new(Ipv4Addr::BROADCAST, 67));
        assert_eq!(read.payload, bytes);
    }

    #[test]
    fn a_datagram_kept_in_part_keeps_its_length_and_claims_no_checksum() {
        let record = record(&packet(&[7; 100], 1_472)).unwrap();
        let number = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().unwrap());
        assert_eq!((number(4), number(8), number(12)), (123_000, 142, 1_514));
        assert_eq!(record.len(), 16 + 142);
        assert_eq!(record[16 + 16..16 + 18], [5, 220], "IPv4 length of 1,500");
        assert_eq!(record[16 + 40..16 + 42], [0, 0]);
    }

    #[test]
    fn what_was_no_datagram_is_no_record() {
        assert_eq!(record(&packet(&[0; 10], 70_000)), None);
        assert_eq!(record(&packet(&[0; 10], 3)).unwrap().len(), 16 + HEADERS + 3);
    }

    #[test]
    fn a_clock_before_1970_is_no_reason_to_fail() {
        let early = Captured { at: UnixMillis(-5), ..packet(&[], 0) };
        assert_eq!(record(&early).unwrap()[..8], [0; 8]);
    }

    /// tcpdump is in `tests/packages.txt`: it has to be there in CI.
    #[test]
    fn tcpdump_takes_the_file_apart_without_a_complaint() {
        let bytes = discover();
        let from = SocketAddrV4::new([192, 0, 2, 1].into(), 69);
        let to = SocketAddrV4::new([192, 0, 2, 77].into(), 1_029);
        let data = [&[0, 3, 0, 1][..], &[9; 60]].concat();
        let tftp = Captured { from, to, payload: &data, length: 1_472, ..packet(&[], 0) };
        let file =
            [file_header(), record(&packet(&bytes, bytes.len())).unwrap(), record(&tftp).unwrap()];
        let path = std::env::temp_dir().join(format!("volund-pcap-{}.pcap", std::process::id()));
        fs::write(&path, file.concat()).unwrap();
        let ran = Command::new("tcpdump").args(["-nn", "-vv", "-r"]).arg(&path).output();
        fs::remove_file(&path).unwrap();
        let output = match ran {
            Ok(output) => output,
            Err(error) if std::env::var_os("CI").is_some_and(|ci| ci == "true") => {
                panic!("tcpdump: {error}")
            }
            Err(error) => return println!("skipped: tcpdump: {error}"),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for part in ["0.0.0.0.68 > 255.255.255.255.67", "udp sum ok", "Discover", "DATA block 1"] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
        assert!(!text.contains("bad") && text.contains("length 1500"), "{text}");
    }
}
