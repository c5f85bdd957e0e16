//! The packets of a transfer that are kept with its boot: where it begins and ends, not the bulk between.

use std::{net::SocketAddrV4, sync::Arc};

use model::{BootEntry, boot::AttemptId};

use crate::state::{State, now};

/// Keeps packets of one client, if it is a node's.
pub(super) struct Notes<'a> {
    state: &'a State,
    client: SocketAddrV4,
    node: Option<(Arc<BootEntry>, Option<AttemptId>)>,
}

impl<'a> Notes<'a> {
    pub(super) fn new(state: &'a State, client: SocketAddrV4) -> Self {
        let node = state.entry_at(*client.ip()).map(|(entry, _)| {
            let attempt = state.attempts().current(&entry, now());
            (entry, attempt)
        });
        Self { state, client, node }
    }

    /// The node at the client's address.
    pub(super) fn entry(&self) -> Option<&Arc<BootEntry>> {
        self.node.as_ref().map(|(entry, _)| entry)
    }

    /// A packet of the client to `ours`.
    pub(super) fn heard(&self, ours: SocketAddrV4, packet: &[u8]) {
        if let Some((entry, attempt)) = &self.node {
            self.state.keep_packet(entry, *attempt, self.client, ours, packet);
        }
    }

    /// A packet of ours to the client.
    pub(super) fn sent(&self, ours: SocketAddrV4, packet: &[u8]) {
        if let Some((entry, attempt)) = &self.node {
            self.state.keep_packet(entry, *attempt, ours, self.client, packet);
        }
    }
}
