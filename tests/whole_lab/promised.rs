//! Every file that a DHCP reply or a script names is really served: each kind of client asks as it would, takes what the
//! reply names, and fetches it and everything the script names in turn. In each mode of DHCP, for each kind of profile.
//!
//! The lab's own blades stand in their self test meanwhile, so that nobody else asks for their nodes.

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use model::{ClientArch, MacAddr, sighting::DhcpKind};
use plan::Phase;
use pxe_proto::dhcp::{ClientMessage, Message, Op, RelayInfo, code};
use tokio::{net::UdpSocket, time::timeout};
use twin::{LabBlade, blade::Pace, http::Url};

use crate::{
    rig::{PORTS, QUICK, Rig, Setup},
    wire,
};

/// In place of 4011, which needs no rights but may be taken.
const PROXY_PORT: u16 = 6_011;
/// Longer than the test: the blades never come to ask by themselves.
const NEVER: Duration = Duration::from_secs(3_600);

type Speaks = fn(DhcpKind, u32, MacAddr, ClientArch) -> ClientMessage;

/// Who reads what is to be started, once a loader runs. A node's texts stand under the names of all three.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Ipxe,
    Grub,
    Pxelinux,
}
use Reader::{Grub, Ipxe, Pxelinux};

/// Kinds of clients, each for a bay of its own: what it speaks, its architecture, what it is to be named, what reads on.
const CLIENTS: [(&str, Speaks, u16, &str, Reader); 11] = [
    ("BIOS ROM", ClientMessage::pxe, 0, "undionly.kpxe", Ipxe),
    ("UEFI x86-64", ClientMessage::pxe, 7, "snponly.efi", Ipxe),
    ("UEFI x86-64, by its other number", ClientMessage::pxe, 9, "snponly.efi", Ipxe),
    ("UEFI x86", ClientMessage::pxe, 6, "ia32.efi", Ipxe),
    ("UEFI arm64", ClientMessage::pxe, 11, "arm64.efi", Ipxe),
    ("HTTP boot x86-64", ClientMessage::http_boot, 16, "snponly.efi", Ipxe),
    ("HTTP boot arm64", ClientMessage::http_boot, 19, "arm64.efi", Ipxe),
    ("iPXE on BIOS", ClientMessage::ipxe, 0, "boot.ipxe", Ipxe),
    ("iPXE on UEFI", ClientMessage::ipxe, 7, "boot.ipxe", Ipxe),
    ("pxelinux", ClientMessage::pxe, 0, "undionly.kpxe", Pxelinux),
    ("GRUB", ClientMessage::pxe, 7, "snponly.efi", Grub),
];

#[tokio::test]
async fn every_file_a_reply_or_script_names_is_served_where_addresses_are_reserved() {
    prove("dhcp = \"reserved\"", false).await;
}

#[tokio::test]
async fn every_file_a_reply_or_script_names_is_served_where_others_get_addresses_of_a_pool() {
    prove("dhcp = \"full\"\npool = \"127.0.OCTET.100-127.0.OCTET.150\"", false).await;
}

#[tokio::test]
async fn every_file_a_reply_or_script_names_is_served_beside_another_server() {
    prove("dhcp = \"proxy\"\nproxy_port = 6011", true).await;
}

async fn prove(network: &'static str, proxy: bool) {
    let pace = Pace { post: NEVER, ..QUICK };
    let bays = u8::try_from(CLIENTS.len()).unwrap();
    let rig = Rig::ready(Setup { bays, pace, network, ..Setup::default() }).await;
    for profile in ["local", "ram", "install", "inspect"] {
        let blades = || rig.lab.blades.iter().zip(CLIENTS);
        if profile != "local" {
            rig.switch(&format!("bld-[001-{bays:03}]"), profile).await;
        }
        for (blade, (name, speaks, arch, wanted, reader)) in blades() {
            if profile != "local" {
                rig.in_phase(blade.name.as_str(), Phase::Booting).await;
            }
            let what = format!("{name}, {profile}");
            let client = Client { rig: &rig, blade, proxy, what };
            let arch = ClientArch(arch);
            let file = client.asks(|kind, xid| speaks(kind, xid, blade.macs[0], arch)).await;
            assert!(file.contains(wanted), "{}: told {file:?}", client.what);
            client.loads(&file).await;
            let text = client.reads(reader, arch).await;
            client.runs(&text, profile).await;
        }
        for (blade, _) in blades().filter(|_| ["ram", "install"].contains(&profile)) {
            rig.in_phase(blade.name.as_str(), Phase::Done).await;
        }
    }
}

