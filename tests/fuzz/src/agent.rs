//! What the agent on a node reads: its kernel's command line, and the server's answers.

use std::hint::black_box;

#[allow(dead_code, reason = "the agent's own file; not all of it is needed here")]
#[path = "../../../inventory/agent/src/cmdline.rs"]
mod command_line;
#[allow(dead_code, reason = "the agent's own file; not all of it is needed here")]
#[path = "../../../inventory/agent/src/http.rs"]
mod exchange;

/// `/proc/cmdline`.
pub(super) fn cmdline(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match command_line::parse(&text) {
        Ok(assignment) => {
            assert!((1..=32).contains(&assignment.prefix));
            black_box(assignment.server_is_local());
        }
        Err(error) => {
            let ticket = text.split_ascii_whitespace().rfind(|w| w.starts_with("volund.ticket="));
            let secret =
                ticket.and_then(|word| word.split_once('=')).map_or("", |(_, value)| value);
            // Shorter ones may be a word of the message, and what stands in another argument too may be shown.
            let is_secret = secret.len() > 24 && text.matches(secret).count() == 1;
            assert!(!is_secret || !error.to_string().contains(secret), "it is told: {error}");
        }
    }
}

/// A whole answer: what is read of it does not depend on whether the connection has ended, once its length is known.
pub(super) fn answer(data: &[u8]) {
    let open = exchange::parse(data, false);
    let ended = exchange::parse(data, true);
    if let Ok(Some(reply)) = open {
        assert!((100..600).contains(&reply.status));
        assert_eq!(ended.ok().flatten(), Some(reply));
    } else if let Ok(reply) = ended {
        assert!(reply.is_some(), "the end has come and more is waited for");
    }
}
