//! `options = { … }`: DHCP options of a network, a profile or a node, by name or number.
//!
//! What volund sets itself is refused with where it is set instead: two owners of one option would be one too many.

use std::net::Ipv4Addr;

use model::boot::DhcpOption;
use toml::de::DeValue;

use super::{
    fault::{Place, Spot},
    fields::Fields,
    network::Subnet,
    suggest::nearest,
};

/// Longest value that is sent: longer ones leave no room for the rest of an answer of 576 bytes.
const LONGEST: usize = 255;

/// Code of the default router.
pub(super) const ROUTES: u8 = 121;

/// How the value of an option is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One address.
    Address,
    /// Addresses.
    Addresses,
    /// A text.
    Text,
    /// An unsigned number of one byte.
    U8,
    /// An unsigned number of two bytes.
    U16,
    /// An unsigned number of four bytes.
    U32,
    /// A signed number of four bytes.
    I32,
    /// Bytes in hexadecimal.
    Hex,
    /// Domain names (RFC 3397).
    Domains,
    /// Routes (RFC 3442).
    Routes,
}

/// Options known by name (RFC 2132 and later): code, name, form.
const NAMED: [(u8, &str, Kind); 25] = [
    (2, "time-offset", Kind::I32),
    (4, "time-server", Kind::Addresses),
    (7, "log-server", Kind::Addresses),
    (9, "lpr-server", Kind::Addresses),
    (15, "domain", Kind::Text),
    (17, "root-path", Kind::Text),
    (23, "default-ttl", Kind::U8),
    (26, "mtu", Kind::U16),
    (28, "broadcast", Kind::Address),
    (40, "nis-domain", Kind::Text),
    (41, "nis-server", Kind::Addresses),
    (42, "ntp", Kind::Addresses),
    (43, "vendor", Kind::Hex),
    (44, "wins", Kind::Addresses),
    (66, "tftp-server-name", Kind::Text),
    (69, "smtp-server", Kind::Addresses),
    (72, "www-server", Kind::Addresses),
    (100, "posix-timezone", Kind::Text),
    (101, "timezone", Kind::Text),
    (114, "captive-portal", Kind::Text),
    (119, "domain-search", Kind::Domains),
    (ROUTES, "routes", Kind::Routes),
    (150, "tftp-servers", Kind::Addresses),
    (209, "pxelinux-config", Kind::Text),
    (210, "pxelinux-prefix", Kind::Text),
];

/// Options volund sets itself: code, name, where its value comes from.
const OWN: [(u8, &str, &str); 24] = [
    (1, "netmask", "it follows from the network's subnet"),
    (3, "router", "set it as router of the network"),
    (6, "dns", "set it as dns of the network"),
    (12, "host-name", "it is the node's name"),
    (50, "requested-address", "only clients send it"),
    (51, "lease-time", "set it as lease_s or unknown_lease_s of the network"),
    (52, "overload", "it says how an answer is laid out"),
    (53, "message-type", "it says what an answer is"),
    (54, "server-identifier", "it is server of the network"),
    (55, "parameters", "only clients send it"),
    (56, "message", "it is the reason of a refusal"),
    (57, "max-size", "only clients send it"),
    (58, "renewal-time", "it is half of lease_s"),
    (59, "rebinding-time", "it is seven eighths of lease_s"),
    (60, "vendor-class", "firmware decides by it which answers it takes"),
    (61, "client-identifier", "it repeats what the client says"),
    (67, "boot-file", "set it in [loaders], or as loaders of the node"),
    (77, "user-class", "only clients send it"),
    (80, "rapid-commit", "an address is offered before it is given"),
    (82, "relay-agent", "it repeats what the relay says"),
    (93, "architecture", "only clients send it"),
    (94, "network-interface", "only clients send it"),
    (97, "machine-identifier", "it repeats what the client says"),
    (175, "ipxe", "it tells iPXE not to wait for a second server"),
];

/// Reads the table `options` of `fields`, in the order of the codes.
pub(super) fn read(fields: &Fields<'_>) -> Vec<Spot<DhcpOption>> {
    let subject = format!("{}: options", fields.subject);
    let Some(table) = fields.table("options", subject) else { return vec![] };
    let mut options: Vec<Spot<DhcpOption>> = vec![];
    for (key, value, place) in table.each() {
        let Some((code, kind)) = find(&table, &key) else { continue };
        let label = &key.value;
        if let Some(first) = options.iter().find(|option| option.value.code == code) {
            let text = format!("{label}: option {code} is already given ({})", first.place);
            table.fault(&key.place, text, "keep one of them");
            continue;
        }
        match encode(kind, value) {
            Ok(bytes) if bytes.is_empty() || bytes.len() > LONGEST => {
                let text = format!("{label} would have {} bytes", bytes.len());
                table.fault(&place, text, format!("an option has 1 to {LONGEST} bytes"));
            }
            Ok(value) => options.push(Spot::new(DhcpOption { code, value }, place)),
            Err(hint) => table.fault(&place, format!("{label} cannot be used"), hint),
        }
    }
    options.sort_by_key(|option| option.value.code);
    options
}

