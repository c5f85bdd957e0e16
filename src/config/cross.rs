//! What no single table can know: duplicates, references, addresses on networks.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use model::{NodeName, ProfileName};

use super::{
    Raw,
    fault::{Place, Sink, Spot},
    lab::BUILD_AGENT,
    network::{Dhcp, RawNetwork},
    node::{Assigned, RawNode},
    pool,
    suggest::nearest,
};

/// Who has what, and where it says so.
struct Claims<K>(BTreeMap<K, (String, Place)>);

impl<K: Ord> Claims<K> {
    fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Takes `key` for `owner`, or notes that somebody has it. `what` is the thing in words.
    fn claim(
        &mut self,
        sink: &Sink,
        key: K,
        owner: &str,
        place: &Place,
        (what, hint): (impl fmt::Display, &str),
    ) {
        match self.0.get(&key) {
            Some((first, at)) if first == owner => {
                let text = format!("{owner}: {what} is declared twice ({at})");
                sink.fault(place, text, hint);
            }
            Some((first, at)) => {
                let text = format!("{owner}: {what} is already taken by {first} ({at})");
                sink.fault(place, text, hint);
            }
            None => {
                self.0.insert(key, (owner.to_owned(), place.clone()));
            }
        }
    }
}

/// Every check across tables.
pub(super) fn check(raw: &Raw, sink: &Sink) {
    super::network::check(&raw.networks, sink);
    operator_is_apart(raw, sink);
    let profiles = profile_names(raw);
    inspect_has_its_agent(raw, sink);
    unique_names(raw, sink);
    unique_things(raw, sink);
    for node in &raw.nodes {
        seat_exists(raw, node, sink);
        address_is_free(raw, node, sink);
        if let Err((place, text, hint)) = home(raw, node) {
            sink.fault(&place, format!("{}: {text}", node.subject), hint);
        }
        for profile in node.profiles.iter().flatten() {
            profile_exists(&profiles, profile, &node.subject, sink);
        }
    }
    assignments(raw, &profiles, sink);
    for network in &raw.networks {
        network.warn(sink);
        pool::has_room(network, &raw.nodes, sink);
    }
}

/// Place, fault and hint.
type Wrong = (Place, String, String);

/// The network each node boots on, in their order.
pub(super) fn homes(raw: &Raw) -> Vec<Option<String>> {
    let name = |network: &RawNetwork| network.name.as_ref().map(|name| name.value.clone());
    raw.nodes.iter().map(|node| home(raw, node).ok().flatten().and_then(name)).collect()
}

/// The network a node boots on: the one its address lies on; without an address the one it names, or the only one
/// where another server gives addresses. `Ok(None)` where a fault was noted elsewhere.
fn home<'r>(raw: &'r Raw, node: &RawNode) -> Result<Option<&'r RawNetwork>, Wrong> {
    let holds = |network: &&RawNetwork, address| {
        network.subnet.as_ref().is_some_and(|subnet| subnet.value.contains(address))
    };
    let named = match &node.network {
        Some(name) => Some(named(raw, name)?),
        None => None,
    };
    match (&node.address, named) {
        (Some(address), Some(named)) if !holds(&named, address.value) => {
            let place = node.network.as_ref().map_or(&address.place, |network| &network.place);
            let text = format!("address {} does not lie on {}", address.value, named.label());
            Err((place.clone(), text, "remove network: it follows from the address".to_owned()))
        }
        (Some(address), _) => Ok(raw.networks.iter().find(|network| holds(network, address.value))),
        (None, _) if node.has_address => Ok(None),
        (None, Some(named)) if named.dhcp == Dhcp::Proxy => Ok(Some(named)),
        (None, Some(named)) => {
            let text =
                format!("address is missing: volund gives the addresses on {}", named.label());
            Err((node.place.clone(), text, "reserve an address for it there".to_owned()))
        }
        (None, None) => only_proxy(raw, node),
    }
}

/// The network of that name.
fn named<'r>(raw: &'r Raw, name: &Spot<String>) -> Result<&'r RawNetwork, Wrong> {
    let names =
        || raw.networks.iter().filter_map(|network| Some((network, network.name.as_ref()?)));
    let found = names().find(|(_, known)| known.value == name.value);
    found.map(|(network, _)| network).ok_or_else(|| {
        let text = format!("network {:?} is not declared", name.value);
        let known = names().map(|(_, known)| known.value.as_str());
        (name.place.clone(), text, meant(&name.value, known, "declare it as [[network]]"))
    })
}

