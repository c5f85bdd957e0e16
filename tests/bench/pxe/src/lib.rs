//! What the tools of the benchmarks share: arguments, chance with a seed, percentiles, the CPU time of a process.

pub mod dhcp;
pub mod tftp;

use std::{
    collections::BTreeMap,
    env, fs,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket},
    process,
    str::FromStr,
    time::Duration,
};

use socket2::{Domain, Protocol, Socket, Type};

/// `--key value` pairs of the command line; a key without a value ends the program with a word.
pub struct Args(BTreeMap<String, String>);

impl Args {
    /// Those of this process.
    pub fn read() -> Self {
        let mut words = env::args().skip(1);
        let mut pairs = BTreeMap::new();
        while let Some(word) = words.next() {
            let key =
                word.strip_prefix("--").unwrap_or_else(|| fail(&format!("{word} is no --key")));
            let value = words.next().unwrap_or_else(|| fail(&format!("--{key} needs a value")));
            pairs.insert(key.to_owned(), value);
        }
        Self(pairs)
    }

    /// The value of a key, or what it is without one.
    pub fn get<T: FromStr>(&mut self, key: &str, default: T) -> T {
        self.find(key).unwrap_or(default)
    }

    /// The value of a key, if it is there.
    pub fn find<T: FromStr>(&mut self, key: &str) -> Option<T> {
        let text = self.0.remove(key)?;
        Some(text.parse().unwrap_or_else(|_| fail(&format!("--{key} {text} cannot be read"))))
    }

    /// Refuses what nobody asked for.
    pub fn done(self) {
        if let Some(key) = self.0.keys().next() {
            fail(&format!("--{key} is unknown"));
        }
    }
}

/// Ends the program with a sentence.
pub fn fail(why: &str) -> ! {
    eprintln!("{why}");
    process::exit(2)
}

/// SplitMix64: chance that is the same for the same seed.
#[derive(Debug, Clone)]
pub struct Chance(pub u64);

impl Chance {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Whether one of `permille` in a thousand is drawn.
    pub fn is_drawn(&mut self, permille: u64) -> bool {
        self.number() % 1000 < permille
    }
}

/// Median and 99th percentile in milliseconds of times in nanoseconds; zeros when there are none.
pub fn percentiles(times: &mut [u64]) -> (f64, f64) {
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or(0) as f64 / 1e6;
    (at(50), at(99))
}

/// CPU seconds a process and its threads used so far; its ended children too. `None` when it is gone.
pub fn cpu_seconds(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may have blanks: fields are counted behind it.
    let fields: Vec<u64> = stat
        .rsplit(')')
        .next()?
        .split_whitespace()
        .skip(11)
        .take(4)
        .map_while(|field| field.parse().ok())
        .collect();
    Some(fields.iter().sum::<u64>() as f64 / 100.0)
}

/// A datagram socket with as much room for what comes in as the system gives.
pub fn udp(at: SocketAddrV4) -> UdpSocket {
    let bind = || {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_reuse_address(true)?;
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 16 << 20)
            .or_else(|_| socket.set_recv_buffer_size(16 << 20).map_err(|_| rustix::io::Errno::PERM))
            .ok();
        socket.bind(&SocketAddr::V4(at).into())?;
        Ok(socket.into())
    };
    let bound: std::io::Result<UdpSocket> = bind();
    bound.unwrap_or_else(|error| fail(&format!("cannot bind {at}: {error}")))
}

/// The `number`th address from `first` on.
pub fn address(first: Ipv4Addr, number: usize) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(first) + u32::try_from(number).unwrap_or(0))
}

/// Waits until a socket has something to read, at most so long.
pub fn wait(socket: &UdpSocket, at_most: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(socket, PollFlags::IN)];
    let limit = Timespec::try_from(at_most).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
    matches!(poll(&mut fds, Some(&limit)), Ok(ready) if ready > 0)
}
