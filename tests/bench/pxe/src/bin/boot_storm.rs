//! Modelled machines that all boot at one moment, as a rack does when its power comes back: each has DHCP as firmware,
//! fetches its loader over TFTP, has DHCP again as iPXE, and fetches its script over HTTP, and with `--images`
//! also a kernel and initrds. What is lost is sent again as late as firmware and iPXE do.
//!
//! `boot_storm --nodes N [--server ADDRESS] [--relay ADDRESS] [--first ADDRESS] [--images PATH,PATH] [--limit
//! SECONDS]`. Prints one line of `key=value`; the longest wait is from power on to the whole script.

use std::{
    collections::HashMap,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddrV4, TcpStream, UdpSocket},
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use bench::{
    Args, address,
    dhcp::{Client, Message, Reply},
    percentiles,
    tftp::Fetch,
    udp,
};
use socket2::{Domain, Protocol, Socket, Type};

/// PXE firmware repeats after so many seconds (PXE 2.1, 2.2), iPXE after these.
const FIRMWARE: [u64; 4] = [4, 8, 16, 32];
const IPXE: [u64; 4] = [1, 2, 4, 8];
/// How long a connection, an answer or a piece of a file may take.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() {
    let mut args = Args::read();
    let nodes: usize = args.get("nodes", 1000);
    let server: Ipv4Addr = args.get("server", Ipv4Addr::new(198, 18, 0, 1));
    let relay: Ipv4Addr = args.get("relay", Ipv4Addr::new(198, 18, 0, 2));
    let first: Ipv4Addr = args.get("first", Ipv4Addr::new(198, 19, 0, 1));
    let images: String = args.get("images", String::new());
    let images: Vec<String> = images.split_terminator(',').map(str::to_owned).collect();
    let limit = Duration::from_secs(args.get("limit", 120));
    args.done();
    let wire = Wire::start(relay, server);
    let start = Arc::new(Barrier::new(nodes + 1));
    let machines: Vec<_> = (0..nodes)
        .map(|number| {
            let (wire, start) = (Arc::clone(&wire), Arc::clone(&start));
            let machine = Machine {
                number,
                address: address(first, number),
                server,
                limit,
                images: images.clone(),
            };
            let boot = move || {
                start.wait();
                machine.boot(&wire)
            };
            thread::Builder::new().stack_size(256 * 1024).spawn(boot).expect("a thread")
        })
        .collect();
    start.wait();
    let begun = Instant::now();
    let ends: Vec<_> = machines.into_iter().map(|one| one.join().expect("no panic")).collect();
    wire.stop.store(true, Ordering::Relaxed);
    print(&ends, begun.elapsed());
}

fn print(ends: &[io::Result<Waits>], all: Duration) {
    for error in ends.iter().filter_map(|end| end.as_ref().err()).take(3) {
        eprintln!("{error}");
    }
    let waits: Vec<&Waits> = ends.iter().filter_map(|end| end.as_ref().ok()).collect();
    let stage = |pick: fn(&Waits) -> Duration| {
        let nanos = |waits: &&Waits| u64::try_from(pick(waits).as_nanos()).unwrap_or(u64::MAX);
        let mut times: Vec<u64> = waits.iter().map(nanos).collect();
        let (median, _) = percentiles(&mut times);
        let longest = times.last().copied().unwrap_or(0) as f64 / 1e6;
        format!("{:.2}/{:.2}", median / 1e3, longest / 1e3)
    };
    println!(
        "booted={} of={} dhcp={} loader={} ipxe={} script={} images={} repeats={} seconds={:.2}",
        waits.len(),
        ends.len(),
        stage(|waits| waits.dhcp),
        stage(|waits| waits.loader),
        stage(|waits| waits.ipxe),
        stage(|waits| waits.script),
        stage(|waits| waits.images),
        waits.iter().map(|waits| waits.repeats).sum::<u32>(),
        all.as_secs_f64(),
    );
}

/// The relay's socket, shared by all machines: answers go to whoever's transaction they are.
struct Wire {
    socket: UdpSocket,
    relay: Ipv4Addr,
    waiting: Mutex<HashMap<u32, Sender<Reply>>>,
    stop: AtomicBool,
}

