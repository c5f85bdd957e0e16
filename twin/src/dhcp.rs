//! The DHCP client of firmware and of iPXE (RFC 2131, section 4.4; PXE 2.1).

use std::{net::Ipv4Addr, time::Duration};

use model::{ClientArch, MacAddr, Uuid, sighting::DhcpKind};
use pxe_proto::dhcp::{ClientMessage, Message, Op, code};
use tokio::time::{Instant, timeout_at};

use crate::{chance::Chance, log::Log, relay::Port};

/// Waits after each try: tries at 0, 1, 3 and 7 s, and a last wait.
const WAITS_S: [u32; 4] = [1, 2, 4, 8];
/// How long iPXE listens for a proxyDHCP server's offer, unless told that there is none.
const PROXY_WAIT_S: u32 = 3;

/// Which stage asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// The PXE ROM.
    Rom,
    /// iPXE, loaded from the network.
    Ipxe,
}

/// What a server granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// yiaddr.
    pub address: Ipv4Addr,
    /// Where the boot file is: siaddr, or the server's identifier.
    pub next_server: Ipv4Addr,
    /// The boot file's name or URL.
    pub file: String,
}

/// Why there is no lease.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DhcpError {
    /// Nobody offered anything, or nobody answered the request.
    #[error("no DHCP or proxyDHCP offers were received")]
    NoOffer,
    /// An address came, and nothing to boot.
    #[error("no boot filename received")]
    NoFile,
    /// The server took its offer back.
    #[error("the server refused the address it had offered")]
    Refused,
}

/// A client: one network port of one machine, in one stage.
#[derive(Debug)]
pub struct DhcpClient<'a> {
    /// The port to the relay.
    pub port: &'a mut Port,
    /// Hardware address.
    pub mac: MacAddr,
    /// Machine id.
    pub uuid: Uuid,
    /// Who asks.
    pub asker: Asker,
    /// Scale of every wait; 1 is real time.
    pub scale: f64,
    /// Where steps are noted.
    pub log: &'a Log,
}

impl DhcpClient<'_> {
    /// Asks, takes the first usable offer, and returns when it is acknowledged.
    ///
    /// # Errors
    /// After the last wait; at once when an offer names nothing to boot.
    pub async fn run(&mut self, chance: &mut Chance) -> Result<Lease, DhcpError> {
        let [a, b, c, d, ..] = chance.next_u64().to_be_bytes();
        let discover = self.message(u32::from_be_bytes([a, b, c, d]));
        self.port.flush();
        let offer = self.converse(&discover, "dhcp discover", &[DhcpKind::Offer]).await?;
        // A ROM does not take an address it can boot nothing with.
        if lease(&offer).file.is_empty() && self.asker == Asker::Rom {
            return Err(DhcpError::NoFile);
        }
        if self.asker == Asker::Ipxe && !says_no_proxy(&offer) {
            tokio::time::sleep(self.seconds(PROXY_WAIT_S)).await;
        }
        let server = offer.options.address(code::SERVER_ID, &mut vec![]);
        let request = discover.selecting(offer.yiaddr, server.unwrap_or(offer.siaddr));
        let answers = [DhcpKind::Ack, DhcpKind::Nak];
        let answer = self.converse(&request, "dhcp request", &answers).await?;
        if answer.kind() == Some(DhcpKind::Nak) {
            self.log.step("dhcp nak");
            return Err(DhcpError::Refused);
        }
        self.log.step("dhcp ack");
        let lease = lease(&answer);
        if lease.file.is_empty() { Err(DhcpError::NoFile) } else { Ok(lease) }
    }

    fn message(&self, xid: u32) -> ClientMessage {
        let (kind, arch) = (DhcpKind::Discover, ClientArch(0));
        let message = match self.asker {
            Asker::Rom => ClientMessage::pxe(kind, xid, self.mac, arch),
            Asker::Ipxe => ClientMessage::ipxe(kind, xid, self.mac, arch),
        };
        // Option 97 carries the SMBIOS bytes: first three fields little-endian.
        ClientMessage { machine_id: Some(self.uuid.swapped().0), ..message }
    }

    /// Sends until one of the wanted kinds comes back.
    async fn converse(
        &mut self,
        message: &ClientMessage,
        step: &str,
        wanted: &[DhcpKind],
    ) -> Result<Message, DhcpError> {
        for wait in WAITS_S {
            self.log.step(step);
            self.port.send(message.message());
            let deadline = Instant::now() + self.seconds(wait);
            while let Ok(Some(answer)) = timeout_at(deadline, self.port.receive()).await {
                let mine = answer.op == Op::Reply
                    && answer.xid == message.xid
                    && answer.chaddr == message.chaddr;
                if mine && answer.kind().is_some_and(|kind| wanted.contains(&kind)) {
                    return Ok(answer);
                }
            }
            // The relay is gone: wait all the same, rather than send in a tight loop.
            tokio::time::sleep_until(deadline).await;
        }
        Err(DhcpError::NoOffer)
    }

    fn seconds(&self, seconds: u32) -> Duration {
        Duration::from_secs_f64(f64::from(seconds) * self.scale)
    }
}

