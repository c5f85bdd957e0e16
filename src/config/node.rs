//! `[enclosure.NAME]`, `[[node]]` and `[[assign]]`.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
};

use model::{
    BayNumber, EnclosureName, MacAddr, NodeName, ProfileName, Serial, boot::BootTraits, hostlist,
    permit::Protection,
};
use toml::de::DeValue;

use super::{
    fault::{Place, Sink, Spot},
    fields::{ADDRESS_FORM, Fields},
    quirks::RawQuirks,
    secret::{Secret, SecretRef},
};

/// An enclosure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enclosure {
    /// Name.
    pub name: EnclosureName,
    /// Model, such as `HP BladeSystem c7000`.
    pub model: String,
    /// Number of device bays.
    pub bays: u8,
}

/// A node.
#[derive(Clone, PartialEq, Eq)]
pub struct Node {
    /// Name.
    pub name: NodeName,
    /// Enclosure and bay, if it sits in one.
    pub seat: Option<Seat>,
    /// Serial of the machine, when given.
    pub serial: Option<Serial>,
    /// Every MAC it may boot with.
    pub macs: Vec<MacAddr>,
    /// Its reserved address. Without one, another server of a network in mode `proxy` chooses it.
    pub address: Option<Ipv4Addr>,
    /// Name of the network it boots on.
    pub network: String,
    /// Its BMC.
    pub bmc: Bmc,
    /// How its firmware boots.
    pub boot_mode: BootMode,
    /// Profiles it may be switched to.
    pub profiles: Vec<ProfileName>,
    /// Its protection.
    pub protection: Protection,
    /// What is peculiar about booting it; the menu is not in it.
    pub traits: BootTraits,
    /// Where it is declared.
    pub place: Place,
}

/// A bay of an enclosure.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seat {
    /// Enclosure.
    pub enclosure: EnclosureName,
    /// Bay.
    pub bay: BayNumber,
}

/// A BMC that speaks IPMI 2.0.
#[derive(Clone, PartialEq, Eq)]
pub struct Bmc {
    /// Where it listens, UDP.
    pub address: SocketAddr,
    /// User, at most 16 bytes.
    pub user: String,
    /// Password, at most 20 bytes.
    pub password: Secret,
    /// Which cipher suite to open sessions with.
    pub suite: CipherSuite,
}

/// RMCP+ cipher suite (IPMI 2.0, table 22-20).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CipherSuite {
    /// 17, then 3, whichever the BMC takes.
    Auto,
    /// HMAC-SHA1, AES-128.
    Suite3,
    /// HMAC-SHA256, AES-128.
    Suite17,
}

/// How a node's firmware boots. The BMC's boot flags must say the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootMode {
    /// PC BIOS.
    Bios,
    /// UEFI.
    Uefi,
}

/// The profile the files give to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    /// Profile.
    pub profile: ProfileName,
    /// Which line says so.
    pub place: Place,
}

/// A node as far as it could be read.
pub(super) struct RawNode {
    /// `node "bld-003"`.
    pub(super) subject: String,
    pub(super) place: Place,
    pub(super) name: Option<Spot<NodeName>>,
    pub(super) enclosure: Option<Spot<EnclosureName>>,
    pub(super) bay: Option<Spot<BayNumber>>,
    pub(super) macs: Vec<Spot<MacAddr>>,
    pub(super) address: Option<Spot<Ipv4Addr>>,
    /// Whether the key `address` is there, right or wrong.
    pub(super) has_address: bool,
    pub(super) network: Option<Spot<String>>,
    pub(super) quirks: RawQuirks,
    pub(super) bmc: Option<RawBmc>,
    pub(super) profiles: Option<Vec<Spot<ProfileName>>>,
    serial: Option<Serial>,
    boot_mode: BootMode,
    protection: Protection,
}

/// A BMC as far as it could be read.
pub(super) struct RawBmc {
    pub(super) endpoint: Option<Spot<SocketAddr>>,
    pub(super) secret: Option<Spot<SecretRef>>,
    user: Option<String>,
    suite: CipherSuite,
}

/// An `[[assign]]` as far as it could be read.
pub(super) struct RawAssign {
    pub(super) nodes: Vec<NodeName>,
    pub(super) profile: Option<Spot<ProfileName>>,
    pub(super) place: Place,
}

pub(super) fn read_enclosure(
    name: Spot<String>,
    fields: Fields<'_>,
) -> Option<(Spot<EnclosureName>, Option<Enclosure>)> {
    let parsed = name.value.parse::<EnclosureName>();
    if let Err(error) = &parsed {
        fields.fault(&name.place, "the name cannot be used", error.to_string());
    }
    let model = fields.need_title("model", "write it as model = \"HP BladeSystem c7000\"");
    if !fields.has("bays") {
        fields.missing("bays", "write how many device bays it has; a c7000 has 16");
    }
    let bays = fields.integer("bays", 1..=64_u8);
    fields.done();
    let spot = Spot::new(parsed.ok()?, name.place);
    let name = spot.value.clone();
    let enclosure = model.zip(bays).map(|(model, bays)| Enclosure {
        name,
        model: model.value,
        bays: bays.value,
    });
    Some((spot, enclosure))
}

