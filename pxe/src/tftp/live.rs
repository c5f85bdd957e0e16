//! Which client port has a transfer under way, and what a request from that port means then.
//!
//! A client that hears nothing asks again: that is no second transfer. One that was restarted asks again too, from the
//! same port, and must not wait for the old transfer to die; but a request the network repeated looks just the same.
//! So the new transfer begins beside the old one, which holds back, and the one the client answers stays.

use std::{
    collections::BTreeMap,
    net::SocketAddrV4,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// Transfers under way by the client's port.
#[derive(Debug, Clone, Default)]
pub(super) struct Registry(Arc<Mutex<BTreeMap<SocketAddrV4, Arc<Live>>>>);

/// A transfer under way, as far as requests after it have to know.
#[derive(Debug)]
pub(super) struct Live {
    /// The request as it was sent.
    request: Vec<u8>,
    is_heard: AtomicBool,
    is_doubted: AtomicBool,
    is_superseded: AtomicBool,
    /// The transfer to the same port that this one may stand for. It keeps itself alive.
    elder: Option<Weak<Self>>,
}

/// A place in the registry; free again when dropped.
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) live: Arc<Live>,
    client: SocketAddrV4,
    registry: Registry,
}

impl Registry {
    /// Enters a transfer for this request. `None`: it is a repetition of one under way.
    pub(super) fn enter(&self, client: SocketAddrV4, request: &[u8]) -> Option<Registered> {
        let mut all = self.all();
        let mut elder = None;
        if let Some(live) = all.get(&client) {
            let is_same = live.request == request;
            match live.is_heard.load(Relaxed) {
                false if is_same => return None,
                true if is_same => {
                    live.is_doubted.store(true, Relaxed);
                    elder = Some(Arc::downgrade(live));
                }
                // It wants something else now.
                _ => live.is_superseded.store(true, Relaxed),
            }
        }
        let live = Arc::new(Live {
            request: request.to_vec(),
            is_heard: AtomicBool::new(false),
            is_doubted: AtomicBool::new(false),
            is_superseded: AtomicBool::new(false),
            elder,
        });
        all.insert(client, Arc::clone(&live));
        drop(all);
        Some(Registered { live, client, registry: self.clone() })
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<SocketAddrV4, Arc<Live>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    /// The client answered this transfer: the one before it has ended.
    pub(super) fn heard(&self) {
        if !self.is_heard.swap(true, Relaxed)
            && let Some(elder) = self.elder.as_ref().and_then(Weak::upgrade)
        {
            elder.is_superseded.store(true, Relaxed);
        }
    }

    /// Whether the client asked anew since this was called last.
    pub(super) fn take_doubt(&self) -> bool {
        self.is_doubted.load(Relaxed) && self.is_doubted.swap(false, Relaxed)
    }

    /// Whether another transfer stands for this one.
    pub(super) fn is_superseded(&self) -> bool {
        self.is_superseded.load(Relaxed)
    }

    /// Whether this one was begun for a request that may have been the network's repetition, and the client never
    /// answered it.
    pub(super) fn was_needless(&self) -> bool {
        self.elder.is_some() && !self.is_heard.load(Relaxed)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut all = self.registry.all();
        if !all.get(&self.client).is_some_and(|live| Arc::ptr_eq(live, &self.live)) {
            return;
        }
        // The one before it may be the client's after all.
        match self.live.elder.as_ref().and_then(Weak::upgrade) {
            Some(elder) if !elder.is_superseded() => _ = all.insert(self.client, elder),
            _ => _ = all.remove(&self.client),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 1024);

    #[test]
    fn a_repeated_request_is_a_repetition_until_the_client_has_answered() {
        let registry = Registry::default();
        let first = registry.enter(CLIENT, b"a").unwrap();
        assert!(registry.enter(CLIENT, b"a").is_none());
        first.live.heard();
        let second = registry.enter(CLIENT, b"a").unwrap();
        assert!(first.live.take_doubt() && !first.live.take_doubt());
        assert!(registry.enter(CLIENT, b"a").is_none());
        assert!(!first.live.is_superseded(), "not before the client answers the second");
        second.live.heard();
        assert!(first.live.is_superseded());
        drop(first);
        assert!(registry.enter(CLIENT, b"a").is_some_and(|third| third.live.elder.is_some()));
    }

    #[test]
    fn a_transfer_begun_for_the_networks_repetition_leaves_the_first_in_its_place() {
        let registry = Registry::default();
        let first = registry.enter(CLIENT, b"a").unwrap();
        first.live.heard();
        let second = registry.enter(CLIENT, b"a").unwrap();
        assert!(second.live.was_needless());
        drop(second);
        assert!(Arc::ptr_eq(&registry.all()[&CLIENT], &first.live));
        drop(first);
        assert!(registry.all().is_empty());
    }

    #[test]
    fn a_request_for_something_else_ends_the_transfer_before_it() {
        let registry = Registry::default();
        let probe = registry.enter(CLIENT, b"a tsize").unwrap();
        let real = registry.enter(CLIENT, b"a").unwrap();
        assert!(probe.live.is_superseded() && !real.live.was_needless());
        drop(probe);
        assert!(registry.enter(CLIENT, b"a").is_none(), "the second is still entered");
        drop(real);
        assert!(registry.all().is_empty());
    }
}