/// One machine as it boots.
struct Client<'a> {
    rig: &'a Rig,
    blade: &'a LabBlade,
    proxy: bool,
    /// For complaints.
    what: String,
}

impl Client<'_> {
    /// Asks DHCP, through the lab's relay as far as addresses go; gives the boot file that was named.
    async fn asks(&self, message: impl Fn(DhcpKind, u32) -> ClientMessage) -> String {
        let discover = message(DhcpKind::Discover, 0x0102_0304);
        let offer = self.relayed(&discover).await;
        assert_eq!(offer.kind(), Some(DhcpKind::Offer), "{}", self.what);
        if self.proxy {
            assert_eq!(offer.yiaddr, Ipv4Addr::UNSPECIFIED, "{}: a proxy gives none", self.what);
            let request = ClientMessage {
                ciaddr: self.blade.address,
                ..message(DhcpKind::Request, 0x0506_0708)
            };
            let ack = self.on_4011(&request).await;
            assert_eq!(ack.kind(), Some(DhcpKind::Ack), "{}", self.what);
            let (offered, told) = (self.file(&offer), self.file(&ack));
            assert!(offered.is_empty() || offered == told, "{}: {offered}, {told}", self.what);
            return told;
        }
        assert_eq!(offer.yiaddr, self.blade.address, "{}", self.what);
        let ack = self.relayed(&discover.selecting(offer.yiaddr, offer.siaddr)).await;
        assert_eq!(ack.kind(), Some(DhcpKind::Ack), "{}", self.what);
        assert_eq!(self.file(&offer), self.file(&ack), "{}", self.what);
        self.file(&ack)
    }

    /// Through the lab's relay.
    async fn relayed(&self, message: &ClientMessage) -> Message {
        let relay = Ipv4Addr::new(127, 0, self.rig.octet, 200);
        let info = RelayInfo { circuit_id: Some(b"1".to_vec()), source_port: true };
        let sent = message.message().through_relay(relay, &info);
        self.exchange(&sent, relay, self.rig.dhcp_port()).await
    }

    /// As a client asks a boot server that is no DHCP server (PXE 2.1): with the address it has.
    async fn on_4011(&self, message: &ClientMessage) -> Message {
        let server = SocketAddr::from((server(self.rig).unwrap(), PROXY_PORT));
        self.exchange(&message.message(), self.blade.address, server).await
    }

    async fn exchange(&self, sent: &Message, from: Ipv4Addr, to: SocketAddr) -> Message {
        let socket = UdpSocket::bind((from, 0)).await.unwrap();
        let mut buffer = [0; 2048];
        // Loopback loses nothing, but a queue that is full for a moment does.
        for _try in 0..5 {
            socket.send_to(&sent.encode(), to).await.unwrap();
            let wait = Duration::from_secs(2);
            if let Ok(answer) = timeout(wait, socket.recv_from(&mut buffer)).await {
                let answer = Message::decode(&buffer[..answer.unwrap().0]).unwrap();
                assert_eq!((answer.op, answer.xid), (Op::Reply, sent.xid), "{}", self.what);
                return answer;
            }
        }
        panic!("{}: no answer to {:?}\n{}", self.what, sent.kind(), self.rig.log_text());
    }

    /// What a reply names: in option 67, and the same in `file` where both are there.
    fn file(&self, reply: &Message) -> String {
        let text = |bytes: &[u8]| {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8(bytes[..end].to_vec()).unwrap()
        };
        let option = reply.options.get(code::BOOT_FILE).map(text).unwrap_or_default();
        let field = text(&reply.file);
        assert!(
            field.is_empty() || option.is_empty() || field == option,
            "{}: {field:?} and {option:?}",
            self.what
        );
        assert_eq!(Some(reply.siaddr), server(self.rig), "{}: next server", self.what);
        if option.is_empty() { field } else { option }
    }

    /// Fetches a loader the way its name says.
    async fn loads(&self, file: &str) {
        if file.starts_with("http://") {
            return self.fetches(file, Whole::Yes).await;
        }
        self.reads_over_tftp(file).await;
    }

    async fn reads_over_tftp(&self, file: &str) {
        let [_, tftp, _] = PORTS;
        let from = SocketAddr::from((server(self.rig).unwrap(), tftp));
        let read = twin::tftp::read(self.blade.address, from, file).await;
        let bytes = read.unwrap_or_else(|error| panic!("{}: {file}: {error}", self.what));
        assert!(bytes > 0, "{}: {file} is empty", self.what);
    }

    /// The text that says what to start: where DHCP says it is, or under the name its loader asks for.
    async fn reads(&self, reader: Reader, arch: ClientArch) -> String {
        let mac = self.blade.macs[0];
        let target = match reader {
            Grub => format!("/grub/grub.cfg-01-{}", mac.hyphenated()),
            Pxelinux => format!("/pxelinux.cfg/01-{}", mac.hyphenated()),
            Ipxe => {
                let starter = ClientArch(if arch.0 == 0 { 0 } else { 7 });
                let ipxe = |kind, xid| ClientMessage::ipxe(kind, xid, mac, starter);
                let url = Url::parse(&self.asks(ipxe).await).unwrap();
                assert_eq!(SocketAddr::V4(url.host), self.rig.boot_port(), "{}", self.what);
                url.target
            }
        };
        let answer = wire::get(self.rig, self.blade.address, &target).await;
        assert_eq!(answer.status, 200, "{}: {target}", self.what);
        String::from_utf8(answer.body).unwrap()
    }

    /// Fetches everything a text names; the kernel last, since with it the boot is under way, and then calls back.
    async fn runs(&self, text: &str, profile: &str) {
        let files = urls(text, server(self.rig).unwrap());
        let with = |end: &'static str| files.iter().filter(move |url| url.ends_with(end));
        let is_early = |url: &&String| !url.ends_with("/kernel") && !url.ends_with("/done");
        assert_eq!(with("/kernel").count() > 0, profile != "local", "{}: {text}", self.what);
        for url in files.iter().filter(is_early).chain(with("/kernel")) {
            self.fetches(url, Whole::Yes).await;
        }
        for url in with("/done") {
            self.fetches(url, Whole::No).await;
        }
    }

    async fn fetches(&self, url: &str, whole: Whole) {
        if let Some(rest) = url.strip_prefix("tftp://") {
            let (host, file) = rest.split_once('/').unwrap();
            assert_eq!(host.parse().ok(), server(self.rig), "{}: {url}", self.what);
            return self.reads_over_tftp(&format!("/{file}")).await;
        }
        let parsed = Url::parse(url).unwrap_or_else(|error| panic!("{}: {error}", self.what));
        assert_eq!(SocketAddr::V4(parsed.host), self.rig.boot_port(), "{}: {url}", self.what);
        let answer = wire::get(self.rig, self.blade.address, &parsed.target).await;
        assert_eq!(answer.status, 200, "{}: {url}", self.what);
        assert!(answer.length > 0 || whole == Whole::No, "{}: {url} is empty", self.what);
    }
}

/// Whether a body has to be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    Yes,
    No,
}

fn server(rig: &Rig) -> Option<Ipv4Addr> {
    match rig.boot_port() {
        SocketAddr::V4(address) => Some(*address.ip()),
        SocketAddr::V6(_) => None,
    }
}

/// Every URL of a text, once. GRUB writes them as `(http,HOST)/PATH`, pxelinux `::PATH` for its own server's TFTP. One
/// without a path names no file: the agent puts paths of its own behind it.
fn urls(text: &str, server: Ipv4Addr) -> BTreeSet<String> {
    let text = text.replace("(http,", "http://").replace("(tftp,", "tftp://").replace(")/", "/");
    let text = text.replace("::", &format!("tftp://{server}/"));
    let words = text.split_ascii_whitespace().map(|word| word.trim_end_matches(['\'', ';']));
    let found = words.filter_map(|word| {
        let at = word.find("http://").or_else(|| word.find("tftp://"))?;
        word.get(at..)
    });
    found.filter(|url| url.matches('/').count() > 2).map(str::to_owned).collect()
}
