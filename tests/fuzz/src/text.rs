//! What people write: configuration, lists of nodes, names and numbers.

use std::{cell::RefCell, hint::black_box};

use model::{EnclosureName, MacAddr, NodeName, ProfileName, Serial, Ticket, Uuid, hex, hostlist};
use volund::config::{self, CheckOptions, SecretRef, Subnet, duration};

use super::scratch::Scratch;

thread_local! {
    static FOLDER: RefCell<Option<Scratch>> = const { RefCell::new(None) };
}

/// `volund.toml`. No secret is fetched: a `cmd:` out of a fuzzer's hands is not to be run.
pub(super) fn config(data: &[u8]) {
    FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(Scratch::new);
        folder.write("volund.toml", data);
        let options = CheckOptions { resolve_secrets: false, look_for_files: false };
        match config::check(folder.path(), options) {
            Ok(summary) => {
                black_box(summary);
            }
            Err(faults) => {
                assert!(!faults.0.is_empty());
                black_box(faults.to_string());
            }
        }
    });
}

/// A list of nodes, as in `bld-[003,006-010]`: what is folded names the same nodes again.
pub(super) fn hostlist(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match hostlist::parse(&text) {
        Ok(mut names) => {
            assert!((1..=hostlist::MAX_NAMES).contains(&names.len()));
            let mut again = hostlist::parse(&hostlist::fold(&names)).expect("we wrote it");
            names.sort();
            again.sort();
            assert_eq!(again, names);
        }
        Err(error) => {
            black_box(error.to_string());
        }
    }
}

/// Everything else that is read out of a word.
pub(super) fn words(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(mac) = text.parse::<MacAddr>() {
        assert_eq!((mac.to_string().parse(), mac.hyphenated().parse()), (Ok(mac), Ok(mac)));
    }
    if let Ok(uuid) = text.parse::<Uuid>() {
        assert_eq!(uuid.to_string().parse(), Ok(uuid));
        assert_eq!(uuid.swapped().swapped(), uuid);
    }
    if let Ok(ticket) = text.parse::<Ticket>() {
        assert_eq!(ticket.reveal().parse(), Ok(ticket.clone()));
        assert!(!format!("{ticket} {ticket:?}").contains(ticket.reveal()));
    }
    if let Ok(bytes) = hex::decode(&text) {
        assert_eq!(hex::encode(&bytes), text.to_ascii_lowercase());
    }
    if let Ok(subnet) = text.parse::<Subnet>() {
        assert_eq!(subnet.to_string().parse(), Ok(subnet));
        assert!(subnet.contains(subnet.last()) && !subnet.can_hold(subnet.last()));
    }
    if let Ok(name) = text.parse::<NodeName>() {
        assert_eq!(name.as_str(), text);
    }
    black_box(text.parse::<EnclosureName>().is_ok());
    black_box(text.parse::<ProfileName>().is_ok());
    black_box(duration::parse(&text).is_ok());
    if let Some(serial) = Serial::new(&text) {
        assert_eq!(Serial::new(serial.as_str()).as_ref(), Some(&serial));
    }
    if let Ok(reference) = text.parse::<SecretRef>() {
        black_box(reference.to_string());
    }
}
