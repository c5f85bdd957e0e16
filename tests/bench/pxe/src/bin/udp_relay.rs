//! Stands between TFTP clients and a server and loses packets by a seed, the same for every server.
//!
//! `udp_relay --listen ADDRESS:PORT --server ADDRESS:PORT --permille N --seed N`. Each transfer has its own two
//! sockets and its own chance, so that the same packets get lost, counted from its first, whoever serves.

use std::{
    net::{SocketAddr, SocketAddrV4, UdpSocket},
    thread,
    time::{Duration, Instant},
};

use bench::{Args, Chance, udp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A transfer without a packet for so long is over.
const SILENCE: Duration = Duration::from_secs(30);

fn main() {
    let mut args = Args::read();
    let listen: SocketAddrV4 = args.get("listen", "198.18.0.2:1069".parse().expect("a literal"));
    let server: SocketAddrV4 = args.get("server", "198.18.0.1:69".parse().expect("a literal"));
    let permille = args.get("permille", 10);
    let seed: u64 = args.get("seed", 1);
    args.done();
    let socket = udp(listen);
    let mut buffer = [0; 2048];
    while let Ok((length, SocketAddr::V4(client))) = socket.recv_from(&mut buffer) {
        let request = buffer[..length].to_vec();
        let relay = Relay {
            client,
            inside: udp(SocketAddrV4::new(*listen.ip(), 0)),
            outside: udp(SocketAddrV4::new(*listen.ip(), 0)),
            server: None,
            permille,
            chance: Chance(seed),
        };
        thread::spawn(move || relay.run(&request, server));
    }
}

struct Relay {
    client: SocketAddrV4,
    /// Towards the client.
    inside: UdpSocket,
    /// Towards the server.
    outside: UdpSocket,
    /// The server's address for this transfer, once it answered.
    server: Option<SocketAddrV4>,
    permille: u64,
    chance: Chance,
}

impl Relay {
    /// The request itself is never lost: what is measured is the transfer.
    fn run(mut self, request: &[u8], server: SocketAddrV4) {
        self.outside.send_to(request, server).ok();
        self.inside.set_nonblocking(true).ok();
        self.outside.set_nonblocking(true).ok();
        let mut last = Instant::now();
        let mut buffer = vec![0; 65_536];
        while last.elapsed() < SILENCE {
            let mut fds = [
                PollFd::new(&self.inside, PollFlags::IN),
                PollFd::new(&self.outside, PollFlags::IN),
            ];
            poll(&mut fds, Some(&Timespec { tv_sec: 1, tv_nsec: 0 })).ok();
            while let Ok((length, SocketAddr::V4(from))) = self.outside.recv_from(&mut buffer) {
                last = Instant::now();
                self.server = Some(from);
                if !self.chance.is_drawn(self.permille) {
                    self.inside.send_to(&buffer[..length], self.client).ok();
                }
            }
            while let Ok((length, _)) = self.inside.recv_from(&mut buffer) {
                last = Instant::now();
                if let (Some(server), false) = (self.server, self.chance.is_drawn(self.permille)) {
                    self.outside.send_to(&buffer[..length], server).ok();
                }
            }
        }
    }
}