/// What a reply grants. Option 67 goes before the field `file`; a zero at its end is no part of the name.
fn lease(reply: &Message) -> Lease {
    let option = reply.options.get(code::BOOT_FILE);
    let file = option.filter(|name| !name.is_empty()).unwrap_or(&reply.file);
    let end = file.iter().position(|byte| *byte == 0).unwrap_or(file.len());
    let file = String::from_utf8_lossy(file.get(..end).unwrap_or_default()).into_owned();
    let server = reply.options.address(code::SERVER_ID, &mut vec![]);
    let next = if reply.siaddr.is_unspecified() { server } else { Some(reply.siaddr) };
    Lease { address: reply.yiaddr, next_server: next.unwrap_or(Ipv4Addr::UNSPECIFIED), file }
}

/// Encapsulated option 175.176 = 1: "there is no proxyDHCP server, do not wait for one".
fn says_no_proxy(reply: &Message) -> bool {
    let mut area = reply.options.get(code::IPXE).unwrap_or_default();
    while let [code, length, rest @ ..] = area {
        let Some((value, rest)) = rest.split_at_checked(usize::from(*length)) else { return false };
        if *code == 0xb0 {
            return value == [1];
        }
        area = rest;
    }
    false
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use model::BayNumber;
    use pxe_proto::dhcp::{ClientMessage, Message, RelayInfo, kind_code};
    use tokio::{net::UdpSocket, sync::watch};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::relay::Relay;

    const MAC: MacAddr = MacAddr([0x9c, 0x8e, 0x99, 0, 3, 1]);

    /// A responder that hears `deaf` messages without answering and then grants `file`.
    async fn responder(deaf: usize, file: &'static [u8], ack: DhcpKind) -> (SocketAddr, Log) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (address, heard) = (socket.local_addr().unwrap(), Log::default());
        let log = heard.clone();
        tokio::spawn(async move {
            let mut buffer = [0; 2048];
            for number in 0.. {
                let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
                let asked = Message::decode(&buffer[..length]).unwrap();
                let relay = asked.relay_info().unwrap();
                log.step(format!(
                    "{:?} hops {} giaddr {} bay {:?} port {}",
                    asked.kind().unwrap(),
                    asked.hops,
                    asked.giaddr,
                    relay.circuit_text().unwrap(),
                    relay.source_port
                ));
                if number < deaf {
                    continue;
                }
                let mut answer = Message::new(Op::Reply, asked.xid, asked.chaddr);
                let kind =
                    if asked.kind() == Some(DhcpKind::Discover) { DhcpKind::Offer } else { ack };
                answer.options.set(code::MESSAGE_TYPE, [kind_code(kind)]);
                answer.options.set(code::SERVER_ID, [127, 0, 0, 1]);
                answer.options.set(code::BOOT_FILE, file);
                answer.options.set(code::RELAY, asked.options.get(code::RELAY).unwrap());
                answer.options.set(code::IPXE, [0xb0, 1, 1]);
                answer.yiaddr = Ipv4Addr::new(127, 0, 9, 13);
                answer.giaddr = asked.giaddr;
                socket.send_to(&answer.encode(), from).await.unwrap();
            }
        });
        (address, heard)
    }

    async fn ask(server: SocketAddr, asker: Asker) -> (Result<Lease, DhcpError>, Vec<String>) {
        let (_sender, server) = watch::channel(Some(server));
        let mut relay = Relay::bind(Ipv4Addr::new(127, 0, 9, 1), server).await.unwrap();
        let mut port = relay.port(BayNumber::new(3).unwrap());
        let stop = CancellationToken::new();
        let _guard = stop.clone().drop_guard();
        tokio::spawn(relay.run(stop));
        let log = Log::default();
        let uuid = Uuid([7; 16]);
        let mut client =
            DhcpClient { port: &mut port, mac: MAC, uuid, asker, scale: 0.02, log: &log };
        let outcome = client.run(&mut Chance::new(1, 3)).await;
        (outcome, log.steps())
    }

    #[tokio::test]
    async fn a_blade_gets_its_lease_through_the_relay_of_its_enclosure() {
        let (server, heard) = responder(0, b"undionly.kpxe\0", DhcpKind::Ack).await;
        let (lease, steps) = ask(server, Asker::Rom).await;
        let want = Lease {
            address: Ipv4Addr::new(127, 0, 9, 13),
            next_server: Ipv4Addr::LOCALHOST,
            file: "undionly.kpxe".to_owned(),
        };
        assert_eq!(lease, Ok(want));
        assert_eq!(steps, ["dhcp discover", "dhcp request", "dhcp ack"]);
        let place = "hops 1 giaddr 127.0.9.1 bay \"3\" port true";
        assert_eq!(heard.steps(), [format!("Discover {place}"), format!("Request {place}")]);
    }

    #[tokio::test]
    async fn lost_packets_are_sent_again_and_silence_ends() {
        let (server, _) = responder(2, b"http://h/", DhcpKind::Ack).await;
        let (lease, steps) = ask(server, Asker::Ipxe).await;
        assert_eq!(lease.unwrap().file, "http://h/");
        assert_eq!(steps.iter().filter(|step| *step == "dhcp discover").count(), 3);
        let (server, _) = responder(usize::MAX, b"", DhcpKind::Ack).await;
        let (lease, steps) = ask(server, Asker::Rom).await;
        assert_eq!((lease, steps.len()), (Err(DhcpError::NoOffer), 4));
    }

    #[tokio::test]
    async fn an_offer_of_nothing_and_a_refusal_end_the_attempt() {
        let (server, _) = responder(0, b"", DhcpKind::Ack).await;
        let (lease, steps) = ask(server, Asker::Rom).await;
        assert_eq!((lease, steps), (Err(DhcpError::NoFile), vec!["dhcp discover".to_owned()]));
        let (server, _) = responder(0, b"f", DhcpKind::Nak).await;
        assert_eq!(ask(server, Asker::Ipxe).await.0, Err(DhcpError::Refused));
    }

    #[test]
    fn the_proxy_wait_ends_only_when_option_175_176_says_so() {
        let said = |value: &[u8]| {
            let mut reply = Message::new(Op::Reply, 1, MAC);
            reply.options.set(code::IPXE, value);
            says_no_proxy(&reply)
        };
        assert!(said(&[0x13, 1, 1, 0xb0, 1, 1]));
        assert!(!said(&[0xb0, 1, 0]));
        assert!(!said(&[0xb0, 9, 1]));
        assert!(!said(&[]));
    }

    #[test]
    fn relay_information_is_put_there_by_the_relay_alone() {
        let message = ClientMessage::pxe(DhcpKind::Discover, 1, MAC, ClientArch(0)).message();
        assert_eq!(message.relay_info(), None::<RelayInfo>);
    }
}
