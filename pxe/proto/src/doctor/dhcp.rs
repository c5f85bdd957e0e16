//! Rules about DHCP: those that read a plain fact, and those that read a pattern.

use std::time::Duration;

use model::{Sighted, sighting::DhcpKind};

use super::{
    Confidence::{Certain, Likely, Possible},
    Found, Rule, Story, found,
};
use crate::story::StageName;

/// DISCOVERs after which firmware is taken to ignore offers; it asks at 0, 4, 12 and 28 s.
const IGNORED: usize = 3;
/// Firmware that was given an address and a name asks for the file within this time.
const FETCHES: Duration = Duration::from_secs(20);
/// NAKs that are no accident any more.
const NAKS: usize = 3;

/// What is said outright.
pub(super) const PLAIN: &[Rule] = &[
    Rule {
        id: "boot-loop",
        confidence: Certain,
        remedy: "look at its console: what it loads does not start; then let it try again with \
                 `volund node NODE --release-loop`",
        finds: looped,
    },
    Rule {
        id: "address-conflict",
        confidence: Certain,
        remedy: "find that machine by its MAC and take the address from it, or give the node another one",
        finds: conflict,
    },
    Rule {
        id: "relay-unknown",
        confidence: Certain,
        remedy: "add the network of that relay to the configuration, or move the node's port to a boot network",
        finds: |story| silent(story, &["no boot network holds"]),
    },
    Rule {
        id: "wrong-network",
        confidence: Certain,
        remedy: "move its switch port into the network its address is of, or correct the address in the configuration",
        finds: |story| silent(story, &[", the network it asks from"]),
    },
    Rule {
        id: "unknown-arch",
        confidence: Certain,
        remedy: "choose another boot mode in its firmware, such as UEFI PXE of IPv4",
        finds: |story| {
            silent(story, &["no loader is known for", "it names no architecture", "Raspberry Pi"])
        },
    },
    Rule {
        id: "no-loader",
        confidence: Certain,
        remedy: "name a loader for this architecture under `loaders` of the network, and see that the file is there",
        finds: |story| silent(story, &["no loader is configured for"]),
    },
    Rule {
        id: "nak-loop",
        confidence: Likely,
        remedy: "see that no other server reserves another address for its MAC, and renew the lease on the machine",
        finds: naks,
    },
];

/// What helps against another server that names a boot file, in one boot and on a whole network.
pub(super) const RIVAL_FILE_REMEDY: &str =
    "take options 66 and 67 and next-server out of that server, or let it name volund there";

/// What the order of packets tells.
pub(super) const PATTERNS: &[Rule] = &[
    Rule {
        id: "rival-boot-file",
        confidence: Likely,
        remedy: RIVAL_FILE_REMEDY,
        finds: rival_file,
    },
    Rule {
        id: "rival-address",
        confidence: Likely,
        remedy: "switch that server off on the boot network, or set `dhcp = \"proxy\"` for it so that both may live",
        finds: rival_address,
    },
    Rule {
        id: "never-merges",
        confidence: Likely,
        remedy: "put next-server (66) and the boot file (67) of volund into the DHCP server that gives the addresses, \
                 or boot it by UEFI HTTP boot",
        finds: never_merges,
    },
    Rule {
        id: "proxy-refused",
        confidence: Likely,
        remedy: "put next-server (66) and the boot file (67) of volund into the DHCP server that gives the addresses; \
                 save the boot as pcap and look at what it was told",
        finds: proxy_refused,
    },
    Rule {
        id: "offer-ignored",
        confidence: Possible,
        remedy: "look whether our answers reach it: `volund boot NODE --pcap FILE` shows what was sent, a mirror of its \
                 switch port what came; suspect a firewall of this machine (UDP 67, 68), a VLAN that lets only one \
                 direction through, DHCP snooping",
        finds: offer_ignored,
    },
    Rule {
        id: "http-boot-refused",
        confidence: Likely,
        remedy: "see that its firmware allows plain http (some want https), and that TCP to the boot port is not \
                 filtered; else let it boot by PXE",
        finds: |story| no_fetch(story, Kind::HttpBoot),
    },
    Rule {
        id: "ipxe-no-script",
        confidence: Likely,
        remedy: "see that TCP to the boot port is not filtered between node and volund; an iPXE without HTTP needs a \
                 full loader in its place",
        finds: |story| no_fetch(story, Kind::Ipxe),
    },
    Rule {
        id: "loader-not-fetched",
        confidence: Likely,
        remedy: "see that UDP 69 and the high ports of TFTP are not filtered between node and volund, and that no \
                 other server answers option 60 (PXEClient) on this network",
        finds: |story| no_fetch(story, Kind::Pxe),
    },
];

fn looped(story: &Story<'_>) -> Option<Found> {
    let (place, (what, times)) = story.last(|what| match what {
        Sighted::Looped { what, times } => Some((what, times)),
        _ => None,
    })?;
    found(
        format!("it went round in a circle ({what}, {times} times) and is kept out of it"),
        vec![place],
    )
}

fn conflict(story: &Story<'_>) -> Option<Found> {
    let (place, text) = story.last(|what| match what {
        Sighted::AddressTaken { .. } => Some(what.to_string()),
        Sighted::DhcpSilent { why }
            if why.starts_with("it declines ") && why.contains("another machine") =>
        {
            Some(why.clone())
        }
        _ => None,
    })?;
    found(text, vec![place])
}

