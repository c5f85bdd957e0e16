//! Fetches a file over TFTP, in so many sessions at once, and prints what came of it.
//!
//! `tftp_load --server 198.18.0.1:69 --file NAME --from ADDRESS [--blksize N] [--windowsize N] [--sessions N]
//! [--each-own 1] [--limit SECONDS]`. With `--each-own 1` every session has an address of its own, counted up.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Barrier},
    thread,
    time::{Duration, Instant},
};

use bench::{Args, address, tftp::Fetch};

fn main() {
    let mut args = Args::read();
    let fetch = Fetch {
        server: args.get("server", "198.18.0.1:69".parse().expect("a literal")),
        file: args.get("file", String::new()),
        blksize: args.get("blksize", 1428),
        windowsize: args.get("windowsize", 1),
        limit: Duration::from_secs(args.get("limit", 60)),
    };
    let first: Ipv4Addr = args.get("from", Ipv4Addr::new(198, 18, 0, 2));
    let sessions: usize = args.get("sessions", 1);
    let is_each_own = args.get("each-own", 0) == 1;
    args.done();
    let start = Arc::new(Barrier::new(sessions + 1));
    let threads: Vec<_> = (0..sessions)
        .map(|number| {
            let (fetch, start) = (fetch.clone(), Arc::clone(&start));
            let from = if is_each_own { address(first, number) } else { first };
            let run = move || {
                start.wait();
                fetch.run(from)
            };
            thread::Builder::new().stack_size(256 * 1024).spawn(run).expect("a thread")
        })
        .collect();
    start.wait();
    let begun = Instant::now();
    let ended: Vec<_> =
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    let seconds = begun.elapsed().as_secs_f64();
    let (mut bytes, mut again, mut failed, mut granted) = (0, 0, 0, (0, 0));
    for end in ended {
        match end {
            Ok(done) => {
                bytes += done.bytes;
                again += done.again;
                granted = done.granted;
            }
            Err(error) => {
                failed += 1;
                if failed <= 3 {
                    eprintln!("{error}");
                }
            }
        }
    }
    println!(
        "mb_s={:.2} seconds={seconds:.3} bytes={bytes} failed={failed} again={again} blksize={} windowsize={}",
        bytes as f64 / 1e6 / seconds,
        granted.0,
        granted.1
    );
}
