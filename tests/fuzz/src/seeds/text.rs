//! What a person writes: configuration, lists, words.

use super::{Seed, seed};

const CONFIG: &str = r#"schema = 1

[lab]
name = "own"
state_dir = "state"

[operator]
listen = "127.0.0.1:8443"

[[network]]
name = "boot"
interface = "eth1"
subnet = "192.0.2.0/24"
server = "192.0.2.10"
router = "192.0.2.254"
dns = ["192.0.2.53"]
lease_s = 600
dhcp = "reserved"

[loaders]
dir = "loaders"
bios = "undionly.kpxe"
efi_x64 = "snponly.efi"

[metering]
period_s = 10
margin_percent = 5

[enclosure.c7000-1]
model = "Own enclosure"
bays = 16

[profile.debian]
kind = "linux"
root = "installer"
kernel = "linux"
initrd = ["initrd.gz"]
args = "url={{ volund.files }}/p.cfg hostname={{ node.name }} quiet"
files = { "p.cfg" = { template = "p.cfg" } }
timeouts = { post = "8m", boot = "6m", ready = "45m" }
min_boot_s = 300

[[node]] # blade
name = "bld-003"
enclosure = "c7000-1"
bay = 3
serial = "S-1"
macs = ["02:5a:10:00:00:03", "02-5a-10-00-00-04"]
address = "192.0.2.73"
bmc = { kind = "ipmi", address = "192.0.2.173", user = "admin", secret = "env:BMC" }
boot_mode = "uefi"
profiles = ["local", "debian"]

[[assign]]
nodes = "bld-[003]"
profile = "debian"
"#;

pub(super) fn all() -> Vec<Seed> {
    let lists = [
        ("ranges", "bld-[003,006-010],oden"),
        ("two-brackets", "r[1-2]n[01-03] x"),
        ("unpaired", "a[1-2"),
        ("backwards", "a[9-2]"),
        ("large", "a[0-4095]"),
    ];
    let words = [
        ("mac", "02-5A-10-00-00-03"),
        ("mac-dots", "025a.1000.0003"),
        ("uuid", "33221100-5544-7746-8899-0a0b0c0d0e0f"),
        ("ticket", "00112233445566778899aabbccddeeff"),
        ("subnet", "192.0.2.0/24"),
        ("duration", "1h30m500ms"),
        ("secret", "cmd:pass show bmc"),
        ("name", "bld-003"),
    ];
    let configs = [
        ("whole", CONFIG),
        ("least", "schema = 1\n[lab]\nname = \"own\"\n"),
        ("broken", "schema = 1\n[lab\nname = \n[[node]]\nname = 'x'\nmacs = [1, 'é', [[]]]\n"),
        ("dotted", "schema = 1\nlab.name = \"own\"\nnode = 3\nnetwork = [{}]\n\"\" = 1\n"),
    ];
    let lists = lists.map(|(name, text)| seed("hostlist", name, text));
    let words = words.map(|(name, text)| seed("words", name, text));
    let configs = configs.map(|(name, text)| seed("config", name, text));
    lists.into_iter().chain(words).chain(configs).collect()
}
