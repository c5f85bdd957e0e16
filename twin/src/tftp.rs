//! The TFTP client of a PXE ROM: reads one file in lock step (RFC 1350, 2347 to 2349).
//!
//! The bytes are counted and dropped: what a modelled machine "runs" next is known anyway.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use pxe_proto::tftp::packet::{Packet, Request};
use tokio::{
    net::UdpSocket,
    time::{Instant, timeout_at},
};

/// Waits before a packet is sent again, and a last one: about what ROMs do.
const WAITS: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(4),
];
/// Ethernet's 1500 bytes less IP, UDP and TFTP headers.
const BLKSIZE: usize = 1468;
/// A boot file is some hundred kilobytes; beyond this the server is broken.
const MOST: u64 = 64 * 1024 * 1024;

/// Why a file did not arrive.
#[derive(Debug, thiserror::Error)]
pub enum TftpError {
    /// The socket failed.
    #[error("TFTP socket failed")]
    Io(#[from] io::Error),
    /// No packet in time.
    #[error("TFTP timed out")]
    Silent,
    /// The server said no.
    #[error("TFTP error {code}: {message}")]
    Refused {
        /// Error code.
        code: u16,
        /// The server's words.
        message: String,
    },
    /// The transfer does not add up.
    #[error("TFTP transfer has {got} bytes, the server promised {promised}")]
    Size {
        /// Bytes received.
        got: u64,
        /// Option tsize.
        promised: u64,
    },
}

/// A transfer in the making.
struct Transfer {
    socket: UdpSocket,
    /// Where our packets go: the server's port, then that of the transfer.
    to: SocketAddr,
    /// The last packet sent, for repetition.
    last: Vec<u8>,
    blksize: usize,
    tsize: Option<u64>,
    block: u16,
    bytes: u64,
}

/// Reads `file` and tells its size in bytes.
///
/// # Errors
/// When it does not arrive whole.
pub async fn read(from: Ipv4Addr, server: SocketAddr, file: &str) -> Result<u64, TftpError> {
    let socket = UdpSocket::bind((from, 0)).await?;
    let blksize = BLKSIZE.to_string();
    let request = Request {
        file: file.as_bytes(),
        mode: b"octet",
        options: vec![(b"tsize", b"0"), (b"blksize", blksize.as_bytes())],
    };
    let last = Packet::Read(request).encode();
    let mut transfer =
        Transfer { socket, to: server, last, blksize: 512, tsize: None, block: 0, bytes: 0 };
    while !transfer.exchange(server).await? {}
    match transfer.tsize {
        Some(promised) if promised != transfer.bytes => {
            Err(TftpError::Size { got: transfer.bytes, promised })
        }
        _ => Ok(transfer.bytes),
    }
}

impl Transfer {
    /// Sends what is due until it is answered by something new. True when the last block is here.
    async fn exchange(&mut self, server: SocketAddr) -> Result<bool, TftpError> {
        let mut buffer = [0; 2048];
        for wait in WAITS {
            self.socket.send_to(&self.last, self.to).await?;
            let deadline = Instant::now() + wait;
            while let Ok(received) = timeout_at(deadline, self.socket.recv_from(&mut buffer)).await
            {
                let (length, from) = received?;
                // The transfer's port is that of the first answer (RFC 1350, section 4).
                let known = self.to != server;
                if from.ip() != server.ip() || (known && from != self.to) {
                    continue;
                }
                let Ok(packet) = Packet::decode(buffer.get(..length).unwrap_or_default()) else {
                    continue;
                };
                self.to = from;
                if let Some(done) = self.take(&packet)? {
                    if done {
                        self.socket.send_to(&self.last, self.to).await?;
                    }
                    return Ok(done);
                }
            }
        }
        Err(TftpError::Silent)
    }

    /// Some when the packet is new; then `last` is its acknowledgement.
    fn take(&mut self, packet: &Packet<'_>) -> Result<Option<bool>, TftpError> {
        match packet {
            Packet::OptionAck(options) if self.block == 0 && self.bytes == 0 => {
                let number = |name: &[u8]| {
                    let same = |(have, _): &&(&[u8], &[u8])| have.eq_ignore_ascii_case(name);
                    let value = options.iter().find(same)?.1;
                    std::str::from_utf8(value).ok()?.parse::<u64>().ok()
                };
                let blksize = number(b"blksize").and_then(|size| usize::try_from(size).ok());
                self.blksize = blksize.unwrap_or(512);
                self.tsize = number(b"tsize");
                self.last = Packet::Ack { block: 0 }.encode();
                Ok(Some(false))
            }
            Packet::Data { block, payload } if *block == self.block.wrapping_add(1) => {
                self.block = *block;
                self.bytes += u64::try_from(payload.len()).unwrap_or(u64::MAX);
                if self.bytes > MOST {
                    let promised = self.tsize.unwrap_or(MOST);
                    return Err(TftpError::Size { got: self.bytes, promised });
                }
                self.last = Packet::Ack { block: *block }.encode();
                Ok(Some(payload.len() < self.blksize))
            }
            Packet::Error { code, message } => Err(TftpError::Refused {
                code: *code,
                message: String::from_utf8_lossy(message).into_owned(),
            }),
            // A repetition: our acknowledgement was lost; the next wait sends it again.
            Packet::Data { .. } | Packet::OptionAck(_) => Ok(None),
            Packet::Read(_) | Packet::Write(_) | Packet::Ack { .. } => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::serve_file;

    /// Serves `file` once with the server's own machine; the first answer is lost when `lossy`.
    async fn server(file: Vec<u8>, lossy: bool) -> SocketAddr {
        let listener = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let mut buffer = [0; 2048];
            if lossy {
                listener.recv_from(&mut buffer).await.unwrap();
            }
            let (length, client) = listener.recv_from(&mut buffer).await.unwrap();
            let Packet::Read(request) = Packet::decode(&buffer[..length]).unwrap() else {
                panic!()
            };
            if request.file == b"missing" {
                let error = Packet::Error { code: 1, message: b"no such file" };
                listener.send_to(&error.encode(), client).await.unwrap();
                return;
            }
            serve_file(&request.options, client, &file).await;
        });
        address
    }

    #[tokio::test]
    async fn a_file_arrives_whole_whatever_its_size() {
        for size in [0, 1, 1467, 1468, 1469, 100_000] {
            let server = server(vec![7; size], false).await;
            let got = read(Ipv4Addr::new(127, 0, 9, 13), server, "undionly.kpxe").await.unwrap();
            assert_eq!(got, u64::try_from(size).unwrap());
        }
    }

    #[tokio::test]
    async fn a_lost_request_is_sent_again_and_a_refusal_is_told() {
        let lossy = server(vec![7; 3000], true).await;
        assert_eq!(read(Ipv4Addr::LOCALHOST, lossy, "f").await.unwrap(), 3000);
        let refusing = server(vec![], false).await;
        let error = read(Ipv4Addr::LOCALHOST, refusing, "missing").await.unwrap_err();
        assert_eq!(error.to_string(), "TFTP error 1: no such file");
    }
}
