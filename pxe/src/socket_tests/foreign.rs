//! Foreign clients against our servers: curl, wget, Python's http.client, and a prober of TFTP's edges.

use std::{path::PathBuf, process::Command};

use super::{Lab, SERVER};

/// A tool's output; missing, it fails the test in CI and says so elsewhere.
fn run(program: &str, args: &[&str]) -> Option<Vec<u8>> {
    match Command::new(program).args(args).output() {
        Ok(output) => {
            assert!(
                output.status.success(),
                "{program}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            Some(output.stdout)
        }
        Err(error) if std::env::var_os("CI").is_some_and(|ci| ci == "true") => {
            panic!("{program}: {error}")
        }
        Err(error) => {
            println!("skipped: {program}: {error}");
            None
        }
    }
}

/// A lab whose boot network is the loopback addresses foreign tools come from.
fn lab() -> Lab {
    let lab = Lab::start();
    lab.change(|table| {
        table.networks[0].subnet = [127, 0, 0, 0].into();
        table.networks[0].prefix = 8;
    });
    lab
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_reads_the_same_bytes_over_http_and_tftp() {
    let lab = lab();
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    lab.serve("loader.efi", &content);
    let http = format!("http://{}/loader.efi", lab.bound.http);
    if let Some(got) = run("curl", &["-sS", "--fail", "-m", "20", &http]) {
        assert!(got == content, "http: {} bytes", got.len());
    }
    let head = run("curl", &["-sS", "--fail", "-m", "20", "-I", &http, &http]).unwrap_or_default();
    let lengths = String::from_utf8_lossy(&head).matches("Content-Length: 3000000").count();
    assert!(head.is_empty() || lengths == 2);
    for blksize in ["512", "1428"] {
        let tftp = format!("tftp://{}/loader.efi", lab.bound.tftp);
        let args = ["-sS", "--fail", "-m", "60", "--tftp-blksize", blksize, &tftp];
        if let Some(got) = run("curl", &args) {
            assert!(got == content, "tftp {blksize}: {} bytes", got.len());
        }
    }
}

/// Each line it prints is a fault. Argument: HOST:PORT.
const PYTHON_CLIENT: &str = r#"
import http.client, sys
client = http.client.HTTPConnection(sys.argv[1], timeout=20)
def ask(method, headers={}):
    client.request(method, "/image", headers=headers)
    answer = client.getresponse()
    return answer, answer.read()
def want(is_so, what):
    if not is_so:
        print(what)
head, nothing = ask("HEAD")
first, whole = ask("GET")
socket = client.sock
want(socket is not None, "closed after the first answers")
want(nothing == b"" and head.getheader("Content-Length") == str(len(whole)), "HEAD")
want(dict(head.getheaders()) == dict(first.getheaders()), "HEAD and GET have other headers")
part, middle = ask("GET", {"Range": "bytes=1000-1999"})
want((part.status, middle) == (206, whole[1000:2000]), "a part")
want(part.getheader("Content-Range") == "bytes 1000-1999/%d" % len(whole), "Content-Range")
beyond, nothing = ask("GET", {"Range": "bytes=%d-" % len(whole)})
want((beyond.status, nothing) == (416, b""), "beyond the end")
same, nothing = ask("GET", {"If-None-Match": first.getheader("ETag")})
want((same.status, nothing) == (304, b""), "unchanged")
same, nothing = ask("GET", {"If-Modified-Since": first.getheader("Last-Modified")})
want((same.status, nothing) == (304, b""), "unchanged since")
again, content = ask("GET", {"Range": "bytes=5-", "If-Range": first.getheader("ETag")})
want((again.status, content) == (206, whole[5:]), "If-Range")
want(client.sock is socket, "the connection did not last")
"#;

#[tokio::test(flavor = "multi_thread")]
async fn foreign_http_clients_take_a_download_up_again() {
    let lab = lab();
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    lab.serve("image", &content);
    let url = format!("http://{}/image", lab.bound.http);
    let part = run("curl", &["-sS", "--fail", "-m", "20", "-r", "2999990-", &url]);
    assert!(part.is_none_or(|part| content.ends_with(&part) && part.len() == 10));
    for (tool, args) in [
        ("curl", &["-sS", "--fail", "-m", "20", "-C", "-", "-o"][..]),
        ("wget", &["-q", "-T", "20", "-t", "1", "-c", "-O"][..]),
    ] {
        let half = lab.folder.0.join(tool);
        std::fs::write(&half, &content[..1_500_000]).unwrap();
        let args = [args, &[half.to_str().unwrap(), &url]].concat();
        let Some(_) = run(tool, &args) else { continue };
        assert!(std::fs::read(&half).unwrap() == content, "{tool}");
        // Whole already: nothing is left to fetch (416). To curl with --fail that is a failure.
        if tool == "wget" {
            run(tool, &args);
            assert!(std::fs::read(&half).unwrap() == content, "{tool}, again");
        }
    }
    let host = lab.bound.http.to_string();
    let faults = run("python3", &["-c", PYTHON_CLIENT, &host]).unwrap_or_default();
    assert_eq!(String::from_utf8_lossy(&faults), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prober_of_tftp_edges_finds_none() {
    let lab = lab();
    lab.serve("f", &[7; 5000]);
    let prober =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/lab/pxe/tftp_edge.py");
    let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(prober.exists() || !is_ci, "{} is missing", prober.display());
    if !prober.exists() {
        println!("skipped: {} is missing", prober.display());
        return;
    }
    let port = lab.bound.tftp.port().to_string();
    let args = [prober.to_str().unwrap(), &SERVER.to_string(), &port, "f"];
    let Some(output) = run("python3", &args) else { return };
    let output = String::from_utf8(output).unwrap();
    let line = |name: &str| {
        let found = output.lines().find(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("no {name} in\n{output}")).split_at(34).1.trim().to_owned()
    };
    let starts = [
        ("plain", "DATA 1 len=512"),
        ("mode OCTET", "DATA 1 len=512"),
        ("mode netascii", "ERROR 4"),
        ("BLKSIZE upper case", "OACK BLKSIZE 1024"),
        ("blksize 0", "DATA 1 len=512"),
        ("blksize 7", "DATA 1 len=512"),
        ("blksize 8 ", "OACK blksize 8"),
        ("blksize 65464", "OACK blksize 65464"),
        ("blksize -1", "DATA 1 len=512"),
        ("blksize abc", "DATA 1 len=512"),
        ("windowsize 0", "DATA 1 len=512"),
        ("windowsize 65535", "OACK windowsize 64"),
        ("timeout 256", "DATA 1 len=512"),
        ("tsize 0", "OACK tsize 5000"),
        ("option without value", "DATA 1 len=512"),
        ("missing file", "ERROR 1"),
        ("empty name", "ERROR 1"),
        ("../ traversal", "ERROR 1"),
        ("..\\ traversal", "ERROR 1"),
        ("non-utf8 name", "ERROR 1"),
        ("no NULs", "ERROR 4"),
        ("WRQ", "ERROR 2"),
        ("700-byte RRQ", "ERROR 1"),
        ("still alive", "DATA 1 len=512"),
    ];
    for (name, want) in starts {
        assert!(line(name).starts_with(want), "{name}: {}", line(name));
    }
    assert!(line("OVMF probe then abort").ends_with("| -"), "quiet after the abort");
    assert!(line("OACK lost").matches("OACK").count() == 2, "sent again");
    assert!(line("DATA1 lost").matches("DATA 1").count() == 2, "sent again");
    assert_eq!(line("empty datagram"), "ERROR 4 'no TFTP request'@0.0");
}
