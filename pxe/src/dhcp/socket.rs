//! A DHCP socket: many datagrams a call, each with the address it was sent to, and answers that leave by the right
//! interface from the right address.
//!
//! It decides nothing and remembers nothing.

use std::{
    io::{self, IoSlice, IoSliceMut},
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    os::fd::AsRawFd,
    time::Duration,
};

use nix::{
    libc,
    sys::socket::{
        ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrIn, recvmmsg,
        sendmmsg, setsockopt, sockopt,
    },
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::{error::PxeError, server::RECEIVE_BUFFER, state::LOOK_UP};

/// Datagrams read or sent by one call.
pub(super) const BATCH: usize = 64;
/// Longest datagram read; a longer one is cut and refused.
const MAX_DATAGRAM: usize = 4096;
/// Room for one `in_pktinfo` with its header.
const CONTROL: usize = 64;

/// A socket of DHCP on one network.
#[derive(Debug)]
pub(super) struct DhcpSocket {
    socket: UdpSocket,
    /// What every answer says of where it leaves.
    leaves: libc::in_pktinfo,
    /// Bytes the system really keeps, as it counts them.
    receive_buffer: usize,
}

/// A datagram heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Datagram {
    pub(super) from: SocketAddrV4,
    /// The address it was sent to: ours, or a broadcast.
    pub(super) to: Ipv4Addr,
    pub(super) payload: Vec<u8>,
}

/// Memory datagrams are read into.
#[derive(Debug)]
pub(super) struct Buffers(Vec<[u8; MAX_DATAGRAM]>);

impl Default for Buffers {
    fn default() -> Self {
        Self(vec![[0; MAX_DATAGRAM]; BATCH])
    }
}

impl DhcpSocket {
    /// With an interface: every address of it, broadcasts among them. Without: our own address only. The port is not
    /// shared: another server on this machine would take half of what comes.
    pub(super) fn bind(
        service: &'static str,
        server: Ipv4Addr,
        port: u16,
        interface: Option<&str>,
    ) -> Result<Self, PxeError> {
        let address = if interface.is_some() { Ipv4Addr::UNSPECIFIED } else { server };
        let addr = SocketAddrV4::new(address, port);
        let failed = |source| PxeError::bind(service, addr, source);
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
        let mut index = 0;
        if let Some(interface) = interface {
            let refused = |source| PxeError::Interface { interface: interface.to_owned(), source };
            socket.bind_device(Some(interface.as_bytes())).map_err(refused)?;
            let named = nix::net::if_::if_nametoindex(interface).map_err(io::Error::from);
            index = libc::c_int::try_from(named.map_err(refused)?).unwrap_or(0);
            socket.set_broadcast(true).map_err(failed)?;
        }
        let receive_buffer = widen(&socket).map_err(failed)?;
        setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)
            .map_err(|errno| failed(errno.into()))?;
        socket.set_nonblocking(true).map_err(failed)?;
        socket.bind(&addr.into()).map_err(failed)?;
        let leaves = libc::in_pktinfo {
            ipi_ifindex: index,
            ipi_spec_dst: libc::in_addr { s_addr: u32::from(server).to_be() },
            ipi_addr: libc::in_addr { s_addr: 0 },
        };
        Ok(Self { socket: socket.into(), leaves, receive_buffer })
    }

    /// The port it is bound to.
    pub(super) fn port(&self) -> io::Result<u16> {
        self.socket.local_addr().map(|address| address.port())
    }

    /// Bytes the system keeps of datagrams nobody read yet.
    pub(super) fn receive_buffer(&self) -> usize {
        self.receive_buffer
    }

    /// Waits until something can be read, at most so long.
    pub(super) fn wait(&self, limit: Duration) {
        let limit = Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&limit)) {
            // A signal ends the wait early, which is harmless.
            Ok(_) | Err(rustix::io::Errno::INTR) => (),
            Err(error) => {
                tracing::warn!(%error, "cannot wait for DHCP; trying again in a moment");
                std::thread::sleep(LOOK_UP);
            }
        }
    }

    /// Reads what is there, at most [`BATCH`] datagrams; empty when nothing is.
    pub(super) fn receive(&self, buffers: &mut Buffers) -> Vec<Datagram> {
        let mut slices: Vec<[IoSliceMut<'_>; 1]> =
            buffers.0.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
        let mut headers = MultiHeaders::<SockaddrIn>::preallocate(
            slices.len(),
            Some(Vec::with_capacity(CONTROL)),
        );
        let (fd, flags) = (self.socket.as_raw_fd(), MsgFlags::MSG_DONTWAIT);
        let results = match recvmmsg(fd, &mut headers, slices.iter_mut(), flags, None) {
            Ok(results) => results,
            // It is of an earlier answer (ICMP), or says that nothing is there.
            Err(error) => {
                if error != nix::errno::Errno::EAGAIN {
                    tracing::debug!(%error, "no DHCP datagram was read");
                }
                return vec![];
            }
        };
        let datagrams = results.filter_map(|message| {
            let to = message.cmsgs().ok()?.find_map(|control| match control {
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    Some(Ipv4Addr::from(u32::from_be(info.ipi_addr.s_addr)))
                }
                _ => None,
            });
            let from = SocketAddrV4::from(message.address?);
            let payload = message.iovs().flatten().copied().collect();
            Some(Datagram { from, to: to?, payload })
        });
        datagrams.collect()
    }

    /// Sends datagrams, each to its place; gives what became of each, in their order. Never waits: a full send
    /// buffer is an error of that datagram, and the client asks again.
    pub(super) fn send(&self, datagrams: &[(SocketAddrV4, &[u8])]) -> Vec<io::Result<()>> {
        let mut results = Vec::with_capacity(datagrams.len());
        while let Some(rest) = datagrams.get(results.len()..).filter(|rest| !rest.is_empty()) {
            match self.send_some(rest) {
                Ok(sent) => results.extend((0..sent.max(1)).map(|_| Ok(()))),
                // Of the first of them: the others have not been tried.
                Err(error) => results.push(Err(error)),
            }
        }
        results
    }

    /// Sends the first of these, and as many more as the system takes.
    fn send_some(&self, datagrams: &[(SocketAddrV4, &[u8])]) -> io::Result<usize> {
        let batch = datagrams.iter().take(BATCH);
        let slices: Vec<[IoSlice<'_>; 1]> =
            batch.clone().map(|(_, payload)| [IoSlice::new(payload)]).collect();
        let addresses: Vec<Option<SockaddrIn>> = batch.map(|(to, _)| Some((*to).into())).collect();
        let mut headers =
            MultiHeaders::preallocate(slices.len(), Some(Vec::with_capacity(CONTROL_OUT)));
        let leaves = [ControlMessage::Ipv4PacketInfo(&self.leaves)];
        let (fd, flags) = (self.socket.as_raw_fd(), MsgFlags::MSG_DONTWAIT);
        Ok(sendmmsg(fd, &mut headers, &slices, &addresses, leaves, flags)?.count())
    }
}

