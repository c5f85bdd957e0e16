//! The lab as declared in TOML: read whole, checked whole, every fault reported at once.
//!
//! One directory: `volund.toml`, the other `*.toml` beside it by name, then `*.d/*.toml` by name. Tables of
//! one kind may be spread over files; `[lab]`, `[operator]`, `[loaders]`, `[secure_boot]`, `[menu]`, `[metering]` and
//! `[agent]` stand in one. Relative paths start at that directory. Unknown keys are refused. Secrets stand in it by reference
//! only; this module resolves them at load and never shows one. It changes no file and opens no socket.

#[cfg(test)]
mod boot_tests;
mod cross;
pub mod duration;
mod fault;
mod fields;
mod lab;
mod loaders;
mod menu;
mod network;
mod node;
mod options;
mod pool;
mod profile;
mod quirks;
#[cfg(test)]
mod reference_tests;
mod secret;
mod source;
mod suggest;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use model::{EnclosureName, NodeName, ProfileName};

pub use self::{
    fault::{Fault, Faults, Place},
    lab::{AgentImage, Lab, Metering, Operator, Token, User},
    loaders::{GRUB, LoaderFiles, SHIM, SecureBoot},
    menu::Menu,
    network::{Network, Subnet, SubnetError},
    node::{Assigned, Bmc, BootMode, CipherSuite, Enclosure, Node, Seat},
    profile::{Boots, FileSource, Linux, Profile, Timeouts},
    secret::{Secret, SecretError, SecretRef, SecretRefError},
};
use self::{
    fault::{Sink, Spot},
    fields::Fields,
    lab::{RawAgent, RawOperator},
    loaders::{RawLoaders, RawSecureBoot},
    menu::RawMenu,
    network::RawNetwork,
    node::{RawAssign, RawNode},
    profile::RawProfile,
};

/// A checked configuration: everything it names exists, nothing in it contradicts itself.
#[derive(Clone)]
pub struct Config {
    /// The directory it was read from.
    pub dir: PathBuf,
    /// The lab itself.
    pub lab: Lab,
    /// Listener and users of page and API.
    pub operator: Operator,
    /// Boot networks, in the order of the files; their subnets do not overlap.
    pub networks: Vec<Network>,
    /// Network boot loaders.
    pub loaders: LoaderFiles,
    /// The menu at nodes' consoles, if they are to have one.
    pub menu: Option<Menu>,
    /// Enclosures.
    pub enclosures: BTreeMap<EnclosureName, Enclosure>,
    /// Profiles, the built-in ones among them (`inspect` only with an agent image).
    pub profiles: BTreeMap<ProfileName, Profile>,
    /// Nodes; MACs, bays, addresses and BMCs are each one node's own.
    pub nodes: BTreeMap<NodeName, Node>,
    /// File-owned assignments.
    pub assigned: BTreeMap<NodeName, Assigned>,
    /// How power is read.
    pub metering: Metering,
    /// The agent's image.
    pub agent: Option<AgentImage>,
    /// What is doubtful without keeping volund from starting.
    pub warnings: Vec<Fault>,
}

/// How far [`check`] goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckOptions {
    /// Fetch every secret, running `cmd:` references.
    pub resolve_secrets: bool,
    /// Look whether loaders, kernels, initrds and templates are there.
    pub look_for_files: bool,
}

impl Default for CheckOptions {
    /// As far as [`load`] goes.
    fn default() -> Self {
        Self { resolve_secrets: true, look_for_files: true }
    }
}

/// What a good configuration declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Name of the lab.
    pub lab: String,
    /// Number of boot networks.
    pub networks: usize,
    /// Number of enclosures.
    pub enclosures: usize,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of profiles, the built-in ones among them.
    pub profiles: usize,
    /// What is doubtful.
    pub warnings: Vec<Fault>,
}

/// The configuration in `dir`, secrets resolved.
///
/// # Errors
/// Every fault at once, in the order of files and lines.
pub fn load(dir: &Path) -> Result<Config, Faults> {
    let sink = Sink::default();
    let raw = read_checked(dir, CheckOptions::default(), &sink);
    let config = raw.and_then(|raw| raw.finish(dir, &sink));
    let warnings = sink.outcome()?;
    let config = config.expect("whatever is missing has left a fault");
    Ok(Config { warnings, ..config })
}

/// Checks the configuration in `dir` without using it.
///
/// # Errors
/// Every fault at once, in the order of files and lines.
pub fn check(dir: &Path, options: CheckOptions) -> Result<Summary, Faults> {
    let sink = Sink::default();
    let raw = read_checked(dir, options, &sink);
    if let Some(raw) = raw.as_ref().filter(|_| options.resolve_secrets) {
        raw.passwords(dir, &sink);
    }
    let summary = raw.map(|raw| Summary {
        lab: raw
            .lab
            .as_ref()
            .and_then(|lab| lab.value.as_ref())
            .map(|lab| lab.name.clone())
            .unwrap_or_default(),
        networks: raw.networks.len(),
        enclosures: raw.enclosures.len(),
        nodes: raw.nodes.len(),
        profiles: cross::profile_names(&raw).len(),
        warnings: Vec::new(),
    });
    let warnings = sink.outcome()?;
    let summary = summary.expect("a configuration that cannot be read has left a fault");
    Ok(Summary { warnings, ..summary })
}

