//! Load for DHCP servers: complete DISCOVER-OFFER-REQUEST-ACK exchanges through one relay, at a steady rate, without
//! repetitions. What is not answered within a second after the end counts as lost.
//!
//! `dhcp_load --server ADDRESS --relay OWN-ADDRESS --rate N --seconds N --macs N [--first-mac N] [--known 1]
//! [--pid SERVER] [--discover-only 1]`. Prints one line of `key=value`.
//!
//! `--known 1` takes the hardware addresses of the nodes that `boot_server` knows.

use std::{
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bench::{
    Args, cpu_seconds,
    dhcp::{Client, Message, Reply},
    percentiles, udp, wait,
};

/// Messages sent before the answers are looked at again.
const BATCH: u64 = 32;
/// How long answers are waited for after the last message.
const TAIL: Duration = Duration::from_secs(1);

fn main() {
    let mut args = Args::read();
    let server: Ipv4Addr = args.get("server", Ipv4Addr::new(198, 18, 0, 1));
    let relay: Ipv4Addr = args.get("relay", Ipv4Addr::new(198, 18, 0, 2));
    let rate: f64 = args.get("rate", 1000.0);
    let seconds: f64 = args.get("seconds", 3.0);
    let macs: u64 = args.get("macs", 50_000);
    let first_mac: u64 = args.get("first-mac", 0);
    let prefix = if args.get("known", 0) == 1 { [2, 0x5a, 0x10] } else { [2, 0x0b, 0x0e] };
    let pid: Option<u32> = args.find("pid");
    let is_discover_only = args.get("discover-only", 0) == 1;
    args.done();
    let socket = udp(SocketAddrV4::new(relay, 67));
    socket.connect(SocketAddrV4::new(server, 67)).expect("a datagram socket connects");
    socket.set_nonblocking(true).expect("a socket of ours");
    let cpu_before = pid.and_then(cpu_seconds);
    let mut load = Load {
        socket,
        relay,
        prefix,
        first_mac,
        macs,
        is_discover_only,
        begun: Instant::now(),
        exchanges: vec![Exchange::default(); (rate * seconds) as usize],
        first_xid: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.subsec_nanos()),
        naks: 0,
        packet: Vec::with_capacity(600),
    };
    load.run(rate);
    let took = load.begun.elapsed() - TAIL;
    let cpu = cpu_before.zip(pid.and_then(cpu_seconds)).map(|(before, after)| after - before);
    load.print(took.as_secs_f64(), cpu);
}

/// One client. Times in nanoseconds since the beginning; 0: not yet.
#[derive(Debug, Default, Clone, Copy)]
struct Exchange {
    discover: u64,
    offer: u64,
    request: u64,
    ack: u64,
}

struct Load {
    socket: UdpSocket,
    relay: Ipv4Addr,
    prefix: [u8; 3],
    first_mac: u64,
    macs: u64,
    is_discover_only: bool,
    begun: Instant,
    exchanges: Vec<Exchange>,
    /// Late answers to a run before this one are none of ours.
    first_xid: u32,
    naks: u64,
    packet: Vec<u8>,
}

impl Load {
    fn run(&mut self, rate: f64) {
        let total = self.exchanges.len() as u64;
        let (mut sent, mut last) = (0, Instant::now());
        while sent < total || last.elapsed() < TAIL {
            let due = ((self.begun.elapsed().as_secs_f64() * rate) as u64).min(total);
            let until = due.min(sent + BATCH);
            for number in sent..until {
                self.discover(number);
                last = Instant::now();
            }
            sent = until;
            if self.hear() == 0 && sent == due {
                let next = (sent + 1) as f64 / rate - self.begun.elapsed().as_secs_f64();
                let idle = if sent < total { next.clamp(0.0, 0.01) } else { 0.01 };
                if idle > 0.000_02 {
                    wait(&self.socket, Duration::from_secs_f64(idle));
                }
            }
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn message(&self, number: u64) -> Message {
        let [.., a, b, c] = (self.first_mac + number % self.macs).to_be_bytes();
        let [x, y, z] = self.prefix;
        let xid = self.first_xid.wrapping_add(u32::try_from(number).unwrap_or(u32::MAX));
        Message { xid, mac: [x, y, z, a, b, c], relay: self.relay, client: Client::Firmware }
    }

    fn discover(&mut self, number: u64) {
        self.message(number).discover(&mut self.packet);
        self.exchanges[number as usize].discover = self.now();
        self.send();
    }

    /// Our own buffer is full now and then: a loss that is not the server's is none.
    fn send(&self) {
        for _ in 0..1000 {
            if self.socket.send(&self.packet).is_ok() {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// Takes what came in; how many there were.
    fn hear(&mut self) -> usize {
        let mut buffer = [0; 1500];
        let mut heard = 0;
        while heard < 64 {
            let Ok(length) = self.socket.recv(&mut buffer) else { break };
            heard += 1;
            if let Some(reply) = Reply::read(&buffer[..length], false) {
                self.take(&reply);
            }
        }
        heard
    }

    fn take(&mut self, reply: &Reply) {
        let now = self.now();
        let number = reply.xid.wrapping_sub(self.first_xid);
        let message = self.message(u64::from(number));
        let Some(exchange) = self.exchanges.get_mut(number as usize) else { return };
        match reply.kind {
            2 if exchange.offer == 0 => {
                exchange.offer = now;
                if !self.is_discover_only {
                    exchange.request = now;
                    message.request(reply, &mut self.packet);
                    self.send();
                }
            }
            5 if exchange.ack == 0 && exchange.request > 0 => exchange.ack = now,
            6 => self.naks += 1,
            _ => (),
        }
    }

    fn print(&self, seconds: f64, cpu: Option<f64>) {
        let count = |is: &dyn Fn(&Exchange) -> bool| {
            self.exchanges.iter().filter(|exchange| is(exchange)).count()
        };
        let times = |span: &dyn Fn(&Exchange) -> (u64, u64)| {
            let spans = self.exchanges.iter().map(span).filter(|(from, to)| *from > 0 && *to > 0);
            percentiles(&mut spans.map(|(from, to)| to - from).collect::<Vec<_>>())
        };
        let offers = count(&|exchange| exchange.offer > 0);
        let requests = count(&|exchange| exchange.request > 0);
        let acks = count(&|exchange| exchange.ack > 0);
        let done = if self.is_discover_only { offers } else { acks };
        let (offer, ack) = (times(&|e| (e.discover, e.offer)), times(&|e| (e.request, e.ack)));
        let whole = times(&|e| (e.discover, e.ack));
        let loss = 100.0 * (1.0 - done as f64 / self.exchanges.len().max(1) as f64);
        let cpu = cpu.map_or(0.0, |cpu| cpu * 1e6 / done.max(1) as f64);
        println!(
            "done_s={:.0} done={done} loss={loss:.2} offers={offers} requests={requests} requests_lost={} naks={} \
             do50={:.3} do99={:.3} ra50={:.3} ra99={:.3} p50={:.3} p99={:.3} cpu_us={cpu:.1} seconds={seconds:.2}",
            done as f64 / seconds,
            requests - acks,
            self.naks,
            offer.0,
            offer.1,
            ack.0,
            ack.1,
            whole.0,
            whole.1,
        );
    }
}
