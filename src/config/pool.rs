//! `pool`: the addresses given to machines nobody declared.

use std::{collections::BTreeSet, net::Ipv4Addr, ops::RangeInclusive};

use model::boot::Pool;

use super::{
    fault::{Sink, Spot},
    fields::Fields,
    network::{RawNetwork, Subnet},
    node::RawNode,
};

/// The most addresses of one pool; each is looked at when a stranger asks for one.
const MOST: u32 = 65_536;

const FORM: &str = "write first and last address, such as \"192.0.2.100-192.0.2.199\"";

/// Reads `pool`; `full` says whether the network's mode has one.
pub(super) fn read(fields: &Fields<'_>, full: bool) -> Option<Spot<Pool>> {
    if full && !fields.has("pool") {
        let text = "pool is missing: dhcp = \"full\" gives addresses to all machines";
        fields.fault(&fields.place, text, FORM);
    }
    let text = fields.text("pool")?;
    if !full {
        let hint = "remove it, or write dhcp = \"full\"";
        fields.fault(&text.place, "pool belongs to dhcp = \"full\"", hint);
        return None;
    }
    match parse(&text.value) {
        Ok(pool) => Some(Spot::new(pool, text.place)),
        Err(hint) => {
            fields.fault(&text.place, format!("pool {:?} cannot be used", text.value), hint);
            None
        }
    }
}

fn parse(text: &str) -> Result<Pool, String> {
    let form = || FORM.to_owned();
    let (first, last) = text.split_once('-').ok_or_else(form)?;
    let first: Ipv4Addr = first.trim().parse().map_err(|_| form())?;
    let last: Ipv4Addr = last.trim().parse().map_err(|_| form())?;
    match u32::from(last).checked_sub(u32::from(first)) {
        None => Err("write the lower address first".to_owned()),
        Some(span) if span >= MOST => Err(format!("a pool has at most {MOST} addresses")),
        Some(_) => Ok(Pool { first, last }),
    }
}

/// Notes a pool that is not machines' addresses of the network alone.
pub(super) fn lies_in(fields: &Fields<'_>, pool: &Spot<Pool>, subnet: Subnet) {
    let Pool { first, last } = pool.value;
    if !subnet.can_hold(first) || !subnet.can_hold(last) {
        let text = format!("pool {first}-{last} does not lie inside {subnet}");
        let inner = u32::from(subnet.last()).saturating_sub(1);
        let from = Ipv4Addr::from(u32::from(subnet.first).saturating_add(1));
        let hint = format!("use addresses from {from} to {}", Ipv4Addr::from(inner));
        fields.fault(&pool.place, text, hint);
    }
}

/// Notes a pool in which every address is somebody's: nobody would ever get one.
pub(super) fn has_room(network: &RawNetwork, nodes: &[RawNode], sink: &Sink) {
    let Some(pool) = &network.pool else { return };
    let ours = [&network.server, &network.router];
    let ours = ours.into_iter().flatten().map(|spot| spot.value);
    let nodes = nodes.iter().filter_map(|node| node.address.as_ref()).map(|spot| spot.value);
    let range = range(pool.value);
    let taken: BTreeSet<u32> =
        ours.chain(nodes).map(u32::from).filter(|address| range.contains(address)).collect();
    if taken.len() == range.count() {
        let Pool { first, last } = pool.value;
        let text = format!(
            "{}: every address of pool {first}-{last} is reserved for somebody",
            network.label()
        );
        sink.fault(&pool.place, text, "give the pool addresses of its own");
    }
}

fn range(pool: Pool) -> RangeInclusive<u32> {
    u32::from(pool.first)..=u32::from(pool.last)
}
