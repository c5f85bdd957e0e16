//! What of this machine will hurt DHCP: too small a receive buffer, a neighbour table smaller than the lab, too few
//! descriptors. It reads the system's settings and changes none.

use std::fs;

use model::{BootTable, boot::DhcpMode};

use crate::{
    server::RECEIVE_BUFFER,
    status::{About, Finding, Status},
};

/// Descriptors the bounds of TFTP and HTTP come to, with room for some thousand BMCs.
const FEWEST: u64 = 8_192;
/// What is recommended.
const DESCRIPTORS: u64 = 65_536;
/// Neighbours beside our clients: BMCs, routers, people.
const OTHERS: usize = 64;

/// Looks at what a socket was given: a burst of some thousand DISCOVERs has to fit.
pub(super) fn receive_buffer(size: usize, port: u16) -> Option<Finding> {
    // The system counts its own bookkeeping in and reports the double of what was asked.
    (size < 2 * RECEIVE_BUFFER).then(|| {
        Finding::new(
            format!(
                "the receive buffer of UDP port {port} is {} KiB: a burst of DISCOVERs will be lost",
                size / 2048
            ),
            format!(
                "`sysctl -w net.core.rmem_max={RECEIVE_BUFFER}` and in /etc/sysctl.d, or run with CAP_NET_ADMIN"
            ),
        )
    })
}

/// Looks at the neighbour table and the descriptors, again whenever it is called.
pub(super) fn look(status: &Status, table: &BootTable) {
    let limit = fs::read_to_string("/proc/sys/net/ipv4/neigh/default/gc_thresh3");
    let limit = limit.ok().and_then(|text| text.trim().parse().ok());
    let finding = limit.and_then(|limit| neighbours(clients(table), limit));
    status.everywhere(About::NeighbourTable, finding.as_ref());
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let finding = descriptors(&limits);
    status.everywhere(About::OpenFiles, finding.as_ref());
}

/// Machines that may be our neighbours at once: nodes, and pools.
fn clients(table: &BootTable) -> usize {
    let pools = table.networks.iter().map(|network| match network.mode {
        DhcpMode::Full(pool) => {
            let size = u32::from(pool.last).saturating_sub(u32::from(pool.first));
            usize::try_from(size).unwrap_or(usize::MAX).saturating_add(1)
        }
        DhcpMode::Reserved | DhcpMode::Proxy | DhcpMode::Off => 0,
    });
    let nodes = table.by_address.keys().filter(|address| !address.is_loopback()).count();
    pools.fold(nodes, usize::saturating_add)
}

/// The table is one for all interfaces; when it is full, packets to new neighbours are dropped.
fn neighbours(clients: usize, limit: usize) -> Option<Finding> {
    let needed = clients.saturating_add(OTHERS);
    (needed > limit).then(|| {
        let [low, middle, high] = [1, 2, 4].map(|times| needed.next_power_of_two() * times);
        Finding::new(
            format!("the kernel keeps {limit} neighbours and this lab has up to {clients} machines: packets to some will be lost"),
            format!(
                "`sysctl -w net.ipv4.neigh.default.gc_thresh1={low} net.ipv4.neigh.default.gc_thresh2={middle} \
                 net.ipv4.neigh.default.gc_thresh3={high}` and in /etc/sysctl.d"
            ),
        )
    })
}

/// The soft limit in the text of `/proc/self/limits`.
fn descriptors(limits: &str) -> Option<Finding> {
    let row = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let soft: u64 = row.split_whitespace().next()?.parse().ok()?;
    (soft < FEWEST).then(|| {
        Finding::new(
            format!("this process may open {soft} files and sockets at once"),
            format!("LimitNOFILE={DESCRIPTORS} in the systemd unit, or `ulimit -n {DESCRIPTORS}`"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_table_smaller_than_the_lab_is_found_with_the_line_that_helps() {
        assert_eq!(neighbours(900, 1024), None);
        let finding = neighbours(2000, 1024).unwrap();
        assert_eq!(
            finding.what,
            "the kernel keeps 1024 neighbours and this lab has up to 2000 machines: packets to some will be lost"
        );
        assert_eq!(
            finding.remedy,
            "`sysctl -w net.ipv4.neigh.default.gc_thresh1=4096 net.ipv4.neigh.default.gc_thresh2=8192 \
             net.ipv4.neigh.default.gc_thresh3=16384` and in /etc/sysctl.d"
        );
    }

    #[test]
    fn few_descriptors_are_found_in_the_kernels_own_words() {
        let limits = |soft| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max processes             95731                95731                processes \n\
                 Max open files            {soft:<20} 1048576              files     \n"
            )
        };
        assert_eq!(descriptors(&limits("8192")), None);
        assert_eq!(descriptors(&limits("unlimited")), None);
        assert_eq!(descriptors(""), None);
        let finding = descriptors(&limits("1024")).unwrap();
        assert_eq!(finding.what, "this process may open 1024 files and sockets at once");
    }

    #[test]
    fn a_small_receive_buffer_names_the_setting() {
        assert_eq!(receive_buffer(2 * RECEIVE_BUFFER, 67), None);
        let finding = receive_buffer(425_984, 67).unwrap();
        assert!(finding.what.contains("UDP port 67 is 208 KiB"), "{}", finding.what);
        assert!(finding.remedy.contains("net.core.rmem_max=4194304"), "{}", finding.remedy);
    }
}
