//! Rules about loaders: fetched wrongly, or fetched and silent.

use std::time::Duration;

use model::{Sighted, UnixMillis, sighting::DhcpKind};

use super::{
    Confidence::{Certain, Likely, Possible},
    Fetched, Found, Rule, Story, found, seconds,
};
use crate::loops;

/// A loader that runs says something within this time.
const SPEAKS: Duration = Duration::from_secs(30);
/// A BIOS ROM has less than this for a loader, below 640 KiB.
const BIOS_LOADER: u64 = 500 * 1024;
/// Fetches of one loader that are a circle. A chained undionly.kpxe is fetched twice.
const TURNS: usize = 3;
/// Longer than a switch port takes to forward without spanning tree.
const LINK: Duration = Duration::from_secs(20);

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "loader-loop",
        confidence: Certain,
        remedy: "see that nothing before volund answers the iPXE stage (a second DHCP server, an embedded script, the \
                 ROM's own settings), and try another loader for it",
        finds: turns,
    },
    Rule {
        id: "name-not-found",
        confidence: Certain,
        remedy: "see who names that file (another DHCP server, an embedded script), or put it among the loaders",
        finds: not_found,
    },
    Rule {
        id: "tftp-mtu",
        confidence: Likely,
        remedy: "a tunnel or VXLAN on the way takes less than 1,500 bytes: set `tftp_blksize = 1024` for the node, or \
                 raise the MTU on the way",
        finds: mtu,
    },
    Rule {
        id: "tftp-stalls",
        confidence: Likely,
        remedy: "look at the errors of its switch port and cable (a duplex mismatch loses packets under load), and \
                 whether something on the way limits UDP",
        finds: stalls,
    },
    Rule {
        id: "loader-too-large",
        confidence: Possible,
        remedy: "give a BIOS machine undionly.kpxe or another loader below 500 KiB",
        finds: too_large,
    },
    Rule {
        id: "wrong-loader",
        confidence: Likely,
        remedy: "name a loader of its own kind under `loaders`: .efi for UEFI, undionly.kpxe for BIOS",
        finds: wrong_kind,
    },
    Rule {
        id: "secure-boot",
        confidence: Likely,
        remedy: "let it load a signed shim (shimx64.efi and grubx64.efi of a distribution), or switch Secure Boot off \
                 in its firmware",
        finds: secure_boot,
    },
    Rule {
        id: "shim-silent",
        confidence: Possible,
        remedy: "see that the second stage (grubx64.efi) lies beside the shim and is signed by the same distribution",
        finds: shim,
    },
    Rule {
        id: "loader-silent",
        confidence: Possible,
        remedy: "try the next loader for it (ipxe.efi or ipxe.pxe with own drivers instead of snponly or undionly), \
                 and look at its console",
        finds: silent,
    },
    Rule {
        id: "slow-link",
        confidence: Likely,
        remedy: "set its switch port to edge (portfast): spanning tree holds the link back after every change",
        finds: slow_link,
    },
];

fn turns(story: &Story<'_>) -> Option<Found> {
    if story.scripted() {
        return None;
    }
    let loaders = story.loaders();
    let last = loaders.last()?;
    let same: Vec<usize> =
        loaders.iter().filter(|one| one.file == last.file).map(|one| one.place).collect();
    let text = format!(
        "it loads {} over and over ({} times) and never asks for its boot script",
        last.file,
        same.len()
    );
    if same.len() >= TURNS { found(text, same) } else { None }
}

/// Transfers that failed, with why, where none came through later.
fn failures<'s>(story: &Story<'s>) -> Vec<(usize, &'s str, &'s str)> {
    let all = story.seen.iter().enumerate();
    let failed = all.filter_map(|(place, one)| match &one.what {
        Sighted::TftpFailed { file, why } => Some((place, file.as_str(), why.as_str())),
        _ => None,
    });
    failed.filter(|(_, file, _)| !loops::is_companion(file)).collect()
}

/// No loader came through.
fn none_whole(story: &Story<'_>) -> bool {
    !story.scripted() && story.loaders().is_empty()
}

fn not_found(story: &Story<'_>) -> Option<Found> {
    let missing = failures(story).into_iter().rfind(|(_, _, why)| why.contains("not found"));
    let missing = missing.map(|(place, file, _)| (place, file)).or_else(|| {
        story.last(|what| match what {
            Sighted::HttpDone { path, status: 404, .. } if loops::is_loader(path) => {
                Some(path.as_str())
            }
            _ => None,
        })
    });
    let (place, file) = missing?;
    let named = story.acked().map(|(_, named)| format!("; volund named {named}"));
    let text = format!("it asks for {file:?}, which is not served{}", named.unwrap_or_default());
    // A loader that was refused one name and got on with another is well.
    let later = story.loaders().iter().any(|one| one.place > place);
    if later || story.scripted() { None } else { found(text, vec![place]) }
}

