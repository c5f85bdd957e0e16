//! Stand-ins for volund's boot services, for this crate's own tests.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use model::sighting::DhcpKind;
use pxe_proto::{
    dhcp::{Message, Op, code, kind_code},
    tftp::{
        options::{Granted, Limits},
        packet::Packet,
        read_transfer::{ReadTransfer, Transmit, Wrap},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, UdpSocket},
};

use crate::blade::BootServices;

/// A request as the HTTP stand-in saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) from: Ipv4Addr,
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

type Files = Arc<Mutex<BTreeMap<String, Vec<(u16, String)>>>>;

/// DHCP, TFTP and HTTP on loopback.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) boot: BootServices,
    pub(crate) http: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    files: Files,
}

impl Services {
    /// Leases 127.0.`octet`.(10 + bay), serves a loader of 5,000 bytes and `boot.ipxe`.
    pub(crate) async fn start(octet: u8) -> Self {
        let dhcp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let tftp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let http = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tftp_port = tftp.local_addr().unwrap().port();
        let services = Self {
            boot: BootServices { dhcp: dhcp.local_addr().unwrap(), tftp_port },
            http: http.local_addr().unwrap(),
            seen: Arc::default(),
            files: Arc::default(),
        };
        tokio::spawn(lease(dhcp, octet, services.http));
        tokio::spawn(async move {
            let mut buffer = [0; 2048];
            loop {
                let (length, client) = tftp.recv_from(&mut buffer).await.unwrap();
                tokio::spawn(send_loader(buffer[..length].to_vec(), client));
            }
        });
        let answering = services.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = http.accept().await.unwrap();
                tokio::spawn(answering.clone().answer(stream));
            }
        });
        services
    }

    /// Answers for `path`, in order; the last one stays.
    pub(crate) fn serve(&self, path: &str, answers: &[(u16, &str)]) {
        let answers = answers.iter().map(|(status, body)| (*status, (*body).to_owned())).collect();
        self.files.lock().unwrap().insert(path.to_owned(), answers);
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    async fn answer(self, mut stream: TcpStream) {
        let std::net::IpAddr::V4(from) = stream.peer_addr().unwrap().ip() else { return };
        let mut buffer = Vec::new();
        loop {
            let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") else {
                match stream.read_buf(&mut buffer).await {
                    Ok(0) | Err(_) => return,
                    Ok(_) => continue,
                }
            };
            let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            while buffer.len() < end + 4 + length {
                if stream.read_buf(&mut buffer).await.unwrap() == 0 {
                    return;
                }
            }
            let rest = buffer.split_off(end + 4 + length);
            let body = String::from_utf8(buffer[end + 4..].to_vec()).unwrap();
            buffer = rest;
            let line = head.lines().next().unwrap().to_owned();
            let path = line.split(' ').nth(1).unwrap().split('?').next().unwrap().to_owned();
            let (status, text) = self.file(&path);
            self.seen.lock().unwrap().push(Seen { from, line, head, body });
            let length = text.len();
            let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{text}");
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    fn file(&self, path: &str) -> (u16, String) {
        let mut files = self.files.lock().unwrap();
        match files.get_mut(path) {
            Some(answers) if answers.len() > 1 => answers.remove(0),
            Some(answers) => answers[0].clone(),
            None => (404, String::new()),
        }
    }
}

async fn lease(socket: UdpSocket, octet: u8, http: SocketAddr) {
    let mut buffer = [0; 2048];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
        let asked = Message::decode(&buffer[..length]).unwrap();
        let bay: u8 = asked.relay_info().unwrap().circuit_text().unwrap().parse().unwrap();
        let mut answer = Message::new(Op::Reply, asked.xid, asked.chaddr);
        let discover = asked.kind() == Some(DhcpKind::Discover);
        let kind = if discover { DhcpKind::Offer } else { DhcpKind::Ack };
        answer.options.set(code::MESSAGE_TYPE, [kind_code(kind)]);
        answer.options.set(code::SERVER_ID, [127, 0, 0, 1]);
        answer.options.set(code::RELAY, asked.options.get(code::RELAY).unwrap());
        answer.options.set(code::IPXE, [0xb0, 1, 1]);
        if asked.options.get(code::USER_CLASS).is_some() {
            let url = format!("http://{http}/boot.ipxe?mac=${{mac:hexhyp}}");
            answer.options.set(code::BOOT_FILE, url);
        } else {
            answer.file = b"undionly.kpxe".to_vec();
        }
        answer.siaddr = Ipv4Addr::LOCALHOST;
        answer.yiaddr = Ipv4Addr::new(127, 0, octet, 10 + bay);
        answer.giaddr = asked.giaddr;
        socket.send_to(&answer.encode(), from).await.unwrap();
    }
}

async fn send_loader(request: Vec<u8>, client: SocketAddr) {
    let Ok(Packet::Read(request)) = Packet::decode(&request) else { return };
    serve_file(&request.options, client, &[7; 5000]).await;
}

/// One TFTP transfer by the server's own machine.
pub(crate) async fn serve_file(options: &[(&[u8], &[u8])], client: SocketAddr, file: &[u8]) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let size = u64::try_from(file.len()).unwrap();
    let granted = Granted::negotiate(options, size, Limits::default());
    let mut transfer = ReadTransfer::new(granted, size, Wrap::default());
    let mut buffer = [0; 2048];
    while transfer.ended().is_none() {
        while let Some(transmit) = transfer.poll_transmit(Duration::ZERO) {
            socket.send_to(&datagram(&transmit, file), client).await.unwrap();
        }
        let (length, _) = socket.recv_from(&mut buffer).await.unwrap();
        let packet = Packet::decode(&buffer[..length]).unwrap();
        transfer.handle_packet(Duration::ZERO, &packet);
    }
}

fn datagram(transmit: &Transmit, file: &[u8]) -> Vec<u8> {
    match transmit {
        Transmit::OptionAck(bytes) => bytes.clone(),
        Transmit::Data { block, offset, length } => {
            let start = usize::try_from(*offset).unwrap();
            let payload = &file[start..start + length];
            Packet::Data { block: *block, payload }.encode()
        }
    }
}
