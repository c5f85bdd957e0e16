//! The lab itself: `[lab]`, `[operator]`, `[metering]`, `[agent]`.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    fault::{Place, Spot},
    fields::Fields,
};

/// `[lab]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lab {
    /// Shown everywhere, so that nobody acts on the wrong lab.
    pub name: String,
    /// Where volund keeps its database and leases.
    pub state_dir: PathBuf,
}

/// `[operator]`: the listener of page and API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// Loopback only, as long as there is no TLS.
    pub listen: SocketAddr,
    /// Who may log in.
    pub users: Vec<User>,
    /// API tokens of scripts.
    pub tokens: Vec<Token>,
}

/// Somebody who may log in.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// Log-in name.
    pub name: String,
    /// argon2id hash in PHC form (`$argon2id$…`).
    pub password_hash: String,
}

/// An API token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is called.
    pub name: String,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
}

/// `[metering]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metering {
    /// Time between two readings of one node.
    pub period: Duration,
    /// Half-width of the 95 % interval of an uncalibrated reading, in percent of it.
    pub margin_percent: f64,
}

/// `[agent]`: the image that inspects a node, as `volund image build agent` makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentImage {
    /// Kernel.
    pub kernel: PathBuf,
    /// Initramfs.
    pub initrd: PathBuf,
    /// Kernel arguments in front of the agent's own, such as `console=ttyS1,115200`.
    pub args: String,
}

impl std::fmt::Debug for User {
    /// Name only: a hash can be attacked offline.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Default for Operator {
    /// `127.0.0.1:8443`, nobody.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8443)),
            users: Vec::new(),
            tokens: Vec::new(),
        }
    }
}

impl Default for Metering {
    /// Every 10 s, ±5 %.
    fn default() -> Self {
        Self { period: Duration::from_secs(10), margin_percent: 5.0 }
    }
}

pub(super) fn read_lab(fields: Fields<'_>) -> Option<Lab> {
    let name = fields.need_title("name", "give the lab a name, such as \"asgard\"");
    let state_dir = fields.path("state_dir", Path::new("/"));
    fields.done();
    let state_dir = state_dir.map_or_else(|| PathBuf::from("/var/lib/volund"), |dir| dir.value);
    Some(Lab { name: name?.value, state_dir })
}

/// The listener and where its address stands.
pub(super) struct RawOperator {
    pub(super) listen: Option<Spot<SocketAddr>>,
    pub(super) operator: Operator,
}

impl RawOperator {
    /// Whether anybody can use page or API.
    pub(super) fn has_somebody(&self) -> bool {
        !self.operator.users.is_empty() || !self.operator.tokens.is_empty()
    }
}

pub(super) fn read_operator(fields: Fields<'_>) -> RawOperator {
    let mut operator = Operator::default();
    let listen: Option<Spot<SocketAddr>> =
        fields.parse_as("listen", "write ADDRESS:PORT, such as 127.0.0.1:8443");
    if let Some(listen) = &listen {
        operator.listen = listen.value;
        if !listen.value.ip().is_loopback() {
            let text = format!("listen {} is no loopback address", listen.value);
            let hint = "use 127.0.0.1 and reach it through SSH (ssh -L): TLS comes with a later \
                        version, and passwords do not cross a network without it";
            fields.fault(&listen.place, text, hint);
        }
    }
    let mut names: Vec<Spot<String>> = Vec::new();
    for user in fields.list_of_tables("users") {
        let Some((name, hash)) = read_user(user) else { continue };
        if let Some(first) = names.iter().find(|first| first.value == name.value) {
            let text = format!("user {:?} is already declared ({})", name.value, first.place);
            fields.fault(&name.place, text, "remove one of them");
        }
        operator.users.push(User { name: name.value.clone(), password_hash: hash });
        names.push(name);
    }
    let mut names: Vec<Spot<String>> = Vec::new();
    for token in fields.list_of_tables("tokens") {
        let Some((name, sha256)) = read_token(token) else { continue };
        if let Some(first) = names.iter().find(|first| first.value == name.value) {
            let text = format!("token {:?} is already declared ({})", name.value, first.place);
            fields.fault(&name.place, text, "rename or remove one of them");
        }
        operator.tokens.push(Token { name: name.value.clone(), sha256 });
        names.push(name);
    }
    fields.done();
    RawOperator { listen, operator }
}

