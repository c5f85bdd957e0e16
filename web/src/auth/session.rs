//! The table of sessions: in memory, bounded, 12 hours each. Asks no clock.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// How long a session lasts.
pub(crate) const SESSION_LIFE: Duration = Duration::from_secs(12 * 3_600);

/// At most this many sessions; the oldest ends when one more is opened.
const MAX_SESSIONS: usize = 1_024;

/// Who looks at a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Viewer {
    /// Session id.
    pub(crate) session: String,
    /// User name.
    pub(crate) user: String,
    /// What every form of this session carries.
    pub(crate) csrf: String,
}

/// A word from one request to the next page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flash {
    /// Whether something went wrong.
    pub(crate) level: FlashLevel,
    /// One sentence.
    pub(crate) text: String,
    /// More sentences.
    pub(crate) faults: Vec<String>,
}

/// How a word is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlashLevel {
    /// Done as asked.
    Note,
    /// Not, or not wholly.
    Fault,
}

struct Session {
    user: String,
    csrf: String,
    born: Instant,
    flash: Option<Flash>,
}

#[derive(Default)]
pub(super) struct Sessions {
    by_id: HashMap<String, Session>,
}

impl Sessions {
    pub(super) fn open(&mut self, now: Instant, id: String, user: &str, csrf: String) {
        self.by_id.retain(|_, session| is_alive(session, now));
        if self.by_id.len() >= MAX_SESSIONS {
            let oldest = self.by_id.iter().min_by_key(|(_, session)| session.born);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.by_id.remove(&oldest);
            }
        }
        let session = Session { user: user.to_owned(), csrf, born: now, flash: None };
        self.by_id.insert(id, session);
    }

    pub(super) fn find(&self, now: Instant, id: &str) -> Option<Viewer> {
        let session = self.by_id.get(id).filter(|session| is_alive(session, now))?;
        Some(Viewer {
            session: id.to_owned(),
            user: session.user.clone(),
            csrf: session.csrf.clone(),
        })
    }

    pub(super) fn close(&mut self, id: &str) {
        self.by_id.remove(id);
    }

    pub(super) fn leave_flash(&mut self, id: &str, flash: Flash) {
        if let Some(session) = self.by_id.get_mut(id) {
            session.flash = Some(flash);
        }
    }

    pub(super) fn take_flash(&mut self, id: &str) -> Option<Flash> {
        self.by_id.get_mut(id)?.flash.take()
    }
}

fn is_alive(session: &Session, now: Instant) -> bool {
    now.saturating_duration_since(session.born) < SESSION_LIFE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_after_twelve_hours() {
        let mut sessions = Sessions::default();
        let t0 = Instant::now();
        sessions.open(t0, "s".to_owned(), "smith", "c".to_owned());
        let almost = t0 + SESSION_LIFE - Duration::from_secs(1);
        assert_eq!(sessions.find(almost, "s").unwrap().user, "smith");
        assert_eq!(sessions.find(t0 + SESSION_LIFE, "s"), None);
    }

    #[test]
    fn one_session_too_many_ends_the_oldest() {
        let mut sessions = Sessions::default();
        let t0 = Instant::now();
        for number in 0..=MAX_SESSIONS {
            let now = t0 + Duration::from_millis(u64::try_from(number).unwrap());
            sessions.open(now, format!("s{number}"), "smith", "c".to_owned());
        }
        assert_eq!(sessions.by_id.len(), MAX_SESSIONS);
        assert_eq!(sessions.find(t0, "s0"), None);
        assert!(sessions.find(t0, "s1").is_some());
    }

    #[test]
    fn a_word_for_the_next_page_is_taken_once() {
        let mut sessions = Sessions::default();
        let t0 = Instant::now();
        sessions.open(t0, "s".to_owned(), "smith", "c".to_owned());
        let flash =
            Flash { level: FlashLevel::Note, text: "switch started".to_owned(), faults: vec![] };
        sessions.leave_flash("s", flash.clone());
        assert_eq!(sessions.take_flash("s"), Some(flash));
        assert_eq!(sessions.take_flash("s"), None);
    }
}
