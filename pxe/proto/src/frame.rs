//! Whole frames, for what an ordinary socket cannot send: a UDP datagram in an Ethernet frame to a machine that has
//! no address yet, the ICMP echo of a conflict check, the router advertisement that spares iPXE a wait.
//!
//! It builds and takes apart bytes. It fragments nothing, and it does not check what a network card has checked.

use std::net::{Ipv4Addr, SocketAddrV4};

use model::MacAddr;

/// The hardware address of everybody on a segment.
pub const EVERYBODY: MacAddr = MacAddr([0xff; 6]);

const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const UDP: u8 = 17;
const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

/// A UDP datagram out of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard<'f> {
    /// Hardware address it was sent from.
    pub mac: MacAddr,
    /// Sender.
    pub from: SocketAddrV4,
    /// Receiver.
    pub to: SocketAddrV4,
    /// Payload.
    pub payload: &'f [u8],
}

/// An Ethernet II frame with an IPv4 UDP datagram, both checksums set (RFC 768, 791). `None` when the payload does
/// not fit into one datagram.
#[must_use]
pub fn udp_frame(
    source: MacAddr,
    target: MacAddr,
    from: SocketAddrV4,
    to: SocketAddrV4,
    payload: &[u8],
) -> Option<Vec<u8>> {
    let udp_length = u16::try_from(UDP_HEADER + payload.len()).ok()?;
    let ip_length = udp_length.checked_add(IP_HEADER.try_into().ok()?)?;
    let mut frame = Vec::with_capacity(14 + usize::from(ip_length));
    frame.extend(target.octets());
    frame.extend(source.octets());
    frame.extend(ETHERTYPE_IPV4);
    frame.extend(ip_header(ip_length, *from.ip(), *to.ip()));
    let mut udp = [0; UDP_HEADER];
    let fields = [from.port(), to.port(), udp_length, 0];
    for (place, field) in udp.chunks_exact_mut(2).zip(fields) {
        place.copy_from_slice(&field.to_be_bytes());
    }
    let sum = udp_sum(&from, &to, udp_length, &udp, payload);
    let (head, tail) = udp.split_at_mut(6);
    tail.copy_from_slice(&sum.to_be_bytes());
    frame.extend_from_slice(head);
    frame.extend_from_slice(tail);
    frame.extend_from_slice(payload);
    Some(frame)
}

/// An IPv4 header without options: not to be fragmented, time to live 64.
fn ip_header(length: u16, from: Ipv4Addr, to: Ipv4Addr) -> [u8; IP_HEADER] {
    let [high, low] = length.to_be_bytes();
    let ([a, b, c, d], [e, f, g, h]) = (from.octets(), to.octets());
    let header = |sum: u16| {
        let [x, y] = sum.to_be_bytes();
        [0x45, 0, high, low, 0, 0, 0x40, 0, 64, UDP, x, y, a, b, c, d, e, f, g, h]
    };
    header(checksum(&[&header(0)]))
}

/// The UDP checksum over pseudo header, header and payload; an all-zero sum is sent as all ones.
fn udp_sum(
    from: &SocketAddrV4,
    to: &SocketAddrV4,
    length: u16,
    header: &[u8],
    payload: &[u8],
) -> u16 {
    let [high, low] = length.to_be_bytes();
    let (from, to) = (from.ip().octets(), to.ip().octets());
    match checksum(&[&from, &to, &[0, UDP, high, low], header, payload]) {
        0 => u16::MAX,
        sum => sum,
    }
}

/// The Internet checksum (RFC 1071). All parts but the last have an even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let sum: u32 = words
        .map(|word| {
            let high = word.first().copied().unwrap_or_default();
            u32::from(u16::from_be_bytes([high, word.get(1).copied().unwrap_or_default()]))
        })
        .sum();
    // Two folds are enough: a datagram has fewer than 2^16 words.
    let folded = (sum >> 16) + (sum & 0xffff);
    let folded = (folded >> 16) + (folded & 0xffff);
    !u16::try_from(folded & 0xffff).unwrap_or_default()
}

/// The UDP datagram of an Ethernet frame; `None` for anything else, for a fragment, and for a frame cut short.
#[must_use]
pub fn udp_of_frame(frame: &[u8]) -> Option<Heard<'_>> {
    let (_target, rest) = frame.split_first_chunk::<6>()?;
    let (source, rest) = rest.split_first_chunk::<6>()?;
    let (kind, ip) = rest.split_first_chunk::<2>()?;
    let (&first, &protocol) = (ip.first()?, ip.get(9)?);
    if *kind != ETHERTYPE_IPV4 || first >> 4 != 4 || protocol != UDP {
        return None;
    }
    let fragment = u16::from_be_bytes([*ip.get(6)?, *ip.get(7)?]) & 0x3fff;
    let address = |at: usize| {
        let octets: [u8; 4] = ip.get(at..at + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(octets))
    };
    let udp = ip.get(usize::from(first & 15) * 4..).filter(|_| fragment == 0)?;
    let word = |at: usize| Some(u16::from_be_bytes([*udp.get(at)?, *udp.get(at + 1)?]));
    Some(Heard {
        mac: MacAddr(*source),
        from: SocketAddrV4::new(address(12)?, word(0)?),
        to: SocketAddrV4::new(address(16)?, word(2)?),
        payload: udp.get(UDP_HEADER..usize::from(word(4)?))?,
    })
}

