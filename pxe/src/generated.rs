//! Texts made for a node under the names its loaders ask for, over TFTP and HTTP.
//!
//! The decision is the script's own: what a node boots is asked in one place, and one attempt has one answer.

use std::net::Ipv4Addr;

use model::MacAddr;
use pxe_proto::{
    generated::{Generated, generated},
    pxelinux::Over,
};

use crate::{
    http_boot::script::{self, Asker},
    state::State,
};

/// The text that `name` (slashes normal, none in front) means over HTTP to the node that uses `from`; see [`text`].
pub(crate) fn named(state: &State, name: &str, from: Ipv4Addr) -> Option<String> {
    let (entry, _network) = state.entry_at(from)?;
    let (kind, mac) = generated(name, &entry, from)?;
    text(state, kind, Over::Http, mac, from)
}

/// The text of `kind` for the node that uses `from`, made for its `mac` and fetched `over`. May take as long as the
/// engine may. `None`: no node is known there, or it has nothing to be told under that name.
pub(crate) fn text(
    state: &State,
    kind: Generated,
    over: Over,
    mac: MacAddr,
    from: Ipv4Addr,
) -> Option<String> {
    let (entry, network) = state.entry_at(from)?;
    script::text(state, kind, &Asker { entry, network, over, mac, from })
}
