//! Boot attempts: which requests of a node belong together.
//!
//! An attempt starts with the first request of a firmware stage (ROM, UEFI HTTP boot or iPXE; an iPXE in the
//! ROM is the first to speak). It ends when a later one follows a kernel that was fetched whole, or at its
//! deadline. Everything else stays inside: repeated DHCP, the second DHCP of a chained iPXE, five fetches of the
//! script. The transaction id is no help: old ROMs make it from their MAC and use the same one at every boot.

use std::{collections::BTreeMap, time::Duration};

use model::{
    BootEntry, NodeName, UnixMillis,
    boot::{Attempt, AttemptId},
};

/// Longest attempt by default.
pub const DEADLINE: Duration = Duration::from_secs(15 * 60);

/// The last attempt of every node that asked for anything.
#[derive(Debug)]
pub struct Attempts {
    deadline: Duration,
    nodes: BTreeMap<NodeName, Tracked>,
}

/// The last attempt of one node, and the kernel it was told to fetch.
#[derive(Debug)]
struct Tracked {
    attempt: Attempt,
    kernel: Expected,
}

/// Who gives addresses on a node's network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DhcpOf {
    /// We: every boot is heard from its first DHCP request on.
    Volund,
    /// Another server: a boot is first heard when it fetches something.
    Another,
}

/// What we know of the kernel of an attempt.
#[derive(Debug, PartialEq, Eq)]
enum Expected {
    /// volund was restarted since the attempt began: what it was told is not known here.
    Unknown,
    /// Nobody asked yet, or the answer was no kernel.
    None,
    /// URL path of the kernel.
    Path(String),
}

impl Attempts {
    /// No attempt yet. Nodes bring their recorded one in [`BootEntry::attempt`].
    #[must_use]
    pub fn new(deadline: Duration) -> Self {
        Self { deadline, nodes: BTreeMap::new() }
    }

    /// A firmware-stage request came (DHCP of ROM or iPXE, UEFI HTTP boot): the attempt it belongs to, new or
    /// not.
    pub fn at_firmware(&mut self, entry: &BootEntry, now: UnixMillis) -> AttemptId {
        let deadline = self.deadline;
        match self.tracked(entry) {
            Some(last) if is_open(last, deadline, now) && last.attempt.kernel_whole.is_none() => {
                last.attempt.id
            }
            last => {
                let id = next_id(last.map(|last| last.attempt.id), now);
                self.begin(entry, id)
            }
        }
    }

    /// The script was asked for: the attempt it belongs to.
    ///
    /// Where our DHCP is heard, nothing but a DHCP request of firmware begins the attempt after a whole kernel, so
    /// that no program on a running node can; a fetch stays in the attempt that is over, deadline or not. Where
    /// another server gives addresses, the fetch itself is the first request of a new boot. It begins an attempt
    /// too where none is open (a chained iPXE may use its ROM's lease without asking again), and when the kernel
    /// was whole before a restart of volund: that DHCP may have come before it, and an installer's script must
    /// not go out twice.
    pub fn at_script(&mut self, entry: &BootEntry, dhcp: DhcpOf, now: UnixMillis) -> AttemptId {
        let deadline = self.deadline;
        match self.tracked(entry) {
            Some(last) if stays(last, dhcp, deadline, now) => last.attempt.id,
            last => {
                let id = next_id(last.map(|last| last.attempt.id), now);
                self.begin(entry, id)
            }
        }
    }

    /// The attempt that is open now, if any; begins none.
    pub fn current(&mut self, entry: &BootEntry, now: UnixMillis) -> Option<AttemptId> {
        let deadline = self.deadline;
        let last = self.tracked(entry)?;
        is_open(last, deadline, now).then_some(last.attempt.id)
    }

    /// The attempt was answered: with this kernel path, or with none.
    pub fn answered(&mut self, entry: &BootEntry, attempt: AttemptId, kernel: Option<&str>) {
        if let Some(last) = self.tracked(entry).filter(|last| last.attempt.id == attempt) {
            last.kernel = kernel.map_or(Expected::None, |path| Expected::Path(path.to_owned()));
        }
    }

    /// The open attempt whose kernel we do not know although it may have been told one (volund was restarted
    /// in between): the engine, asked again, gives the same answer.
    pub fn unanswered(&mut self, entry: &BootEntry, now: UnixMillis) -> Option<AttemptId> {
        let open = self.current(entry, now)?;
        let last = self.tracked(entry)?;
        let may_matter = last.kernel == Expected::Unknown && last.attempt.kernel_whole.is_none();
        may_matter.then_some(open)
    }

