//! Packets of boots on disk: a pcap file a boot, bounded in every direction, and never a reason to wait.
//!
//! Files lie in `boots/NODE/ATTEMPT.pcap` of the state directory. They are a help and no record: a packet that cannot
//! be written is lost, which is said once until writing works again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions},
    io::{self, Write},
    net::{Ipv4Addr, SocketAddrV4},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use model::{MacAddr, NodeName, UnixMillis};
use pxe::{Packet, PacketSink};
use pxe_proto::pcap::{self, Captured};

/// Bytes of a boot's file.
const BYTES: u64 = 4 * 1024 * 1024;
/// Packets of a boot.
const PACKETS: u32 = 4_096;
/// Boots of a node.
const BOOTS: usize = 20;
/// Packets written at once.
const BATCH: usize = 512;
/// Bytes kept of a packet that is no DHCP: the head of a TFTP block says which it is.
const KEPT: usize = 160;
/// Boots whose packets are counted at once; a file whose count was forgotten is bounded by its size alone.
const COUNTED: usize = 4_096;

/// Where the packets of boots are kept.
#[derive(Debug)]
pub(super) struct PacketFiles {
    dir: PathBuf,
    /// Our own addresses: who sent a packet decides which end of its frame is the node.
    ours: BTreeSet<Ipv4Addr>,
    counts: Mutex<BTreeMap<(NodeName, UnixMillis), u32>>,
}

/// Why packets were not kept.
#[derive(Debug, thiserror::Error)]
#[error("could not {what} {}", path.display())]
struct Unkept {
    what: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

impl PacketFiles {
    /// Files under `boots` of the state directory, which is made with the first packet.
    pub(super) fn new(state_dir: &Path, ours: impl Iterator<Item = Ipv4Addr>) -> Self {
        let dir = state_dir.join("boots");
        Self { dir, ours: ours.collect(), counts: Mutex::default() }
    }

    /// Writes down what comes, until the sink's owner stops. Packets that come faster than the disk takes them are
    /// dropped by the sink, the oldest first.
    pub(super) async fn keep(self: Arc<Self>, sink: PacketSink) {
        let mut works = true;
        loop {
            let mut batch = vec![sink.recv().await];
            batch.extend(std::iter::from_fn(|| sink.try_recv()).take(BATCH));
            let files = Arc::clone(&self);
            let written = tokio::task::spawn_blocking(move || files.write(&batch)).await;
            let error = match written {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(anyhow::Error::new(error)),
                Err(error) => Some(anyhow::Error::new(error)),
            };
            match &error {
                Some(error) if works => {
                    tracing::warn!("packets of boots are not kept for now: {error:#}");
                }
                Some(_) | None => (),
            }
            works = error.is_none();
        }
    }

    /// The boots of a node whose packets are kept.
    pub(super) fn boots(&self, node: &NodeName) -> BTreeSet<UnixMillis> {
        boots_in(&self.folder(node))
    }

    /// The file of a boot, if there is one.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub(super) fn read(&self, node: &NodeName, boot: UnixMillis) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.file(node, boot)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn folder(&self, node: &NodeName) -> PathBuf {
        self.dir.join(node.as_str())
    }

    fn file(&self, node: &NodeName, boot: UnixMillis) -> PathBuf {
        self.folder(node).join(format!("{}.pcap", boot.0))
    }

    /// Writes each boot's packets of a batch in their order.
    fn write(&self, batch: &[Packet]) -> Result<(), Unkept> {
        let mut boots: BTreeMap<(&NodeName, UnixMillis), Vec<&Packet>> = BTreeMap::new();
        for packet in batch {
            // Between two boots a system asks DHCP as well; that belongs to none.
            let Some(attempt) = packet.attempt else { continue };
            boots.entry((&packet.node, attempt)).or_default().push(packet);
        }
        boots.into_iter().try_for_each(|((node, boot), packets)| self.append(node, boot, &packets))
    }

