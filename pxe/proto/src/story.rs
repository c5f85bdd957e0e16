//! The story of one boot: what its sightings amount to. How far it came, and how long each stage took.
//!
//! It reads sightings and nothing else; why a boot did not get on is the doctor's to say.

use std::{fmt, time::Duration};

use model::{Sighted, Sighting, UnixMillis};

use crate::{ipxe, loops};

/// A boot after which so much time has passed without a further sighting is over.
pub const SILENCE: Duration = Duration::from_secs(15 * 60);

/// A boot attempt, told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// Which one: its first moment.
    pub id: UnixMillis,
    /// The first sighting.
    pub from: UnixMillis,
    /// The last one that is no agent's waiting.
    pub to: UnixMillis,
    /// What became of it.
    pub outcome: Outcome,
    /// Its stages in the order they began.
    pub stages: Vec<Stage>,
}

/// What became of a boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The system that was started has spoken.
    Spoke {
        /// What the script started.
        what: String,
    },
    /// The kernel was fetched whole. Not every system speaks afterwards.
    Kernel {
        /// What the script started.
        what: String,
    },
    /// It was sent to its own disk.
    Local {
        /// Why.
        why: String,
    },
    /// It got an address and no boot file.
    NoBootFile {
        /// Why.
        why: String,
    },
    /// It went round in a circle and was taken out of it.
    Looped,
    /// It is over and got nowhere.
    Failed {
        /// The last stage it reached.
        reached: Option<StageName>,
    },
    /// It is not over yet.
    UnderWay {
        /// The stage it is in.
        reached: Option<StageName>,
    },
}

/// The part of a boot a sighting belongs to, in the order of a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StageName {
    /// DHCP of the firmware.
    FirmwareDhcp,
    /// The loader, by TFTP or UEFI HTTP boot.
    Loader,
    /// DHCP of iPXE.
    IpxeDhcp,
    /// The boot script.
    Script,
    /// The kernel.
    Kernel,
    /// The initrds.
    Initrd,
    /// What the started system fetches and says.
    CallBack,
}

/// A stage of a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// Which.
    pub name: StageName,
    /// When it began.
    pub from: UnixMillis,
    /// When the last of it was seen.
    pub to: UnixMillis,
    /// Sightings in it.
    pub count: usize,
}

/// Tells the boot of these sightings, oldest first. `is_over`: a later boot of the node has begun. `None` without any.
#[must_use]
pub fn tell(seen: &[Sighting], is_over: bool, now: UnixMillis) -> Option<Boot> {
    let first = seen.first()?;
    let told: Vec<&Sighting> = seen.iter().filter(|one| !is_wait(&one.what)).collect();
    let to = told.last().map_or(first.at, |last| last.at);
    let stages = stages(seen);
    let last = seen.last().map_or(first.at, |last| last.at);
    let is_over = is_over || now.since(last) >= SILENCE;
    let outcome = outcome(seen, stages.last().map(|stage| stage.name), is_over);
    Some(Boot { id: first.attempt.unwrap_or(first.at), from: first.at, to, outcome, stages })
}

