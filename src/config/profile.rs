//! `[profile.NAME]`: what a node can be.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use model::{ProfileName, RootKind, boot::DhcpOption};

use super::{
    fault::{Place, Spot},
    fields::Fields,
    options,
};

/// A profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Name.
    pub name: ProfileName,
    /// One sentence about it.
    pub about: String,
    /// What is booted.
    pub boots: Boots,
    /// How long each phase of a switch may take.
    pub timeouts: Timeouts,
    /// Two boots of a settled RAM profile lie at least this far apart.
    pub min_boot: Duration,
    /// Whether the system calls back when it is up; otherwise its boot is taken as success.
    pub callback: bool,
    /// DHCP options a node of this profile gets.
    pub options: Vec<DhcpOption>,
    /// Where it is declared; `None` when it is built in.
    pub place: Option<Place>,
}

/// What a profile boots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Boots {
    /// The agent, which reports the node's hardware.
    Inspect,
    /// The node's own disk.
    Local,
    /// A kernel over the network.
    Linux(Linux),
}

/// A kernel with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linux {
    /// Where its root file system lives.
    pub root: RootKind,
    /// Kernel.
    pub kernel: PathBuf,
    /// Its SHA-256, where it is declared: another content is not served.
    pub kernel_sha256: Option<[u8; 32]>,
    /// Initial RAM disks, in order.
    pub initrds: Vec<PathBuf>,
    /// Their SHA-256 in the same order, or none.
    pub initrd_sha256: Vec<[u8; 32]>,
    /// Kernel arguments, a minijinja template.
    pub args: String,
    /// Files served to a node of this profile, by name.
    pub files: BTreeMap<String, FileSource>,
}

/// Where the content of a served file comes from. Both are minijinja templates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSource {
    /// A file on this machine.
    Template(PathBuf),
    /// Text in the configuration.
    Text(String),
}

/// How long each phase of a switch may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// How long the BMC may be silent or busy in a phase that only speaks to it.
    pub bmc: Duration,
    /// From power on to the first DHCP request.
    pub post: Duration,
    /// From there to the kernel.
    pub boot: Duration,
    /// From the kernel to the call-back.
    pub ready: Duration,
    /// From asking a running system to shut down to cutting its power.
    pub soft_off: Duration,
    /// Pause between reading off and switching on again.
    pub off_settle: Duration,
    /// A node that boots again sooner than this after its kernel was fetched cannot have acted.
    pub acts_after: Duration,
}

impl Default for Timeouts {
    /// 60 s for the BMC; 8, 6 and 15 minutes, since an old blade's self-test is slow; 60 s to shut down; 10 s of
    /// rest.
    fn default() -> Self {
        let minutes = |count: u64| Duration::from_secs(count * 60);
        Self {
            bmc: minutes(1),
            post: minutes(8),
            boot: minutes(6),
            ready: minutes(15),
            soft_off: minutes(1),
            off_settle: Duration::from_secs(10),
            acts_after: Duration::from_secs(10),
        }
    }
}

impl Profile {
    /// A profile that exists without being declared.
    fn built_in(name: ProfileName, boots: Boots, about: &str) -> Self {
        Self {
            name,
            about: about.to_owned(),
            callback: boots == Boots::Inspect,
            boots,
            timeouts: Timeouts::default(),
            min_boot: Duration::from_secs(60),
            options: vec![],
            place: None,
        }
    }

    /// The profiles every lab has.
    #[must_use]
    pub fn all_built_in() -> Vec<Self> {
        let named = |name: &str| name.parse().expect("a constant that is a label");
        vec![
            Self::built_in(named("inspect"), Boots::Inspect, "Reports the hardware"),
            Self::built_in(named("local"), Boots::Local, "Boots the node's own disk"),
        ]
    }

    /// `inspect`, `local` or `linux`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.boots {
            Boots::Inspect => "inspect",
            Boots::Local => "local",
            Boots::Linux(_) => "linux",
        }
    }

    /// Where its root file system lives.
    #[must_use]
    pub fn root(&self) -> RootKind {
        match &self.boots {
            Boots::Inspect => RootKind::Ram,
            Boots::Local => RootKind::Disk,
            Boots::Linux(linux) => linux.root,
        }
    }
}

/// A profile as far as it could be read: its name counts even when the rest is wrong.
pub(super) struct RawProfile {
    pub(super) name: Spot<ProfileName>,
    pub(super) profile: Option<Profile>,
    /// Files it needs, for the check whether they are there.
    pub(super) files: Vec<Spot<PathBuf>>,
    pub(super) is_inspect: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Inspect,
    Local,
    Linux,
}

