//! What is wrong with a network or with the machine volund runs on, whichever node boots.

use std::net::Ipv4Addr;

use super::{Confidence, Diagnosis, dhcp::RIVAL_FILE_REMEDY};

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
    let first = [of.dropped(), of.full(), of.late()].into_iter().flatten();
    let rivals = of.rivals.iter().filter_map(|rival| of.rival(rival));
    let findings = of.findings.iter().map(|(what, remedy)| of.row("host", what, remedy));
    first.chain(rivals).chain(findings).collect()
}

impl Network {
    fn dropped(&self) -> Option<Diagnosis> {
        let cause = format!("{} REQUESTs were given up", self.dropped_requests);
        let remedy = "this machine is too small for its lab: give it more processors";
        (self.dropped_requests > 0).then(|| self.row("requests-dropped", &cause, remedy))
    }

    fn full(&self) -> Option<Diagnosis> {
        let (size, _) = self.pool.filter(|(size, free)| *size > 0 && *free == 0)?;
        let cause = format!("all {size} addresses of the pool are given away");
        let remedy = "widen the pool, or shorten the leases of unknown machines";
        Some(self.row("pool-full", &cause, remedy))
    }

    fn late(&self) -> Option<Diagnosis> {
        let Self { late_acks, acks, .. } = *self;
        let cause =
            format!("{late_acks} of {acks} ACKs went out before their lease was on the disk");
        let remedy = "the disk of the state directory is slow: move it to another one";
        let is_slow = late_acks >= LATE_ACKS && late_acks.saturating_mul(100) > acks;
        is_slow.then(|| self.row("disk-slow", &cause, remedy))
    }

    fn rival(&self, rival: &NetworkRival) -> Option<Diagnosis> {
        let NetworkRival { server, file } = rival;
        if let Some(file) = file {
            let cause = format!("another DHCP server, {server}, names the boot file {file:?}");
            return Some(self.row("rival-boot-file", &cause, RIVAL_FILE_REMEDY));
        }
        let cause = format!("another DHCP server, {server}, gives addresses");
        let remedy = "switch that server off there, or set `dhcp = \"proxy\"` for the network";
        (!self.is_proxy).then(|| self.row("rival-address", &cause, remedy))
    }

    /// What is counted or heard is certain.
    fn row(&self, id: &'static str, cause: &str, remedy: &str) -> Diagnosis {
        Diagnosis {
            id,
            cause: format!("{}: {cause}", self.name),
            remedy: remedy.to_owned(),
            evidence: vec![],
            confidence: Confidence::Certain,
        }
    }
}
