//! The configuration as engine, boot services and templates want it. Pure translation.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use anyhow::Context;
use model::{
    ProfileName, RootKind,
    boot::{BootEntry, BootIntent, BootNetwork, BootTable, BootTraits, Menu, MenuAct, MenuItem},
    permit::Protection,
};
use plan::{Bounds, FileOwned, NodeSpec, ProfileKind, ProfileSpec, Specs};
use profiles::{
    Payload, Templates,
    templates::{Args, NodeFields},
};

use super::table::Options;
use crate::config::{BootMode, Boots, Config, FileSource, Linux, Network, Node, Profile};

/// URL path of the memory test of `[menu]`.
const MEMTEST: &str = "/tools/memtest";

/// What the engine decides by.
#[must_use]
pub(super) fn specs(config: &Config) -> Specs {
    let profiles = config.profiles.values().map(profile_spec);
    let nodes = config.nodes.values().map(|node| node_spec(config, node));
    Specs {
        profiles: profiles.map(|profile| (profile.name.clone(), profile)).collect(),
        nodes: nodes.map(|node| (node.name.clone(), node)).collect(),
    }
}

fn profile_spec(profile: &Profile) -> ProfileSpec {
    let timeouts = profile.timeouts;
    let bounds = Bounds {
        bmc: timeouts.bmc,
        soft_off: timeouts.soft_off,
        off_settle: timeouts.off_settle,
        post: timeouts.post,
        boot: timeouts.boot,
        ready: timeouts.ready,
        acts_after: timeouts.acts_after,
        min_boot: profile.min_boot,
        // No setting: a BMC cuts power at once or not at all.
        ..Bounds::default()
    };
    let kind = match profile.boots {
        Boots::Inspect => ProfileKind::Inspect,
        Boots::Local => ProfileKind::Local,
        Boots::Linux(_) => ProfileKind::Linux,
    };
    ProfileSpec {
        name: profile.name.clone(),
        kind,
        root: profile.root(),
        calls_back: profile.callback,
        bounds,
    }
}

fn node_spec(config: &Config, node: &Node) -> NodeSpec {
    let protected = match &node.protection {
        Protection::Open => None,
        Protection::Protected { reason } => Some(reason.clone()),
    };
    NodeSpec {
        name: node.name.clone(),
        address: node.address,
        efi: node.boot_mode == BootMode::Uefi,
        protected,
        profiles: node.profiles.clone(),
        bmc: node.bmc.address.to_string(),
        owned: config.assigned.get(&node.name).map(|assigned| FileOwned {
            place: assigned.place.to_string(),
            profile: assigned.profile.clone(),
        }),
    }
}

/// The templates of all profiles with a kernel. `http` gives each network's bound boot port.
///
/// # Errors
/// When a template file cannot be read.
pub(super) fn templates(
    config: &Config,
    http: &BTreeMap<String, SocketAddr>,
) -> anyhow::Result<Templates> {
    let mut payloads = BTreeMap::new();
    for profile in config.profiles.values() {
        if let Some(payload) = payload(config, profile)? {
            payloads.insert(profile.name.clone(), payload);
        }
    }
    let nodes = config.nodes.values();
    let fields = nodes.map(|node| Ok((node.name.clone(), node_fields(config, node, http)?)));
    Ok(Templates::new(payloads, fields.collect::<anyhow::Result<_>>()?))
}

fn payload(config: &Config, profile: &Profile) -> anyhow::Result<Option<Payload>> {
    let name = &profile.name;
    let title = match profile.about.as_str() {
        "" => name.to_string(),
        about => format!("{name} ({about})"),
    };
    let kernel = format!("/i/{name}/kernel");
    match &profile.boots {
        Boots::Local => Ok(None),
        Boots::Inspect => {
            let extra = config.agent.as_ref().map(|agent| agent.args.clone()).unwrap_or_default();
            let initrds = vec![format!("/i/{name}/initrd0")];
            let args = Args::Agent(extra);
            Ok(Some(Payload { title, kernel, initrds, args, documents: BTreeMap::new() }))
        }
        Boots::Linux(linux) => {
            let initrds = (0..linux.initrds.len()).map(|index| format!("/i/{name}/initrd{index}"));
            let (initrds, args) = (initrds.collect(), Args::Template(linux.args.clone()));
            Ok(Some(Payload { title, kernel, initrds, args, documents: documents(name, linux)? }))
        }
    }
}

fn documents(profile: &ProfileName, linux: &Linux) -> anyhow::Result<BTreeMap<String, String>> {
    let mut documents = BTreeMap::new();
    for (name, source) in &linux.files {
        let text = match source {
            FileSource::Text(text) => text.clone(),
            FileSource::Template(path) => std::fs::read_to_string(path).with_context(|| {
                format!("profile {profile}: could not read template {}", path.display())
            })?,
        };
        documents.insert(name.clone(), text);
    }
    Ok(documents)
}

