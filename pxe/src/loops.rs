//! Who is kept out of a boot loop, shared between the services and whoever may let a machine out of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{BootEntry, BootIntent, MacAddr, Sighted, UnixMillis};
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
        macs.iter().filter(|mac| loops.release(**mac, at)).count() > 0
    }

    /// Why a node is kept out of a loop, if it is.
    #[must_use]
    pub fn held(&self, entry: &BootEntry) -> Option<String> {
        let mac = entry.macs.first().copied()?;
        let loops = self.lock();
        let quarantine = loops.quarantined(mac, now())?;
        Some(format!("boot loop: {} {} times", quarantine.what, quarantine.times))
    }

    /// What a node is to be answered by: its entry, or, while it is kept out of a loop, one with an address and no boot
    /// file.
    pub(crate) fn answered_by(&self, entry: &Arc<BootEntry>) -> Arc<BootEntry> {
        if self.held(entry).is_none() {
            return Arc::clone(entry);
        }
        Arc::new(BootEntry { intent: BootIntent::NoBootFile, ..BootEntry::clone(entry) })
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

#[cfg(test)]
mod tests {
    use model::boot::BootTraits;

    use super::*;

    fn entry(last: u8) -> BootEntry {
        BootEntry {
            node: format!("bld-00{last}").parse().unwrap(),
            macs: vec![MacAddr([2, 0, 0, 0, 0, last]), MacAddr([2, 0, 0, 0, 1, last])],
            address: [192, 0, 2, last].into(),
            intent: BootIntent::Ask,
            attempt: None,
            traits: BootTraits::default(),
        }
    }

    #[test]
    fn a_machine_in_a_loop_is_answered_without_a_boot_file_until_it_is_let_go() {
        let loops = BootLoops::default();
        let (one, other) = (Arc::new(entry(1)), Arc::new(entry(2)));
        let fetched = Sighted::TftpDone { file: "a.efi".to_owned(), bytes: 9, millis: 1 };
        let told = [40, 30, 20, 10]
            .map(|ago_s| loops.saw(&one, &fetched, UnixMillis(now().0 - 1_000 * ago_s)).is_some());
        assert_eq!(told, [false, false, true, false], "told once");
        assert_eq!(loops.held(&one).as_deref(), Some("boot loop: a.efi fetched 3 times"));
        let kept_out = loops.answered_by(&one);
        assert_eq!((kept_out.intent, kept_out.address), (BootIntent::NoBootFile, one.address));
        assert!(Arc::ptr_eq(&loops.answered_by(&other), &other));
        assert!(loops.release(&one.macs) && !loops.release(&one.macs));
        assert!(Arc::ptr_eq(&loops.answered_by(&one), &one));
    }
}