    fn append(&self, node: &NodeName, boot: UnixMillis, packets: &[&Packet]) -> Result<(), Unkept> {
        let path = self.file(node, boot);
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source| Unkept { what, path, source }
        };
        let mut file = self.open(node, &path).map_err(failed("open", &path))?;
        let mut size = file.metadata().map_err(failed("measure", &path))?.len();
        let mut bytes = if size == 0 { pcap::file_header() } else { Vec::new() };
        let mut room = self.room(node, boot);
        for packet in packets {
            let Some(record) = self.record(packet) else { continue };
            size += u64::try_from(record.len()).unwrap_or(u64::MAX);
            if room == 0 || size > BYTES {
                break;
            }
            room -= 1;
            bytes.extend(record);
        }
        // One write a batch: a kill leaves at most one record cut short, which readers say and live with.
        file.write_all(&bytes).map_err(failed("write to", &path))?;
        self.count(node, boot, PACKETS - room);
        Ok(())
    }

    /// Opens the file of a boot; the oldest boots go when it is a new one.
    fn open(&self, node: &NodeName, path: &Path) -> io::Result<File> {
        match OpenOptions::new().append(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => (),
            opened => return opened,
        }
        let folder = self.folder(node);
        fs::create_dir_all(&folder)?;
        let old = boots_in(&folder);
        for boot in old.iter().rev().skip(BOOTS - 1) {
            fs::remove_file(self.file(node, *boot))?;
        }
        OpenOptions::new().create(true).append(true).open(path)
    }

    /// Packets a boot may still have.
    fn room(&self, node: &NodeName, boot: UnixMillis) -> u32 {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        PACKETS - counts.get(&(node.clone(), boot)).copied().unwrap_or(0)
    }

    fn count(&self, node: &NodeName, boot: UnixMillis, packets: u32) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= COUNTED {
            counts.clear();
        }
        counts.insert((node.clone(), boot), packets.min(PACKETS));
    }

    /// The packet as a record, its frame made up. Of what is no DHCP the head is kept.
    fn record(&self, packet: &Packet) -> Option<Vec<u8>> {
        let Packet { at, mac, from, to, ref payload, length, .. } = *packet;
        // Whichever port it is served on: the cookie is where RFC 2131 puts it.
        let is_dhcp = payload.get(236..240) == Some(&[99, 130, 83, 99]);
        let keep = if is_dhcp { payload.len() } else { KEPT };
        let payload = payload.get(..keep.min(payload.len()))?;
        let (source, target) = self.ends(mac, from, to);
        pcap::record(&Captured { at, source, target, from, to, payload, length })
    }

    /// Hardware addresses of sender and receiver: the node's own, and a stand-in for ours.
    fn ends(&self, node: MacAddr, from: SocketAddrV4, to: SocketAddrV4) -> (MacAddr, MacAddr) {
        if !self.ours.contains(from.ip()) {
            (node, pcap::stand_in(*to.ip()))
        } else if to.ip().is_broadcast() {
            (pcap::stand_in(*from.ip()), pcap::stand_in(*to.ip()))
        } else {
            (pcap::stand_in(*from.ip()), node)
        }
    }
}

fn boots_in(folder: &Path) -> BTreeSet<UnixMillis> {
    // No folder: no boots.
    let Ok(entries) = fs::read_dir(folder) else { return BTreeSet::new() };
    let boot = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_suffix(".pcap")?.parse().ok().map(UnixMillis)
    };
    entries.filter_map(Result::ok).filter_map(boot).collect()
}

#[cfg(test)]
mod tests {
    use std::{process::Command, time::Duration};

    use super::*;