/// The values alone.
pub(super) fn values(options: &[Spot<DhcpOption>]) -> Vec<DhcpOption> {
    options.iter().map(|option| option.value.clone()).collect()
}

/// Notes routes that leave a network's router out: whoever takes option 121 does not look at option 3 (RFC 3442).
pub(super) fn lacks_default_route(options: &[Spot<DhcpOption>]) -> Option<&Place> {
    let routes = options.iter().find(|option| option.value.code == ROUTES)?;
    let mut rest = routes.value.value.as_slice();
    while let Some((prefix, after)) = rest.split_first() {
        if *prefix == 0 {
            return None;
        }
        rest = after.get(usize::from(prefix.div_ceil(8)) + 4..).unwrap_or_default();
    }
    Some(&routes.place)
}

/// Code and form of an option; `None` when a fault was noted.
fn find(table: &Fields<'_>, key: &Spot<String>) -> Option<(u8, Option<Kind>)> {
    let name = key.value.as_str();
    let number = name.parse::<u16>().ok();
    let own = OWN.iter().find(|own| own.1 == name || number == Some(own.0.into()));
    if let Some((code, own, why)) = own {
        let text = format!("option {code} ({own}) is set by volund itself");
        table.fault(&key.place, text, format!("remove it: {why}"));
        return None;
    }
    let known = NAMED.iter().find(|known| known.1 == name || number == Some(known.0.into()));
    if let Some((code, _, kind)) = known {
        return Some((*code, Some(*kind)));
    }
    if let Some(code) = number {
        let code = u8::try_from(code).ok().filter(|code| (1..=254).contains(code));
        if code.is_none() {
            let text = format!("{name} is no option code");
            table.fault(&key.place, text, "codes go from 1 to 254");
        }
        return Some((code?, None));
    }
    let names = NAMED.iter().map(|known| known.1);
    let hint = match nearest(name, names) {
        Some(known) => format!("did you mean {known:?}?"),
        None => "use a name from docs/configuration.md, or the option's code".to_owned(),
    };
    table.fault(&key.place, format!("unknown option {name:?}"), hint);
    None
}

/// The bytes of a value, or how it is to be written.
fn encode(kind: Option<Kind>, value: &DeValue<'_>) -> Result<Vec<u8>, String> {
    let text = value.as_str();
    if let Some(digits) = text.and_then(|text| text.strip_prefix("hex:")) {
        return hex(digits);
    }
    match kind {
        None => unnamed(value),
        Some(Kind::Hex) => Err(HEX.to_owned()),
        Some(Kind::Address) => addresses(text.into_iter().map(Some)),
        Some(Kind::Addresses) => addresses(texts(value)),
        Some(Kind::Text) => text.and_then(visible).ok_or_else(|| TEXT.to_owned()),
        Some(Kind::Domains) => domains(texts(value)),
        Some(Kind::Routes) => routes(texts(value)),
        Some(number @ (Kind::U8 | Kind::U16 | Kind::U32 | Kind::I32)) => {
            let digits = value.as_integer().map(|integer| integer.as_str().replace('_', ""));
            self::number(number, &digits.unwrap_or_default())
        }
    }
}

const HEX: &str = "write bytes in hexadecimal, such as \"hex:0a0b0c\"";
const TEXT: &str =
    "write a text in quotes, without control characters; \"hex:…\" does for any bytes";
const ADDRESSES: &str = "write addresses, such as [\"192.0.2.1\"]";
const UNNAMED: &str = "write [\"192.0.2.1\"] for addresses, \"u8:1\", \"u16:1\", \"u32:1\" or \"i32:-1\" for a number, \
                       \"hex:0a0b\" for bytes, \"text:…\" for a text";

