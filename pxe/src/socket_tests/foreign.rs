//! Foreign clients against our servers: curl, and a prober of TFTP's edges.

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
        ("blksize 65464", "OACK blksize 1468"),
        ("blksize -1", "DATA 1 len=512"),
        ("blksize abc", "DATA 1 len=512"),
        ("windowsize 0", "DATA 1 len=512"),
        ("windowsize 65535", "OACK windowsize 16"),
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