impl RawNode {
    pub(super) fn read(mut fields: Fields<'_>, sink: &Sink) -> Self {
        let name: Option<Spot<NodeName>> = fields.need("name", "give the node a name");
        if let Some(name) = &name {
            fields.subject = format!("node \"{}\"", name.value);
        }
        let modes = [("bios", BootMode::Bios), ("uefi", BootMode::Uefi)];
        let boot_mode =
            fields.choice("boot_mode", &modes).map_or(BootMode::Bios, |mode| mode.value);
        let node = Self {
            enclosure: fields.parse("enclosure"),
            bay: read_bay(&fields),
            macs: read_macs(&fields),
            address: fields.parse_as("address", ADDRESS_FORM),
            has_address: fields.has("address"),
            network: fields.title("network"),
            quirks: RawQuirks::read(&fields, boot_mode == BootMode::Uefi),
            bmc: read_bmc(&fields, sink),
            profiles: fields.parse_list("profiles", None),
            serial: read_serial(&fields),
            boot_mode,
            protection: read_protection(&fields),
            place: name.as_ref().map_or(&fields.place, |name| &name.place).clone(),
            subject: fields.subject.clone(),
            name,
        };
        for (has, lacks) in [("enclosure", "bay"), ("bay", "enclosure")] {
            if fields.has(has) && !fields.has(lacks) {
                fields.missing(lacks, &format!("{has} and {lacks} go together; write both"));
            }
        }
        fields.done();
        node
    }

    /// The node; `all` are the profiles it may have when it lists none.
    pub(super) fn finish(
        self,
        network: Option<&str>,
        password: Option<Secret>,
        all: &[ProfileName],
    ) -> Option<Node> {
        let bmc = self.bmc?;
        let seat = self.enclosure.zip(self.bay);
        let profiles = self.profiles.map(|list| list.into_iter().map(|spot| spot.value).collect());
        Some(Node {
            name: self.name?.value,
            seat: seat.map(|(enclosure, bay)| Seat { enclosure: enclosure.value, bay: bay.value }),
            serial: self.serial,
            macs: self.macs.into_iter().map(|mac| mac.value).collect(),
            address: self.address.map(|address| address.value),
            network: network?.to_owned(),
            bmc: Bmc {
                address: bmc.endpoint?.value,
                user: bmc.user?,
                password: password?,
                suite: bmc.suite,
            },
            boot_mode: self.boot_mode,
            profiles: profiles.unwrap_or_else(|| all.to_vec()),
            protection: self.protection,
            traits: self.quirks.finish(),
            place: self.place,
        })
    }
}

fn read_bay(fields: &Fields<'_>) -> Option<Spot<BayNumber>> {
    let bay = fields.integer("bay", 1..=64_u8)?;
    Some(Spot::new(BayNumber::new(bay.value).ok()?, bay.place))
}

fn read_macs(fields: &Fields<'_>) -> Vec<Spot<MacAddr>> {
    let hint = "write the MACs it boots with: macs = [\"9c:8e:99:00:03:01\"]";
    let Some(macs) = fields.parse_list::<MacAddr>("macs", None) else {
        if !fields.has("macs") {
            fields.missing("macs", hint);
        }
        return Vec::new();
    };
    for mac in macs.iter().filter(|mac| mac.value.is_junk()) {
        let text = format!("MAC {} is no single interface's address", mac.value);
        fields.fault(&mac.place, text, "read the MAC off the label, the BMC or the switch");
    }
    if fields.texts("macs").is_some_and(|texts| texts.is_empty()) {
        fields.missing("macs", hint);
    }
    macs
}

fn read_serial(fields: &Fields<'_>) -> Option<Serial> {
    let text = fields.text("serial")?;
    let serial = Serial::new(&text.value);
    if serial.is_none() {
        let what = format!("serial {:?} is a placeholder", text.value);
        fields.fault(&text.place, what, "leave the key out when the machine has none");
    }
    serial
}

fn read_protection(fields: &Fields<'_>) -> Protection {
    let subject = format!("{}: protect", fields.subject);
    let Some(table) = fields.table("protect", subject) else { return Protection::Open };
    let reason = table.need_title("reason", "say why: protect = { reason = \"…\" }");
    table.done();
    // A protection that could not be read protects all the same.
    let reason = reason.map(|reason| reason.value).unwrap_or_default();
    Protection::Protected { reason }
}