fn node_fields(
    config: &Config,
    node: &Node,
    http: &BTreeMap<String, SocketAddr>,
) -> anyhow::Result<NodeFields> {
    let network = config.networks.iter().find(|network| network.name == node.network);
    let network = network.with_context(|| {
        format!("{} boots on {:?}, which is no network", node.name, node.network)
    })?;
    let mac = *node.macs.first().with_context(|| format!("{} has no MAC", node.name))?;
    let seat = node.seat.as_ref();
    Ok(NodeFields {
        name: node.name.clone(),
        address: node.address,
        prefix: network.subnet.prefix,
        mac,
        router: network.router,
        enclosure: seat.map(|seat| seat.enclosure.to_string()),
        bay: seat.map(|seat| seat.bay.get()),
        http: http.get(&node.network).copied(),
    })
}

/// Every served file by its URL path or TFTP name.
#[must_use]
pub(super) fn files(config: &Config) -> BTreeMap<String, PathBuf> {
    let mut files = config.loaders.files();
    let memtest = config.menu.as_ref().and_then(|menu| menu.memtest.clone());
    files.extend(memtest.map(|file| (MEMTEST.to_owned(), file)));
    for profile in config.profiles.values() {
        let name = &profile.name;
        let mut image = |kernel: &PathBuf, initrds: &[PathBuf]| {
            files.insert(format!("/i/{name}/kernel"), kernel.clone());
            for (index, initrd) in initrds.iter().enumerate() {
                files.insert(format!("/i/{name}/initrd{index}"), initrd.clone());
            }
        };
        match (&profile.boots, &config.agent) {
            (Boots::Inspect, Some(agent)) => {
                image(&agent.kernel, std::slice::from_ref(&agent.initrd));
            }
            (Boots::Linux(linux), _) => image(&linux.kernel, &linux.initrds),
            (Boots::Inspect, None) | (Boots::Local, _) => (),
        }
    }
    files
}

/// The SHA-256 of those served files that have one declared, by the same names.
fn digests(config: &Config) -> BTreeMap<String, [u8; 32]> {
    let mut digests = BTreeMap::new();
    for profile in config.profiles.values() {
        let Boots::Linux(linux) = &profile.boots else { continue };
        let name = &profile.name;
        digests.extend(linux.kernel_sha256.map(|digest| (format!("/i/{name}/kernel"), digest)));
        let initrds = linux.initrd_sha256.iter().enumerate();
        digests
            .extend(initrds.map(|(index, digest)| (format!("/i/{name}/initrd{index}"), *digest)));
    }
    digests
}

/// The boot table with every node told to boot locally; intents come from the engine.
#[must_use]
pub(super) fn boot_table(config: &Config, http: &BTreeMap<String, SocketAddr>) -> BootTable {
    let network = |network: &Network| {
        let http = http.get(&network.name).copied();
        let table = network.boot_network();
        BootNetwork { http: http.unwrap_or(table.http), ..table }
    };
    let mut table = BootTable {
        networks: config.networks.iter().map(network).collect(),
        loaders: config.loaders.table(),
        ladders: config.loaders.ladders(),
        files: files(config),
        digests: digests(config),
        ..BootTable::default()
    };
    for node in config.nodes.values() {
        table.insert(entry(config, node));
    }
    table
}

fn entry(config: &Config, node: &Node) -> BootEntry {
    BootEntry {
        node: node.name.clone(),
        macs: node.macs.clone(),
        address: node.address.unwrap_or(Ipv4Addr::UNSPECIFIED),
        intent: BootIntent::Local,
        attempt: None,
        traits: BootTraits { menu: menu(config, node), ..node.traits.clone() },
    }
}

/// What a person at the node's console may choose: nothing that writes a disk.
fn menu(config: &Config, node: &Node) -> Option<Menu> {
    let declared = config.menu.as_ref()?;
    let item = |label: &str, does| MenuItem { label: label.to_owned(), does };
    let mut items = vec![item("Boot the local disk", MenuAct::Local)];
    let allowed = node.profiles.iter().filter_map(|name| config.profiles.get(name));
    let offered = allowed.filter(|profile| match profile.boots {
        Boots::Local => false,
        Boots::Inspect => declared.inspect,
        Boots::Linux(_) => declared.profiles && profile.root() != RootKind::Installer,
    });
    items.extend(offered.map(|profile| {
        let about = if profile.about.is_empty() { "a profile" } else { &profile.about };
        item(&format!("{}: {about}", profile.name), MenuAct::Profile(profile.name.clone()))
    }));
    let memtest = declared.memtest.as_ref();
    items
        .extend(memtest.map(|_| item("Memory test", MenuAct::Tool { kernel: MEMTEST.to_owned() })));
    let url = declared.netboot_xyz.clone();
    items.extend(url.map(|url| item("netboot.xyz", MenuAct::Chain { url })));
    if declared.shell {
        items.push(item("iPXE shell", MenuAct::Shell));
    }
    Some(Menu { timeout_s: declared.timeout_s, items })
}

/// The DHCP options of nodes and profiles.
#[must_use]
pub(super) fn options(config: &Config) -> Options {
    let nodes = config.nodes.values().filter(|node| !node.traits.options.is_empty());
    let profiles = config.profiles.values().filter(|profile| !profile.options.is_empty());
    Options {
        nodes: nodes.map(|node| (node.name.clone(), node.traits.options.clone())).collect(),
        profiles: profiles.map(|profile| (profile.name.clone(), profile.options.clone())).collect(),
    }
}