/// `the client went silent after 3 blocks`.
fn silent_after(why: &str) -> Option<u64> {
    let (_, rest) = why.split_once("silent after ")?;
    rest.split_whitespace().next()?.parse().ok()
}

fn mtu(story: &Story<'_>) -> Option<Found> {
    let stuck = failures(story).into_iter().filter(|(_, _, why)| silent_after(why) == Some(0));
    let places: Vec<usize> = stuck.map(|(place, _, _)| place).collect();
    let (small, text) = (
        story.any(|what| matches!(what, Sighted::TftpProbe { .. })) || places.len() > 1,
        "small packets reach it and full blocks do not: no block of the loader was acknowledged",
    );
    if small && !places.is_empty() && none_whole(story) { found(text, places) } else { None }
}

fn stalls(story: &Story<'_>) -> Option<Found> {
    let (place, file, blocks) = failures(story)
        .into_iter()
        .rev()
        .find_map(|(place, file, why)| Some((place, file, silent_after(why)?)))
        .filter(|(_, _, blocks)| *blocks > 0)?;
    let text = format!("the transfer of {file} broke off after {blocks} blocks: packets get lost");
    if none_whole(story) { found(text, vec![place]) } else { None }
}

/// A loader after which nothing came, and time enough has passed.
fn dead<'s>(story: &Story<'s>) -> Option<Fetched<'s>> {
    let last = story.silent_loader()?;
    let again = discover_after(story, last.at).is_some();
    (again || story.is_quiet(SPEAKS)).then_some(last)
}

/// A DISCOVER of firmware after a moment: it went on to its next way to boot.
fn discover_after(story: &Story<'_>, at: UnixMillis) -> Option<usize> {
    story.discovers().into_iter().find(|place| story.at(*place) > at)
}

fn too_large(story: &Story<'_>) -> Option<Found> {
    let last = dead(story).filter(|last| last.bytes > BIOS_LOADER && !story.is_uefi())?;
    let text = format!(
        "the loader {} has {} KiB, more than a BIOS has room for",
        last.file,
        last.bytes / 1024
    );
    found(text, vec![last.place])
}

fn wrong_kind(story: &Story<'_>) -> Option<Found> {
    let (last, arch) = dead(story).zip(story.arch())?;
    let name = last.file.to_ascii_lowercase();
    let is_efi = name.ends_with(".efi");
    let is_bios = [".kpxe", ".kkpxe", ".pxe", ".0", ".lkrn"].iter().any(|end| name.ends_with(end));
    let wrong = if arch.0 == 0 { is_efi } else { is_bios };
    let text = format!("{arch} was given {}, a loader of another kind", last.file);
    if wrong { found(text, vec![last.place]) } else { None }
}

fn is_shim(file: &str) -> bool {
    let base = file.rsplit('/').next().unwrap_or(file).to_ascii_lowercase();
    ["shim", "grub", "boot", "mm"].iter().any(|start| base.starts_with(start))
}

fn secure_boot(story: &Story<'_>) -> Option<Found> {
    let last = dead(story).filter(|last| story.is_uefi() && !is_shim(last.file))?;
    let mut evidence = vec![last.place];
    evidence.extend(discover_after(story, last.at));
    let text = format!(
        "it fetched {} whole and did not start it: Secure Boot refuses an unsigned loader",
        last.file
    );
    found(text, evidence)
}

fn shim(story: &Story<'_>) -> Option<Found> {
    let last = dead(story).filter(|last| story.is_uefi() && is_shim(last.file))?;
    found(format!("it fetched {} whole, and nothing came after it", last.file), vec![last.place])
}

fn silent(story: &Story<'_>) -> Option<Found> {
    let last = dead(story)?;
    let text = format!(
        "it fetched {} whole and nothing came after it: the loader does not run here, or finds no network card",
        last.file
    );
    found(text, vec![last.place])
}

/// iPXE asks at once once the link is up.
fn slow_link(story: &Story<'_>) -> Option<Found> {
    if story.scripted() {
        return None;
    }
    let last = story.loaders().pop()?;
    let (place, ()) = story.first(|what| match what {
        Sighted::DhcpIn { kind: DhcpKind::Discover, client, .. } if client == "iPXE" => Some(()),
        _ => None,
    })?;
    let gap = story.at(place).since(last.at);
    let text = format!("its link was down for {} after the loader began", seconds(gap));
    if gap >= LINK { found(text, vec![last.place, place]) } else { None }
}
