//! `[[network]]`: the boot networks.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    str::FromStr,
};

use model::boot::{BootNetwork, DhcpMode, DhcpOption, Pool};
use pxe::Wrap;

use super::{
    fault::{Sink, Spot},
    fields::{ADDRESS_FORM, Fields},
    options, pool,
};

/// A network nodes boot on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Name.
    pub name: String,
    /// Interface, when broadcasts are to be heard on one only.
    pub interface: Option<String>,
    /// Its addresses.
    pub subnet: Subnet,
    /// Our own address there.
    pub server: Ipv4Addr,
    /// Default router given to nodes.
    pub router: Option<Ipv4Addr>,
    /// Name servers given to nodes.
    pub dns: Vec<Ipv4Addr>,
    /// Lease time in seconds.
    pub lease_s: u32,
    /// Lease time of unknown machines in seconds.
    pub unknown_lease_s: u32,
    /// UDP port of DHCP; 0 is any free one, for tests.
    pub dhcp_port: u16,
    /// UDP port of proxy requests, 4011; 0 is any free one, for tests.
    pub proxy_port: u16,
    /// UDP port of TFTP; 0 is any free one, for tests.
    pub tftp_port: u16,
    /// What follows TFTP block 65,535.
    pub tftp_wrap: Wrap,
    /// TCP port of HTTP boot; 0 is any free one, for tests.
    pub http_port: u16,
    /// What our DHCP does there.
    pub dhcp: DhcpMode,
    /// Whether router advertisements without a prefix are sent.
    pub advertises: bool,
    /// Whether an address of the pool is pinged before it is given to a machine that never had it.
    pub checks_conflicts: bool,
    /// DHCP options every client gets.
    pub options: Vec<DhcpOption>,
}

/// A subnet in CIDR form: `192.0.2.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subnet {
    /// First address.
    pub first: Ipv4Addr,
    /// Prefix length, 8 to 30.
    pub prefix: u8,
}

/// The text is no subnet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubnetError {
    /// Not `ADDRESS/LENGTH`.
    #[error("write it as 192.0.2.0/24, with a length from 8 to 30")]
    Form,
    /// Host bits are set.
    #[error("the subnet of that length begins at {0}")]
    HostBits(Subnet),
}

impl Subnet {
    fn mask(self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0)
    }

    /// Whether `address` lies in it.
    #[must_use]
    pub fn contains(self, address: Ipv4Addr) -> bool {
        u32::from(address) & self.mask() == u32::from(self.first)
    }

    /// The last address: the subnet's broadcast address.
    #[must_use]
    pub fn last(self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.first) | !self.mask())
    }

    /// Whether a machine can have `address`: in the subnet, neither its first nor its last.
    #[must_use]
    pub fn can_hold(self, address: Ipv4Addr) -> bool {
        self.contains(address) && address != self.first && address != self.last()
    }

    fn overlaps(self, other: Self) -> bool {
        self.contains(other.first) || other.contains(self.first)
    }
}

impl FromStr for Subnet {
    type Err = SubnetError;
    fn from_str(text: &str) -> Result<Self, SubnetError> {
        let (address, prefix) = text.split_once('/').ok_or(SubnetError::Form)?;
        let address: Ipv4Addr = address.parse().map_err(|_| SubnetError::Form)?;
        let prefix: u8 = prefix.parse().map_err(|_| SubnetError::Form)?;
        if !(8..=30).contains(&prefix) {
            return Err(SubnetError::Form);
        }
        let wide = Self { first: address, prefix };
        let subnet = Self { first: Ipv4Addr::from(u32::from(address) & wide.mask()), prefix };
        if subnet == wide { Ok(subnet) } else { Err(SubnetError::HostBits(subnet)) }
    }
}

impl std::fmt::Display for Subnet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

impl Network {
    /// As the boot table wants it.
    #[must_use]
    pub fn boot_network(&self) -> BootNetwork {
        BootNetwork {
            name: self.name.clone(),
            mode: self.dhcp,
            unknown_lease_s: self.unknown_lease_s,
            options: self.options.clone(),
            subnet: self.subnet.first,
            prefix: self.subnet.prefix,
            server: self.server,
            router: self.router,
            dns: self.dns.clone(),
            lease_s: self.lease_s,
            http: SocketAddr::from((self.server, self.http_port)),
        }
    }
}