fn only_proxy<'r>(raw: &'r Raw, node: &RawNode) -> Result<Option<&'r RawNetwork>, Wrong> {
    let mut proxies = raw.networks.iter().filter(|network| network.dhcp == Dhcp::Proxy);
    match (proxies.next(), proxies.next()) {
        (None, _) => {
            let hint = "reserve an address for it on a declared network";
            Err((node.place.clone(), "address is missing".to_owned(), hint.to_owned()))
        }
        (Some(only), None) => Ok(Some(only)),
        (Some(_), Some(_)) => {
            let hint = "name the network it boots on, or its address";
            Err((node.place.clone(), "network is missing".to_owned(), hint.to_owned()))
        }
    }
}

/// Profiles that can be named: those declared, and those built in.
pub(super) fn profile_names(raw: &Raw) -> BTreeSet<ProfileName> {
    let mut names: BTreeSet<ProfileName> =
        super::profile::Profile::all_built_in().into_iter().map(|profile| profile.name).collect();
    if raw.agent.is_none() {
        names.retain(|name| name.as_str() != "inspect");
    }
    names.extend(raw.profiles.iter().map(|profile| profile.name.value.clone()));
    names
}

fn operator_is_apart(raw: &Raw, sink: &Sink) {
    let Some(listen) = raw.operator.as_ref().and_then(|operator| operator.value.listen.as_ref())
    else {
        return;
    };
    for server in raw.networks.iter().filter_map(|network| network.server.as_ref()) {
        if listen.value.ip() == server.value {
            let text = format!(
                "[operator]: listen {} is volund's address on a boot network ({})",
                listen.value, server.place
            );
            sink.fault(&listen.place, text, "operators and booting nodes use different addresses");
        }
    }
}

fn inspect_has_its_agent(raw: &Raw, sink: &Sink) {
    for profile in raw.profiles.iter().filter(|profile| profile.is_inspect) {
        if raw.agent.is_none() {
            let text = format!("profile \"{}\": there is no agent image", profile.name.value);
            sink.fault(&profile.name.place, text, BUILD_AGENT);
        }
    }
}

fn unique_names(raw: &Raw, sink: &Sink) {
    let hint = "rename one of them";
    let mut nodes = Claims::new();
    for node in &raw.nodes {
        let Some(name) = &node.name else { continue };
        nodes.claim(sink, &name.value, &node.subject, &name.place, ("it", hint));
    }
    let mut profiles = Claims::new();
    for profile in &raw.profiles {
        let Spot { value, place } = &profile.name;
        profiles.claim(sink, value, &format!("profile \"{value}\""), place, ("it", hint));
    }
    let mut enclosures = Claims::new();
    for (Spot { value, place }, _) in &raw.enclosures {
        enclosures.claim(sink, value, &format!("enclosure \"{value}\""), place, ("it", hint));
    }
}

fn unique_things(raw: &Raw, sink: &Sink) {
    let (mut macs, mut seats) = (Claims::new(), Claims::new());
    let (mut addresses, mut endpoints) = (Claims::new(), Claims::new());
    for node in &raw.nodes {
        let owner = node.subject.as_str();
        for mac in &node.macs {
            let hint = "a MAC belongs to one node; correct the wrong one";
            let what = (format!("MAC {}", mac.value), hint);
            macs.claim(sink, mac.value, owner, &mac.place, what);
        }
        if let (Some(enclosure), Some(bay)) = (&node.enclosure, &node.bay) {
            let what = format!("bay {} of {}", bay.value, enclosure.value);
            let what = (what, "give one of them another bay");
            seats.claim(sink, (&enclosure.value, bay.value), owner, &bay.place, what);
        }
        if let Some(address) = &node.address {
            let what = (format!("address {}", address.value), "give one of them another address");
            addresses.claim(sink, address.value, owner, &address.place, what);
        }
        if let Some(endpoint) = node.bmc.as_ref().and_then(|bmc| bmc.endpoint.as_ref()) {
            let what = (format!("BMC {}", endpoint.value), "a BMC belongs to one node");
            endpoints.claim(sink, endpoint.value, owner, &endpoint.place, what);
        }
    }
}

fn seat_exists(raw: &Raw, node: &RawNode, sink: &Sink) {
    let Some(name) = &node.enclosure else { return };
    let found = raw.enclosures.iter().find(|(known, _)| known.value == name.value);
    let Some((_, enclosure)) = found else {
        let known = raw.enclosures.iter().map(|(known, _)| known.value.as_str());
        let text = format!("{}: enclosure \"{}\" is not declared", node.subject, name.value);
        let hint = meant(name.value.as_str(), known, "declare it as [enclosure.NAME]");
        sink.fault(&name.place, text, hint);
        return;
    };
    if let (Some(enclosure), Some(bay)) = (enclosure, &node.bay)
        && bay.value.get() > enclosure.bays
    {
        let text = format!("{}: bay {} does not exist", node.subject, bay.value);
        sink.fault(
            &bay.place,
            text,
            format!("{} has bays 1 to {}", enclosure.name, enclosure.bays),
        );
    }
}

