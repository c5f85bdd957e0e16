//! Texts made for a node under the names its loaders ask for, over TFTP and HTTP.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
};

use model::Sighted;
use socket2::{Domain, Socket, Type};

use super::{KERNEL, Lab, NODE, at, kernel, lines, tftp::Reader, tftp_names::fetch};

const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 77, 0, 99);

/// Status code and body of a GET from this address.
fn get(lab: &Lab, from: Ipv4Addr, path: &str) -> (u16, String) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&at(from).into()).unwrap();
    socket.connect(&lab.bound.http.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(super::BOUND)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: volund\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_gets_the_text_its_loader_asks_for_over_tftp_and_http_alike() {
    let mut lab = Lab::start();
    let asked = lab.answer_with(kernel());
    let cases = [
        ("autoexec.ipxe", "#!ipxe\n", "/boot.ipxe"),
        ("efi/x64/autoexec.ipxe", "#!ipxe\n", "/boot.ipxe"),
        ("grub/grub.cfg", "", "i/inspect/vmlinuz"),
        ("EFI/debian/grub.cfg", "", "i/inspect/vmlinuz"),
        ("grub/grub.cfg-01-02-5a-10-00-00-03", "", "i/inspect/vmlinuz"),
        ("pxelinux.cfg/01-02-5a-10-00-00-03", "NOESCAPE", "i/inspect/vmlinuz"),
        ("pxelinux.cfg/7F4D000D", "", "i/inspect/vmlinuz"),
        ("pxelinux.cfg/default", "", "i/inspect/vmlinuz"),
    ];
    for (name, start, part) in cases {
        let reader = Reader::new(&lab);
        let got = fetch(&reader, format!("/{name}").as_bytes());
        let text = String::from_utf8(got.unwrap_or_else(|code| panic!("{name}: {code}"))).unwrap();
        assert!(text.starts_with(start) && text.contains(part), "{name}:\n{text}");
        let (status, over_http) = get(&lab, NODE, &format!("/{name}"));
        assert_eq!(status, 200, "{name}");
        assert!(over_http.starts_with(start) && over_http.contains(part), "{name}:\n{over_http}");
        let goes_on_over_tftp = [&text, &over_http].map(|text| text.contains(" ::"));
        assert_eq!(goes_on_over_tftp, [name.contains("pxelinux"), false], "{name}");
    }
    let attempts: std::collections::BTreeSet<_> =
        asked.lock().unwrap().iter().map(|ask| ask.attempt).collect();
    assert_eq!(attempts.len(), 1, "one attempt, however often it is asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_gets_it_and_names_of_other_machines_are_not_there() {
    let lab = Lab::start();
    for name in ["autoexec.ipxe", "grub/grub.cfg", "pxelinux.cfg/default"] {
        assert_eq!(fetch(&Reader::from(&lab, STRANGER), name.as_bytes()), Err(1), "{name}");
        assert_eq!(get(&lab, STRANGER, &format!("/{name}")).0, 404, "{name}");
    }
    let foreign = [
        "grub/grub.cfg-01-02-00-00-00-00-99",
        "pxelinux.cfg/01-02-00-00-00-00-99",
        "pxelinux.cfg/7F4D0063",
        "grub/x86_64-efi/command.lst",
    ];
    for name in foreign {
        assert_eq!(fetch(&Reader::new(&lab), name.as_bytes()), Err(1), "{name}");
        assert_eq!(get(&lab, NODE, &format!("/{name}")).0, 404, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kernel_fetched_over_tftp_is_a_whole_kernel() {
    let mut lab = Lab::start();
    lab.answer_with(kernel());
    lab.serve(KERNEL, b"kernel");
    assert!(fetch(&Reader::new(&lab), b"pxelinux.cfg/default").is_ok());
    assert_eq!(fetch(&Reader::new(&lab), KERNEL.as_bytes()).as_deref(), Ok(&b"kernel"[..]));
    let seen = lab.until("the kernel", |what| matches!(what, Sighted::KernelWhole { .. })).await;
    assert!(lines(&seen).iter().any(|line| line.contains("inspect")), "{:?}", lines(&seen));
}