/// The stage of each sighting; `None` for what belongs to none.
#[must_use]
pub fn stage_of_each(seen: &[Sighting]) -> Vec<Option<StageName>> {
    let kernel = seen.iter().find_map(|one| match &one.what {
        Sighted::KernelWhole { path } => Some(path.as_str()),
        _ => None,
    });
    let (mut dhcp, mut scripted) = (None, false);
    let stage = |one: &Sighting| {
        scripted |= matches!(one.what, Sighted::Script { .. });
        if let Sighted::DhcpIn { client, .. } = &one.what {
            dhcp = dhcp_stage(client);
        }
        match &one.what {
            Sighted::DhcpIn { .. } | Sighted::DhcpOut { .. } | Sighted::DhcpSilent { .. } => dhcp,
            Sighted::TftpRead { .. }
            | Sighted::TftpDone { .. }
            | Sighted::TftpProbe { .. }
            | Sighted::TftpFailed { .. } => Some(StageName::Loader),
            Sighted::Script { .. } | Sighted::Menu { .. } => Some(StageName::Script),
            Sighted::KernelWhole { .. } => Some(StageName::Kernel),
            Sighted::Agent { .. } => Some(StageName::CallBack),
            Sighted::HttpDone { path, .. } | Sighted::HttpShort { path, .. } => {
                Some(http_stage(path, kernel, scripted))
            }
            Sighted::Rival { .. }
            | Sighted::AddressTaken { .. }
            | Sighted::Looped { .. }
            | Sighted::Learnt { .. }
            | Sighted::Refused { .. } => None,
        }
    };
    seen.iter().map(stage).collect()
}

/// Operating systems ask DHCP as well; that is no stage of a boot.
fn dhcp_stage(client: &str) -> Option<StageName> {
    match client {
        "" => None,
        "iPXE" => Some(StageName::IpxeDhcp),
        _ => Some(StageName::FirmwareDhcp),
    }
}

fn http_stage(path: &str, kernel: Option<&str>, scripted: bool) -> StageName {
    if path == ipxe::SCRIPT_PATH {
        StageName::Script
    } else if is_payload(path) {
        StageName::CallBack
    } else if kernel == Some(path) {
        StageName::Kernel
    } else if !scripted || loops::is_loader(path) {
        StageName::Loader
    } else if kernel.is_none() {
        // Nothing was fetched whole yet: the first thing of a script is its kernel.
        StageName::Kernel
    } else {
        StageName::Initrd
    }
}

/// A path only a started system asks for.
pub(crate) fn is_payload(path: &str) -> bool {
    path.starts_with("/agent/") || path.starts_with("/t/")
}

/// The agent that has reported and asks again and again what to do: no part of the boot.
#[must_use]
pub fn is_wait(what: &Sighted) -> bool {
    match what {
        Sighted::Agent { verb } => verb == "next",
        Sighted::HttpDone { path, status: 200, .. } => path == "/agent/v1/next",
        _ => false,
    }
}

fn stages(seen: &[Sighting]) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    let named = seen.iter().zip(stage_of_each(seen)).filter(|(one, _)| !is_wait(&one.what));
    for (one, name) in named.filter_map(|(one, name)| Some((one, name?))) {
        let begun = UnixMillis(one.at.0.saturating_sub(took(&one.what)));
        match stages.iter_mut().find(|stage| stage.name == name) {
            Some(stage) => {
                stage.from = stage.from.min(begun);
                stage.to = stage.to.max(one.at);
                stage.count += 1;
            }
            None => stages.push(Stage { name, from: begun, to: one.at, count: 1 }),
        }
    }
    stages.sort_by_key(|stage| (stage.from, stage.name));
    stages
}

/// Milliseconds a sighting that is told at its end took.
fn took(what: &Sighted) -> i64 {
    match what {
        Sighted::TftpDone { millis, .. } | Sighted::HttpDone { millis, .. } => {
            i64::try_from(*millis).unwrap_or(0)
        }
        _ => 0,
    }
}

fn outcome(seen: &[Sighting], reached: Option<StageName>, is_over: bool) -> Outcome {
    let any = |is: fn(&Sighted) -> bool| seen.iter().any(|one| is(&one.what));
    let script = seen.iter().rev().find_map(|one| match &one.what {
        Sighted::Script { what } => Some(what.clone()),
        _ => None,
    });
    let what = script.clone().unwrap_or_else(|| "a kernel".to_owned());
    if any(|what| matches!(what, Sighted::Agent { .. })) {
        return Outcome::Spoke { what };
    }
    if any(|what| matches!(what, Sighted::KernelWhole { .. })) {
        return Outcome::Kernel { what };
    }
    if any(|what| matches!(what, Sighted::Looped { .. })) {
        return Outcome::Looped;
    }
    if let Some(local) = script.as_deref().and_then(|what| what.strip_prefix("local boot")) {
        let why = local.trim().trim_start_matches('(').trim_end_matches(')').to_owned();
        return Outcome::Local { why };
    }
    if let Some(why) = no_boot_file(seen) {
        return Outcome::NoBootFile { why };
    }
    if is_over { Outcome::Failed { reached } } else { Outcome::UnderWay { reached } }
}

