//! What is wrong with a network or with the machine volund runs on, whichever node boots.

use std::net::Ipv4Addr;

use super::{Confidence, Diagnosis};

/// A boot network as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// Another server gives the addresses there, and shall.
    pub is_proxy: bool,
    /// Other DHCP servers heard there.
    pub rivals: Vec<NetworkRival>,
    /// What was found about this machine: what is so, what to do.
    pub findings: Vec<(String, String)>,
    /// ACKs that went out.
    pub acks: u64,
    /// Those of them that went out before their record was on the disk.
    pub late_acks: u64,
    /// REQUESTs given up because there were too many.
    pub dropped_requests: u64,
    /// Addresses of the pool: all, and those that are free.
    pub pool: Option<(usize, usize)>,
}

/// Late ACKs that are worth a word, when they are more than one in a hundred: a single sync now and then takes tens
/// of milliseconds on any disk.
const LATE_ACKS: u64 = 20;

/// Another DHCP server on a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkRival {
    /// Its identifier.
    pub server: Ipv4Addr,
    /// The boot file it names, if any.
    pub file: Option<String>,
}

/// What is wrong with a network, the worst first.
#[must_use]
pub fn network(of: &Network) -> Vec<Diagnosis> {
    let name = &of.name;
    let row = |id, confidence, cause: String, remedy: &str| Diagnosis {
        id,
        cause,
        remedy: remedy.to_owned(),
        evidence: vec![],
        confidence,
    };
    let dropped = (of.dropped_requests > 0).then(|| {
        let cause = format!("{name}: {} REQUESTs were given up", of.dropped_requests);
        row(
            "requests-dropped",
            Confidence::Certain,
            cause,
            "this machine is too small for its lab: give it more processors",
        )
    });
    let full = of.pool.filter(|(size, free)| *size > 0 && *free == 0).map(|(size, _)| {
        let cause = format!("{name}: all {size} addresses of the pool are given away");
        row(
            "pool-full",
            Confidence::Certain,
            cause,
            "widen the pool, or shorten the leases of unknown machines",
        )
    });
    let late = (of.late_acks >= LATE_ACKS && of.late_acks * 100 > of.acks).then(|| {
        let cause = format!(
            "{name}: {} of {} ACKs went out before their lease was on the disk",
            of.late_acks, of.acks
        );
        row(
            "disk-slow",
            Confidence::Certain,
            cause,
            "the disk of the state directory is slow: move it to another one",
        )
    });
    let rivals = of.rivals.iter().filter_map(|rival| {
        let NetworkRival { server, file } = rival;
        match file {
            Some(file) => Some(row(
                "rival-boot-file",
                Confidence::Certain,
                format!("{name}: another DHCP server, {server}, names the boot file {file:?}"),
                "take options 66 and 67 and next-server out of that server, or let it name volund there",
            )),
            None if !of.is_proxy => Some(row(
                "rival-address",
                Confidence::Certain,
                format!("{name}: another DHCP server, {server}, gives addresses"),
                "switch that server off there, or set `dhcp = \"proxy\"` for the network",
            )),
            None => None,
        }
    });
    let findings = of
        .findings
        .iter()
        .map(|(what, remedy)| row("host", Confidence::Certain, format!("{name}: {what}"), remedy));
    let first = [dropped, full, late].into_iter().flatten();
    first.chain(rivals).chain(findings).collect()
}
