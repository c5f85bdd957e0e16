//! Our DHCP server against foreign programs: dhclient, udhcpc, dhcpcd, perfdhcp, dhcrelay, dnsmasq, rdisc6, each in a
//! network namespace of its own.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test's helpers fail by panic"
)]

mod clients;
mod disk;
mod neighbours;
mod rig;
mod rivals;