fn read_token(mut fields: Fields<'_>) -> Option<(Spot<String>, [u8; 32])> {
    let make = "make one with `volund token NAME` and write its hash as sha256";
    let name = fields.need_title("name", "name the script it is for");
    if let Some(name) = &name {
        fields.subject = format!("[operator]: token {:?}", name.value);
    }
    if !fields.has("sha256") {
        fields.missing("sha256", make);
    }
    let hash = fields.text("sha256").and_then(|hash| {
        let bytes = model::hex::decode(&hash.value).ok().and_then(|bytes| bytes.try_into().ok());
        if bytes.is_none() {
            fields.fault(&hash.place, "sha256 is no hash of 64 hexadecimal digits", make);
        }
        bytes
    });
    fields.done();
    Some((name?, hash?))
}

fn read_user(mut fields: Fields<'_>) -> Option<(Spot<String>, String)> {
    let make = "make one with `volund passwd NAME` and write it as password_hash";
    let name = fields.need_title("name", "name who may log in");
    if let Some(name) = &name {
        fields.subject = format!("[operator]: user {:?}", name.value);
    }
    if fields.has("password") {
        fields.refuse("password", "a password does not belong in a configuration file", make);
    } else if !fields.has("password_hash") {
        fields.missing("password_hash", make);
    }
    let hash = fields.text("password_hash");
    let hash = hash.filter(|hash| {
        let good = hash.value.starts_with("$argon2id$") && hash.value.matches('$').count() == 5;
        if !good {
            fields.fault(&hash.place, "password_hash is no argon2id hash", make);
        }
        good
    });
    fields.done();
    Some((name?, hash?.value))
}

pub(super) fn read_metering(fields: Fields<'_>) -> Metering {
    let mut metering = Metering::default();
    if let Some(period) = fields.integer("period_s", 1..=3_600_u32) {
        metering.period = Duration::from_secs(period.value.into());
    }
    if let Some(margin) = fields.number("margin_percent", 0.0..=100.0) {
        metering.margin_percent = margin;
    }
    fields.done();
    metering
}

/// `[agent]` with the places of its files.
pub(super) struct RawAgent {
    pub(super) kernel: Option<Spot<PathBuf>>,
    pub(super) initrd: Option<Spot<PathBuf>>,
    args: String,
}

/// What to do when there is no agent image.
pub(super) const BUILD_AGENT: &str =
    "build the image with `volund image build agent` and name its files under [agent]";

pub(super) fn read_agent(fields: Fields<'_>, dir: &Path) -> RawAgent {
    let need = |key| {
        if !fields.has(key) {
            fields.missing(key, BUILD_AGENT);
        }
        fields.path(key, dir)
    };
    let args = fields.text("args");
    if let Some(args) = &args {
        super::profile::check_arguments(&fields, args);
    }
    let args = args.map(|args| args.value).unwrap_or_default();
    let agent = RawAgent { kernel: need("kernel"), initrd: need("initrd"), args };
    fields.done();
    agent
}

impl RawAgent {
    pub(super) fn files(&self) -> impl Iterator<Item = (&Place, &Path)> {
        let spots = [self.kernel.as_ref(), self.initrd.as_ref()];
        spots.into_iter().flatten().map(|spot| (&spot.place, spot.value.as_path()))
    }

    pub(super) fn finish(self) -> Option<AgentImage> {
        Some(AgentImage { kernel: self.kernel?.value, initrd: self.initrd?.value, args: self.args })
    }
}
