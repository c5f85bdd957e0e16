//! Foreign TFTP clients: tftp-hpa, atftp and busybox read what curl reads (see `foreign`).

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
};

use super::Lab;

/// A lab whose boot network is the loopback addresses foreign tools come from, and a file with every byte value.
fn lab() -> (Lab, Vec<u8>) {
    let lab = Lab::start();
    lab.change(|table| {
        table.networks[0].subnet = [127, 0, 0, 0].into();
        table.networks[0].prefix = 8;
    });
    let content: Vec<u8> = (0..700_001_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    lab.serve("loader.efi", &content);
    (lab, content)
}

/// Runs a client in the lab's folder; what it wrote to `got`. A tool that is missing fails the test in CI and is said
/// elsewhere.
fn client(lab: &Lab, program: &str, args: &[&str], stdin: &str) -> Option<Vec<u8>> {
    let got = lab.folder.0.join("got");
    fs::remove_file(&got).ok();
    let started = Command::new(program)
        .args(args)
        .current_dir(&lab.folder.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) if std::env::var_os("CI").is_some_and(|ci| ci == "true") => {
            panic!("{program}: {error}")
        }
        Err(error) => {
            println!("skipped: {program}: {error}");
            return None;
        }
    };
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {args:?}: {said}");
    Some(fs::read(&got).unwrap_or_else(|error| panic!("{program} {args:?}: {error}: {said}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn tftp_hpa_reads_the_file_twice_over_one_port() {
    let (lab, content) = lab();
    let port = lab.bound.tftp.port().to_string();
    let script = "get loader.efi got\nget loader.efi got\nquit\n";
    if let Some(got) = client(&lab, "tftp", &["-m", "binary", "127.0.0.1", &port], script) {
        assert!(got == content, "{} bytes", got.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn atftp_reads_the_file_with_and_without_options_and_windows() {
    let (lab, content) = lab();
    let port = lab.bound.tftp.port().to_string();
    let options: [&[&str]; 4] = [
        &[],
        &["--option", "blksize 1428", "--option", "tsize 0"],
        &["--option", "blksize 1428", "--option", "windowsize 16"],
        &["--option", "blksize 8192", "--option", "windowsize 7", "--option", "timeout 2"],
    ];
    for options in options {
        let mut args = options.to_vec();
        args.extend(["--get", "-r", "loader.efi", "-l", "got", "127.0.0.1", &port]);
        if let Some(got) = client(&lab, "atftp", &args, "") {
            assert!(got == content, "{options:?}: {} bytes", got.len());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn busybox_reads_the_file_at_its_own_block_sizes() {
    let (lab, content) = lab();
    let port = lab.bound.tftp.port().to_string();
    for blksize in ["512", "1428", "65464"] {
        let args =
            ["tftp", "-g", "-b", blksize, "-r", "loader.efi", "-l", "got", "127.0.0.1", &port];
        if let Some(got) = client(&lab, "busybox", &args, "") {
            assert!(got == content, "{blksize}: {} bytes", got.len());
        }
    }
}