/// An answer that was not given, or not whole, and said why; unless the boot got on all the same.
fn silent(story: &Story<'_>, words: &[&str]) -> Option<Found> {
    if story.fetches() {
        return None;
    }
    let (place, why) = story.last(|what| match what {
        Sighted::DhcpSilent { why } if words.iter().any(|word| why.contains(word)) => Some(why),
        _ => None,
    })?;
    found(why.clone(), vec![place])
}

fn naks(story: &Story<'_>) -> Option<Found> {
    let is = |what: &Sighted| matches!(what, Sighted::DhcpOut { kind: DhcpKind::Nak, .. });
    let acked = |what: &Sighted| matches!(what, Sighted::DhcpOut { kind: DhcpKind::Ack, .. });
    let (naks, ack) = (story.places(is), story.places(acked));
    let after = naks.into_iter().filter(|nak| ack.last().is_none_or(|ack| nak > ack));
    let naks: Vec<usize> = after.collect();
    let text = "it insists on an address that is not its own, and was refused";
    if naks.len() >= NAKS { found(format!("{text} {} times", naks.len()), naks) } else { None }
}

/// Not fetched, and time enough has passed to.
fn is_stuck(story: &Story<'_>) -> bool {
    !story.fetches() && !story.scripted() && story.is_quiet(FETCHES)
}

fn rival_file(story: &Story<'_>) -> Option<Found> {
    // Whoever took our address takes our boot file with it, unless the other one is a proxy, which names files only.
    let ours = !story.facts.is_proxy && story.acked().is_some();
    let named = |what: &Sighted| match what {
        Sighted::Rival { server, address, file: Some(file) } if !(ours && address.is_some()) => {
            Some((*server, file.clone()))
        }
        _ => None,
    };
    let (place, (server, file)) = story.last(named)?;
    let text = format!("another DHCP server, {server}, names the boot file {file:?}");
    if is_stuck(story) { found(text, vec![place]) } else { None }
}

/// Its REQUEST went to another server where the addresses are ours to give.
fn rival_address(story: &Story<'_>) -> Option<Found> {
    if story.facts.is_proxy || !is_stuck(story) {
        return None;
    }
    let acked = |what: &Sighted| matches!(what, Sighted::DhcpOut { kind: DhcpKind::Ack, .. });
    if story.any(acked) {
        return None;
    }
    let server = story.last(|what| match what {
        Sighted::DhcpSilent { why } => {
            why.strip_prefix("it took the offer of another server, ").map(str::to_owned)
        }
        Sighted::Rival { server, .. } => Some(server.to_string()),
        _ => None,
    });
    let (place, server) = server?;
    let text = format!(
        "it takes its address from another DHCP server, {server}, which names no boot file"
    );
    found(text, vec![place])
}

fn never_merges(story: &Story<'_>) -> Option<Found> {
    let discovers = story.discovers();
    if !story.facts.is_proxy || discovers.len() < IGNORED || story.requests() || story.fetches() {
        return None;
    }
    let text = "its firmware does not put two offers together (address of one server, boot file of another): \
                it asks again and again and takes none";
    found(text, discovers)
}

fn proxy_refused(story: &Story<'_>) -> Option<Found> {
    let asked = story.places(|what| matches!(what, Sighted::DhcpIn { proxy: true, .. }));
    let is = asked.len() >= IGNORED && !story.fetches() && !story.scripted();
    let text = "it asks port 4011 for its boot file over and over, and takes none of our answers";
    if is { found(text, asked) } else { None }
}

fn offer_ignored(story: &Story<'_>) -> Option<Found> {
    let offers =
        story.places(|what| matches!(what, Sighted::DhcpOut { kind: DhcpKind::Offer, .. }));
    let discovers = story.discovers();
    let is = discovers.len() >= IGNORED
        && !offers.is_empty()
        && !story.facts.is_proxy
        && !story.requests()
        && !story.fetches();
    let text = format!("it asked {} times and took none of our offers", discovers.len());
    if is { found(text, discovers) } else { None }
}

/// Who was told a file and fetched none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pxe,
    HttpBoot,
    Ipxe,
}

fn no_fetch(story: &Story<'_>, kind: Kind) -> Option<Found> {
    let (place, file) = story.acked()?;
    let (_, client) = story.last(|what| match what {
        Sighted::DhcpIn { kind: DhcpKind::Request | DhcpKind::Discover, client, .. } => {
            Some(client.as_str()).filter(|client| !client.is_empty())
        }
        _ => None,
    })?;
    let is = match client {
        "iPXE" | "cut-down iPXE" => Kind::Ipxe,
        _ if client.contains("HTTP") => Kind::HttpBoot,
        _ => Kind::Pxe,
    };
    let stuck = match kind {
        // Its loader was fetched before.
        Kind::Ipxe => !story.scripted() && story.is_quiet(FETCHES) && !asked_after(story, place),
        Kind::Pxe | Kind::HttpBoot => is_stuck(story),
    };
    let who = match kind {
        Kind::Ipxe => "iPXE",
        Kind::HttpBoot => "its HTTP boot client",
        Kind::Pxe => "its firmware",
    };
    let text =
        format!("{who} was given an address and the boot file {file}, and asked for nothing");
    if is == kind && stuck { found(text, vec![place]) } else { None }
}

fn asked_after(story: &Story<'_>, place: usize) -> bool {
    let later = story.stages.iter().skip(place).flatten();
    later.into_iter().any(|stage| matches!(stage, StageName::Loader | StageName::Script))
}
