//! Rules about what follows the boot script.

use std::time::Duration;

use model::Sighted;

use super::{
    Confidence::{Certain, Likely, Possible},
    Found, Rule, Story, found,
};
use crate::{ipxe, loops, story};

/// iPXE asks for the kernel at once.
const FETCHES: Duration = Duration::from_secs(30);
/// Unpacking an initrd takes its own size and about three times as much.
const UNPACKED: u64 = 4;
/// What a BIOS iPXE can put below 4 GiB, beside everything else there.
const BIOS_IMAGES: u64 = 1024 * 1024 * 1024;
const MIB: u64 = 1024 * 1024;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "kernel-missing",
        confidence: Certain,
        remedy: "build the image again (`volund image`), or correct the file names of the profile",
        finds: missing,
    },
    Rule {
        id: "bios-image-too-large",
        confidence: Likely,
        remedy: "use a smaller image, or boot it by UEFI, which has no such bound",
        finds: bios_images,
    },
    Rule {
        id: "memory-too-small",
        confidence: Likely,
        remedy: "use a smaller image or a profile that runs from disk, or give the node more memory",
        finds: memory,
    },
    Rule {
        id: "transfer-short",
        confidence: Likely,
        remedy: "look at the errors of its switch port and cable; a machine that ends a transfer itself may be out of \
                 memory",
        finds: short,
    },
    Rule {
        id: "script-no-kernel",
        confidence: Possible,
        remedy: "look at its console: iPXE says there why it does not go on; a cut-down iPXE cannot start a Linux \
                 kernel",
        finds: no_kernel,
    },
];

/// The script that starts something, if the last one does.
fn starts<'s>(story: &Story<'s>) -> Option<(usize, &'s str)> {
    let script = story.last(|what| match what {
        Sighted::Script { what } => Some(what.as_str()),
        _ => None,
    })?;
    let harmless = ["local boot", "wait"].iter().any(|start| script.1.starts_with(start));
    (!harmless).then_some(script)
}

/// Bytes of all files fetched for a script, and their places.
fn images(story: &Story<'_>) -> (u64, Vec<usize>) {
    let Some((script, _)) = starts(story) else { return (0, vec![]) };
    let after = story.seen.iter().enumerate().skip(script);
    let files = after.filter_map(|(place, one)| match &one.what {
        Sighted::HttpDone { method, path, status: 200, bytes, .. }
            if method == "GET" && is_image(path) =>
        {
            Some((place, *bytes))
        }
        Sighted::HttpShort { path, of, .. } if is_image(path) => Some((place, *of)),
        _ => None,
    });
    files.fold((0_u64, vec![]), |(sum, mut places), (place, bytes)| {
        places.push(place);
        (sum.saturating_add(bytes), places)
    })
}

fn is_image(path: &str) -> bool {
    path != ipxe::SCRIPT_PATH && !story::is_payload(path) && !loops::is_companion(path)
}

fn missing(story: &Story<'_>) -> Option<Found> {
    let (script, _) = starts(story)?;
    let (place, path) = story.last(|what| match what {
        Sighted::HttpDone { path, status: 404, .. } if is_image(path) => Some(path),
        _ => None,
    })?;
    let text = format!("the script names {path}, which is not there");
    if place > script && !story.spoke() { found(text, vec![place]) } else { None }
}

fn bios_images(story: &Story<'_>) -> Option<Found> {
    let (bytes, places) = images(story);
    let is_bios = story.arch().is_some_and(|arch| arch.0 == 0);
    let is = is_bios && bytes > BIOS_IMAGES && !story.spoke() && story.is_quiet(FETCHES);
    let text =
        format!("kernel and initrds are {} MiB together, more than a BIOS can load", bytes / MIB);
    if is { found(text, places) } else { None }
}

fn memory(story: &Story<'_>) -> Option<Found> {
    let (bytes, places) = images(story);
    let memory = story.facts.memory_mib.filter(|mib| *mib > 0)?;
    let needed = (bytes / MIB).saturating_mul(UNPACKED);
    let is = needed > memory && !story.spoke() && story.is_quiet(FETCHES);
    let text = format!(
        "kernel and initrds are {} MiB, which unpacked does not fit into its {memory} MiB of memory",
        bytes / MIB
    );
    if is { found(text, places) } else { None }
}

fn short(story: &Story<'_>) -> Option<Found> {
    let (place, (path, bytes, of)) = story.last(|what| match what {
        Sighted::HttpShort { path, bytes, of } if is_image(path) => Some((path, *bytes, *of)),
        _ => None,
    })?;
    let whole = |what: &Sighted| matches!(what, Sighted::HttpDone { path: done, status: 200, .. } if done == path);
    let later = story.places(whole).into_iter().any(|other| other > place);
    let text = format!("the transfer of {path} broke off at {bytes} of {of} bytes");
    let is = !later && !story.spoke() && story.is_quiet(FETCHES);
    if is { found(text, vec![place]) } else { None }
}

fn no_kernel(story: &Story<'_>) -> Option<Found> {
    let (place, what) = starts(story)?;
    let (_, fetched) = images(story);
    let text = format!("it was given the script of {what} and fetched nothing of it");
    let whole = story.any(|what| matches!(what, Sighted::KernelWhole { .. }));
    let is = fetched.is_empty() && !whole && !story.spoke() && story.is_quiet(FETCHES);
    if is { found(text, vec![place]) } else { None }
}