fn read_bmc(fields: &Fields<'_>, sink: &Sink) -> Option<RawBmc> {
    if !fields.has("bmc") {
        let hint = "write bmc = { kind = \"ipmi\", address = \"…\", user = \"…\", secret = \
                    \"file:…\" }";
        fields.missing("bmc", hint);
    }
    let table = fields.table("bmc", format!("{}: bmc", fields.subject))?;
    if !table.has("kind") {
        table.missing("kind", "write kind = \"ipmi\"");
    }
    table.choice("kind", &[("ipmi", ())]);
    let address: Option<Spot<IpAddr>> = table.need_address("address", "name the BMC's IP address");
    let port = table.integer("port", 1..=65_535_u16).map_or(623, |port| port.value);
    // 192.0.2.1 written as ::ffff:192.0.2.1 is the same BMC.
    let endpoint = address.map(|address| {
        Spot::new(SocketAddr::from((address.value.to_canonical(), port)), address.place)
    });
    let bmc = RawBmc {
        endpoint,
        user: read_bmc_user(&table, sink),
        secret: read_bmc_secret(&table),
        suite: read_suite(&table),
    };
    table.done();
    Some(bmc)
}

fn read_bmc_user(table: &Fields<'_>, sink: &Sink) -> Option<String> {
    if !table.has("user") {
        table.missing("user", "name the BMC's user");
    }
    let user = table.text("user")?;
    if user.value.len() > 16 {
        // Not repeated: what is too long for a name may well be name and password.
        let text = format!("user has {} bytes", user.value.len());
        table.fault(&user.place, text, "IPMI takes at most 16; use a shorter user");
        return None;
    }
    if user.value.is_empty() {
        let text = format!("{}: user is empty: IPMI's null user", table.subject);
        sink.warning(&user.place, text, "set up a named user on the BMC");
    }
    Some(user.value)
}

fn read_bmc_secret(table: &Fields<'_>) -> Option<Spot<SecretRef>> {
    let hint = "write secret = \"file:PATH\", \"env:NAME\" or \"cmd:PROGRAM ARG\"";
    if table.has("password") {
        table.refuse("password", "a password does not belong in a configuration file", hint);
    } else if !table.has("secret") {
        table.missing("secret", hint);
    }
    table.secret("secret")
}

fn read_suite(table: &Fields<'_>) -> CipherSuite {
    let Some((value, place)) = table.raw("suite") else { return CipherSuite::Auto };
    let known = match value {
        DeValue::String(text) if text == "auto" => Some(CipherSuite::Auto),
        DeValue::Integer(number) if number.as_str() == "3" => Some(CipherSuite::Suite3),
        DeValue::Integer(number) if number.as_str() == "17" => Some(CipherSuite::Suite17),
        _ => None,
    };
    if known.is_none() {
        table.fault(&place, "suite is not known", "use \"auto\", 17 or 3");
    }
    known.unwrap_or(CipherSuite::Auto)
}

impl RawAssign {
    pub(super) fn read(fields: Fields<'_>) -> Self {
        let hint = "write nodes = \"bld-[003,006-010]\"";
        if !fields.has("nodes") {
            fields.missing("nodes", hint);
        }
        let text = fields.text("nodes");
        let nodes = text.as_ref().map(|text| hostlist::parse(&text.value));
        if let (Some(text), Some(Err(error))) = (&text, &nodes) {
            let what = format!("nodes {:?} cannot be used", text.value);
            fields.fault(&text.place, what, error.to_string());
        }
        let assign = Self {
            nodes: nodes.and_then(Result::ok).unwrap_or_default(),
            profile: fields.need("profile", "name the profile these nodes are to have"),
            place: text.map_or_else(|| fields.place.clone(), |text| text.place),
        };
        fields.done();
        assign
    }
}

/// Passwords longer than this cannot be sent (IPMI 2.0, section 22.30).
const MAX_PASSWORD: usize = 20;

/// Fetches a BMC's password, or notes why there is none.
pub(super) fn resolve_password(node: &RawNode, dir: &Path, sink: &Sink) -> Option<Secret> {
    let reference = node.bmc.as_ref()?.secret.as_ref()?;
    let subject = format!("{}: bmc", node.subject);
    if reference.value.is_world_readable(dir) {
        let text = format!("{subject}: {} can be read by everybody", reference.value);
        sink.warning(&reference.place, text, "chmod 600 it, owned by volund's user");
    }
    match reference.value.resolve(dir) {
        Ok(secret) if secret.reveal().len() > MAX_PASSWORD => {
            let length = secret.reveal().len();
            let text = format!("{subject}: the secret from {} has {length} bytes", reference.value);
            let hint = format!("IPMI takes at most {MAX_PASSWORD}; set a shorter password");
            sink.fault(&reference.place, text, hint);
            None
        }
        Ok(secret) => Some(secret),
        Err(error) => {
            let hint = "create it, readable by volund's user, or correct the reference";
            sink.fault(&reference.place, format!("{subject}: {error}"), hint);
            None
        }
    }
}