/// Keys that only a network system has.
const LINUX_KEYS: [&str; 7] =
    ["root", "kernel", "kernel_sha256", "initrd", "initrd_sha256", "args", "files"];

impl RawProfile {
    pub(super) fn read(name: Spot<String>, fields: Fields<'_>, dir: &Path) -> Option<Self> {
        let parsed = name.value.parse::<ProfileName>();
        if let Err(error) = &parsed {
            fields.fault(&name.place, "the name cannot be used", error.to_string());
        }
        let mut files = Vec::new();
        let kind = read_kind(&fields);
        let boots = kind.and_then(|kind| read_boots(kind, &fields, dir, &mut files));
        let about = fields.title("about").map(|about| about.value).unwrap_or_default();
        let min_boot = fields.integer("min_boot_s", 1..=86_400_u32).map_or(60, |span| span.value);
        let callback = fields.boolean("callback").unwrap_or(kind != Some(Kind::Local));
        let timeouts = read_timeouts(&fields);
        let options = options::values(&options::read(&fields));
        fields.done();
        let name = Spot::new(parsed.ok()?, name.place);
        let profile = boots.map(|boots| Profile {
            name: name.value.clone(),
            about,
            boots,
            timeouts,
            min_boot: Duration::from_secs(min_boot.into()),
            callback,
            options,
            place: Some(name.place.clone()),
        });
        Some(Self { name, profile, files, is_inspect: kind == Some(Kind::Inspect) })
    }
}

fn read_kind(fields: &Fields<'_>) -> Option<Kind> {
    if !fields.has("kind") {
        fields.missing("kind", "write kind = \"linux\", \"inspect\" or \"local\"");
    }
    let kinds = [("inspect", Kind::Inspect), ("local", Kind::Local), ("linux", Kind::Linux)];
    let kind = fields.choice("kind", &kinds).map(|kind| kind.value);
    if kind.is_none() {
        fields.skip(&LINUX_KEYS);
    }
    kind
}

fn read_boots(
    kind: Kind,
    fields: &Fields<'_>,
    dir: &Path,
    files: &mut Vec<Spot<PathBuf>>,
) -> Option<Boots> {
    if kind == Kind::Linux {
        return read_linux(fields, dir, files).map(Boots::Linux);
    }
    for key in LINUX_KEYS {
        fields.refuse(key, &format!("{key} belongs to kind \"linux\" only"), "remove it");
    }
    Some(if kind == Kind::Inspect { Boots::Inspect } else { Boots::Local })
}

fn read_linux(fields: &Fields<'_>, dir: &Path, files: &mut Vec<Spot<PathBuf>>) -> Option<Linux> {
    if !fields.has("root") {
        let hint = "write root = \"ram\", \"disk\" or \"installer\": it decides what a settled \
                    node boots";
        fields.missing("root", hint);
    }
    let roots =
        [("ram", RootKind::Ram), ("disk", RootKind::Disk), ("installer", RootKind::Installer)];
    let root = fields.choice("root", &roots);
    if !fields.has("kernel") {
        fields.missing("kernel", "name the kernel's file");
    }
    let kernel = fields.path("kernel", dir);
    let kernel_sha256 =
        fields.text("kernel_sha256").and_then(|hash| digest(fields, "kernel_sha256", &hash));
    let initrds = fields.paths("initrd", dir);
    let initrd_sha256 = read_initrd_digests(fields, initrds.len());
    let args = fields.text("args");
    if let Some(args) = &args {
        check_template(fields, args);
        check_arguments(fields, args);
    }
    let served = read_files(fields, dir, files);
    files.extend(kernel.iter().chain(&initrds).cloned());
    Some(Linux {
        root: root?.value,
        kernel: kernel?.value,
        kernel_sha256,
        initrd_sha256,
        initrds: initrds.into_iter().map(|initrd| initrd.value).collect(),
        args: args.map(|args| args.value).unwrap_or_default(),
        files: served,
    })
}

/// `initrd_sha256 = ["…"]`: one for each initrd, or the key is not there.
fn read_initrd_digests(fields: &Fields<'_>, initrds: usize) -> Vec<[u8; 32]> {
    const KEY: &str = "initrd_sha256";
    let Some(hashes) = fields.texts(KEY) else { return vec![] };
    if hashes.len() != initrds
        && let Some(first) = hashes.first()
    {
        let what = format!("{KEY} has {} digests for {initrds} initrds", hashes.len());
        fields.fault(&first.place, what, "write one for each initrd, in the same order");
    }
    hashes.iter().filter_map(|hash| digest(fields, KEY, hash)).collect()
}

