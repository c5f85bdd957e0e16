//! TFTP over real sockets, with packets lost by the client.

use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    time::Duration,
};

use model::Sighted;
use pxe_proto::tftp::{Packet, Request};

use super::{BOUND, Lab, NODE, at, lines};

/// A reader at the node's address, or another.
pub(super) struct Reader {
    pub(super) socket: UdpSocket,
    server: SocketAddr,
}

impl Reader {
    pub(super) fn new(lab: &Lab) -> Self {
        Self::from(lab, NODE)
    }

    pub(super) fn from(lab: &Lab, address: Ipv4Addr) -> Self {
        let socket = UdpSocket::bind(at(address)).unwrap();
        socket.set_read_timeout(Some(BOUND)).unwrap();
        Self { socket, server: lab.bound.tftp.into() }
    }

    pub(super) fn ask(&self, file: &[u8], options: &[(&str, &str)]) {
        let options = options.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
        let request = Packet::Read(Request { file, mode: b"octet", options });
        self.socket.send_to(&request.encode(), self.server).unwrap();
    }

    pub(super) fn hear(&self) -> (Vec<u8>, SocketAddr) {
        let mut buffer = vec![0; 70_000];
        let (length, from) = self.socket.recv_from(&mut buffer).unwrap();
        buffer.truncate(length);
        (buffer, from)
    }

    pub(super) fn say(&self, packet: &Packet<'_>, to: SocketAddr) {
        self.socket.send_to(&packet.encode(), to).unwrap();
    }

