//! The socket of one transfer: connected to its client, a window in one segmented send where the system can.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket},
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::socket::{getsockopt, setsockopt, sockopt},
};

use super::packets::HEADER;

/// Longest packet taken of a client: an ACK has four bytes, an ERROR a text.
const MAX_HEARD: usize = 1024;
/// IPv4 and UDP headers.
const IP_UDP: usize = 28;
/// No OACK and no ERROR of ours is longer: all options there are, with the largest values, take 69 bytes.
const LONGEST_OTHER: usize = 128;
/// The MTU of Ethernet, where the system does not tell.
const ETHERNET: u32 = 1500;

/// The socket of one transfer.
#[derive(Debug)]
pub(super) struct Wire {
    socket: UdpSocket,
    local: SocketAddrV4,
    /// Whether the system cuts a window into packets itself (UDP_SEGMENT).
    segments: bool,
    /// The read time-out that is set.
    patience: Duration,
}

/// What came of waiting.
pub(super) enum Heard {
    /// A packet of this many bytes.
    Packet(usize),
    /// Nothing in time.
    Nothing,
    /// The client's port is closed.
    Closed,
}

/// Whether a send went out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// As far as we know.
    Out,
    /// An earlier packet came back: the client's port is closed.
    Closed,
}

/// Where a client's packet is put.
pub(super) type Buffer = [u8; MAX_HEARD];

/// Room for a client's packet.
pub(super) const fn buffer() -> Buffer {
    [0; MAX_HEARD]
}

impl Wire {
    /// A socket of its own, with the address the client asked.
    pub(super) fn connect(server: Ipv4Addr, client: SocketAddrV4) -> io::Result<Self> {
        let socket = UdpSocket::bind(SocketAddrV4::new(server, 0))?;
        socket.connect(client)?;
        let local = match socket.local_addr()? {
            SocketAddr::V4(local) => local,
            SocketAddr::V6(_) => SocketAddrV4::new(server, 0),
        };
        Ok(Self { socket, local, segments: false, patience: Duration::ZERO })
    }

    /// Our end of it.
    pub(super) fn local(&self) -> SocketAddrV4 {
        self.local
    }

    /// The largest IP packet on the way to the client, as far as the system knows.
    pub(super) fn mtu(&self) -> u32 {
        let mtu = getsockopt(&self.socket, sockopt::IpMtu).ok();
        mtu.and_then(|mtu| u32::try_from(mtu).ok()).unwrap_or(ETHERNET)
    }

    /// Has the system cut what is sent into packets of `stride` bytes, where such a packet fits a frame: one that is
    /// longer has to be fragmented, which segments cannot be. Not where blocks are so short that the OACK would be cut
    /// up as well.
    pub(super) fn segment(&mut self, stride: usize) {
        let fits = u32::try_from(stride + IP_UDP).is_ok_and(|bytes| bytes <= self.mtu());
        let holds_others = stride >= LONGEST_OTHER;
        self.segments = fits && holds_others && self.set_segment(stride).is_ok();
    }

    fn set_segment(&self, stride: usize) -> nix::Result<()> {
        let stride = i32::try_from(stride).map_err(|_| Errno::EINVAL)?;
        setsockopt(&self.socket, sockopt::UdpGsoSegment, &stride)
    }

    /// Sends packets of `stride` bytes each, the last one perhaps shorter.
    pub(super) fn send_all(&mut self, packets: &[u8], stride: usize) -> io::Result<Sent> {
        if self.segments {
            match self.send(packets) {
                Err(error) if cannot_segment(&error) => {
                    // For good: the way to this client cannot do it.
                    tracing::debug!(%error, "segments are sent one by one");
                    self.segments = false;
                    self.set_segment(0)?;
                }
                sent => return sent,
            }
        }
        for packet in packets.chunks(stride.max(HEADER)) {
            if self.send(packet)? == Sent::Closed {
                return Ok(Sent::Closed);
            }
        }
        Ok(Sent::Out)
    }