/// Everything as far as it could be read.
#[derive(Default)]
struct Raw {
    lab: Option<Spot<Option<Lab>>>,
    operator: Option<Spot<RawOperator>>,
    loaders: Option<Spot<RawLoaders>>,
    secure_boot: Option<Spot<RawSecureBoot>>,
    menu: Option<Spot<RawMenu>>,
    metering: Option<Spot<Metering>>,
    agent: Option<Spot<RawAgent>>,
    networks: Vec<RawNetwork>,
    enclosures: Vec<(Spot<EnclosureName>, Option<Enclosure>)>,
    profiles: Vec<RawProfile>,
    nodes: Vec<RawNode>,
    assigns: Vec<RawAssign>,
}

/// Reads all files and checks them against each other; `None` when a file could not be read at all, since
/// everything that refers to it would look wrong.
fn read_checked(dir: &Path, options: CheckOptions, sink: &Sink) -> Option<Raw> {
    let sources = source::read(dir, sink);
    let mut whole = sink.is_clean();
    let mut raw = Raw::default();
    for source in &sources {
        match source.parse(sink) {
            Some(document) => {
                raw.read_file(Fields::root(source, sink, document.get_ref()), dir, sink);
            }
            None => whole = false,
        }
    }
    if !whole {
        return None;
    }
    raw.needs_lab(sink);
    raw.lets_somebody_in(sink);
    cross::check(&raw, sink);
    if options.look_for_files {
        raw.look_for_files(sink);
    }
    Some(raw)
}

impl Raw {
    fn read_file(&mut self, root: Fields<'_>, dir: &Path, sink: &Sink) {
        if &*root.place.file == source::MAIN && !root.has("schema") {
            root.missing("schema", "write schema = 1 as its first line");
        }
        let schema = root.integer("schema", 0..=u32::MAX);
        if let Some(schema) = schema.filter(|schema| schema.value != 1) {
            let text = format!("schema {} is not known", schema.value);
            root.fault(&schema.place, text, "this volund reads schema = 1");
        }
        once(&mut self.lab, &root, "lab", lab::read_lab);
        once(&mut self.operator, &root, "operator", lab::read_operator);
        once(&mut self.loaders, &root, "loaders", |fields| RawLoaders::read(fields, dir));
        once(&mut self.secure_boot, &root, "secure_boot", |fields| {
            RawSecureBoot::read(fields, dir)
        });
        once(&mut self.menu, &root, "menu", |fields| menu::read(fields, dir));
        once(&mut self.metering, &root, "metering", lab::read_metering);
        once(&mut self.agent, &root, "agent", |fields| lab::read_agent(fields, dir));
        self.networks.extend(root.list_of_tables("network").into_iter().map(RawNetwork::read));
        let enclosures = root.named_tables("enclosure").into_iter();
        self.enclosures
            .extend(enclosures.filter_map(|(name, fields)| node::read_enclosure(name, fields)));
        let profiles = root.named_tables("profile").into_iter();
        self.profiles
            .extend(profiles.filter_map(|(name, fields)| RawProfile::read(name, fields, dir)));
        let nodes = root.list_of_tables("node").into_iter();
        self.nodes.extend(nodes.map(|fields| RawNode::read(fields, sink)));
        self.assigns.extend(root.list_of_tables("assign").into_iter().map(RawAssign::read));
        root.done();
    }

    fn needs_lab(&self, sink: &Sink) {
        if self.lab.is_none() {
            let place = Place::whole(source::MAIN);
            sink.fault(&place, "[lab] is missing", "write [lab] with name = \"…\"");
        }
    }

    /// Page and API would turn everybody away.
    fn lets_somebody_in(&self, sink: &Sink) {
        let whole = Place::whole(source::MAIN);
        let (place, somebody) = match &self.operator {
            Some(Spot { value, place }) => (place, value.has_somebody()),
            None => (&whole, false),
        };
        if !somebody {
            let text = "[operator]: nobody can log in: there is neither user nor token";
            let hint = "paste what `volund passwd NAME` and `volund token NAME` print";
            sink.warning(place, text, hint);
        }
    }

    fn look_for_files(&self, sink: &Sink) {
        self.look_for_loaders(sink);
        for profile in &self.profiles {
            for file in &profile.files {
                if !file.value.is_file() {
                    let name = &profile.name.value;
                    let path = file.value.display().to_string();
                    let text =
                        format!("profile \"{name}\": {} does not exist", fields::shown(&path));
                    sink.fault(&file.place, text, "create it, or correct the path");
                }
            }
        }
        for (place, path) in self.agent.iter().flat_map(|agent| agent.value.files()) {
            if !path.is_file() {
                let text = format!("[agent]: {} does not exist", path.display());
                sink.fault(place, text, lab::BUILD_AGENT);
            }
        }
    }

