//! The doctor: why a boot does not get on, in one sentence, and what to do about it.
//!
//! A table of rules over what was seen of a boot and what is known besides. It is pure: it asks nobody and reads no
//! clock, and it says nothing of a boot that went well. What cannot be seen from here (an answer that a firewall of
//! this machine swallows, a switch port) is named as possible, with how to look.

mod dhcp;
mod kernel;
mod loader;
mod network;
mod power;
mod script;

#[cfg(test)]
mod capture_tests;
#[cfg(test)]
mod tests;

use std::{fmt, time::Duration};

use model::{ClientArch, MacAddr, Sighted, Sighting, UnixMillis, sighting::DhcpKind};

pub use self::network::{Network, NetworkRival, network};
use crate::story::{self, StageName};

/// What is known of a boot besides its sightings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Now.
    pub now: UnixMillis,
    /// Power as read from the BMC, and since when it has been so; `None` when nobody knows.
    pub power: Option<Power>,
    /// Since when a switch waits for this machine to boot; `None` when nothing waits for it.
    pub awaited: Option<UnixMillis>,
    /// Longest POST that is normal for it.
    pub post_limit: Duration,
    /// Whether it has ever been heard on the boot network before.
    pub heard_before: bool,
    /// A later boot has begun: this one is over.
    pub is_over: bool,
    /// Another server gives the addresses on its network, and we only name boot files.
    pub is_proxy: bool,
    /// Machines nobody knows that asked on the boot networks since it was switched on.
    pub strangers: Vec<MacAddr>,
    /// Its memory in MiB, as it reported.
    pub memory_mib: Option<u64>,
}

/// Power as read from the BMC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Power {
    /// On.
    pub is_on: bool,
    /// Since when it has been read so.
    pub since: UnixMillis,
}

/// What is wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// Identity of the rule: `offer-ignored`.
    pub id: &'static str,
    /// One sentence.
    pub cause: String,
    /// One sentence.
    pub remedy: String,
    /// Places in the sightings that show it; empty where it is silence that shows it.
    pub evidence: Vec<usize>,
    /// How sure it is.
    pub confidence: Confidence,
}

/// How sure a diagnosis is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// It may be this.
    Possible,
    /// Most boots that look like this have this fault.
    Likely,
    /// What was seen can mean nothing else.
    Certain,
}

/// A row of the table.
struct Rule {
    id: &'static str,
    confidence: Confidence,
    /// What to do.
    remedy: &'static str,
    /// What shows the fault, and the sentence for it.
    finds: fn(&Story<'_>) -> Option<Found>,
}

/// What a rule found.
struct Found {
    cause: String,
    evidence: Vec<usize>,
}

/// Every rule, the most specific first.
fn rules() -> impl Iterator<Item = &'static Rule> {
    [dhcp::PLAIN, kernel::RULES, script::RULES, loader::RULES, dhcp::PATTERNS, power::RULES]
        .into_iter()
        .flatten()
}

/// What is wrong with a boot, the most specific diagnosis first. `seen` are its sightings, oldest first; none at all
/// is a story too. Empty when nothing is wrong, or too little time has passed to say.
#[must_use]
pub fn diagnose(seen: &[Sighting], facts: &Facts) -> Vec<Diagnosis> {
    let story = Story::new(seen, facts);
    let found = |rule: &Rule| {
        let Found { cause, evidence } = (rule.finds)(&story)?;
        let (id, confidence) = (rule.id, rule.confidence);
        Some(Diagnosis { id, cause, remedy: rule.remedy.to_owned(), evidence, confidence })
    };
    rules().filter_map(found).collect()
}

/// A boot as the rules look at it.
struct Story<'s> {
    seen: &'s [Sighting],
    facts: &'s Facts,
    stages: Vec<Option<StageName>>,
}

/// A loader that went out whole.
struct Fetched<'s> {
    place: usize,
    file: &'s str,
    bytes: u64,
    at: UnixMillis,
}

impl<'s> Story<'s> {
    fn new(seen: &'s [Sighting], facts: &'s Facts) -> Self {
        Self { seen, facts, stages: story::stage_of_each(seen) }
    }

    /// Places of what `is` holds for.
    fn places(&self, is: impl Fn(&Sighted) -> bool) -> Vec<usize> {
        let all = self.seen.iter().enumerate();
        all.filter(|(_, one)| is(&one.what)).map(|(place, _)| place).collect()
    }

    fn any(&self, is: impl Fn(&Sighted) -> bool) -> bool {
        self.seen.iter().any(|one| is(&one.what))
    }

