//! The sinks for what was seen: bounded, and never a reason to wait.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use model::{Lease, Sighting};
use tokio::sync::Notify;

/// A queue between the boot services and whoever records what they saw. Clones share it. Full: the oldest one is
/// dropped and counted, since the newest say what is going on.
#[derive(Debug)]
pub struct Sink<T>(Arc<Inner<T>>);

/// What nodes and strangers showed on the wire.
pub type SightingSink = Sink<Sighting>;
/// What became of leases; a copy for the book, the truth is the lease log.
pub type LeaseSink = Sink<Lease>;

impl<T> Clone for Sink<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct Inner<T> {
    capacity: usize,
    queue: Mutex<VecDeque<T>>,
    filled: Notify,
    dropped: AtomicU64,
}

impl<T> Sink<T> {
    /// An empty sink for at most `capacity` items.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self(Arc::new(Inner {
            capacity: capacity.max(1),
            queue: Mutex::default(),
            filled: Notify::new(),
            dropped: AtomicU64::new(0),
        }))
    }

    /// Puts one in. Never waits.
    pub fn push(&self, item: T) {
        let mut queue = self.0.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.len() >= self.0.capacity {
            queue.pop_front();
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
        // The reader looks until the queue is empty before it waits: to wake it for each would cost more than the item.
        let was_empty = queue.is_empty();
        queue.push_back(item);
        drop(queue);
        if was_empty {
            self.0.filled.notify_one();
        }
    }

    /// The oldest one, when there is one. Meant for one reader; cancelling it loses nothing.
    pub async fn recv(&self) -> T {
        loop {
            if let Some(item) = self.try_recv() {
                return item;
            }
            self.0.filled.notified().await;
        }
    }

    /// The oldest one, if there is one now.
    #[must_use]
    pub fn try_recv(&self) -> Option<T> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// How many were dropped since the start.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use model::{Sighted, UnixMillis};

    use super::*;

    fn sighting(at: i64) -> Sighting {
        let what = Sighted::Agent { verb: "claim".to_owned() };
        let (node, mac, peer, attempt) = (None, None, None, None);
        Sighting { at: UnixMillis(at), node, mac, peer, attempt, what }
    }

    #[tokio::test]
    async fn a_full_sink_drops_the_oldest_and_counts() {
        let sink = SightingSink::new(2);
        (1..=5).for_each(|at| sink.push(sighting(at)));
        assert_eq!((sink.recv().await.at, sink.recv().await.at), (UnixMillis(4), UnixMillis(5)));
        assert_eq!((sink.dropped(), sink.try_recv()), (3, None));
    }

    #[tokio::test]
    async fn a_waiting_reader_hears_of_a_sighting() {
        let sink = SightingSink::new(2);
        let reader = tokio::spawn({
            let sink = sink.clone();
            async move { sink.recv().await.at }
        });
        tokio::task::yield_now().await;
        sink.push(sighting(7));
        assert_eq!(reader.await.unwrap(), UnixMillis(7));
    }
}
