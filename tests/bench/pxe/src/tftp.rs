//! A TFTP client that does what firmware does: options, windows, an ACK again after a gap or silence.

use std::{
    io,
    net::{Ipv4Addr, SocketAddrV4},
    time::{Duration, Instant},
};

use crate::udp;

/// What to fetch, and how.
#[derive(Debug, Clone)]
pub struct Fetch {
    /// The server.
    pub server: SocketAddrV4,
    /// Name of the file.
    pub file: String,
    /// Block size asked for.
    pub blksize: usize,
    /// Window asked for.
    pub windowsize: usize,
    /// When to give up.
    pub limit: Duration,
}

/// How a transfer went.
#[derive(Debug, Default, Clone, Copy)]
pub struct Fetched {
    /// Bytes of the file.
    pub bytes: u64,
    /// ACKs sent again.
    pub again: u64,
    /// Block size and window granted.
    pub granted: (usize, usize),
}

/// Silence before a request or an ACK is sent again.
const SILENCE: Duration = Duration::from_millis(500);

impl Fetch {
    /// Fetches from the address `from`.
    ///
    /// # Errors
    /// When the server refuses, or it takes too long.
    pub fn run(&self, from: Ipv4Addr) -> io::Result<Fetched> {
        let begun = Instant::now();
        let socket = udp(SocketAddrV4::new(from, 0));
        socket.set_read_timeout(Some(SILENCE))?;
        let request = format!(
            "\0\x01{}\0octet\0tsize\x000\0blksize\0{}\0windowsize\0{}\0",
            self.file, self.blksize, self.windowsize
        );
        socket.send_to(request.as_bytes(), self.server)?;
        let mut buffer = vec![0; 65_536];
        let mut granted = (512, 1);
        let (mut expected, mut size) = (1_u64, None);
        let mut done = Fetched::default();
        let mut in_window = 0;
        let mut peer: Option<SocketAddrV4> = None;
        let mut has_asked_again = false;
        loop {
            if begun.elapsed() > self.limit {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "not done in time"));
            }
            let (length, from) = match socket.recv_from(&mut buffer) {
                Ok((length, std::net::SocketAddr::V4(from))) => (length, from),
                Ok(_) => continue,
                Err(error) if is_silence(&error) => {
                    match peer {
                        None => _ = socket.send_to(request.as_bytes(), self.server)?,
                        Some(peer) => {
                            done.again += 1;
                            in_window = 0;
                            acknowledge(&socket, peer, expected - 1)?;
                        }
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            if peer.is_some_and(|peer| peer != from) {
                continue;
            }
            let packet = &buffer[..length];
            match (packet.get(1), packet.get(2..4)) {
                (Some(6), _) if peer.is_none() || expected == 1 => {
                    (granted, size) = granted_in(packet);
                    peer = Some(from);
                    acknowledge(&socket, from, 0)?;
                }
                (Some(3), Some(number)) => {
                    peer = Some(from);
                    let number = u64::from(u16::from_be_bytes([number[0], number[1]]));
                    if number == expected & 0xffff {
                        has_asked_again = false;
                        done.bytes += length as u64 - 4;
                        expected += 1;
                        in_window += 1;
                        let is_last = length - 4 < granted.0;
                        if is_last || in_window == granted.1 {
                            in_window = 0;
                            acknowledge(&socket, from, expected - 1)?;
                        }
                        if is_last {
                            break;
                        }
                    } else if !has_asked_again {
                        // A gap, or a block seen before: what is there is said once (RFC 7440, 4).
                        has_asked_again = true;
                        done.again += 1;
                        in_window = 0;
                        acknowledge(&socket, from, expected - 1)?;
                    }
                }
                (Some(5), _) => {
                    let text = String::from_utf8_lossy(packet.get(4..).unwrap_or_default());
                    return Err(io::Error::other(format!(
                        "server: {}",
                        text.trim_end_matches('\0')
                    )));
                }
                _ => (),
            }
        }
        done.granted = granted;
        match size {
            Some(size) if size != done.bytes => Err(io::Error::other("another length than told")),
            Some(_) | None => Ok(done),
        }
    }
}

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn acknowledge(socket: &std::net::UdpSocket, to: SocketAddrV4, block: u64) -> io::Result<()> {
    let [.., high, low] = block.to_be_bytes();
    socket.send_to(&[0, 4, high, low], to).map(|_| ())
}

/// Block size, window and length in an OACK.
fn granted_in(packet: &[u8]) -> ((usize, usize), Option<u64>) {
    let words: Vec<&str> = packet[2..]
        .split(|byte| *byte == 0)
        .map(|word| str::from_utf8(word).unwrap_or(""))
        .collect();
    let value = |name: &str| {
        let pair = words.chunks_exact(2).find(|pair| pair[0].eq_ignore_ascii_case(name))?;
        pair[1].parse::<u64>().ok()
    };
    let number =
        |name, default| value(name).and_then(|v| usize::try_from(v).ok()).unwrap_or(default);
    ((number("blksize", 512), number("windowsize", 1)), value("tsize"))
}
