//! The kernel of a boot attempt was fetched whole: the moment after which a script must not go out a second time.

use std::net::Ipv4Addr;

use model::{BootIntent, Sighted};

use crate::state::{State, now};

/// A file went out whole: if it is the kernel of the node's attempt, that attempt has what it came for.
///
/// Over TFTP "whole" means that the client acknowledged the last block. Over HTTP it means the last byte our system
/// took, not the last the client acknowledged. What the client does afterwards
/// is no sign to wait for: UEFI ends a boot with a reset whether it had everything or not, a kernel without initrd is
/// started without another request, and the count of unacknowledged bytes (SIOCOUTQ) has no safe wrapper. A sign that
/// is missed would give an installer's script out a second time.
pub(crate) fn note_whole_file(state: &State, from: Ipv4Addr, path: &str) {
    let Some((entry, _network)) = state.entry_at(from) else { return };
    let at = now();
    // After a restart we do not know what the script said; the engine, asked again, says the same.
    let unanswered = state.attempts().unanswered(&entry, at);
    if let (Some(attempt), BootIntent::Ask, Some(mac)) =
        (unanswered, entry.intent, entry.macs.first())
    {
        // Late or none: the next fetch asks again.
        let _answer = state.ask_boot(&entry, (*mac, from), attempt, at);
    }
    let whole = state.attempts().fetched(&entry, path, at);
    if let Some(attempt) = whole {
        let what = Sighted::KernelWhole { path: path.to_owned() };
        state.saw_in(&entry, Some(attempt), at, what);
    }
}
