//! Router advertisements that make nobody a router.
//!
//! iPXE configures IPv4 and IPv6 side by side and waits thirteen seconds for a router that never answers. An
//! advertisement with lifetime 0 and no prefix ends that wait and changes nothing on any host (RFC 4861, 6.2.3).

use std::{
    io,
    net::{Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket},
    time::{Duration, Instant},
};

use model::MacAddr;
use pxe_proto::frame;
use socket2::{Domain, Protocol, Socket, Type};

use crate::state::{LOOK_UP, State};

/// How often everybody is told; within the bounds of RFC 4861, 6.2.1.
const PERIOD: Duration = Duration::from_secs(240);
/// Least time between two advertisements to everybody (`MIN_DELAY_BETWEEN_RAS`, RFC 4861, 6.2.6 and 10).
const REST: Duration = Duration::from_secs(3);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// Neighbour discovery is never forwarded: any other hop limit is refused.
const HOPS: u32 = 255;

/// Advertises on one interface.
#[derive(Debug)]
pub(super) struct Advertiser {
    /// A raw socket: the standard library's type sends and hears on it as on any other.
    socket: UdpSocket,
    index: u32,
    message: [u8; 24],
}

impl Advertiser {
    /// # Errors
    /// Without CAP_NET_RAW, and on an interface without IPv6.
    pub(super) fn open(interface: &str, mac: MacAddr) -> io::Result<Self> {
        let index = nix::net::if_::if_nametoindex(interface)?;
        let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
        socket.bind_device(Some(interface.as_bytes()))?;
        socket.join_multicast_v6(&ALL_ROUTERS, index)?;
        socket.set_multicast_if_v6(index)?;
        socket.set_multicast_hops_v6(HOPS)?;
        socket.set_unicast_hops_v6(HOPS)?;
        // Our own advertisements are no news to us.
        socket.set_multicast_loop_v6(false)?;
        socket.set_read_timeout(Some(LOOK_UP))?;
        Ok(Self { socket: socket.into(), index, message: frame::router_advertisement(mac) })
    }

    /// Serves until told to stop. What cannot be sent now, such as on an interface that is down, is sent next time.
    pub(super) fn run(&self, state: &State) {
        let (mut last, mut next) = (Instant::now(), Instant::now());
        while !state.stop.is_cancelled() {
            if next <= Instant::now() {
                self.send(ALL_NODES);
                (last, next) = (Instant::now(), Instant::now() + PERIOD);
            }
            match self.solicited() {
                // It has no address yet, and hears what everybody hears.
                Some(from) if from.is_unspecified() => next = next.min(last + REST),
                Some(from) => self.send(from),
                None => (),
            }
        }
    }

    /// Who asks for routers, if somebody does within a moment.
    fn solicited(&self) -> Option<Ipv6Addr> {
        // Only the type counts: the system has checked the checksum, and cuts off the rest.
        let mut kind = [0];
        let (_, SocketAddr::V6(from)) = self.socket.recv_from(&mut kind).ok()? else { return None };
        (kind == [frame::ROUTER_SOLICITATION]).then_some(*from.ip())
    }

    fn send(&self, to: Ipv6Addr) {
        let to = SocketAddrV6::new(to, 0, 0, self.index);
        if let Err(error) = self.socket.send_to(&self.message, to) {
            tracing::debug!(%to, %error, "could not send a router advertisement");
        }
    }
}