/// Firmware was acknowledged an address without a boot file, and fetched nothing.
fn no_boot_file(seen: &[Sighting]) -> Option<String> {
    use model::sighting::DhcpKind;
    let fetched = stage_of_each(seen).iter().any(|stage| {
        stage.is_some_and(|name| !matches!(name, StageName::FirmwareDhcp | StageName::IpxeDhcp))
    });
    let mut acks = seen.iter().filter_map(|one| match &one.what {
        Sighted::DhcpOut { kind: DhcpKind::Ack, file, .. } => Some(file),
        _ => None,
    });
    let (first, others_too) = (acks.next()?, acks.all(Option::is_none));
    if fetched || first.is_some() || !others_too {
        return None;
    }
    let why = seen.iter().rev().find_map(|one| match &one.what {
        Sighted::DhcpSilent { why } => Some(why.clone()),
        _ => None,
    });
    Some(why.unwrap_or_else(|| "none was ordered".to_owned()))
}

impl Outcome {
    /// One word for programs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Spoke { .. } => "booted",
            Self::Kernel { .. } => "kernel",
            Self::Local { .. } => "local",
            Self::NoBootFile { .. } => "no-boot-file",
            Self::Looped => "looped",
            Self::Failed { .. } => "failed",
            Self::UnderWay { .. } => "under-way",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spoke { what } => write!(f, "booted {what}"),
            Self::Kernel { what } => write!(f, "fetched the kernel of {what}"),
            Self::Local { why } => write!(f, "local boot: {why}"),
            Self::NoBootFile { why } => write!(f, "no boot file: {why}"),
            Self::Looped => f.write_str("boot loop, broken"),
            Self::Failed { reached: Some(stage) } => write!(f, "failed after {stage}"),
            Self::Failed { reached: None } => f.write_str("failed"),
            Self::UnderWay { reached: Some(stage) } => write!(f, "under way: {stage}"),
            Self::UnderWay { reached: None } => f.write_str("under way"),
        }
    }
}

impl fmt::Display for StageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::FirmwareDhcp => "firmware DHCP",
            Self::Loader => "loader",
            Self::IpxeDhcp => "iPXE DHCP",
            Self::Script => "script",
            Self::Kernel => "kernel",
            Self::Initrd => "initrd",
            Self::CallBack => "call-back",
        })
    }
}

#[cfg(test)]
mod tests {
    use model::sighting::DhcpKind;

    use super::*;

    fn sightings(lines: Vec<(i64, Sighted)>) -> Vec<Sighting> {
        let attempt = Some(UnixMillis(100));
        let one = |(at, what)| {
            let (node, mac, peer) = (None, None, None);
            Sighting { at: UnixMillis(at), node, mac, peer, attempt, what }
        };
        lines.into_iter().map(one).collect()
    }

    fn dhcp(at: i64, client: &str, file: Option<&str>) -> Vec<(i64, Sighted)> {
        let (client, file) = (client.to_owned(), file.map(str::to_owned));
        let kind = DhcpKind::Request;
        vec![
            (at, Sighted::DhcpIn { kind, xid: 1, client, relay: None, proxy: false }),
            (
                at + 10,
                Sighted::DhcpOut { kind: DhcpKind::Ack, xid: 1, address: [0; 4].into(), file },
            ),
        ]
    }