/// A network as far as it could be read.
pub(super) struct RawNetwork {
    pub(super) name: Option<Spot<String>>,
    pub(super) subnet: Option<Spot<Subnet>>,
    pub(super) server: Option<Spot<Ipv4Addr>>,
    pub(super) router: Option<Spot<Ipv4Addr>>,
    pub(super) pool: Option<Spot<Pool>>,
    pub(super) dhcp: Dhcp,
    interface: Option<Spot<String>>,
    dns: Vec<Ipv4Addr>,
    lease_s: u32,
    dhcp_port: u16,
    proxy_port: u16,
    unknown_lease_s: u32,
    tftp_port: u16,
    tftp_wrap: Wrap,
    http_port: u16,
    advertises: bool,
    checks_conflicts: bool,
    options: Vec<Spot<DhcpOption>>,
}

/// `dhcp`, as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dhcp {
    Full,
    Reserved,
    Proxy,
    Off,
}

const MODES: [(&str, Dhcp); 4] = [
    ("full", Dhcp::Full),
    ("reserved", Dhcp::Reserved),
    ("proxy", Dhcp::Proxy),
    ("off", Dhcp::Off),
];

impl RawNetwork {
    pub(super) fn read(mut fields: Fields<'_>) -> Self {
        let name = fields.need_title("name", "give the network a name, such as \"boot\"");
        if let Some(name) = &name {
            fields.subject = format!("network {:?}", name.value);
        }
        let port = |key, usual| {
            fields.integer(key, 0..=65_535_u16).map_or(usual, |port: Spot<u16>| port.value)
        };
        let dhcp = fields.choice("dhcp", &MODES).map_or(Dhcp::Reserved, |mode| mode.value);
        let interface = fields.title("interface");
        let raw = Self {
            pool: pool::read(&fields, dhcp == Dhcp::Full),
            advertises: read_advertises(&fields, interface.is_some(), dhcp),
            checks_conflicts: read_conflict_check(&fields, dhcp),
            options: options::read(&fields),
            subnet: fields.need("subnet", "write it as subnet = \"192.0.2.0/24\""),
            server: fields.need_address("server", "name volund's own address on that network"),
            router: fields.parse_as("router", ADDRESS_FORM),
            interface,
            dns: spots(fields.parse_list("dns", Some(ADDRESS_FORM))),
            lease_s: fields.integer("lease_s", 60..=604_800_u32).map_or(600, |lease| lease.value),
            dhcp_port: port("dhcp_port", 67),
            proxy_port: port("proxy_port", 4011),
            unknown_lease_s: fields
                .integer("unknown_lease_s", 60..=86_400_u32)
                .map_or(120, |lease| lease.value),
            tftp_port: port("tftp_port", 69),
            tftp_wrap: match fields.integer("tftp_wrap", 0..=1_u8).map(|wrap| wrap.value) {
                Some(1) => Wrap::One,
                Some(_) | None => Wrap::Zero,
            },
            http_port: port("http_port", 8067),
            dhcp,
            name,
        };
        raw.check_addresses(&fields);
        fields.done();
        raw
    }

    fn check_addresses(&self, fields: &Fields<'_>) {
        let Some(subnet) = self.subnet.as_ref().map(|subnet| subnet.value) else { return };
        for (key, spot) in [("server", &self.server), ("router", &self.router)] {
            let Some(spot) = spot else { continue };
            if !subnet.can_hold(spot.value) {
                let text = format!("{key} {} is no machine's address in {subnet}", spot.value);
                fields.fault(&spot.place, text, "use an address inside the subnet");
            }
        }
        if let Some(pool) = &self.pool {
            pool::lies_in(fields, pool, subnet);
        }
    }

    /// Notes what is doubtful.
    pub(super) fn warn(&self, sink: &Sink) {
        let Some(router) = &self.router else { return };
        if let Some(place) = options::lacks_default_route(&self.options) {
            let text = format!("{}: routes leave out the router {}", self.label(), router.value);
            let hint = format!(
                "clients that take routes do not look at router (RFC 3442): add \
                 \"0.0.0.0/0 via {}\"",
                router.value
            );
            sink.warning(place, text, hint);
        }
    }

