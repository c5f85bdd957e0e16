//! The configuration of a lab under test, as an operator would write it, and what its blades fetch.

use std::{fmt::Write as _, fs, os::unix::fs::PermissionsExt as _};

use twin::LabBlade;

use crate::rig::{BMC_PASSWORD, PORTS, Rig, Setup, WRONG_PASSWORD};

impl Rig {
    /// Writes configuration, secrets and what nodes fetch.
    pub(crate) fn configure(&self, setup: &Setup, operator: &str) {
        let boot = self.dir.join("boot");
        fs::create_dir_all(&boot).unwrap();
        let filler = |bytes: usize| -> Vec<u8> {
            b"stand-in payload\n".iter().copied().cycle().take(bytes).collect()
        };
        for (name, bytes) in [
            ("undionly.kpxe", 20_000),
            ("snponly.efi", 20_000),
            ("ia32.efi", 20_000),
            ("arm64.efi", 20_000),
            ("kernel", setup.kernel_bytes),
            ("initrd", 50_000),
        ] {
            fs::write(boot.join(name), filler(bytes)).unwrap();
        }
        self.secret("bmc.password", BMC_PASSWORD);
        self.secret("wrong.password", WRONG_PASSWORD);
        fs::write(self.dir.join("config/volund.toml"), self.lab_toml(setup, operator)).unwrap();
        let nodes: String =
            self.lab.blades.iter().map(|blade| self.node_toml(setup, blade)).collect();
        fs::write(self.dir.join("config/nodes.toml"), nodes).unwrap();
    }

    fn secret(&self, name: &str, text: &str) {
        let path = self.dir.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn lab_toml(&self, setup: &Setup, operator: &str) -> String {
        let (dir, octet, timeouts) = (self.dir.display(), self.octet, setup.timeouts);
        let network = setup.network.replace("OCTET", &octet.to_string());
        let (enclosure, bays) = (&self.lab.enclosure, setup.bays.max(16));
        let [dhcp, tftp, http] = PORTS;
        let profile = |name: &str, rest: &str| {
            format!("[profile.{name}]\n{rest}\ntimeouts = {{ {timeouts} }}\n")
        };
        let linux = |root: &str, more: &str| {
            format!(
                "kind = \"linux\"\nroot = \"{root}\"\nkernel = \"{dir}/boot/kernel\"\n\
                 initrd = [\"{dir}/boot/initrd\"]\n\
                 args = \"quiet volund.done={{{{ volund.done }}}}\"\n{more}"
            )
        };
        let motd = "min_boot_s = 1\nfiles = { \"motd\" = { text = \"{{ node.name }} in bay {{ node.bay }}\" } }";
        [
            format!(
                "schema = 1\n[lab]\nname = \"whole\"\nstate_dir = \"{dir}/state\"\n\
                 [operator]\nlisten = \"{listen}\"\n{operator}\n\
                 [metering]\nperiod_s = 1\n\
                 [[network]]\nname = \"boot\"\nsubnet = \"127.0.{octet}.0/24\"\n\
                 server = \"127.0.{octet}.2\"\n\
                 dhcp_port = {dhcp}\ntftp_port = {tftp}\nhttp_port = {http}\n{network}\n\
                 [loaders]\ndir = \"{dir}/boot\"\nefi_ia32 = \"ia32.efi\"\nefi_arm64 = \"arm64.efi\"\n\
                 [agent]\nkernel = \"{dir}/boot/kernel\"\ninitrd = \"{dir}/boot/initrd\"\n\
                 [enclosure.{enclosure}]\nmodel = \"HP BladeSystem c7000\"\nbays = {bays}\n",
                listen = self.operator(),
            ),
            profile("inspect", "kind = \"inspect\""),
            profile("local", "kind = \"local\""),
            profile("ram", &linux("ram", motd)),
            profile("install", &linux("installer", "")),
        ]
        .concat()
    }

    fn node_toml(&self, setup: &Setup, blade: &LabBlade) -> String {
        let bay = blade.bay.get();
        let macs = blade.macs.map(|mac| format!("\"{mac}\"")).join(", ");
        let wrong = setup.wrong_password.contains(&bay);
        let secret = if wrong { "wrong.password" } else { "bmc.password" };
        let other = self.meterless.filter(|(other, _)| *other == bay);
        let bmc = other.map_or(blade.bmc, |(_, address)| address);
        let mut text = String::new();
        write!(
            text,
            "[[node]]\nname = \"{name}\"\nenclosure = \"{enclosure}\"\nbay = {bay}\n\
             serial = \"{serial}\"\nmacs = [{macs}]\naddress = \"{address}\"\n\
             bmc = {{ kind = \"ipmi\", address = \"{host}\", port = {port}, user = \"ADMIN\", \
             secret = \"file:{dir}/{secret}\" }}\n",
            name = blade.name,
            enclosure = self.lab.enclosure,
            serial = blade.serial,
            address = blade.address,
            host = bmc.ip(),
            port = bmc.port(),
            dir = self.dir.display(),
        )
        .unwrap();
        text
    }
}
