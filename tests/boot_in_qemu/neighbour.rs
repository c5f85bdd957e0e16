//! The DHCP server that was there first: dnsmasq in a namespace of its own on the same segment. It gives addresses and
//! knows nothing of booting.

use std::{
    fs::{self, File},
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::segment::{Machine, must};

/// Joins the bridge of `lan` and starts dnsmasq, which gives `address` to the machine.
pub(crate) fn start(lan: &str, dir: &Path, machine: &Machine, address: &str) -> Child {
    let namespace = namespace(lan);
    must(Command::new("ip").args(["netns", "add", &namespace]));
    let peer = format!("link add dh0 type veth peer name eth0 netns {namespace}");
    for line in [peer.as_str(), "link set dh0 master br0 up"] {
        must(Command::new("ip").args(["-n", lan]).args(line.split(' ')));
    }
    for line in ["link set lo up", "link set eth0 up", "addr add 192.0.2.2/24 dev eth0"] {
        must(Command::new("ip").args(["-n", &namespace]).args(line.split(' ')));
    }
    // A veth leaves checksums unfinished, and firmware drops such packets.
    let offload = ["netns", "exec", &namespace, "ethtool", "-K", "eth0", "tx", "off"];
    must(Command::new("ip").args(offload));
    let (shown, mac, lines) = (dir.display(), machine.mac, machine.neighbour_lines);
    let config = format!(
        "port=0\ninterface=eth0\nbind-interfaces\nuser=root\nno-ping\nlog-dhcp\nlog-facility=-\n\
         pid-file={shown}/dnsmasq.pid\ndhcp-leasefile={shown}/dnsmasq.leases\n\
         dhcp-range=192.0.2.100,192.0.2.199,255.255.255.0,10m\ndhcp-host={mac},{address}\n{lines}\n"
    );
    fs::write(dir.join("dnsmasq.conf"), config).unwrap();
    let log = File::create(dir.join("dnsmasq.log")).unwrap();
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &namespace, "dnsmasq", "--keep-in-foreground", "-C"]);
    command.arg(dir.join("dnsmasq.conf")).stdin(Stdio::null());
    command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

/// Removes what [`start`] made, but for the process.
pub(crate) fn remove(lan: &str) {
    let _gone =
        Command::new("ip").args(["netns", "del", &namespace(lan)]).stderr(Stdio::null()).status();
}

fn namespace(lan: &str) -> String {
    format!("{lan}-dh")
}