    fn look_for_loaders(&self, sink: &Sink) {
        let unsaid = RawLoaders::unsaid(Place::whole(source::MAIN));
        if !self.networks.is_empty() {
            let of_nodes = self.nodes.iter().flat_map(|node| node.quirks.loaders.values());
            self.loaders.as_ref().map_or(&unsaid, |loaders| &loaders.value).look(of_nodes, sink);
        }
        let secure = self.nodes.iter().find_map(|node| node.quirks.secure.as_ref());
        let unsaid = RawSecureBoot::unsaid();
        let files = self.secure_boot.as_ref().map(|files| (&files.value, &files.place));
        // Files that are named are looked for even before a node wants them.
        if let Some((files, place)) = files.or_else(|| Some((&unsaid, secure?))) {
            files.look(place, sink);
        }
        let memtest = self.menu.as_ref().and_then(|menu| menu.value.memtest.as_ref());
        if let Some(file) = memtest.filter(|file| !file.value.is_file()) {
            let text = format!("[menu]: {} does not exist", file.value.display());
            sink.fault(&file.place, text, "install the Debian package memtest86+, or correct it");
        }
    }

    /// The loaders, those among them that nodes name for themselves.
    fn finish_loaders(&mut self) -> LoaderFiles {
        let mut loaders = self.loaders.take().map(|raw| raw.value.loaders).unwrap_or_default();
        let own = self.nodes.iter().flat_map(|node| node.quirks.loaders.values());
        loaders.add(own.map(|name| &name.value));
        let wanted = self.nodes.iter().any(|node| node.quirks.secure.is_some());
        let named = self.secure_boot.take().map(|raw| raw.value.files);
        loaders.secure = named.or_else(|| wanted.then(SecureBoot::default));
        loaders
    }

    /// Every node's BMC password, in their order.
    fn passwords(&self, dir: &Path, sink: &Sink) -> Vec<Option<Secret>> {
        self.nodes.iter().map(|node| node::resolve_password(node, dir, sink)).collect()
    }

    /// The configuration; `None` when a fault was noted.
    fn finish(mut self, dir: &Path, sink: &Sink) -> Option<Config> {
        let passwords = self.passwords(dir, sink);
        if !sink.is_clean() {
            return None;
        }
        let assigned = cross::assigned(&self);
        let homes = cross::homes(&self);
        let loaders = self.finish_loaders();
        let agent = match self.agent {
            Some(agent) => Some(agent.value.finish()?),
            None => None,
        };
        let networks: Vec<Network> =
            self.networks.into_iter().map(RawNetwork::finish).collect::<Option<_>>()?;
        let profiles = finish_profiles(self.profiles, agent.is_some())?;
        let all: Vec<ProfileName> = profiles.keys().cloned().collect();
        let node = |((node, password), home): ((RawNode, _), Option<String>)| {
            node.finish(home.as_deref(), password, &all).map(|node| (node.name.clone(), node))
        };
        let nodes = self.nodes.into_iter().zip(passwords).zip(homes);
        let nodes = nodes.map(node).collect::<Option<_>>()?;
        let enclosure = |(name, enclosure): (Spot<_>, Option<_>)| Some((name.value, enclosure?));
        Some(Config {
            dir: dir.to_owned(),
            lab: self.lab?.value?,
            operator: self.operator.map(|raw| raw.value.operator).unwrap_or_default(),
            loaders,
            menu: self.menu.map(|raw| raw.value.menu),
            enclosures: self.enclosures.into_iter().map(enclosure).collect::<Option<_>>()?,
            profiles,
            nodes,
            networks,
            assigned,
            metering: self.metering.map(|metering| metering.value).unwrap_or_default(),
            agent,
            warnings: Vec::new(),
        })
    }
}

/// The profiles by name; a declared one takes the place of a built-in one.
fn finish_profiles(
    declared: Vec<RawProfile>,
    has_agent: bool,
) -> Option<BTreeMap<ProfileName, Profile>> {
    let built_in = Profile::all_built_in().into_iter();
    let built_in = built_in.filter(|profile| has_agent || profile.boots != Boots::Inspect);
    let mut profiles: BTreeMap<_, _> =
        built_in.map(|profile| (profile.name.clone(), profile)).collect();
    for raw in declared {
        profiles.insert(raw.name.value, raw.profile?);
    }
    Some(profiles)
}

/// Reads a table that stands in one file only.
fn once<'a, T>(
    slot: &mut Option<Spot<T>>,
    root: &Fields<'a>,
    key: &'static str,
    read: impl FnOnce(Fields<'a>) -> T,
) {
    let Some(fields) = root.table(key, format!("[{key}]")) else { return };
    if let Some(first) = slot {
        let text = format!("it is already given ({})", first.place);
        fields.fault(&fields.place, text, "keep one of them");
    }
    let place = fields.place.clone();
    let value = read(fields);
    slot.get_or_insert(Spot::new(value, place));
}