    /// A file went out whole. The attempt whose kernel it is, the first time that is so.
    pub fn fetched(&mut self, entry: &BootEntry, path: &str, now: UnixMillis) -> Option<AttemptId> {
        let last = self.tracked(entry)?;
        let is_kernel = matches!(&last.kernel, Expected::Path(kernel) if kernel == path);
        if !is_kernel || last.attempt.kernel_whole.is_some() {
            return None;
        }
        last.attempt.kernel_whole = Some(now);
        Some(last.attempt.id)
    }

    /// The node's last attempt, taken from its entry the first time.
    fn tracked(&mut self, entry: &BootEntry) -> Option<&mut Tracked> {
        if let Some(attempt) = entry.attempt
            && !self.nodes.contains_key(&entry.node)
        {
            self.nodes.insert(entry.node.clone(), Tracked { attempt, kernel: Expected::Unknown });
        }
        self.nodes.get_mut(&entry.node)
    }

    fn begin(&mut self, entry: &BootEntry, id: AttemptId) -> AttemptId {
        let attempt = Attempt { id, kernel_whole: None };
        self.nodes.insert(entry.node.clone(), Tracked { attempt, kernel: Expected::None });
        id
    }
}

/// Whether a fetch of the script belongs to the last attempt.
fn stays(last: &Tracked, dhcp: DhcpOf, deadline: Duration, now: UnixMillis) -> bool {
    match (last.attempt.kernel_whole, dhcp) {
        (Some(_), DhcpOf::Volund) => !was_whole_before(last),
        (Some(_), DhcpOf::Another) => false,
        (None, _) => is_open(last, deadline, now),
    }
}

/// Before its deadline.
fn is_open(last: &Tracked, deadline: Duration, now: UnixMillis) -> bool {
    now.since(last.attempt.id.0) < deadline
}

/// Its kernel was fetched whole from the volund before this one.
fn was_whole_before(last: &Tracked) -> bool {
    last.kernel == Expected::Unknown && last.attempt.kernel_whole.is_some()
}

