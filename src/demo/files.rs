//! The files of the demo: a configuration as an operator would write it, and what the modelled blades fetch.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    net::SocketAddr,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::Context;
use twin::{Lab, LabSpec, lab::LabBlade};

/// Size of the stand-in kernel: small enough for 16 at once on two cores, big enough to see on a timeline.
const KERNEL_BYTES: usize = 4 << 20;
/// Size of the stand-in initrd.
const INITRD_BYTES: usize = 2 << 20;
/// Where Debian's package `ipxe` puts its loaders.
const IPXE: &str = "/usr/lib/ipxe";

/// What is to be written.
pub(super) struct Files<'a> {
    pub(super) dir: &'a Path,
    pub(super) lab: &'a Lab,
    pub(super) spec: &'a LabSpec,
    pub(super) listen: SocketAddr,
    pub(super) user: &'a str,
}

impl Files<'_> {
    pub(super) fn write(&self, password_hash: &str, bmc_password: &str) -> anyhow::Result<()> {
        let (config, boot) = (self.dir.join("config"), self.dir.join("boot"));
        for folder in [&config, &boot] {
            let fault = || format!("could not make the folder {}", folder.display());
            fs::create_dir_all(folder).with_context(fault)?;
        }
        write_secret(&self.dir.join("bmc.password"), bmc_password)?;
        write_boot_files(&boot)?;
        let text = self.lab_toml(password_hash, &boot);
        write_secret(&config.join("volund.toml"), &text)?;
        let nodes: String = self.lab.blades.iter().map(|blade| self.node_toml(blade)).collect();
        write_secret(&config.join("nodes.toml"), &nodes)
    }

    fn lab_toml(&self, password_hash: &str, boot: &Path) -> String {
        let state = self.dir.join("state");
        let (relay, octet, bays) = (self.lab.relay, self.spec.octet, self.spec.bays.max(16));
        format!(
            r#"schema = 1

[lab]
name = "demo"
state_dir = {state}

[operator]
listen = "{listen}"
users = [{{ name = "{user}", password_hash = "{password_hash}" }}]

# Port 0: any free one. The blades ask through their enclosure's relay at {relay}.
[[network]]
name = "boot"
subnet = "127.0.{octet}.0/24"
server = "127.0.{octet}.2"
dhcp_port = 0
proxy_port = 0
tftp_port = 0
http_port = 0

[loaders]
dir = {boot}

[agent]
kernel = {kernel}
initrd = {initrd}

[enclosure.{enclosure}]
model = "HP BladeSystem c7000"
bays = {bays}

[profile.inspect]
kind = "inspect"
about = "Reports the hardware, then waits"
timeouts = {{ soft_off = "5s", off_settle = "1s", acts_after = "2s" }}

[profile.local]
kind = "local"
about = "Boots the blade's own disk"
timeouts = {{ soft_off = "5s", off_settle = "1s", acts_after = "2s" }}

[profile.ram]
kind = "linux"
about = "A Linux that runs from memory and calls back"
root = "ram"
kernel = {kernel}
initrd = [{initrd}]
args = "quiet hostname={{{{ node.name }}}} volund.done={{{{ volund.done }}}}"
files = {{ "motd" = {{ text = "{{{{ node.name }}}} in bay {{{{ node.bay }}}}\n" }} }}
min_boot_s = 5
timeouts = {{ soft_off = "5s", off_settle = "1s", acts_after = "2s" }}

[profile.install]
kind = "linux"
about = "An installer that writes the disk once, then boots it"
root = "installer"
kernel = {kernel}
initrd = [{initrd}]
args = "quiet auto=true volund.done={{{{ volund.done }}}}"
timeouts = {{ soft_off = "5s", off_settle = "1s", acts_after = "2s" }}
"#,
            state = quoted(&state),
            listen = self.listen,
            user = self.user,
            boot = quoted(boot),
            kernel = quoted(&boot.join("kernel")),
            initrd = quoted(&boot.join("initrd")),
            enclosure = self.lab.enclosure,
        )
    }

    fn node_toml(&self, blade: &LabBlade) -> String {
        let macs: Vec<String> = blade.macs.iter().map(|mac| format!("\"{mac}\"")).collect();
        let password = quoted_text(&format!("file:{}", self.dir.join("bmc.password").display()));
        let mut text = String::new();
        let written = writeln!(
            text,
            r#"[[node]]
name = "{name}"
enclosure = "{enclosure}"
bay = {bay}
serial = "{serial}"
macs = [{macs}]
address = "{address}"
bmc = {{ kind = "ipmi", address = "{host}", port = {port}, user = "{user}", secret = {password} }}
"#,
            name = blade.name,
            enclosure = self.lab.enclosure,
            bay = blade.bay,
            serial = blade.serial,
            macs = macs.join(", "),
            address = blade.address,
            host = blade.bmc.ip(),
            port = blade.bmc.port(),
            user = self.spec.bmc_user,
        );
        written.expect("writing to a string does not fail");
        text
    }
}

/// For a shell: `set -a; . demo.env; set +a`.
pub(super) fn env_text(url: &str, token: &str, user: &str, password: &str) -> String {
    format!(
        "VOLUND_URL={url}\nVOLUND_TOKEN={token}\nVOLUND_DEMO_BMC_USER={user}\nVOLUND_DEMO_BMC_PASSWORD={password}\n"
    )
}

/// Writes a file only its owner may read.
pub(super) fn write_secret(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file =
        options.open(path).with_context(|| format!("could not write {}", path.display()))?;
    file.set_permissions(fs::Permissions::from_mode(0o600))
        .and_then(|()| file.write_all(text.as_bytes()))
        .with_context(|| format!("could not write {}", path.display()))
}

/// Real iPXE loaders where the package is installed; the modelled firmware only fetches them, so stand-ins do.
fn write_boot_files(boot: &Path) -> anyhow::Result<()> {
    for loader in ["undionly.kpxe", "snponly.efi"] {
        let (from, to) = (PathBuf::from(IPXE).join(loader), boot.join(loader));
        if from.is_file() {
            fs::copy(&from, &to).with_context(|| format!("could not copy {}", from.display()))?;
        } else {
            let text = "stand-in for iPXE: the modelled firmware fetches it and runs its own\n";
            write_file(&to, &text.repeat(1_024).into_bytes())?;
        }
    }
    write_file(&boot.join("kernel"), &filler(KERNEL_BYTES))?;
    write_file(&boot.join("initrd"), &filler(INITRD_BYTES))
}

fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| format!("could not write {}", path.display()))
}

/// Bytes that say what they are when somebody looks.
fn filler(bytes: usize) -> Vec<u8> {
    b"stand-in payload of the volund demo\n".iter().copied().cycle().take(bytes).collect()
}

fn quoted(path: &Path) -> String {
    quoted_text(&path.display().to_string())
}

/// A TOML basic string.
fn quoted_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
