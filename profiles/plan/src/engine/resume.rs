//! After a start: open switches go on, or are held where the world has moved on.

use std::time::Duration;

use model::{NodeName, UnixMillis};

use crate::{Engine, Output, Phase, step::Event};

/// Nobody waits this long past a phase's bound for a switch to go on by itself.
const TOO_LONG: Duration = Duration::from_secs(3_600);

impl Engine {
    /// After a start: enters the phase of every open switch again, or holds it where the configuration has changed
    /// under it.
    pub fn resume(&mut self, now: UnixMillis) -> Output {
        let mut output = Output::default();
        let open: Vec<NodeName> = self.open_nodes();
        for node in open {
            let event = match self.overtaken(&node, now) {
                Some(reason) => Event::Hold {
                    reason,
                    remedy: "look at what it would do now, and switch again".to_owned(),
                },
                None => Event::Entered,
            };
            self.advance(&node, event, now, &mut output);
        }
        output
    }

    /// Why an open switch may not go on with the configuration as it is now: nobody confirmed that. What has
    /// fetched its kernel already goes on to its end.
    fn overtaken(&self, node: &NodeName, now: UnixMillis) -> Option<String> {
        let state = self.nodes.get(node)?;
        let switch = state.open_switch()?;
        if matches!(switch.phase, Phase::Installing | Phase::Verifying) {
            return None;
        }
        let name = &switch.to.name;
        let away = now.since(switch.until);
        if away > TOO_LONG {
            let hours = away.as_secs() / 3_600;
            return Some(format!(
                "volund was down for {hours} h while it was on its way to {name}"
            ));
        }
        if let Some(why) = &state.spec.protected {
            return Some(format!("while volund was down, {node} was protected: {why}"));
        }
        if !state.spec.profiles.contains(name) {
            return Some(format!(
                "while volund was down, {name} was taken out of what {node} may be"
            ));
        }
        match self.profiles.get(name) {
            None => Some(format!("while volund was down, profile {name} was removed")),
            Some(to) if (to.kind, to.root) != (switch.to.kind, switch.to.root) => {
                Some(format!("while volund was down, profile {name} became one of another kind"))
            }
            Some(_) => None,
        }
    }
}
