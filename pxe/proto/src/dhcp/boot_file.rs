//! Which boot file a client is named: the script, a loader, or none and why.
//!
//! Nothing is guessed: a loader of the wrong kind hangs a machine.

use model::{BootIntent, ClientArch, MacAddr, arch::ClientFamily, boot::LocalBoot};

use super::{
    answer::{BootFile, Ending},
    decide::Asked,
    request::Request,
};
use crate::{ipxe::Stage, path};

/// The boot file, and if there is none although the client wants one, why.
pub(super) fn boot_file(asked: &Asked<'_>) -> (Option<BootFile>, Option<String>) {
    let wants = asked.request.stage.is_firmware() || asked.request.is_bootp;
    if !wants {
        return (None, None);
    }
    match find(asked) {
        Ok(file) => (file, None),
        Err(why) => (None, Some(why)),
    }
}

/// `Ok(None)`: the node is to go on without.
fn find(asked: &Asked<'_>) -> Result<Option<BootFile>, String> {
    let entry = asked.entry.ok_or_else(|| format!("{}: no boot file", asked.unknown()))?;
    let no_file = match entry.intent {
        BootIntent::NoBootFile => true,
        BootIntent::Local => entry.traits.local == LocalBoot::NoBootFile,
        BootIntent::Ask => false,
    };
    if no_file {
        return Ok(None);
    }
    let lives_elsewhere = !entry.address.is_unspecified() && asked.resident().is_none();
    if lives_elsewhere {
        let network = asked.network;
        return Err(format!(
            "its address {} is not on {}/{}, the network it asks from: no boot file",
            entry.address, network.subnet, network.prefix
        ));
    }
    match asked.request.stage {
        Stage::Ipxe => Ok(Some(script(asked))),
        Stage::System if !asked.request.is_bootp => Ok(None),
        Stage::Pxe | Stage::HttpBoot | Stage::CutDownIpxe | Stage::System => {
            loader(asked).map(Some)
        }
    }
}

/// The URL of the script, with the MAC in it so that it can be checked against the address that asks.
fn script(asked: &Asked<'_>) -> BootFile {
    let url = path::url(asked.network.http, crate::ipxe::SCRIPT_PATH);
    let name = format!("{url}?mac={}", asked.request.chaddr.hyphenated());
    BootFile { name, ending: Ending::Bare }
}

fn loader(asked: &Asked<'_>) -> Result<BootFile, String> {
    let request = asked.request;
    let archs = archs(request);
    let arch = archs.first().copied().ok_or("it names no architecture: no boot file")?;
    let name = match archs.iter().find_map(|arch| own(asked, *arch)) {
        Some(own) => own,
        None if is_raspberry_pi(request) => {
            return Err(RASPBERRY_PI.to_owned());
        }
        None => archs.iter().find_map(|arch| common(asked, *arch)).ok_or_else(|| missing(arch))?,
    };
    let is_url = request.is_http_boot();
    let name = if is_url { path::url(asked.network.http, name) } else { name.clone() };
    let ending = if request.stage == Stage::CutDownIpxe { Ending::Bare } else { Ending::Zero };
    Ok(BootFile { name, ending })
}

/// The architectures that may count, best first. BOOTP names none and is older than all but the first.
fn archs(request: &Request) -> Vec<ClientArch> {
    if request.is_bootp && request.archs.is_empty() {
        return vec![ClientArch(0)];
    }
    let mut archs = request.loadable();
    archs.extend(request.archs.iter().filter(|arch| arch.family().is_none()));
    archs
}

/// The loader of the node itself for an architecture, if it has one.
fn own<'a>(asked: &Asked<'a>, arch: ClientArch) -> Option<&'a String> {
    let loaders = &asked.entry?.traits.loaders;
    codes(arch).into_iter().find_map(|code| loaders.get(&code))
}

/// The loader all nodes have for an architecture.
fn common<'a>(asked: &Asked<'a>, arch: ClientArch) -> Option<&'a String> {
    codes(arch).into_iter().find_map(|code| asked.table.loaders.0.get(&code))
}

/// The codes whose loaders an architecture can start; of one volund has no word for, its own only.
fn codes(arch: ClientArch) -> Vec<ClientArch> {
    match arch.family() {
        Some(family) => family.loader_codes().iter().copied().map(ClientArch).collect(),
        None => vec![arch],
    }
}

fn missing(arch: ClientArch) -> String {
    if arch.family().is_none() {
        return format!("no loader is known for {arch}: no boot file");
    }
    format!("no loader is configured for {arch}: no boot file; name one under `loaders`")
}

const RASPBERRY_PI: &str = "it is a Raspberry Pi, whose firmware says x86 BIOS (0) and cannot start one: no boot \
                            file; name one under `loaders` of the node";

/// Whether firmware that says it is an x86 BIOS is a Raspberry Pi: its makers' prefixes, or its machine id.
fn is_raspberry_pi(request: &Request) -> bool {
    const PREFIXES: [[u8; 3]; 6] = [
        [0xb8, 0x27, 0xeb],
        [0xdc, 0xa6, 0x32],
        [0xe4, 0x5f, 0x01],
        [0x28, 0xcd, 0xc1],
        [0xd8, 0x3a, 0xdd],
        [0x2c, 0xcf, 0x67],
    ];
    let is_bios = request.arch().and_then(ClientArch::family) == Some(ClientFamily::Bios);
    let MacAddr([a, b, c, ..]) = request.chaddr;
    let machine = request.machine_id.as_deref().unwrap_or_default();
    let by_id = matches!(machine, [0, b'R', b'P', b'i', ..] | [0, b'D', b'D', b'D', b'D', ..]);
    is_bios && (PREFIXES.contains(&[a, b, c]) || by_id)
}