    /// The first thing seen that `pick` makes something of, and its place.
    fn first<T>(&self, pick: impl Fn(&'s Sighted) -> Option<T>) -> Option<(usize, T)> {
        self.seen.iter().enumerate().find_map(|(place, one)| Some((place, pick(&one.what)?)))
    }

    /// The last thing seen that `pick` makes something of, and its place.
    fn last<T>(&self, pick: impl Fn(&'s Sighted) -> Option<T>) -> Option<(usize, T)> {
        let all = self.seen.iter().enumerate().rev();
        all.into_iter().find_map(|(place, one)| Some((place, pick(&one.what)?)))
    }

    fn at(&self, place: usize) -> UnixMillis {
        self.seen.get(place).map_or(self.facts.now, |one| one.at)
    }

    /// Nothing was seen for so long, or a later boot has begun.
    fn is_quiet(&self, span: Duration) -> bool {
        let last = self.seen.iter().rev().find(|one| !story::is_wait(&one.what));
        self.facts.is_over || last.is_some_and(|last| self.facts.now.since(last.at) >= span)
    }

    /// The system that was started has spoken.
    fn spoke(&self) -> bool {
        self.any(|what| matches!(what, Sighted::Agent { .. }))
    }

    /// A boot script has been asked for, or the boot came further.
    fn scripted(&self) -> bool {
        self.any(|what| matches!(what, Sighted::Script { .. } | Sighted::KernelWhole { .. }))
    }

    /// Something was fetched or asked for by TFTP or HTTP.
    fn fetches(&self) -> bool {
        self.stages.iter().flatten().any(|stage| *stage >= StageName::Loader)
            && self.any(|what| {
                !matches!(what, Sighted::DhcpIn { .. } | Sighted::DhcpOut { .. })
                    && transfer(what).is_some()
            })
    }

    /// DISCOVERs of firmware.
    fn discovers(&self) -> Vec<usize> {
        self.places(|what| match what {
            Sighted::DhcpIn { kind: DhcpKind::Discover, client, .. } => {
                !client.is_empty() && client != "iPXE"
            }
            _ => false,
        })
    }

    /// The last answer of ours with an address for good and a boot file. Beside another DHCP server the address is
    /// that server's, and our boot file stands in an OFFER, once the client has asked some server for its address.
    fn acked(&self) -> Option<(usize, &'s str)> {
        let offers = self.facts.is_proxy && self.requests();
        self.last(|what| match what {
            Sighted::DhcpOut { kind: DhcpKind::Ack, file: Some(file), .. } => Some(file.as_str()),
            Sighted::DhcpOut { kind: DhcpKind::Offer, file: Some(file), .. } if offers => {
                Some(file.as_str())
            }
            _ => None,
        })
    }

    /// Any REQUEST of firmware or iPXE, to whichever port.
    fn requests(&self) -> bool {
        self.any(|what| match what {
            Sighted::DhcpIn { kind: DhcpKind::Request, client, .. } => !client.is_empty(),
            _ => false,
        })
    }

    /// The architecture its firmware names.
    fn arch(&self) -> Option<ClientArch> {
        let (_, arch) = self.first(|what| match what {
            Sighted::DhcpIn { client, .. } => {
                let (_, code) = client.rsplit_once('(')?;
                code.strip_suffix(')')?.parse().ok().map(ClientArch)
            }
            _ => None,
        })?;
        Some(arch)
    }

    fn is_uefi(&self) -> bool {
        self.arch().is_some_and(|arch| arch.0 != 0)
    }

    /// Loaders that went out whole, in their order.
    fn loaders(&self) -> Vec<Fetched<'s>> {
        let all = self.seen.iter().zip(&self.stages).enumerate();
        let loader = all.filter(|(_, (_, stage))| **stage == Some(StageName::Loader));
        loader
            .filter_map(|(place, (one, _))| {
                let (file, bytes) = match &one.what {
                    Sighted::TftpDone { file, bytes, .. } => (file, *bytes),
                    Sighted::HttpDone { method, path, status: 200, bytes, .. }
                        if method == "GET" =>
                    {
                        (path, *bytes)
                    }
                    _ => return None,
                };
                let loader = !crate::loops::is_companion(file);
                loader.then_some(Fetched { place, file, bytes, at: one.at })
            })
            .collect()
    }

    /// The last loader that went out whole, where nothing of what a loader does came after it.
    fn silent_loader(&self) -> Option<Fetched<'s>> {
        let last = self.loaders().pop().filter(|_| !self.scripted())?;
        let after = self.seen.iter().skip(last.place + 1);
        let mut later = after.filter(|one| match &one.what {
            Sighted::DhcpIn { client, .. } => client == "iPXE",
            Sighted::TftpRead { .. } | Sighted::HttpDone { .. } => true,
            _ => false,
        });
        later.next().is_none().then_some(last)
    }
}

/// The name in a transfer, whatever came of it.
fn transfer(what: &Sighted) -> Option<&str> {
    match what {
        Sighted::TftpRead { file }
        | Sighted::TftpDone { file, .. }
        | Sighted::TftpProbe { file }
        | Sighted::TftpFailed { file, .. } => Some(file),
        Sighted::HttpDone { path, .. } | Sighted::HttpShort { path, .. } => Some(path),
        _ => None,
    }
}

fn found(cause: impl Into<String>, evidence: Vec<usize>) -> Option<Found> {
    Some(Found { cause: cause.into(), evidence })
}

/// Seconds for a sentence.
fn seconds(span: Duration) -> String {
    format!("{} s", span.as_secs())
}

impl Confidence {
    /// One word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}
