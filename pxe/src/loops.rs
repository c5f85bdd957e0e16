//! Who is kept out of a boot loop, shared between the services and whoever may let a machine out of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{BootEntry, MacAddr, Sighted, UnixMillis};
use pxe_proto::loops::Loops;

use crate::state::now;

/// Machines that go round in a circle. Clones share them. Bounded: at most 4,096 machines are remembered, the one
/// longest silent goes first.
#[derive(Debug, Clone, Default)]
pub struct BootLoops(Arc<Mutex<Loops>>);

impl BootLoops {
    /// Lets a node try again at once, and forgets what it did: somebody asked for it, its power was switched, or it has
    /// a new order. Gives whether it was kept out of a loop.
    pub fn release(&self, macs: &[MacAddr]) -> bool {
        let (mut loops, at) = (self.lock(), now());
        // Every MAC is let go, whatever the first one says.
        macs.iter().fold(false, |held, mac| loops.release(*mac, at) || held)
    }

    /// Why a node is kept out of a loop, if it is.
    #[must_use]
    pub fn held(&self, entry: &BootEntry) -> Option<String> {
        let mac = entry.macs.first().copied()?;
        let loops = self.lock();
        let quarantine = loops.quarantined(mac, now())?;
        Some(format!("boot loop: {} {} times", quarantine.what, quarantine.times))
    }

    /// Takes in what a node did; gives what is to be told when its quarantine begins with it.
    pub(crate) fn saw(&self, entry: &BootEntry, what: &Sighted, at: UnixMillis) -> Option<Sighted> {
        let mac = entry.macs.first().copied()?;
        let quarantine = self.lock().saw(mac, what, at)?;
        tracing::warn!(
            node = %entry.node, what = quarantine.what, times = quarantine.times,
            "a boot loop: it gets no boot file for a while"
        );
        Some(Sighted::Looped { what: quarantine.what, times: quarantine.times })
    }

    fn lock(&self) -> MutexGuard<'_, Loops> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