    pub(super) fn label(&self) -> String {
        self.name.as_ref().map_or_else(|| "[[network]]".to_owned(), |name| quoted(&name.value))
    }

    pub(super) fn finish(self) -> Option<Network> {
        let dhcp = match self.dhcp {
            Dhcp::Full => DhcpMode::Full(self.pool?.value),
            Dhcp::Reserved => DhcpMode::Reserved,
            Dhcp::Proxy => DhcpMode::Proxy,
            Dhcp::Off => DhcpMode::Off,
        };
        Some(Network {
            name: self.name?.value,
            interface: self.interface.map(|interface| interface.value),
            subnet: self.subnet?.value,
            server: self.server?.value,
            router: self.router.map(|router| router.value),
            dns: self.dns,
            lease_s: self.lease_s,
            unknown_lease_s: self.unknown_lease_s,
            dhcp_port: self.dhcp_port,
            proxy_port: self.proxy_port,
            tftp_port: self.tftp_port,
            tftp_wrap: self.tftp_wrap,
            http_port: self.http_port,
            dhcp,
            advertises: self.advertises,
            checks_conflicts: self.checks_conflicts,
            options: options::values(&self.options),
        })
    }
}

/// Advertisements go out of an interface; where it is known and we serve DHCP they do, unless they are unwanted.
fn read_advertises(fields: &Fields<'_>, has_interface: bool, dhcp: Dhcp) -> bool {
    let wanted = fields.boolean_spot("router_advertisements");
    if let Some(wanted) = wanted.as_ref().filter(|wanted| wanted.value) {
        let reason = match (has_interface, dhcp) {
            (_, Dhcp::Off) => Some("are not sent where dhcp is \"off\""),
            (false, _) => Some("need an interface"),
            (true, _) => None,
        };
        if let Some(reason) = reason {
            let text = format!("router_advertisements {reason}");
            fields.fault(&wanted.place, text, "remove it, or name interface and dhcp");
        }
    }
    wanted.is_none_or(|wanted| wanted.value) && has_interface && dhcp != Dhcp::Off
}

fn read_conflict_check(fields: &Fields<'_>, dhcp: Dhcp) -> bool {
    let wanted = fields.boolean_spot("conflict_check");
    if let Some(wanted) = wanted.as_ref().filter(|_| dhcp != Dhcp::Full) {
        let text = "conflict_check belongs to dhcp = \"full\"";
        fields.fault(&wanted.place, text, "remove it: without a pool nothing is given away");
    }
    wanted.is_none_or(|wanted| wanted.value) && dhcp == Dhcp::Full
}

fn quoted(name: &str) -> String {
    format!("network {name:?}")
}

fn spots<T>(list: Option<Vec<Spot<T>>>) -> Vec<T> {
    list.into_iter().flatten().map(|spot| spot.value).collect()
}

/// Names and subnets are each network's own.
pub(super) fn check(networks: &[RawNetwork], sink: &Sink) {
    let mut names = BTreeMap::new();
    let mut interfaces = BTreeMap::new();
    let mut earlier: Vec<(&Spot<Subnet>, String)> = Vec::new();
    for network in networks {
        if let Some(name) = &network.name
            && let Some(first) = names.insert(name.value.clone(), name.place.clone())
        {
            let text = format!("{}: the name is already used ({first})", network.label());
            sink.fault(&name.place, text, "rename one of them");
        }
        if let Some(interface) = &network.interface
            && let Some(first) = interfaces.insert(interface.value.clone(), interface.place.clone())
        {
            let (label, name) = (network.label(), &interface.value);
            let text =
                format!("{label}: interface {name} already serves another network ({first})");
            let hint = "give each network an interface of its own: of two DHCP sockets on one, \
                        renewals reach only one";
            sink.fault(&interface.place, text, hint);
        }
        let Some(subnet) = &network.subnet else { continue };
        for (other, label) in &earlier {
            if subnet.value.overlaps(other.value) {
                let text = format!(
                    "{}: subnet {} overlaps {} of {label} ({})",
                    network.label(),
                    subnet.value,
                    other.value,
                    other.place
                );
                sink.fault(&subnet.place, text, "a network has its addresses for itself");
            }
        }
        earlier.push((subnet, network.label()));
    }
}