    fn http(at: i64, path: &str, millis: u64) -> (i64, Sighted) {
        let (method, path) = ("GET".to_owned(), path.to_owned());
        (at, Sighted::HttpDone { method, path, status: 200, bytes: 9, millis })
    }

    fn script(at: i64, what: &str) -> (i64, Sighted) {
        (at, Sighted::Script { what: what.to_owned() })
    }

    fn agent(at: i64, verb: &str) -> (i64, Sighted) {
        (at, Sighted::Agent { verb: verb.to_owned() })
    }

    fn whole() -> Vec<(i64, Sighted)> {
        let mut lines = dhcp(100, "x86 BIOS (0)", Some("undionly.kpxe"));
        let file = "undionly.kpxe".to_owned();
        lines.push((200, Sighted::TftpRead { file: file.clone() }));
        lines.extend(dhcp(300, "iPXE", Some("http://192.0.2.1/boot.ipxe")));
        // Told late: it had ended before iPXE asked.
        lines.push((290, Sighted::TftpDone { file, bytes: 70_000, millis: 90 }));
        lines.push(http(400, "/boot.ipxe", 5));
        lines.push(script(400, "inspect"));
        lines.push(http(900, "/i/inspect/vmlinuz", 480));
        lines.push((900, Sighted::KernelWhole { path: "/i/inspect/vmlinuz".to_owned() }));
        lines.push(http(1_000, "/i/inspect/initrd", 80));
        lines.extend(dhcp(3_000, "", None));
        lines.push(agent(4_000, "claim"));
        lines.push(agent(90_000, "next"));
        lines.push(http(90_000, "/agent/v1/next", 0));
        lines
    }

    #[test]
    fn a_boot_is_told_in_its_stages_and_an_agent_that_waits_does_not_stretch_it() {
        let boot = tell(&sightings(whole()), false, UnixMillis(90_001)).unwrap();
        assert_eq!((boot.id, boot.from.0, boot.to.0), (UnixMillis(100), 100, 4_000));
        assert_eq!(boot.outcome.to_string(), "booted inspect");
        let stages: Vec<String> = boot
            .stages
            .iter()
            .map(|stage| format!("{} {}-{}", stage.name, stage.from.0, stage.to.0))
            .collect();
        assert_eq!(
            stages,
            [
                "firmware DHCP 100-110",
                "loader 200-290",
                "iPXE DHCP 300-310",
                "script 395-400",
                "kernel 420-900",
                "initrd 920-1000",
                "call-back 4000-4000",
            ]
        );
    }

    #[test]
    fn what_became_of_a_boot() {
        let to = |count: usize| whole().into_iter().take(count).collect::<Vec<_>>();
        let mut local = to(7);
        local.push(script(401, "local boot (nothing else is ordered)"));
        let none = [
            dhcp(100, "x86 BIOS (0)", None),
            vec![(101, Sighted::DhcpSilent { why: "no loader".to_owned() })],
        ];
        let looped = Sighted::Looped { what: "a.efi fetched".to_owned(), times: 3 };
        let cases = [
            (to(10), false, "fetched the kernel of inspect"),
            (to(3), false, "under way: loader"),
            (to(3), true, "failed after loader"),
            (local, true, "local boot: nothing else is ordered"),
            (none.concat(), false, "no boot file: no loader"),
            (dhcp(100, "x86 BIOS (0)", None), false, "no boot file: none was ordered"),
            (vec![(100, looped)], false, "boot loop, broken"),
        ];
        for (lines, is_over, want) in cases {
            let boot = tell(&sightings(lines), is_over, UnixMillis(5_000)).unwrap();
            assert_eq!(boot.outcome.to_string(), want);
        }
        assert_eq!(tell(&[], true, UnixMillis(0)), None);
        let long_ago = tell(&sightings(to(3)), false, UnixMillis(2_000_000)).unwrap();
        assert_eq!(long_ago.outcome.word(), "failed", "nothing more came");
    }
}
