//! The boot port's HTTP over real sockets.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    sync::Arc,
};

use model::{
    BootAnswer, BootIntent, ClientArch, Sighted, UnixMillis,
    boot::{Attempt, AttemptId},
    sighting::DhcpKind,
};
use pxe_proto::dhcp::{ClientMessage, RelayInfo};
use socket2::{Domain, Socket, Type};

use super::{BOUND, KERNEL, Lab, MAC, NODE, RELAY, at, kernel, lines};
use crate::{AgentReply, BootCall, Document, Refused};

/// A connection from an address of its own.
pub(super) struct Client {
    pub(super) stream: TcpStream,
    ahead: Vec<u8>,
}

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Client {
    pub(super) fn connect(lab: &Lab, from: Ipv4Addr) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&at(from).into()).unwrap();
        socket.connect(&lab.bound.http.into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(BOUND)).unwrap();
        Self { stream, ahead: vec![] }
    }

    pub(super) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    pub(super) fn get(&mut self, target: &str) -> Response {
        self.send(&format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
        self.response(true)
    }

    pub(super) fn head(&mut self, target: &str) -> Response {
        self.send(&format!("HEAD {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
        self.response(false)
    }

    pub(super) fn response(&mut self, has_body: bool) -> Response {
        let end = loop {
            let found = self.ahead.windows(4).position(|four| four == b"\r\n\r\n");
            match found {
                Some(at) => break at + 4,
                None => assert!(self.more() > 0, "closed in the head"),
            }
        };
        let head = String::from_utf8(self.ahead.drain(..end).collect()).unwrap();
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let status = head[9..12].parse().unwrap();
        let length = field("Content-Length: ").map(|length| length.parse().unwrap());
        assert_eq!(length.is_none(), status == 304, "{head}");
        assert!(!field("Content-Type: ").unwrap().is_empty());
        assert!(!head.to_ascii_lowercase().contains("transfer-encoding"));
        assert!(head.lines().skip(1).all(|line| !line.ends_with(':') && !line.ends_with(": ")));
        let length = length.filter(|_| has_body).unwrap_or(0);
        while self.ahead.len() < length {
            assert!(self.more() > 0, "closed in the body");
        }
        Response { status, head, body: self.ahead.drain(..length).collect() }
    }

    pub(super) fn more(&mut self) -> usize {
        let mut chunk = [0; 65_536];
        let read = self.stream.read(&mut chunk).unwrap();
        self.ahead.extend_from_slice(&chunk[..read]);
        read
    }
}

/// One GET on a connection of its own.
pub(super) fn get(lab: &Lab, from: Ipv4Addr, target: &str) -> Response {
    Client::connect(lab, from).get(target)
}

#[tokio::test(flavor = "multi_thread")]
async fn head_and_get_and_more_go_over_one_connection() {
    // Field case 17.
    let mut lab = Lab::start();
    lab.answer_with(BootAnswer::Wait { why: "held".to_owned() });
    let loader = vec![7; 300_000];
    lab.serve("snponly.efi", &loader);
    let mut client = Client::connect(&lab, NODE);

    let head = client.head("/snponly.efi");
    let got = client.get("//snponly.efi");
    assert_eq!((head.status, got.status, head.head), (200, 200, got.head));
    assert!(got.body == loader);
    let script = client.get("/boot.ipxe");
    assert!(script.status == 200 && script.body.starts_with(b"#!ipxe\n"));
    assert_eq!(client.get("/nothing").status, 404, "and the connection goes on");

    client.send("GET /snponly.efi HTTP/1.1\r\nRange: bytes=100000-199999\r\n\r\n");
    let ranged = client.response(true);
    assert_eq!((ranged.status, ranged.body.len()), (206, 100_000));
    assert!(ranged.head.contains("Content-Range: bytes 100000-199999/300000\r\n"));
    client.send("GET /snponly.efi HTTP/1.0\r\n\r\n");
    let old = client.response(true);
    assert!(old.head.contains("Connection: close") && old.body == loader);
    assert_eq!(client.more(), 0, "HTTP/1.0 closes");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_client_asks_for_beside_the_file_the_file_is_whole_plain_and_counted() {
    let mut lab = Lab::start();
    lab.answer_with(kernel());
    let file: Vec<u8> = (0..200_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
    lab.serve("snponly.efi", &file);
    let mut client = Client::connect(&lab, NODE);
    let extras = [
        "Range: bytes=0-0,5-9",
        "Range: bytes=9-5",
        "Range: lines=1-2",
        "Accept-Encoding: gzip, br",
        "TE: trailers, deflate",
        "If-None-Match: \"other\"",
        "If-Range: \"other\"\r\nRange: bytes=0-0",
        "If-Modified-Since: Sat, 01 Jan 2050 00:00:00 GMT",
        "Connection: keep-alive",
        "X-Empty:",
        "Upgrade: h2c\r\nConnection: Upgrade",
    ];
    for extra in extras {
        for (method, has_body) in [("HEAD", false), ("GET", true), ("GET", true)] {
            client.send(&format!("{method} /snponly.efi HTTP/1.1\r\nHost: x\r\n{extra}\r\n\r\n"));
            let got = client.response(has_body);
            assert_eq!(got.status, 200, "{extra}");
            assert!(got.head.contains("Content-Length: 200000\r\n"), "{extra}: {}", got.head);
            let lower = got.head.to_ascii_lowercase();
            assert!(!lower.contains("content-encoding") && !lower.contains("content-range"));
            assert!(!has_body || got.body == file, "{extra}");
        }
    }
    // All at once, and a HEAD of everything that is no file.
    client.send(
        "HEAD /boot.ipxe HTTP/1.1\r\n\r\nHEAD /nothing HTTP/1.1\r\n\r\nHEAD /healthz HTTP/1.1\r\n\r\n\
         HEAD /t/short/x HTTP/1.1\r\n\r\nGET /boot.ipxe HTTP/1.1\r\n\r\nGET /nothing HTTP/1.1\r\n\r\n",
    );
    let heads: Vec<Response> = (0..4).map(|_| client.response(false)).collect();
    let (script, nothing) = (client.response(true), client.response(true));
    assert_eq!(heads.iter().map(|head| head.status).collect::<Vec<_>>(), [200, 404, 200, 404]);
    assert_eq!((&heads[0].head, &heads[1].head), (&script.head, &nothing.head));
    for (version, extra) in [
        ("HTTP/1.0", "Connection: keep-alive"),
        ("HTTP/1.1", "Connection: Close"),
        ("HTTP/1.1", "connection: foo, close"),
    ] {
        let mut client = Client::connect(&lab, NODE);
        client.send(&format!("GET /snponly.efi {version}\r\n{extra}\r\n\r\n"));
        assert!(client.response(true).body == file, "{version} {extra}");
        assert_eq!(client.more(), 0, "{version} {extra}: closed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_fetches_of_the_script_are_five_equal_answers_of_one_attempt() {
    let mut lab = Lab::start();
    let asked = lab.answer_with(kernel());
    let scripts: Vec<Vec<u8>> = (0..5).map(|_| get(&lab, NODE, "/boot.ipxe").body).collect();
    assert!(scripts.iter().all(|script| *script == scripts[0]));
    let text = String::from_utf8(scripts[0].clone()).unwrap();
    let boot_if = format!("BOOTIF=01-{}", MAC.hyphenated());
    let fetch = format!("http://{}{KERNEL} quiet {boot_if} initrd=initrd0", lab.bound.http);
    assert!(text.contains(&fetch), "{text}");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 5, "the engine is asked each time");
    assert!(asked.iter().all(|ask| ask.attempt == asked[0].attempt));
    assert_eq!((asked[0].mac, asked[0].from), (MAC, NODE));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_kernel_is_told_and_the_next_boot_is_a_new_attempt() {
    let mut lab = Lab::start();
    let asked = lab.answer_with(kernel());
    lab.serve(KERNEL, &[1; 100_000]);
    lab.serve("/i/inspect/initrd", &[2; 10]);
    get(&lab, NODE, "/boot.ipxe");
    // A HEAD, another file and another machine do not count.
    assert_eq!(Client::connect(&lab, NODE).head(KERNEL).status, 200);
    assert_eq!(get(&lab, NODE, "/i/inspect/initrd").status, 200);
    assert_eq!(get(&lab, Ipv4Addr::new(127, 77, 0, 99), KERNEL).status, 200);
    assert_eq!(get(&lab, NODE, KERNEL).body.len(), 100_000);
    let seen = lab.until("the kernel", |what| matches!(what, Sighted::KernelWhole { .. })).await;
    let ends = lines(&seen);
    assert_eq!(ends.last().unwrap(), "kernel /i/inspect/vmlinuz fetched whole");
    assert_eq!(ends.iter().filter(|line| line.contains("fetched whole")).count(), 1);
    let first = seen.last().unwrap().attempt;

    let relay = std::net::UdpSocket::bind(at(RELAY)).unwrap();
    let rom = ClientMessage::pxe(DhcpKind::Discover, 1, MAC, ClientArch(0)).message();
    let relayed = rom.through_relay(RELAY, &RelayInfo::default());
    relay.send_to(&relayed.encode(), lab.bound.dhcp.unwrap()).unwrap();
    let seen = lab.until("the DISCOVER", |what| matches!(what, Sighted::DhcpIn { .. })).await;
    let second = seen.last().unwrap().attempt;
    assert!(second > first, "{second:?} after {first:?}");
    get(&lab, NODE, "/boot.ipxe");
    assert_eq!(asked.lock().unwrap().last().map(|ask| ask.attempt.0), second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kernel_fetched_across_a_restart_of_volund_is_noticed() {
    let mut lab = Lab::start();
    let asked = lab.answer_with(kernel());
    let id = AttemptId(UnixMillis(crate::state::now().0 - 5000));
    lab.recorded(Attempt { id, kernel_whole: None });
    lab.serve(KERNEL, &[1; 1000]);
    get(&lab, NODE, KERNEL);
    let seen = lab.until("the kernel", |what| matches!(what, Sighted::KernelWhole { .. })).await;
    assert_eq!(seen.last().unwrap().attempt, Some(id.0));
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_engine_means_local_boot() {
    let lab = Lab::start(); // its calls are never read
    let script = get(&lab, NODE, "/boot.ipxe");
    let text = String::from_utf8(script.body).unwrap();
    assert!(text.contains("local boot: no answer from the engine in time"), "{text}");
    assert!(text.contains("sanboot"));
    let seen = lab.until("the script", |what| matches!(what, Sighted::Script { .. })).await;
    assert!(lines(&seen).last().unwrap().starts_with("boot script: local boot"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_gone_and_a_local_node_boot_the_disk_at_once() {
    let mut lab = Lab::start();
    lab.calls = None;
    // Were each to wait its two seconds, they would not all be there in time.
    let mut client = Client::connect(&lab, NODE);
    let mut forty = tokio::task::spawn_blocking(move || {
        (0..40).map(|_| client.get("/boot.ipxe").body).collect::<Vec<_>>()
    });
    let scripts = tokio::time::timeout(BOUND, &mut forty).await.expect("nobody waits").unwrap();
    assert!(scripts.iter().all(|script| script.ends_with(b"|| exit\n")));
    lab.change_entry(|entry| entry.intent = BootIntent::Local);
    let local = String::from_utf8(get(&lab, NODE, "/boot.ipxe").body).unwrap();
    assert!(local.contains("nothing else is ordered") && local.ends_with("|| exit\n"), "{local}");
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_would_be_commands_are_not_served() {
    let mut lab = Lab::start();
    let BootAnswer::Kernel(mut script) = kernel() else { panic!() };
    script.args = "quiet || shell".to_owned();
    lab.answer_with(BootAnswer::Kernel(script));
    let text = String::from_utf8(get(&lab, NODE, "/boot.ipxe").body).unwrap();
    assert!(text.contains("local boot") && !text.contains("shell"), "{text}");
    lab.until("a reason", |what| matches!(what, Sighted::Refused { .. })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_given_to_the_nodes_own_address_only() {
    // Field case 63: neither a MAC in the query nor a header opens it.
    let mut lab = Lab::start();
    let asked = lab.answer_with(kernel());
    let laptop = Ipv4Addr::new(127, 77, 0, 200);
    let own = format!("/boot.ipxe?mac={}", MAC.hyphenated());
    assert_eq!(get(&lab, laptop, &own).status, 404);
    let mut forwarded = Client::connect(&lab, laptop);
    forwarded.send(&format!("GET {own} HTTP/1.1\r\nX-Forwarded-For: {NODE}\r\n\r\n"));
    assert_eq!(forwarded.response(true).status, 404);
    for wrong in ["mac=02-00-00-00-00-99", "mac=", "mac=xyz", "mac=02:5a:10:00:00:04"] {
        assert_eq!(get(&lab, NODE, &format!("/boot.ipxe?{wrong}")).status, 404, "{wrong}");
    }
    assert_eq!(asked.lock().unwrap().len(), 0, "the engine was not even asked");
    for right in [own.as_str(), "/boot.ipxe?x=1&mac=02:5a:10:00:00:03", "//boot.ipxe"] {
        assert_eq!(get(&lab, NODE, right).status, 200, "{right}");
    }
    let seen = lab.until("the script", |what| matches!(what, Sighted::Script { .. })).await;
    let refused = seen.iter().filter(|s| matches!(s.what, Sighted::Refused { .. }));
    assert!(refused.clone().any(|s| s.node.is_none() && s.peer == Some(laptop)));
    assert_eq!(refused.filter(|s| s.node.is_some()).count(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_machines_at_once_are_all_answered() {
    // Field case 18.
    let mut lab = Lab::start();
    lab.answer_with(kernel());
    let lab = Arc::new(lab);
    let threads: Vec<_> = (0..60)
        .map(|_| {
            let lab = Arc::clone(&lab);
            std::thread::spawn(move || get(&lab, NODE, "/boot.ipxe").status)
        })
        .collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap() == 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_that_hold_connections_open_take_no_nodes_place() {
    let mut lab = Lab::start();
    let asked = lab.answer_with(kernel());
    let hold = |number: u8| {
        let mut client = Client::connect(&lab, Ipv4Addr::new(127, 77, 1, number));
        // A connection beyond the bound is closed at once: writing to it may fail.
        client.stream.write_all(b"GET / HT").ok();
        client
    };
    let held: Vec<Client> =
        (1..=40).flat_map(|n| std::iter::repeat_with(move || n).take(30)).map(hold).collect();
    assert_eq!(held.len(), 1_200);
    assert_eq!(get(&lab, NODE, "/boot.ipxe").status, 200);
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_cannot_fill_memory_with_a_body() {
    let lab = Lab::start();
    let report = "POST /agent/v1/report HTTP/1.1\r\nContent-Length: 4000000\r\n\r\n";
    let mut stranger = Client::connect(&lab, Ipv4Addr::new(127, 77, 0, 200));
    stranger.send(report);
    assert_eq!(stranger.response(true).status, 413, "before any of it is read");
    let mut small = Client::connect(&lab, Ipv4Addr::new(127, 77, 0, 200));
    small.send("POST /agent/v1/report HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
    assert_eq!(small.response(true).status, 401);
    let mut node = Client::connect(&lab, NODE);
    node.send(report);
    node.send(&" ".repeat(4_000_000));
    assert_eq!(node.response(true).status, 401, "an agent's report is as long as it is");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_has_not_got_its_kernel() {
    let mut lab = Lab::start();
    lab.answer_with(kernel());
    let path = lab.serve(KERNEL, b"");
    std::fs::File::options().write(true).open(path).unwrap().set_len(256 << 20).unwrap();
    get(&lab, NODE, "/boot.ipxe");
    let mut client = Client::connect(&lab, NODE);
    client.send(&format!("GET {KERNEL} HTTP/1.1\r\n\r\n"));
    client.more();
    drop(client);
    let seen = lab.until("a short answer", |what| matches!(what, Sighted::HttpShort { .. })).await;
    let Sighted::HttpShort { bytes, of, .. } = seen.last().unwrap().what else { panic!() };
    assert!(bytes < of && of == 256 << 20);
    assert!(!seen.iter().any(|s| matches!(s.what, Sighted::KernelWhole { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_and_agent_calls_go_to_the_engine_and_tickets_stay_out_of_sight() {
    let mut lab = Lab::start();
    let mut calls = lab.calls.take().unwrap();
    let secret = "00112233445566778899aabbccddeeff";
    tokio::spawn(async move {
        while let Some(call) = calls.recv().await {
            match call {
                BootCall::Document { ticket, name, from, reply } => {
                    let is_given = ticket.reveal() == secret && from == NODE;
                    let document =
                        Document { content_type: "text/yaml".to_owned(), bytes: name.into_bytes() };
                    let refused = Refused { why: "foreign ticket".to_owned() };
                    reply.send(if is_given { Ok(document) } else { Err(refused) }).ok();
                }
                BootCall::Agent { verb, body, reply, .. } => {
                    let body = [verb.as_bytes(), b":", &body].concat();
                    reply.send(AgentReply { status: 200, body }).ok();
                }
                BootCall::Boot { .. } | BootCall::Choose { .. } => (),
            }
        }
    });
    let document = get(&lab, NODE, &format!("/t/{secret}/cloud/user-data"));
    assert_eq!((document.status, &*document.body), (200, &b"cloud/user-data"[..]));
    assert!(document.head.contains("Content-Type: text/yaml\r\n"));
    assert_eq!(get(&lab, RELAY, &format!("/t/{secret}/x")).status, 403);
    assert_eq!(get(&lab, NODE, "/t/short/x").status, 404);
    assert_eq!(get(&lab, NODE, &format!("/t/{secret}/done")).body, b"done:");

    let mut agent = Client::connect(&lab, NODE);
    let call = |head: &str| {
        format!("POST /agent/v1/claim HTTP/1.1\r\n{head}Content-Length: 2\r\n\r\n{{}}")
    };
    agent.send(&call(&format!("Authorization: Ticket {secret}\r\n")));
    assert_eq!(agent.response(true).body, b"claim:{}");
    agent.send(&call(""));
    assert_eq!(agent.response(true).status, 401);
    agent.send(&call("Authorization: Bearer x\r\n"));
    assert_eq!(agent.response(true).status, 401);
    assert_eq!(agent.get("/healthz").body, b"ok\n");
    assert_eq!(agent.get("/agent/v1/claim").status, 404);

    let is_last = |what: &Sighted| what.to_string().contains("GET /agent/v1/claim");
    let seen = lines(&lab.until("the last request", is_last).await);
    assert!(seen.iter().all(|line| !line.contains(&secret[..6])), "{seen:#?}");
    assert!(seen.iter().any(|line| line.starts_with("HTTP GET /t/0011…/cloud/user-data 200")));
    assert_eq!(seen.iter().filter(|line| line.starts_with("agent: ")).count(), 2);
    assert_eq!(seen.iter().filter(|line| line.starts_with("refused: ")).count(), 4, "{seen:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_answered_and_closed() {
    let lab = Lab::start();
    for (request, status) in [
        ("PUT / HTTP/1.1\r\n\r\n", 405),
        ("GET /%2e%2e/etc/passwd HTTP/1.1\r\n\r\n", 400),
        ("POST /x HTTP/1.1\r\nContent-Length: 5000000\r\n\r\n", 413),
        ("rubbish\r\n\r\n", 400),
    ] {
        let mut client = Client::connect(&lab, NODE);
        client.send(request);
        assert_eq!(client.response(true).status, status, "{request}");
    }
}
