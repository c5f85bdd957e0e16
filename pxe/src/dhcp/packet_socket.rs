//! Frames of one interface: sent whole to a machine that has no address yet, and heard when another DHCP server
//! answers.
//!
//! A packet socket needs CAP_NET_RAW. It hears what reaches this machine: broadcasts, and frames to itself. Answers
//! a switch carries to another port only are not heard.

use std::{io, os::fd::AsRawFd, time::Duration};

use model::MacAddr;
use nix::{ifaddrs::getifaddrs, sys::socket::LinkAddr};
use pxe_proto::frame::{self, Heard};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

/// `ETH_P_IP` in network order, as `socket(2)` wants it of a packet socket: IPv4 that comes in, not our own.
const INCOMING_IPV4: i32 = 0x0800_u16.to_be() as i32;
/// No protocol: a socket that hears nothing.
const NOTHING: i32 = 0;
/// Longest frame read whole; longer ones are no DHCP.
const MAX_FRAME: usize = 2048;

/// A packet socket bound to one interface.
#[derive(Debug)]
pub(super) struct PacketSocket {
    socket: Socket,
    mac: MacAddr,
}

impl PacketSocket {
    /// A socket that only sends.
    ///
    /// # Errors
    /// Without CAP_NET_RAW, and when the interface is no Ethernet.
    pub(super) fn sender(interface: &str) -> io::Result<Self> {
        Self::open(interface, NOTHING)
    }

    /// A socket that hears UDP datagrams sent from port 67, and nothing else.
    ///
    /// # Errors
    /// Without CAP_NET_RAW, and when the interface is no Ethernet.
    pub(super) fn hearing_servers(interface: &str, limit: Duration) -> io::Result<Self> {
        let heard = Self::open(interface, INCOMING_IPV4)?;
        heard.socket.set_nonblocking(false)?;
        heard.socket.set_read_timeout(Some(limit))?;
        Ok(heard)
    }

    fn open(interface: &str, protocol: i32) -> io::Result<Self> {
        let link = link_address(interface)?;
        let mac = link.addr().map(MacAddr).ok_or(io::ErrorKind::Unsupported)?;
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(protocol)))?;
        socket.attach_filter(&FROM_SERVERS)?;
        nix::sys::socket::bind(socket.as_raw_fd(), &link)?;
        // What came between these calls passed no filter, and may be of another interface.
        socket.set_nonblocking(true)?;
        while io::Read::read(&mut &socket, &mut [0; 1]).is_ok() {}
        Ok(Self { socket, mac })
    }

    /// The interface's own hardware address.
    pub(super) fn mac(&self) -> MacAddr {
        self.mac
    }

    /// Sends a frame as it is; never waits for the interface.
    pub(super) fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.socket.send(frame).map(|_| ())
    }

    /// Waits for a datagram of a server, at most as long as was said, and hands it over.
    pub(super) fn hear<T>(&self, take: impl FnOnce(Heard<'_>) -> Option<T>) -> Option<T> {
        let mut buffer = [0; MAX_FRAME];
        let length = io::Read::read(&mut &self.socket, &mut buffer).ok()?;
        take(frame::udp_of_frame(buffer.get(..length)?)?)
    }
}

/// The link address of an interface, as the system tells it.
fn link_address(interface: &str) -> io::Result<LinkAddr> {
    let mut named = getifaddrs()?.filter(|address| address.interface_name == interface);
    let link = named.find_map(|address| address.address?.as_link_addr().copied());
    link.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Classic BPF over an Ethernet frame: IPv4, UDP, first fragment, source port 67 (the form of `tcpdump -d`).
const FROM_SERVERS: [SockFilter; 11] = [
    SockFilter::new(LOAD_HALF, 0, 0, 12),
    SockFilter::new(JUMP_EQUAL, 0, 8, 0x0800),
    SockFilter::new(LOAD_BYTE, 0, 0, 23),
    SockFilter::new(JUMP_EQUAL, 0, 6, 17),
    SockFilter::new(LOAD_HALF, 0, 0, 20),
    SockFilter::new(JUMP_SET, 4, 0, 0x1fff),
    SockFilter::new(LOAD_IP_HEADER_LENGTH, 0, 0, 14),
    SockFilter::new(LOAD_HALF_INDEXED, 0, 0, 14),
    SockFilter::new(JUMP_EQUAL, 0, 1, 67),
    SockFilter::new(RETURN, 0, 0, 0xffff),
    SockFilter::new(RETURN, 0, 0, 0),
];
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF_INDEXED: u16 = 0x48;
const LOAD_IP_HEADER_LENGTH: u16 = 0xb1;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_SET: u16 = 0x45;
const RETURN: u16 = 0x06;