/// The moment, but never one that was used before: a clock may step back.
fn next_id(last: Option<AttemptId>, now: UnixMillis) -> AttemptId {
    let after = last.map_or(i64::MIN, |last| last.0.0.saturating_add(1));
    AttemptId(UnixMillis(now.0.max(after)))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use model::BootIntent;
    use proptest::prelude::*;

    use super::*;

    fn entry(attempt: Option<Attempt>) -> BootEntry {
        BootEntry {
            node: "bld-003".parse().unwrap(),
            macs: vec![],
            address: Ipv4Addr::new(192, 0, 2, 77),
            intent: BootIntent::Ask,
            attempt,
            traits: model::boot::BootTraits::default(),
        }
    }

    fn at(seconds: i64) -> UnixMillis {
        UnixMillis(seconds * 1000)
    }

    #[test]
    fn rom_ipxe_and_script_are_one_attempt() {
        let (entry, mut attempts) = (entry(None), Attempts::new(DEADLINE));
        let first = attempts.at_firmware(&entry, at(100));
        assert_eq!(first, AttemptId(at(100)));
        assert_eq!(attempts.unanswered(&entry, at(100)), None, "nobody asked yet");
        for second in [101, 104, 112, 131] {
            assert_eq!(attempts.at_firmware(&entry, at(second)), first, "DHCP again");
            assert_eq!(
                attempts.at_script(&entry, DhcpOf::Volund, at(second)),
                first,
                "script again"
            );
        }
    }

    #[test]
    fn only_firmware_dhcp_begins_the_boot_after_a_whole_kernel_where_we_hear_dhcp() {
        for (dhcp, is_new) in [(DhcpOf::Volund, false), (DhcpOf::Another, true)] {
            let (entry, mut attempts) = (entry(None), Attempts::new(DEADLINE));
            let first = attempts.at_script(&entry, dhcp, at(100));
            assert_eq!(attempts.at_script(&entry, dhcp, at(101)), first, "repeated");
            attempts.answered(&entry, first, Some("/i/inspect/vmlinuz"));
            attempts.fetched(&entry, "/i/inspect/vmlinuz", at(102));
            for later in [110, 100_000] {
                let id = attempts.at_script(&entry, dhcp, at(later));
                assert_eq!(id != first, is_new, "{dhcp:?} {later} s");
            }
            assert!(attempts.at_firmware(&entry, at(100_001)) > first);
        }
    }

    #[test]
    fn a_firmware_request_after_a_whole_kernel_is_one_new_attempt() {
        let (entry, mut attempts) = (entry(None), Attempts::new(DEADLINE));
        let first = attempts.at_firmware(&entry, at(100));
        attempts.answered(&entry, first, Some("/i/inspect/vmlinuz"));
        assert_eq!(attempts.fetched(&entry, "/i/inspect/initrd", at(103)), None);
        assert_eq!(attempts.fetched(&entry, "/i/inspect/vmlinuz", at(104)), Some(first));
        assert_eq!(attempts.fetched(&entry, "/i/inspect/vmlinuz", at(105)), None, "told once");
        assert_eq!(attempts.at_script(&entry, DhcpOf::Volund, at(106)), first, "a late repetition");

        let discover = attempts.at_firmware(&entry, at(160));
        let request = attempts.at_firmware(&entry, at(164));
        assert_eq!((discover, request), (AttemptId(at(160)), discover));
        assert_eq!(
            attempts.fetched(&entry, "/i/inspect/vmlinuz", at(170)),
            None,
            "not answered yet"
        );
    }

    #[test]
    fn an_attempt_ends_at_its_deadline() {
        let (entry, mut attempts) = (entry(None), Attempts::new(Duration::from_secs(60)));
        let first = attempts.at_firmware(&entry, at(100));
        assert_eq!(attempts.current(&entry, at(159)), Some(first));
        assert_eq!(attempts.current(&entry, at(160)), None);
        assert_eq!(attempts.at_script(&entry, DhcpOf::Volund, at(160)), AttemptId(at(160)));
    }

    #[test]
    fn a_restart_of_volund_begins_no_attempt() {
        let recorded = Attempt { id: AttemptId(at(100)), kernel_whole: None };
        let (entry, mut attempts) = (entry(Some(recorded)), Attempts::new(DEADLINE));
        assert_eq!(attempts.unanswered(&entry, at(101)), Some(recorded.id), "ask the engine again");
        attempts.answered(&entry, recorded.id, Some("/k"));
        assert_eq!(attempts.unanswered(&entry, at(102)), None);
        assert_eq!(attempts.at_firmware(&entry, at(103)), recorded.id);
        assert_eq!(attempts.fetched(&entry, "/k", at(104)), Some(recorded.id));
    }

    #[test]
    fn a_recorded_whole_kernel_ends_the_recorded_attempt() {
        let recorded = Attempt { id: AttemptId(at(100)), kernel_whole: Some(at(110)) };
        let (entry, mut attempts) = (entry(Some(recorded)), Attempts::new(DEADLINE));
        assert_eq!(attempts.at_firmware(&entry, at(120)), AttemptId(at(120)));

        // The DHCP of the new boot may have gone to the volund before.
        let mut restarted = Attempts::new(DEADLINE);
        let second = restarted.at_script(&entry, DhcpOf::Volund, at(121));
        assert_eq!(second, AttemptId(at(121)));
        assert_eq!(restarted.at_script(&entry, DhcpOf::Volund, at(122)), second, "told once");
    }

    #[test]
    fn a_clock_that_steps_back_names_no_attempt_twice() {
        let (entry, mut attempts) = (entry(None), Attempts::new(DEADLINE));
        let first = attempts.at_firmware(&entry, at(100));
        attempts.answered(&entry, first, Some("/k"));
        assert!(attempts.fetched(&entry, "/k", at(101)).is_some());
        assert_eq!(attempts.at_firmware(&entry, at(50)), AttemptId(UnixMillis(100_001)));
    }

    proptest! {
        /// Whatever comes in whatever order: ids only grow, and a second id needs a whole kernel or a deadline.
        #[test]
        fn ids_only_grow_and_never_without_a_cause(
            steps in prop::collection::vec((0..4_u8, 0..400_i64), 0..60),
        ) {
            let (entry, mut attempts) = (entry(None), Attempts::new(Duration::from_secs(900)));
            let (mut now, mut last, mut whole) = (1_000, None, false);
            for (step, later) in steps {
                now += later;
                let id = match step {
                    0 => attempts.at_firmware(&entry, at(now)),
                    1 => attempts.at_script(&entry, DhcpOf::Volund, at(now)),
                    2 => {
                        if let Some(id) = last {
                            attempts.answered(&entry, id, Some("/k"));
                        }
                        continue;
                    }
                    _ => {
                        whole |= attempts.fetched(&entry, "/k", at(now)).is_some();
                        continue;
                    }
                };
                if last.is_some_and(|last| last != id) {
                    let last = last.unwrap();
                    prop_assert!(id > last);
                    prop_assert!(whole || at(now).since(last.0) >= Duration::from_secs(900));
                    whole = false;
                }
                last = Some(id);
            }
        }
    }
}