    const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Self {
            let name = format!("volund-packets-{name}-{}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            fs::create_dir_all(&dir).unwrap();
            Self(dir)
        }

        fn files(&self) -> PacketFiles {
            PacketFiles::new(&self.0, [SERVER].into_iter())
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn node() -> NodeName {
        "bld-003".parse().unwrap()
    }

    /// A DISCOVER of a ROM that names a transaction.
    fn packet(attempt: i64, xid: u8) -> Packet {
        let mac = MacAddr([0x9c, 0x8e, 0x99, 0, 3, 1]);
        let mut payload = vec![1, 1, 6, 0, 0, 0, 0, xid];
        payload.resize(28, 0);
        payload.extend(mac.octets());
        payload.resize(236, 0);
        payload.extend([99, 130, 83, 99, 53, 1, 1, 255]);
        payload.resize(300, 0);
        Packet {
            at: UnixMillis(attempt + i64::from(xid)),
            node: node(),
            attempt: Some(UnixMillis(attempt)),
            mac,
            from: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 68),
            to: SocketAddrV4::new(Ipv4Addr::BROADCAST, 67),
            length: payload.len(),
            payload,
        }
    }

    fn block(attempt: i64) -> Packet {
        let payload = [&[0, 3, 0, 1][..], &[9; 1_400]].concat();
        let from = SocketAddrV4::new(SERVER, 40_000);
        let to = SocketAddrV4::new([192, 0, 2, 77].into(), 1_029);
        Packet { from, to, length: payload.len(), payload, ..packet(attempt, 1) }
    }

    #[test]
    fn the_packets_of_each_boot_are_a_file_of_their_own() {
        let dir = Dir::new("each");
        let files = dir.files();
        let stray = Packet { attempt: None, ..packet(1, 9) };
        files.write(&[packet(1_000, 1), packet(2_000, 1), stray]).unwrap();
        files.write(&[packet(1_000, 2), block(1_000)]).unwrap();
        assert_eq!(files.boots(&node()), [UnixMillis(1_000), UnixMillis(2_000)].into());
        let first = files.read(&node(), UnixMillis(1_000)).unwrap().unwrap();
        assert_eq!(first.len(), 24 + 2 * (16 + 42 + 300) + 16 + 42 + KEPT);
        assert_eq!(files.read(&node(), UnixMillis(3_000)).unwrap(), None);
    }

    #[test]
    fn a_boot_has_bounded_packets_and_a_node_bounded_boots() {
        let dir = Dir::new("bounds");
        let files = dir.files();
        let storm = vec![packet(1_000, 1); 5_000];
        files.write(&storm).unwrap();
        files.write(&storm).unwrap();
        let size = 24 + 4_096 * (16 + 42 + 300);
        assert_eq!(files.read(&node(), UnixMillis(1_000)).unwrap().unwrap().len(), size);
        // After a restart the count is not known, and the size holds.
        let again = dir.files();
        for _ in 0..4 {
            again.write(&storm).unwrap();
        }
        let kept = again.read(&node(), UnixMillis(1_000)).unwrap().unwrap().len();
        assert!(kept > size && kept <= 4 * 1024 * 1024, "{kept}");
        for boot in 2..=30 {
            files.write(&[packet(boot * 1_000, 1)]).unwrap();
        }
        let kept: Vec<i64> = files.boots(&node()).into_iter().map(|boot| boot.0).collect();
        assert_eq!(kept, (11..=30).map(|boot| boot * 1_000).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_disk_that_takes_nothing_loses_packets_and_stops_nobody() {
        let dir = Dir::new("full");
        // A file where the folder should be: nothing can be written below it.
        fs::write(dir.0.join("boots"), "").unwrap();
        let (files, sink) = (Arc::new(dir.files()), PacketSink::new(8));
        let keeper = tokio::spawn(Arc::clone(&files).keep(sink.clone()));
        sink.push(packet(1_000, 1));
        assert!(files.write(&[packet(1_000, 1)]).is_err());
        fs::remove_file(dir.0.join("boots")).unwrap();
        let written = async {
            while files.boots(&node()).is_empty() {
                sink.push(packet(1_000, 2));
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), written).await.expect("it goes on");
        assert!(!keeper.is_finished());
        keeper.abort();
        assert!(keeper.await.unwrap_err().is_cancelled());
    }

    /// tcpdump is in `tests/packages.txt`: it has to be there in CI.
    #[test]
    fn tcpdump_reads_what_was_kept() {
        let dir = Dir::new("tcpdump");
        let files = dir.files();
        files.write(&[packet(1_000, 1), block(1_000)]).unwrap();
        let path = files.file(&node(), UnixMillis(1_000));
        let output =
            match Command::new("tcpdump").args(["-nn", "-e", "-v", "-r"]).arg(&path).output() {
                Ok(output) => output,
                Err(error) if std::env::var_os("CI").is_some_and(|ci| ci == "true") => {
                    panic!("tcpdump: {error}")
                }
                Err(error) => return println!("skipped: tcpdump: {error}"),
            };
        let text = String::from_utf8_lossy(&output.stdout);
        for part in [
            "9c:8e:99:00:03:01 > ff:ff:ff:ff:ff:ff",
            "BOOTP/DHCP, Request from 9c:8e:99:00:03:01",
            "02:00:c0:00:02:01 > 9c:8e:99:00:03:01",
            "192.0.2.1.40000 > 192.0.2.77.1029",
        ] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }
}