/// `CMSG_SPACE(sizeof(in_pktinfo))`: the control data of an answer has to be exactly this long.
const CONTROL_OUT: usize = 32;

/// Makes the receive buffer as large as we may; gives what it is then.
fn widen(socket: &Socket) -> io::Result<usize> {
    // Needs CAP_NET_ADMIN; without it the system stops at net.core.rmem_max and says nothing.
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER).is_err() {
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    }
    SockRef::from(socket).recv_buffer_size()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: Ipv4Addr = Ipv4Addr::new(127, 78, 0, 2);
    const BOUND: Duration = Duration::from_secs(10);

    fn heard(socket: &DhcpSocket, want: usize) -> Vec<Datagram> {
        let (mut buffers, mut all) = (Buffers::default(), vec![]);
        while all.len() < want {
            socket.wait(BOUND);
            let some = socket.receive(&mut buffers);
            assert!(!some.is_empty(), "{} of {want} heard", all.len());
            all.extend(some);
        }
        all
    }

    #[test]
    fn many_datagrams_are_read_in_one_call_with_where_they_came_from_and_went_to() {
        let socket = DhcpSocket::bind("DHCP", SERVER, 0, None).unwrap();
        let client = UdpSocket::bind("127.78.0.9:0").unwrap();
        let (to, from) = (SocketAddrV4::new(SERVER, socket.port().unwrap()), client.local_addr());
        for n in 0..100_u8 {
            client.send_to(&vec![n; usize::from(n) + 1], to).unwrap();
        }
        for (n, datagram) in (0..).zip(heard(&socket, 100)) {
            assert_eq!(std::net::SocketAddr::from(datagram.from), *from.as_ref().unwrap());
            assert_eq!((datagram.to, datagram.payload), (SERVER, vec![n; usize::from(n) + 1]));
        }
        assert_eq!(socket.receive(&mut Buffers::default()), vec![]);
    }

    #[test]
    fn answers_leave_from_our_own_address_and_one_that_fails_stops_no_other() {
        let socket = DhcpSocket::bind("DHCP", SERVER, 0, None).unwrap();
        let client = UdpSocket::bind("127.78.0.9:0").unwrap();
        client.set_read_timeout(Some(BOUND)).unwrap();
        let to = match client.local_addr().unwrap() {
            std::net::SocketAddr::V4(to) => to,
            std::net::SocketAddr::V6(to) => panic!("{to}"),
        };
        let nowhere = SocketAddrV4::new(Ipv4Addr::BROADCAST, 68);
        let mut datagrams: Vec<(SocketAddrV4, &[u8])> = vec![(to, b"a"); 70];
        datagrams.push((nowhere, b"b"));
        datagrams.push((to, b"c"));
        let results = socket.send(&datagrams);
        let failed: Vec<_> = (0..).zip(&results).filter(|(_, result)| result.is_err()).collect();
        assert_eq!((results.len(), failed.len(), failed[0].0), (72, 1, 70), "no broadcast right");
        for want in [&[b"a".as_slice(); 70][..], &[b"c"]].concat() {
            let mut buffer = [0; 9];
            let (length, from) = client.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..length], from.ip()), (want, SERVER.into()));
        }
    }
}
