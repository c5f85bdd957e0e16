//! What the machines boot: the agent's image, and a foreign Linux that calls back: Debian's kernel with busybox, its own
//! DHCP client and its own HTTP client.

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use volund::image::{self, AgentImage, BuildAgent, KernelSource};

/// `/live`: process 1 of the foreign Linux. It takes its address by DHCP as an operating system does.
const LIVE: &str = r#"#!/bin/busybox sh
b=/bin/busybox
$b mkdir -p /proc /sys /dev /tmp
$b mount -t proc proc /proc; $b mount -t sysfs sys /sys; $b mount -t devtmpfs dev /dev
for m in $($b cat /modules.list); do $b insmod $m 2>/dev/null; done
for i in 1 2 3 4 5 6 7 8 9 10; do $b ip link show eth0 >/dev/null 2>&1 && break; $b sleep 1; done
$b ip link set eth0 up
$b udhcpc -i eth0 -n -q -t 10 -s /lease
url=$($b sed -n 's/.*done=\([^ ]*\).*/\1/p' /proc/cmdline)
$b wget -q -O - "$url" && echo "live: called back"
while :; do $b sleep 60; done
"#;

const LEASE: &str = r#"#!/bin/busybox sh
[ "$1" = bound ] && /bin/busybox ip addr add $ip/${mask:-24} dev $interface
exit 0
"#;

static IMAGE: OnceLock<AgentImage> = OnceLock::new();

/// The agent's image, made once a process: two tests in threads would write the same files.
pub(crate) fn agent_image() -> &'static AgentImage {
    IMAGE.get_or_init(build_image)
}

fn build_image() -> AgentImage {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = Command::new("sh").arg(root.join("tests/build-agent.sh")).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    image::build_agent(&BuildAgent {
        out_dir: Path::new(env!("CARGO_TARGET_TMPDIR")).join("boot-image"),
        kernel: KernelSource::Package { cache: root.join("target/kernel-cache") },
        agent_binary: root.join("target/agent/x86_64-unknown-linux-gnu/agent/agent"),
        modules: image::DEFAULT_MODULES.map(str::to_owned).into(),
        required_modules: vec!["e1000".into(), "virtio_net".into()],
        firmware: None,
    })
    .unwrap()
}

/// The agent's initramfs for its modules, with busybox and `/live` laid over it: archives may follow each other.
pub(crate) fn live_initrd(image: &AgentImage, dir: &Path) -> PathBuf {
    let tree = dir.join("live");
    fs::create_dir_all(tree.join("bin")).unwrap();
    fs::copy("/bin/busybox", tree.join("bin/busybox")).unwrap();
    for (name, text) in [("live", LIVE), ("lease", LEASE)] {
        fs::write(tree.join(name), text).unwrap();
        fs::set_permissions(tree.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut packer = Command::new("cpio")
        .args(["-o", "-H", "newc", "--quiet"])
        .current_dir(&tree)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    packer.stdin.take().unwrap().write_all(b".\nbin\nbin/busybox\nlive\nlease\n").unwrap();
    let packed = packer.wait_with_output().unwrap();
    assert!(packed.status.success());
    let mut both = fs::read(&image.initrd).unwrap();
    both.resize(both.len().next_multiple_of(4), 0);
    both.extend(packed.stdout);
    let path = dir.join("live.initrd");
    fs::write(&path, both).unwrap();
    path
}
