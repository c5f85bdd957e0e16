//! Files over the boot port's HTTP: parts, validators, digests, and files that change under us.

use std::{fs, io::Write, net::Ipv4Addr};

use model::Sighted;
use sha2::{Digest, Sha256};

use super::{
    KERNEL, Lab, NODE,
    http::{Client, Response, get},
    kernel, lines,
};

impl Client {
    fn get_with(&mut self, target: &str, headers: &str) -> Response {
        self.send(&format!("GET {target} HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n"));
        self.response(true)
    }
}

fn field(response: &Response, name: &str) -> String {
    let found = response.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("no {name} in {}", response.head)).to_owned()
}

fn sha256(content: &[u8]) -> [u8; 32] {
    Sha256::digest(content).into()
}

fn numbers(count: u32) -> Vec<u8> {
    (0..count).map(|n| u8::try_from(n % 251).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_a_file_join_to_the_file_small_and_large() {
    let lab = Lab::start();
    for size in [1_000, 300_000_u32] {
        let file = numbers(size);
        lab.serve("image", &file);
        let mut client = Client::connect(&lab, NODE);
        let whole = client.get("/image");
        assert_eq!((whole.status, field(&whole, "Accept-Ranges").as_str()), (200, "bytes"));
        let (etag, step) = (field(&whole, "ETag"), size / 3);
        let mut joined = vec![];
        for first in [0, step, 2 * step] {
            let last = if first == 2 * step { size - 1 } else { first + step - 1 };
            let headers =
                format!("Range: bytes={first}-{last}\r\nIf-Range: {etag}\r\nIf-Match: {etag}");
            let part = client.get_with("/image", &headers);
            assert_eq!(part.status, 206, "{headers}: {}", part.head);
            assert_eq!(field(&part, "Content-Range"), format!("bytes {first}-{last}/{size}"));
            joined.extend(part.body);
        }
        assert!(joined == file);
        let last = client.get_with("/image", "Range: bytes=-10");
        assert!(last.status == 206 && file.ends_with(&last.body) && last.body.len() == 10);
        let beyond = client.get_with("/image", &format!("Range: bytes={size}-"));
        assert_eq!((beyond.status, beyond.body.len()), (416, 0));
        assert_eq!(field(&beyond, "Content-Range"), format!("bytes */{size}"));
        client.send("HEAD /image HTTP/1.1\r\nRange: bytes=0-0\r\n\r\n");
        let head = client.response(false);
        assert_eq!((head.status, field(&head, "Content-Length")), (200, size.to_string()));
        assert_eq!(client.get_with("/image", &format!("If-None-Match: {etag}")).status, 304);
        assert_eq!(client.get_with("/image", "If-Match: \"other\"").status, 412);
        assert!(client.get("/image").body == file, "the connection went on through all of it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_replaced_has_another_tag_and_no_part_of_it_is_given() {
    let lab = Lab::start();
    let path = lab.serve("image", &[1; 5_000]);
    let mut client = Client::connect(&lab, NODE);
    let first = client.get("/image");
    let next = path.with_extension("next");
    fs::write(&next, [2; 5_000]).unwrap();
    fs::rename(next, path).unwrap();
    let etag = field(&first, "ETag");
    let resumed = client.get_with("/image", &format!("Range: bytes=10-\r\nIf-Range: {etag}"));
    assert!(resumed.status == 200 && resumed.body == [2; 5_000], "all of the new one");
    assert_ne!(field(&first, "ETag"), field(&client.get("/image"), "ETag"));
    let resumed = client.get_with("/image", &format!("Range: bytes=10-\r\nIf-Match: {etag}"));
    assert_eq!(resumed.status, 412);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kernel_taken_up_again_after_a_break_counts_as_fetched() {
    let mut lab = Lab::start();
    lab.answer_with(kernel());
    lab.serve(KERNEL, &numbers(100_000));
    let mut client = Client::connect(&lab, NODE);
    client.get("/boot.ipxe");
    client.get_with(KERNEL, "Range: bytes=0-49999");
    client.get_with(KERNEL, "Range: bytes=100000-");
    client.get_with(KERNEL, "Range: bytes=50000-99999");
    let seen = lab.until("the kernel", |what| matches!(what, Sighted::KernelWhole { .. })).await;
    let last = lines(&seen);
    let starts = format!("HTTP GET {KERNEL} 206, 50000 bytes");
    assert_eq!(last.iter().filter(|line| line.starts_with(&starts)).count(), 2, "{last:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_shrinks_while_it_is_sent_closes_the_connection_and_is_told() {
    let mut lab = Lab::start();
    lab.answer_with(kernel());
    let path = lab.serve(KERNEL, b"");
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_len(256 << 20).unwrap();
    get(&lab, NODE, "/boot.ipxe");
    let mut client = Client::connect(&lab, NODE);
    client.send(&format!("GET {KERNEL} HTTP/1.1\r\n\r\n"));
    client.more();
    file.set_len(1 << 20).unwrap();
    let mut buffer = vec![0; 1 << 20];
    let mut read = 0_usize;
    while let Ok(more @ 1..) = std::io::Read::read(&mut client.stream, &mut buffer) {
        read += more;
    }
    assert!(read < 256 << 20, "the connection ended before what was promised");
    let seen = lab.until("a short answer", |what| matches!(what, Sighted::HttpShort { .. })).await;
    assert!(!seen.iter().any(|s| matches!(s.what, Sighted::KernelWhole { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_written_to_while_it_is_sent_is_no_whole_kernel() {
    let mut lab = Lab::start();
    lab.answer_with(kernel());
    let path = lab.serve(KERNEL, b"");
    let mut file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(64 << 20).unwrap();
    get(&lab, NODE, "/boot.ipxe");
    let mut client = Client::connect(&lab, NODE);
    client.send(&format!("GET {KERNEL} HTTP/1.1\r\n\r\n"));
    client.more();
    // Dates of files move on every few milliseconds.
    let modified = || fs::metadata(&path).unwrap().modified().unwrap();
    let first = modified();
    while modified() == first {
        file.write_all(b"another kernel").unwrap();
    }
    assert!(client.response(true).body.len() == 64 << 20);
    assert_eq!(client.more(), 0, "closed");
    let seen = lab.until("the reason", |what| matches!(what, Sighted::Refused { .. })).await;
    assert!(lines(&seen).last().unwrap().contains("written to while it was sent"));
    assert!(!seen.iter().any(|s| matches!(s.what, Sighted::KernelWhole { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_a_digest_is_served_while_it_fits() {
    let mut lab = Lab::start();
    lab.answer_with(kernel());
    let content = numbers(100_000);
    let path = lab.serve(KERNEL, &content);
    lab.change(|table| _ = table.digests.insert(KERNEL.to_owned(), sha256(&content)));
    let mut client = Client::connect(&lab, NODE);
    assert!(client.get(KERNEL).body == content);

    // In place, with the same length and the date set back: still another file.
    let date = fs::metadata(&path).unwrap().modified().unwrap();
    let mut file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all(b"evil").unwrap();
    file.set_modified(date).unwrap();
    let refused = client.get(KERNEL);
    assert_eq!((refused.status, field(&refused, "Retry-After").as_str()), (503, "1"));
    assert_eq!(client.head(KERNEL).status, 503);
    let seen = lab.until("the reason", |what| matches!(what, Sighted::Refused { .. })).await;
    let why = lines(&seen).pop().unwrap();
    let names =
        [KERNEL, path.to_str().unwrap(), "put the declared file back, or declare the new one"];
    assert!(names.iter().all(|name| why.contains(name)), "{why}");

    let next = path.with_extension("next");
    fs::write(&next, &content).unwrap();
    fs::rename(next, &path).unwrap();
    assert!(client.get(KERNEL).body == content, "the declared file is back");
    // The operator declares another one.
    lab.change(|table| _ = table.digests.insert(KERNEL.to_owned(), [7; 32]));
    assert_eq!(client.get(KERNEL).status, 503);
    lab.change(|table| _ = table.digests.remove(KERNEL));
    assert_eq!(client.get(KERNEL).status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn shim_finds_its_second_stage_over_http_wherever_it_looks() {
    let lab = Lab::start();
    lab.serve("debian/grubx64.efi", b"grub");
    let mut client = Client::connect(&lab, NODE);
    for path in
        ["/debian/grubx64.efi", "/grubx64.efi", "/EFI/BOOT/GRUBX64.EFI", "//x/y//grubx64.efi"]
    {
        assert_eq!(client.get(path).body, b"grub", "{path}");
    }
    for path in ["/revocations_sbat.efi", "/shim_certificate_0.efi", "/mmx64.efi"] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
    let absolute = format!("http://{}/grubx64.efi", lab.bound.http);
    assert_eq!(client.get(&absolute).body, b"grub", "absolute form");
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_requests_at_once_are_all_answered() {
    // Field case 18, and more: 64 connections with three pipelined requests each.
    let lab = std::sync::Arc::new(Lab::start());
    let file = numbers(70_000);
    lab.serve("image", &file);
    lab.change_entry(|entry| entry.intent = model::BootIntent::Local);
    let threads: Vec<_> = (0..16_u8)
        .map(|_| {
            let (lab, file) = (std::sync::Arc::clone(&lab), file.clone());
            std::thread::spawn(move || {
                let mut clients: Vec<_> = (0..4).map(|_| Client::connect(&lab, NODE)).collect();
                for client in &mut clients {
                    client.send("GET /image HTTP/1.1\r\n\r\nHEAD /image HTTP/1.1\r\n\r\nGET /boot.ipxe HTTP/1.1\r\n\r\n");
                }
                clients.iter_mut().all(|client| {
                    let whole = client.response(true).body == file;
                    let head = client.response(false).status == 200;
                    whole && head && client.response(true).body.starts_with(b"#!ipxe")
                })
            })
        })
        .collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_has_64_connections_and_takes_nobody_elses() {
    let lab = Lab::start();
    lab.serve("image", b"x");
    let other = Ipv4Addr::new(127, 77, 0, 14);
    lab.change(|table| {
        let mut entry = (**table.by_address.get(&NODE).unwrap()).clone();
        (entry.node, entry.address) = ("bld-004".parse().unwrap(), other);
        entry.macs = vec![model::MacAddr([2, 0x5a, 0x10, 0, 0, 4])];
        table.insert(entry);
    });
    // Each holds its place: it was answered once and waits.
    let mut held: Vec<Client> = (0..64).map(|_| Client::connect(&lab, NODE)).collect();
    assert!(held.iter_mut().all(|client| client.get("/image").status == 200));
    let mut beyond = Client::connect(&lab, NODE);
    beyond.stream.write_all(b"GET /image HTTP/1.1\r\n\r\n").ok();
    let end = std::io::Read::read(&mut beyond.stream, &mut [0; 16]);
    assert!(matches!(end, Ok(0) | Err(_)), "closed: {end:?}");
    assert_eq!(get(&lab, other, "/image").status, 200);
    assert!(held.iter_mut().all(|client| client.get("/image").status == 200), "and none was lost");
}