/// The value of an option that has no name here: it says itself what it is.
fn unnamed(value: &DeValue<'_>) -> Result<Vec<u8>, String> {
    if value.as_array().is_some() {
        return addresses(texts(value));
    }
    let typed = value.as_str().and_then(|text| text.split_once(':'));
    match typed {
        Some(("u8", digits)) => number(Kind::U8, digits),
        Some(("u16", digits)) => number(Kind::U16, digits),
        Some(("u32", digits)) => number(Kind::U32, digits),
        Some(("i32", digits)) => number(Kind::I32, digits),
        Some(("text", text)) => visible(text).ok_or_else(|| TEXT.to_owned()),
        _ => Err(UNNAMED.to_owned()),
    }
}

/// The bytes of a text; `None` with a control character in it, a zero for instance, at which clients end the text.
fn visible(text: &str) -> Option<Vec<u8>> {
    (!text.chars().any(char::is_control)).then(|| text.as_bytes().to_vec())
}

/// The texts of a list, or of a single text; `None` for an item that is none.
fn texts<'v>(value: &'v DeValue<'_>) -> impl Iterator<Item = Option<&'v str>> {
    let list = value.as_array().into_iter().flat_map(|list| list.iter());
    value.as_str().map(Some).into_iter().chain(list.map(|item| item.get_ref().as_str()))
}

fn addresses<'v>(texts: impl Iterator<Item = Option<&'v str>>) -> Result<Vec<u8>, String> {
    let octets = |text: Option<&str>| Some(text?.parse::<Ipv4Addr>().ok()?.octets());
    let list: Option<Vec<[u8; 4]>> = texts.map(octets).collect();
    let list = list.filter(|list| !list.is_empty()).ok_or_else(|| ADDRESSES.to_owned())?;
    Ok(list.concat())
}

fn number(kind: Kind, digits: &str) -> Result<Vec<u8>, String> {
    let (bytes, range) = match kind {
        Kind::U8 => (digits.parse().map(|number: u8| vec![number]), "0 to 255"),
        Kind::U16 => (digits.parse().map(|number: u16| number.to_be_bytes().into()), "0 to 65535"),
        Kind::I32 => {
            let range = "-2147483648 to 2147483647";
            (digits.parse().map(|number: i32| number.to_be_bytes().into()), range)
        }
        _ => (digits.parse().map(|number: u32| number.to_be_bytes().into()), "0 to 4294967295"),
    };
    bytes.map_err(|_| format!("write a whole number from {range}"))
}

fn hex(digits: &str) -> Result<Vec<u8>, String> {
    let digits = digits.replace([' ', ':'], "");
    model::hex::decode(&digits).map_err(|_| HEX.to_owned())
}

/// Labels with their lengths, each name ended by a zero (RFC 1035, 3.1); nothing is compressed.
fn domains<'v>(texts: impl Iterator<Item = Option<&'v str>>) -> Result<Vec<u8>, String> {
    let wrong = || "write domain names, such as [\"lab.example\"]".to_owned();
    let mut bytes = vec![];
    for text in texts {
        for label in text.ok_or_else(wrong)?.trim_end_matches('.').split('.') {
            let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length));
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            bytes.push(length.filter(|_| label.chars().all(plain)).ok_or_else(wrong)?);
            bytes.extend(label.as_bytes());
        }
        bytes.push(0);
    }
    Ok(bytes)
}

/// `"10.0.0.0/8 via 192.0.2.1"`: prefix length, as many octets as it needs, router (RFC 3442).
fn routes<'v>(texts: impl Iterator<Item = Option<&'v str>>) -> Result<Vec<u8>, String> {
    let wrong = || "write routes, such as [\"10.0.0.0/8 via 192.0.2.1\"]".to_owned();
    let mut bytes = vec![];
    for text in texts {
        let (to, via) = text.and_then(|text| text.split_once(" via ")).ok_or_else(wrong)?;
        let via: Ipv4Addr = via.trim().parse().map_err(|_| wrong())?;
        let (first, prefix) = to.trim().split_once('/').ok_or_else(wrong)?;
        let first: Ipv4Addr = first.parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
        if prefix > 32 {
            return Err(wrong());
        }
        let subnet = Subnet { first, prefix };
        if !subnet.contains(first) {
            return Err(format!(
                "{first}/{prefix} names a machine: clear what lies behind its prefix"
            ));
        }
        bytes.push(prefix);
        bytes.extend(first.octets().iter().take(usize::from(prefix.div_ceil(8))));
        bytes.extend(via.octets());
    }
    Ok(bytes)
}

/// Names of the options known by name, for the reference.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = (u8, &'static str)> {
    NAMED.iter().map(|known| (known.0, known.1))
}

/// Options volund sets itself, for the reference.
#[cfg(test)]
pub(super) fn own() -> impl Iterator<Item = (u8, &'static str, &'static str)> {
    OWN.iter().copied()
}