impl Wire {
    fn start(relay: Ipv4Addr, server: Ipv4Addr) -> Arc<Self> {
        let socket = udp(SocketAddrV4::new(relay, 67));
        socket.connect(SocketAddrV4::new(server, 67)).expect("a datagram socket connects");
        socket.set_read_timeout(Some(Duration::from_millis(200))).expect("a socket of ours");
        let wire = Arc::new(Self {
            socket,
            relay,
            waiting: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let reader = Arc::clone(&wire);
        thread::spawn(move || reader.read());
        wire
    }

    fn read(&self) {
        let mut buffer = [0; 1500];
        while !self.stop.load(Ordering::Relaxed) {
            let Ok(length) = self.socket.recv(&mut buffer) else { continue };
            let Some(reply) = Reply::read(&buffer[..length], true) else { continue };
            let waiting = self.waiting.lock().expect("no panic");
            if let Some(to) = waiting.get(&reply.xid) {
                to.send(reply).ok();
            }
        }
    }

    fn listen(&self, xid: u32) -> Receiver<Reply> {
        let (to, answers) = channel();
        self.waiting.lock().expect("no panic").insert(xid, to);
        answers
    }

    fn forget(&self, xid: u32) {
        self.waiting.lock().expect("no panic").remove(&xid);
    }
}

/// Since power on, at the end of each stage.
#[derive(Debug, Default, Clone, Copy)]
struct Waits {
    dhcp: Duration,
    loader: Duration,
    ipxe: Duration,
    script: Duration,
    images: Duration,
    /// DHCP messages sent again.
    repeats: u32,
}

struct Machine {
    number: usize,
    address: Ipv4Addr,
    server: Ipv4Addr,
    limit: Duration,
    images: Vec<String>,
}

impl Machine {
    fn boot(&self, wire: &Wire) -> io::Result<Waits> {
        let begun = Instant::now();
        let mut waits = Waits::default();
        let answer = self.dhcp(wire, Client::Firmware, &FIRMWARE, &mut waits.repeats)?;
        waits.dhcp = begun.elapsed();
        let fetch = Fetch {
            server: SocketAddrV4::new(self.server, 69),
            file: answer.file,
            blksize: 1468,
            windowsize: 4,
            limit: self.limit,
        };
        fetch.run(self.address)?;
        waits.loader = begun.elapsed();
        let answer = self.dhcp(wire, Client::Ipxe, &IPXE, &mut waits.repeats)?;
        waits.ipxe = begun.elapsed();
        let script = self.get(&answer.file)?;
        if !script.starts_with(b"#!ipxe") {
            return Err(io::Error::other("what came is no script"));
        }
        waits.script = begun.elapsed();
        for path in &self.images {
            self.get(&format!("http://{}:8067{path}", self.server))?;
        }
        waits.images = begun.elapsed();
        Ok(waits)
    }

    fn dhcp(
        &self,
        wire: &Wire,
        client: Client,
        pauses: &[u64],
        repeats: &mut u32,
    ) -> io::Result<Reply> {
        let [.., a, b, c] = self.number.to_be_bytes();
        let stage = if client == Client::Ipxe { 0x4000_0000 } else { 0 };
        let xid = u32::try_from(self.number).unwrap_or(0) | stage;
        let message = Message { xid, mac: [2, 0x5a, 0x10, a, b, c], relay: wire.relay, client };
        let answers = wire.listen(xid);
        let mut packet = vec![];
        message.discover(&mut packet);
        let offer = exchange(wire, &answers, &packet, 2, pauses, repeats)?;
        if offer.address != self.address {
            return Err(io::Error::other(format!(
                "{} was offered to {}",
                offer.address, self.address
            )));
        }
        message.request(&offer, &mut packet);
        let ack = exchange(wire, &answers, &packet, 5, pauses, repeats)?;
        wire.forget(xid);
        Ok(ack)
    }

    /// What is under a URL of the server.
    fn get(&self, url: &str) -> io::Result<Vec<u8>> {
        let rest = url.strip_prefix("http://").and_then(|rest| rest.split_once('/'));
        let (host, path) = rest.ok_or_else(|| io::Error::other(format!("{url:?} is no URL")))?;
        let to: SocketAddrV4 = host.parse().map_err(io::Error::other)?;
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.bind(&SocketAddrV4::new(self.address, 0).into())?;
        socket.connect_timeout(&to.into(), PATIENCE)?;
        let mut stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(format!("GET /{path} HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes())?;
        let mut answer = vec![];
        let (mut chunk, mut length) = (vec![0; 65_536], 0);
        // The head, and as much of the body as a script has; the rest is counted.
        loop {
            let read = stream.read(&mut chunk)?;
            if read == 0 {
                break;
            }
            length += read;
            if answer.len() < 65_536 {
                answer.extend_from_slice(&chunk[..read]);
            }
        }
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.ok_or_else(|| io::Error::other(format!("{url}: no answer")))? + 4;
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let promised = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        if !head.starts_with("HTTP/1.1 200") || promised != Some(&*(length - end).to_string()) {
            return Err(io::Error::other(format!("{url}: {}", head.lines().next().unwrap_or(""))));
        }
        Ok(answer.split_off(end))
    }
}

/// Sends a message, again after each pause, until an answer of this kind comes.
fn exchange(
    wire: &Wire,
    answers: &Receiver<Reply>,
    packet: &[u8],
    kind: u8,
    pauses: &[u64],
    repeats: &mut u32,
) -> io::Result<Reply> {
    for (number, pause) in pauses.iter().enumerate() {
        *repeats += u32::from(number > 0);
        wire.socket.send(packet).ok();
        let until = Instant::now() + Duration::from_secs(*pause);
        while let Ok(reply) = answers.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            if reply.kind == kind {
                return Ok(reply);
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("no DHCP answer of type {kind}")))
}