fn address_is_free(raw: &Raw, node: &RawNode, sink: &Sink) {
    let Some(address) = &node.address else { return };
    let networks = raw.networks.iter();
    let subnets: Vec<_> = networks.clone().filter_map(|network| network.subnet.as_ref()).collect();
    let home = subnets.iter().find(|subnet| subnet.value.contains(address.value));
    let subject = &node.subject;
    let Some(home) = home else {
        let text = format!("{subject}: address {} lies on no declared network", address.value);
        let known: Vec<String> = subnets.iter().map(|subnet| subnet.value.to_string()).collect();
        let hint = match known.as_slice() {
            [] => "declare a [[network]]".to_owned(),
            known => format!("use an address on {}", known.join(", ")),
        };
        return sink.fault(&address.place, text, hint);
    };
    if !home.value.can_hold(address.value) {
        let text = format!("{subject}: address {} names the subnet as a whole", address.value);
        sink.fault(&address.place, text, "use an address between its first and last");
    }
    let ours =
        networks.flat_map(|network| [(&network.server, "volund"), (&network.router, "the router")]);
    for (spot, whose) in ours {
        if let Some(spot) = spot.as_ref().filter(|spot| spot.value == address.value) {
            let text =
                format!("{subject}: address {} belongs to {whose} ({})", address.value, spot.place);
            sink.fault(&address.place, text, "give the node another address");
        }
    }
}

fn profile_exists(
    known: &BTreeSet<ProfileName>,
    profile: &Spot<ProfileName>,
    subject: &str,
    sink: &Sink,
) {
    if known.contains(&profile.value) {
        return;
    }
    let name = profile.value.as_str();
    let text = format!("{subject}: profile \"{name}\" is not declared");
    let hint = match name {
        "inspect" => BUILD_AGENT.to_owned(),
        _ => meant(name, known.iter().map(ProfileName::as_str), "declare it as [profile.NAME]"),
    };
    sink.fault(&profile.place, text, hint);
}

fn assignments(raw: &Raw, profiles: &BTreeSet<ProfileName>, sink: &Sink) {
    let nodes: BTreeMap<&NodeName, &RawNode> =
        raw.nodes.iter().filter_map(|node| Some((&node.name.as_ref()?.value, node))).collect();
    let mut taken: BTreeMap<&NodeName, &Place> = BTreeMap::new();
    for assign in &raw.assigns {
        if let Some(profile) = &assign.profile {
            profile_exists(profiles, profile, "[[assign]]", sink);
        }
        for name in &assign.nodes {
            let Some(node) = nodes.get(name) else {
                let known = nodes.keys().map(|name| name.as_str());
                let text = format!("[[assign]]: node \"{name}\" is not declared");
                let hint = meant(name.as_str(), known, "declare it as [[node]]");
                sink.fault(&assign.place, text, hint);
                continue;
            };
            if let Some(first) = taken.insert(name, &assign.place) {
                let text = format!("[[assign]]: node \"{name}\" is already assigned ({first})");
                sink.fault(&assign.place, text, "leave it in one [[assign]] only");
            }
            assigned_is_allowed(node, assign.profile.as_ref(), sink);
        }
    }
}

fn assigned_is_allowed(node: &RawNode, profile: Option<&Spot<ProfileName>>, sink: &Sink) {
    let (Some(profile), Some(allowed)) = (profile, &node.profiles) else { return };
    if allowed.iter().all(|allowed| allowed.value != profile.value) {
        let text = format!(
            "[[assign]]: {} may not have profile \"{}\" ({})",
            node.subject, profile.value, node.place
        );
        sink.fault(&profile.place, text, "add it to the node's profiles, or assign another");
    }
}

/// The assignments of a checked configuration.
pub(super) fn assigned(raw: &Raw) -> BTreeMap<NodeName, Assigned> {
    let mut assigned = BTreeMap::new();
    for assign in &raw.assigns {
        let Some(profile) = &assign.profile else { continue };
        for name in &assign.nodes {
            let what = Assigned { profile: profile.value.clone(), place: assign.place.clone() };
            assigned.insert(name.clone(), what);
        }
    }
    assigned
}

/// "Did you mean", or what else to do.
fn meant<'a>(word: &str, known: impl Iterator<Item = &'a str>, otherwise: &str) -> String {
    match nearest(word, known) {
        Some(near) => format!("did you mean {near:?}?"),
        None => otherwise.to_owned(),
    }
}
