//! Network interfaces out of `/sys/class/net`.

use std::path::{Path, PathBuf};

use model::agent::NicFacts;

use super::{link_name, names, text};

/// ARPHRD_ETHER.
const ETHERNET: &str = "1";

/// Names of the Ethernet interfaces that belong to a device, sorted: no loopback, bridge or tunnel.
pub(crate) fn ethernet_names(root: &Path) -> Vec<String> {
    let class = root.join("sys/class/net");
    let mut nics = names(&class);
    nics.retain(|name| {
        let folder = class.join(name);
        text(&folder.join("type")).as_deref() == Some(ETHERNET) && folder.join("device").exists()
    });
    nics
}

/// Every interface with a hardware address.
pub(super) fn collect(root: &Path) -> Vec<NicFacts> {
    ethernet_names(root).into_iter().filter_map(|name| one(root, name)).collect()
}

fn one(root: &Path, name: String) -> Option<NicFacts> {
    let folder = root.join("sys/class/net").join(&name);
    // Members of a bond wear its address; their own stands here.
    let permanent = text(&folder.join("bonding_slave/perm_hwaddr"));
    let mac = permanent.or_else(|| text(&folder.join("address")))?.parse().ok()?;
    // Unreadable without a link, and -1 where the driver does not know.
    let speed = text(&folder.join("speed")).and_then(|speed| speed.parse().ok());
    let device = folder.join("device");
    Some(NicFacts {
        name,
        mac,
        driver: link_name(&device.join("driver")),
        speed_mbit: speed.filter(|mbit| *mbit > 0),
        pci: pci_function(device).and_then(|function| pci_ids(&function)),
    })
}

/// The PCI function of a device: itself, or for virtio the device it sits on.
fn pci_function(device: PathBuf) -> Option<PathBuf> {
    let device = device.canonicalize().ok()?;
    let mut candidates = device.ancestors().take(2);
    let is_pci = |path: &&Path| link_name(&path.join("subsystem")).as_deref() == Some("pci");
    candidates.find(is_pci).map(Path::to_owned)
}

/// `14e4:1639` out of the attributes `0x14e4` and `0x1639`.
fn pci_ids(function: &Path) -> Option<String> {
    let vendor = text(&function.join("vendor"))?;
    let device = text(&function.join("device"))?;
    Some(format!("{}:{}", vendor.strip_prefix("0x")?, device.strip_prefix("0x")?))
}

#[cfg(test)]
mod tests {
    use model::MacAddr;

    use super::*;
    use crate::collect::fake::Tree;

    #[test]
    fn a_pci_interface_tells_driver_speed_and_ids() {
        let tree = Tree::new();
        tree.nic("eth0", "9c:8e:99:00:03:01", "2");
        tree.file("sys/class/net/eth0/speed", "10000\n");
        tree.link("sys/devices/pci0/eth0/driver", "sys/bus/pci/drivers/be2net");
        tree.link("sys/devices/pci0/eth0/subsystem", "sys/bus/pci");
        tree.file("sys/devices/pci0/eth0/vendor", "0x19a2\n");
        tree.file("sys/devices/pci0/eth0/device", "0x0710\n");
        let want = NicFacts {
            name: "eth0".into(),
            mac: MacAddr([0x9c, 0x8e, 0x99, 0, 3, 1]),
            driver: Some("be2net".into()),
            speed_mbit: Some(10_000),
            pci: Some("19a2:0710".into()),
        };
        assert_eq!(collect(tree.root()), [want]);
    }

    #[test]
    fn a_virtio_interface_has_the_ids_of_the_function_below_it() {
        let tree = Tree::new();
        tree.file("sys/class/net/eth0/type", "1\n");
        tree.file("sys/class/net/eth0/address", "52:54:00:00:00:01\n");
        tree.file("sys/class/net/eth0/speed", "-1\n");
        tree.link("sys/class/net/eth0/device", "sys/devices/pci0/0000:00:03.0/virtio0");
        tree.link("sys/devices/pci0/0000:00:03.0/virtio0/subsystem", "sys/bus/virtio");
        tree.file("sys/devices/pci0/0000:00:03.0/virtio0/vendor", "0x1af4\n");
        tree.file("sys/devices/pci0/0000:00:03.0/virtio0/device", "0x0001\n");
        tree.link("sys/devices/pci0/0000:00:03.0/subsystem", "sys/bus/pci");
        tree.file("sys/devices/pci0/0000:00:03.0/vendor", "0x1af4\n");
        tree.file("sys/devices/pci0/0000:00:03.0/device", "0x1000\n");
        let found = collect(tree.root());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].pci.as_deref(), found[0].speed_mbit), (Some("1af4:1000"), None));
    }

    #[test]
    fn a_member_of_a_bond_keeps_its_own_address() {
        let tree = Tree::new();
        for (name, permanent) in [("eno1", "02:5a:10:00:02:01"), ("eno2", "02:5a:10:00:02:02")] {
            tree.file(&format!("sys/class/net/{name}/type"), "1\n");
            tree.file(&format!("sys/class/net/{name}/address"), "02:5a:10:00:02:01\n");
            tree.file(&format!("sys/class/net/{name}/bonding_slave/perm_hwaddr"), permanent);
            tree.link(&format!("sys/class/net/{name}/device"), "sys/devices/pci0/0000:00:03.0");
        }
        for name in ["bond0", "br0", "veth9"] {
            tree.file(&format!("sys/class/net/{name}/type"), "1\n");
            tree.file(&format!("sys/class/net/{name}/address"), "02:5a:10:00:02:01\n");
        }
        let macs: Vec<_> = collect(tree.root()).iter().map(|nic| nic.mac.to_string()).collect();
        assert_eq!(macs, ["02:5a:10:00:02:01", "02:5a:10:00:02:02"]);
    }

    #[test]
    fn loopback_and_interfaces_without_a_device_are_left_out() {
        let tree = Tree::new();
        tree.file("sys/class/net/lo/type", "772\n");
        tree.file("sys/class/net/br0/type", "1\n");
        tree.file("sys/class/net/br0/address", "52:54:00:00:00:01\n");
        assert_eq!(collect(tree.root()), []);
    }
}