    /// Reads to the end in lock-step; every `lose`th packet is thrown away as if it had not come.
    pub(super) fn read(&self, blksize: usize, lose: usize) -> Vec<u8> {
        let (mut file, mut next, mut count) = (vec![], 1_u16, 0);
        loop {
            let (bytes, from) = self.hear();
            count += 1;
            if lose > 0 && count % lose == 0 {
                continue;
            }
            match Packet::decode(&bytes).unwrap() {
                Packet::OptionAck(_) => self.say(&Packet::Ack { block: 0 }, from),
                Packet::Data { block, payload } => {
                    let is_next = block == next;
                    if is_next {
                        file.extend_from_slice(payload);
                        next = next.wrapping_add(1);
                    }
                    self.say(&Packet::Ack { block: next.wrapping_sub(1) }, from);
                    if is_next && payload.len() < blksize {
                        return file;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

pub(super) fn content(length: usize) -> Vec<u8> {
    (0..length).map(|n| u8::try_from(n * 7 % 251).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_and_then_the_transfer_are_one_download() {
    let lab = Lab::start();
    let loader = content(100_000);
    lab.serve("snponly.efi", &loader);

    let probe = Reader::new(&lab);
    probe.ask(b"snponly.efi", &[("tsize", "0"), ("blksize", "1468"), ("windowsize", "4")]);
    let (oack, from) = probe.hear();
    assert_eq!(oack, b"\0\x06tsize\x00100000\0blksize\x001468\0windowsize\x004\0");
    assert_ne!(from, SocketAddr::from(lab.bound.tftp), "a transfer has a port of its own");
    probe.say(&Packet::Error { code: 8, message: b"User aborted the transfer" }, from);
    let first = lab.until("the probe", |what| matches!(what, Sighted::TftpProbe { .. })).await;

    let reader = Reader::new(&lab);
    reader.ask(b"\\snponly.efi\xff", &[("blksize", "1468")]);
    assert_eq!(reader.read(1468, 0), loader);

    let seen = lab.until("the end", |what| matches!(what, Sighted::TftpDone { .. })).await;
    let mut told = lines(&[first, seen].concat());
    told.iter_mut().for_each(|line| line.truncate(line.find(" in ").unwrap_or(line.len())));
    assert_eq!(
        told,
        [
            "TFTP asked for snponly.efi",
            "TFTP size asked of snponly.efi",
            "TFTP asked for snponly.efi",
            "TFTP sent snponly.efi, 100000 bytes",
        ]
    );
    probe.socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(probe.socket.recv(&mut [0; 10]).is_err(), "nothing more after the abort");
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_packets_are_sent_again_and_the_file_is_whole() {
    let lab = Lab::start();
    let loader = content(60_000);
    lab.serve("undionly.kpxe", &loader);
    for (lose, blksize) in [(2, 1024), (3, 512), (5, 1428)] {
        let reader = Reader::new(&lab);
        match blksize {
            512 => reader.ask(b"undionly.kpxe", &[]),
            other => reader.ask(b"undionly.kpxe", &[("blksize", &other.to_string())]),
        }
        assert!(reader.read(blksize, lose) == loader, "every {lose}th packet lost");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_names_of_the_table_are_served() {
    let lab = Lab::start();
    lab.serve("undionly.kpxe", b"x");
    std::fs::write(lab.folder.0.join("secret"), b"secret").unwrap();
    lab.change(|table| _ = table.files.insert("folder".to_owned(), lab.folder.0.clone()));
    let names: [&[u8]; 8] = [
        b"nope",
        b"../secret",
        b"secret",
        b"/etc/passwd",
        b"..\\..\\etc\\passwd",
        b"folder",
        b"",
        b"\xff\xfe",
    ];
    for name in names {
        let reader = Reader::new(&lab);
        reader.ask(name, &[]);
        let (bytes, _) = reader.hear();
        let Ok(Packet::Error { code, message }) = Packet::decode(&bytes) else {
            panic!("{bytes:?}")
        };
        assert_eq!(code, 1, "{name:?}");
        assert!(!message.contains(&b'/'), "no path of ours is told");
    }
    let writer = Reader::new(&lab);
    let request = Request { file: b"new", mode: b"octet", options: vec![] };
    writer.say(&Packet::Write(request), writer.server);
    assert!(matches!(Packet::decode(&writer.hear().0), Ok(Packet::Error { code: 2, .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_is_one_transfer_and_a_silent_client_is_told() {
    let lab = Lab::start();
    lab.serve("undionly.kpxe", &content(2000));
    let reader = Reader::new(&lab);
    for _ in 0..5 {
        reader.ask(b"undionly.kpxe", &[("tsize", "0")]);
    }
    let mut ports = std::collections::BTreeSet::new();
    for _ in 0..5 {
        ports.insert(reader.hear().1); // the OACK and its four repetitions
    }
    assert_eq!(ports.len(), 1);
    let seen = lab.until("the end", |what| matches!(what, Sighted::TftpFailed { .. })).await;
    assert_eq!(
        lines(&seen),
        [
            "TFTP asked for undionly.kpxe",
            "TFTP undionly.kpxe failed: the client went silent after 0 blocks"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_closes_its_port_after_the_size_or_the_last_block_is_no_failure() {
    let lab = Lab::start();
    lab.serve("undionly.kpxe", &content(100));
    let probe = Reader::new(&lab);
    probe.ask(b"undionly.kpxe", &[("tsize", "0")]);
    assert!(probe.hear().0.starts_with(b"\0\x06tsize\x00100\0"));
    drop(probe);
    let seen = lab.until("the probe", |what| matches!(what, Sighted::TftpProbe { .. })).await;
    assert!(!seen.iter().any(|s| matches!(s.what, Sighted::TftpFailed { .. })), "{seen:?}");

    let reader = Reader::new(&lab);
    reader.ask(b"undionly.kpxe", &[]);
    assert_eq!(reader.hear().0.len(), 104, "the only block; its ACK is lost");
    drop(reader);
    let seen = lab.until("the end", |what| matches!(what, Sighted::TftpDone { .. })).await;
    assert!(!seen.iter().any(|s| matches!(s.what, Sighted::TftpFailed { .. })), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_cannot_be_served_are_refused_and_the_next_one_is_served() {
    // Field case 15 and its kin, as they come over the wire.
    let lab = Lab::start();
    lab.serve("boot.bin", &content(100));
    let refused: [&[u8]; 9] = [
        b"",
        b"\0",
        b"\0\x01",
        b"\0\x01boot",
        b"\0\x01boot.bin\0octet",
        b"\0\x01boot.bin\0netascii\0",
        b"\0\x01boot.bin\0mail\0",
        b"\0\x01boot.bin\0\0",
        b"\0\x09\0\0",
    ];
    let reader = Reader::new(&lab);
    for request in refused {
        reader.socket.send_to(request, reader.server).unwrap();
        let (answer, _) = reader.hear();
        let code = Packet::decode(&answer).unwrap();
        assert!(matches!(code, Packet::Error { code: 4, .. }), "{request:?}: {code:?}");
    }
    let absurd = [
        "blksize=0",
        "blksize=-1",
        "blksize=99999999999",
        "blksize=1e3",
        "blksize= 512",
        "blksize=0x200",
        "windowsize=0",
        "windowsize=99999",
        "timeout=0",
        "timeout=256",
        "tsize=-1",
        "multicast=",
        "=",
        "=512",
    ];
    for option in absurd {
        let (name, value) = option.split_once('=').unwrap();
        let reader = Reader::new(&lab);
        reader.ask(b"boot.bin", &[(name, value)]);
        let (block, from) = reader.hear();
        assert_eq!(&block[..4], b"\0\x03\0\x01", "{option}: no OACK, block 1 at once");
        assert_eq!(block.len(), 104, "{option}");
        reader.say(&Packet::Ack { block: 1 }, from);
    }
    for option in [("blksize", "0512"), ("BlkSize", "512"), ("blksize", "65464")] {
        let reader = Reader::new(&lab);
        reader.ask(b"boot.bin", &[option]);
        assert!(reader.hear().0.starts_with(b"\0\x06"), "{option:?} is a number in range");
    }
}
