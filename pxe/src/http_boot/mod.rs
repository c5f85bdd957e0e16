//! The boot port's HTTP/1.1: small, blocking, a thread for each connection.
//!
//! GET, HEAD and POST; Content-Length always; no chunked bodies, no redirects, no compression, no empty header:
//! boot firmware trips over each of them. One Range is answered with its bytes, several with the whole file.

mod answer;
mod connection;
mod date;
mod files;
mod range;
mod request;
pub(crate) mod script;

#[cfg(test)]
mod request_tests;

use std::{
    io::ErrorKind,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread,
};

use crate::{
    slots::Slots,
    state::{LOOK_UP, State},
};

/// Connections of nodes at once, in all and for one address. One beyond is closed: clients come again.
const CONNECTIONS: (usize, usize) = (1024, 64);
/// Those of everybody else, who must not be able to take the nodes' places by holding theirs open.
const STRANGERS: (usize, usize) = (64, 16);
/// Stack of a connection's thread.
const STACK: usize = 512 * 1024;

/// Serves until told to stop.
pub(crate) fn run(state: &Arc<State>, listener: &TcpListener) {
    let nodes = Slots::new(CONNECTIONS.0, CONNECTIONS.1);
    let strangers = Slots::new(STRANGERS.0, STRANGERS.1);
    while !state.stop.is_cancelled() {
        let (stream, from) = match listener.accept() {
            Ok((stream, SocketAddr::V4(from))) => (stream, from),
            Ok((_, SocketAddr::V6(_))) => continue,
            // A time-out is the moment to look at `stop`, and a client that went away before its turn is normal.
            Err(error) if is_passing(error.kind()) => continue,
            // Out of descriptors, for instance: what goes on frees some.
            Err(error) => {
                tracing::warn!(%error, "cannot take an HTTP connection; trying again in a moment");
                thread::sleep(LOOK_UP);
                continue;
            }
        };
        let is_node = state.entry_at(*from.ip()).is_some();
        let slots = if is_node { &nodes } else { &strangers };
        let Some(slot) = slots.take(*from.ip()) else {
            tracing::debug!(%from, is_node, "too many HTTP connections: closed");
            continue;
        };
        let state = Arc::clone(state);
        let started =
            thread::Builder::new().name("http".to_owned()).stack_size(STACK).spawn(move || {
                let _held = slot;
                connection::serve(&state, stream, *from.ip());
            });
        if let Err(error) = started {
            tracing::warn!(%from, %error, "no thread for an HTTP connection: closed");
        }
    }
}

fn is_passing(kind: ErrorKind) -> bool {
    use ErrorKind::{ConnectionAborted, Interrupted, TimedOut, WouldBlock};
    matches!(kind, WouldBlock | TimedOut | Interrupted | ConnectionAborted)
}
