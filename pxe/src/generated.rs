//! Texts made for a node under the names its loaders ask for, over TFTP and HTTP.
//!
//! The decision is the script's own: what a node boots is asked in one place, and one attempt has one answer.

use std::net::Ipv4Addr;

use model::MacAddr;
use pxe_proto::generated::Generated;

use crate::state::State;

/// The text of `kind` for the node that uses `from`, made for its `mac`. May take as long as the engine may. `None`:
/// no node is known there, or it has nothing to be told under that name.
pub(crate) fn text(
    _state: &State,
    _kind: Generated,
    _mac: MacAddr,
    _from: Ipv4Addr,
) -> Option<String> {
    None
}
