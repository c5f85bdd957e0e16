//! For tests: UDP payloads out of a capture file, and where the recorded captures are.

use std::{fs, net::SocketAddrV4, path::PathBuf};

/// A UDP datagram of a capture.
#[derive(Debug)]
pub(crate) struct Datagram {
    pub(crate) from: SocketAddrV4,
    pub(crate) to: SocketAddrV4,
    pub(crate) payload: Vec<u8>,
}

/// A file of the folder `shared` beside the repository. Missing: fails in CI, says so elsewhere.
pub(crate) fn shared(path: &str) -> Option<Vec<u8>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(path);
    match fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) if std::env::var_os("CI").is_some_and(|ci| ci == "true") => {
            panic!("{}: {error}", path.display())
        }
        Err(error) => {
            println!("skipped: {}: {error}", path.display());
            None
        }
    }
}

/// All whole IPv4 UDP datagrams of a little-endian Ethernet pcap.
pub(crate) fn datagrams(pcap: &[u8]) -> Vec<Datagram> {
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap()) as usize;
    assert_eq!(number(&pcap[..4]), 0xa1b2_c3d4, "little-endian pcap");
    let (mut at, mut found) = (24, vec![]);
    while let Some(head) = pcap.get(at..at + 16) {
        let kept = number(&head[8..12]);
        let frame = &pcap[at + 16..at + 16 + kept];
        at += 16 + kept;
        found.extend(datagram(frame));
    }
    found
}

fn datagram(frame: &[u8]) -> Option<Datagram> {
    let ip = frame.get(14..).filter(|_| frame[12..14] == [8, 0])?;
    let udp = ip.get(usize::from(ip[0] & 15) * 4..).filter(|_| ip[9] == 17)?;
    let port = |at: usize| u16::from_be_bytes([udp[at], udp[at + 1]]);
    let socket = |at: usize, port| {
        SocketAddrV4::new(<[u8; 4]>::try_from(&ip[at..at + 4]).unwrap().into(), port)
    };
    // A capture may have cut the frame short: then the datagram is left out.
    let payload = udp.get(8..usize::from(port(4)))?.to_vec();
    Some(Datagram { from: socket(12, port(0)), to: socket(16, port(2)), payload })
}