fn digest(fields: &Fields<'_>, key: &str, hash: &Spot<String>) -> Option<[u8; 32]> {
    let bytes = model::hex::decode(&hash.value).ok().and_then(|bytes| bytes.try_into().ok());
    if bytes.is_none() {
        let what = format!("{key} is no digest of 64 hexadecimal digits");
        fields.fault(&hash.place, what, "`sha256sum FILE` prints it");
    }
    bytes
}

/// `files = { "NAME" = { template = "PATH" } or { text = "…" } }`.
fn read_files(
    fields: &Fields<'_>,
    dir: &Path,
    needed: &mut Vec<Spot<PathBuf>>,
) -> BTreeMap<String, FileSource> {
    let mut served = BTreeMap::new();
    let Some(table) = fields.table("files", format!("{}: file", fields.subject)) else {
        return served;
    };
    for (name, entry) in table.entries() {
        let Some(entry) = entry else { continue };
        if !is_url_name(&name.value) {
            let hint = "use letters, digits, dots, hyphens and underscores, 1 to 63";
            entry.fault(&name.place, "the name cannot be used", hint);
        }
        let template = entry.path("template", dir);
        let text = entry.text("text");
        match (template, text) {
            (Some(path), None) => {
                served.insert(name.value, FileSource::Template(path.value.clone()));
                needed.push(path);
            }
            (None, Some(text)) => {
                check_template(&entry, &text);
                served.insert(name.value, FileSource::Text(text.value));
            }
            (Some(_), Some(_)) => {
                entry.fault(&name.place, "has both template and text", "keep one of them");
            }
            (None, None) if entry.has("template") || entry.has("text") => (),
            (None, None) => {
                let hint = "write { template = \"PATH\" } or { text = \"…\" }";
                entry.fault(&name.place, "has no content", hint);
            }
        }
        entry.done();
    }
    served
}

/// A template that does not even parse is found now, not when a node boots.
fn check_template(fields: &Fields<'_>, text: &Spot<String>) {
    if let Err(error) = minijinja::Environment::new().template_from_str(&text.value) {
        let line = error.line().map(|line| format!(" in its line {line}")).unwrap_or_default();
        let why = error.detail().map_or_else(|| error.kind().to_string(), ToOwned::to_owned);
        let what = format!("the template cannot be parsed: {why}{line}");
        fields.fault(&text.place, what, "correct it; minijinja's syntax is Jinja2's");
    }
}

/// Arguments the boot script could not carry are found now, not when a node boots. What a template fills in is
/// looked at again when the script is made.
pub(super) fn check_arguments(fields: &Fields<'_>, args: &Spot<String>) {
    if let Err(error) = pxe_proto::ipxe::check_arguments(&literal(&args.value)) {
        fields.fault(&args.place, error, "write it in another way, or leave it out");
    }
}

/// A template's own words, with an `x` for each value that is filled in; statements and comments are left out.
fn literal(template: &str) -> String {
    let kinds = [("{{", "}}", "x"), ("{%", "%}", " "), ("{#", "#}", " ")];
    let first = |text: &str| {
        let found = kinds.iter().filter_map(|kind| Some((text.find(kind.0)?, *kind)));
        found.min_by_key(|(at, _)| *at)
    };
    let mut words = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((at, (open, close, stands_for))) = first(rest) {
        let (before, inside) = rest.split_at(at);
        words.push_str(before);
        words.push_str(stands_for);
        let inside = inside.strip_prefix(open).unwrap_or(inside);
        rest = inside.split_once(close).map_or("", |(_, after)| after);
    }
    words + rest
}

/// Safe as one segment of a URL.
fn is_url_name(name: &str) -> bool {
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (1..=63).contains(&name.len()) && name.chars().all(safe) && !name.starts_with('.')
}

fn read_timeouts(fields: &Fields<'_>) -> Timeouts {
    let mut timeouts = Timeouts::default();
    let Some(table) = fields.table("timeouts", format!("{}: timeouts", fields.subject)) else {
        return timeouts;
    };
    timeouts.bmc = table.duration("bmc").unwrap_or(timeouts.bmc);
    timeouts.post = table.duration("post").unwrap_or(timeouts.post);
    timeouts.boot = table.duration("boot").unwrap_or(timeouts.boot);
    timeouts.ready = table.duration("ready").unwrap_or(timeouts.ready);
    timeouts.soft_off = table.duration("soft_off").unwrap_or(timeouts.soft_off);
    timeouts.off_settle = table.duration("off_settle").unwrap_or(timeouts.off_settle);
    timeouts.acts_after = table.duration("acts_after").unwrap_or(timeouts.acts_after);
    table.done();
    timeouts
}