    /// Sends one packet.
    pub(super) fn send(&self, packet: &[u8]) -> io::Result<Sent> {
        match self.socket.send(packet) {
            Ok(_) => Ok(Sent::Out),
            Err(error) if is_closed(&error) => Ok(Sent::Closed),
            // As if it got lost: it goes out again after the time-out.
            Err(error) if is_lost(&error) => Ok(Sent::Out),
            Err(error) => Err(error),
        }
    }

    /// Waits for a packet, about as long as `wait`, never for ever.
    pub(super) fn hear(&mut self, wait: Duration, buffer: &mut Buffer) -> io::Result<Heard> {
        self.be_patient(wait)?;
        match self.socket.recv(buffer) {
            Ok(length) => Ok(Heard::Packet(length)),
            Err(error) if is_timeout(&error) => Ok(Heard::Nothing),
            Err(error) if is_closed(&error) => Ok(Heard::Closed),
            Err(error) => Err(error),
        }
    }

    /// Sets the read time-out somewhat short, unless the one that is set will do: waking early costs less than a call
    /// of the system for each block.
    fn be_patient(&mut self, wait: Duration) -> io::Result<()> {
        let wait = wait.max(Duration::from_millis(1)); // zero would mean "for ever"
        if self.patience > wait || self.patience < wait / 2 {
            let patience = wait - wait / 8;
            self.socket.set_read_timeout(Some(patience))?;
            self.patience = patience;
        }
        Ok(())
    }
}

pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// ICMP port unreachable.
pub(super) fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

/// The system had no room for it just now.
fn is_lost(error: &io::Error) -> bool {
    matches!(errno(error), Errno::ENOBUFS | Errno::EAGAIN | Errno::EINTR)
}

/// No checksum offload (EIO), packets longer than the path takes now (EINVAL, EMSGSIZE), or no such thing.
fn cannot_segment(error: &io::Error) -> bool {
    matches!(
        errno(error),
        Errno::EIO | Errno::EINVAL | Errno::EMSGSIZE | Errno::EOPNOTSUPP | Errno::ENOPROTOOPT
    )
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Wire, UdpSocket) {
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let SocketAddr::V4(at) = client.local_addr().unwrap() else { panic!("v4") };
        let wire = Wire::connect(Ipv4Addr::LOCALHOST, at).unwrap();
        client.connect(wire.local()).unwrap();
        (wire, client)
    }

    #[test]
    fn a_window_arrives_as_packets_segmented_by_the_system_or_not() {
        let window: Vec<u8> = (0..64 * 516 - 300).map(|n| u8::try_from(n % 249).unwrap()).collect();
        for segments in [true, false] {
            let (mut wire, client) = pair();
            if segments {
                wire.segment(516);
            }
            assert_eq!(wire.send_all(&window, 516).unwrap(), Sent::Out);
            let mut got = vec![];
            for packet in window.chunks(516) {
                let mut buffer = [0; 2048];
                let length = client.recv(&mut buffer).unwrap();
                assert_eq!(length, packet.len());
                got.extend_from_slice(&buffer[..length]);
            }
            assert!(got == window, "segments: {segments}");
        }
    }

    #[test]
    fn a_refused_segmented_send_goes_out_packet_by_packet() {
        let (mut wire, client) = pair();
        // More than one UDP datagram may carry: the system refuses it whole (EMSGSIZE).
        wire.segment(1024);
        assert_eq!(wire.send_all(&[7; 70 * 1024], 1024).unwrap(), Sent::Out);
        assert!(!wire.segments);
        let mut buffer = [0; 2048];
        assert_eq!(client.recv(&mut buffer).unwrap(), 1024);
    }

    #[test]
    fn packets_longer_than_a_frame_are_never_segmented() {
        let (mut wire, _client) = pair();
        let mtu = usize::try_from(wire.mtu()).unwrap();
        wire.segment(mtu);
        assert!(!wire.segments);
    }
}