/// An ICMP echo request (RFC 792).
#[must_use]
pub fn echo_request(identifier: u16, sequence: u16) -> [u8; 8] {
    let ([a, b], [c, d]) = (identifier.to_be_bytes(), sequence.to_be_bytes());
    let [x, y] = checksum(&[&[8, 0, 0, 0, a, b, c, d]]).to_be_bytes();
    [8, 0, x, y, a, b, c, d]
}

/// Who answered an echo request of this identifier, out of an IPv4 packet as a raw socket gives it.
#[must_use]
pub fn echo_reply(packet: &[u8], identifier: u16) -> Option<Ipv4Addr> {
    let icmp = packet.get(usize::from(packet.first()? & 15) * 4..)?;
    let from: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
    let [a, b] = identifier.to_be_bytes();
    let is_ours = icmp.first() == Some(&0) && icmp.get(4..6) == Some(&[a, b]);
    is_ours.then(|| from.into())
}

/// A router solicitation's ICMPv6 type (RFC 4861, 4.1).
pub const ROUTER_SOLICITATION: u8 = 133;

/// A router advertisement of a host that routes nothing (RFC 4861, 4.2): router lifetime 0, no prefix, no flags, and
/// our hardware address. It changes no host's routes or addresses; it tells iPXE that there is nothing to wait for.
/// The checksum is the system's to fill in, and the hop limit has to be 255.
#[must_use]
pub fn router_advertisement(ours: MacAddr) -> [u8; 24] {
    let mut message = [0; 24];
    let [a, b, c, d, e, f] = ours.octets();
    for (place, byte) in message.iter_mut().zip([134]) {
        *place = byte;
    }
    // Option 1, one unit of eight bytes: source link-layer address.
    for (place, byte) in message.iter_mut().skip(16).zip([1, 1, a, b, c, d, e, f]) {
        *place = byte;
    }
    message
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OURS: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const THEIRS: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);

    fn socket(last: u8, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new([192, 0, 2, last].into(), port)
    }

    /// The sum over a whole packet, its checksum included, is zero (RFC 1071).
    fn is_whole(parts: &[&[u8]]) -> bool {
        checksum(parts) == 0
    }

    #[test]
    fn a_frame_of_known_bytes() {
        // The UDP checksum by hand: c000 0201 c000 0205 0011 000b, 0043 0044 000b and 6869 2100 add up to 2_0e1d, with
        // the carries folded in 0e1f, and its complement is f1e0.
        let frame = udp_frame(OURS, THEIRS, socket(1, 67), socket(5, 68), b"hi!").unwrap();
        let want = [
            &[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0][..],
            &[0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0xb6, 0xc7, 192, 0, 2, 1, 192, 0, 2, 5],
            &[0, 67, 0, 68, 0, 11, 0xf1, 0xe0],
        ]
        .concat();
        assert_eq!(&frame[..42], want);
        assert_eq!(&frame[42..], b"hi!");
        assert!(is_whole(&[&frame[14..34]]), "IPv4 header");
        assert!(is_whole(&[&frame[26..34], &[0, 17, 0, 11], &frame[34..]]), "UDP");
    }

    #[test]
    fn an_echo_and_its_reply() {
        let request = echo_request(0x1234, 1);
        assert!(is_whole(&[&request]));
        let mut reply = ip_header(28, [192, 0, 2, 5].into(), [192, 0, 2, 1].into()).to_vec();
        reply.extend([0, 0, 0, 0, 0x12, 0x34, 0, 1]);
        assert_eq!(echo_reply(&reply, 0x1234), Some([192, 0, 2, 5].into()));
        assert_eq!(echo_reply(&reply, 0x1235), None, "of another program");
        reply[20] = 8;
        assert_eq!(echo_reply(&reply, 0x1234), None, "a request");
    }

    #[test]
    fn an_advertisement_makes_nobody_a_router() {
        let message = router_advertisement(OURS);
        assert_eq!(message[0], 134);
        assert_eq!(message[1..16], [0; 15], "no flags, lifetime 0");
        assert_eq!(message[16..], [1, 1, 2, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn what_is_too_long_for_one_datagram_is_no_frame() {
        assert_eq!(udp_frame(OURS, THEIRS, socket(1, 67), socket(5, 68), &[0; 65_508]), None);
        assert!(udp_frame(OURS, THEIRS, socket(1, 67), socket(5, 68), &[0; 65_507]).is_some());
    }

    proptest! {
        #[test]
        fn a_datagram_comes_out_of_its_frame(payload in prop::collection::vec(any::<u8>(), 0..1500)) {
            let frame = udp_frame(OURS, THEIRS, socket(1, 67), socket(5, 68), &payload).unwrap();
            let heard = udp_of_frame(&frame).unwrap();
            prop_assert_eq!((heard.mac, heard.from, heard.to), (OURS, socket(1, 67), socket(5, 68)));
            prop_assert_eq!(heard.payload, &payload[..]);
            let length = u16::try_from(payload.len() + 8).unwrap().to_be_bytes();
            prop_assert!(is_whole(&[&frame[26..34], &[0, 17], &length, &frame[34..]]));
            for cut in 0..frame.len() {
                prop_assert_eq!(udp_of_frame(&frame[..cut]), None, "cut at {}", cut);
            }
        }

        #[test]
        fn no_frame_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut frame = vec![0; 12];
            frame.extend(ETHERTYPE_IPV4);
            frame.extend(&bytes);
            let _unused = (udp_of_frame(&bytes), udp_of_frame(&frame), echo_reply(&bytes, 7));
        }
    }
}
