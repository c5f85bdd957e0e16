//! What a switch would do, in sentences, before anybody says yes.

use std::collections::BTreeMap;

use model::{NodeName, ProfileName, RootKind};

use crate::{NodeState, ProfileKind, ProfileSpec, engine::refuse_wish, input::Refused};

/// What a switch would do to one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The node.
    pub node: NodeName,
    /// The profile it has settled in.
    pub from: Option<ProfileName>,
    /// Power as last read.
    pub on: Option<bool>,
    /// Sentences, in order.
    pub steps: Vec<String>,
    /// Why it cannot be done.
    pub blocked: Vec<String>,
    /// Whether running work or the content of a disk may be lost.
    pub destructive: bool,
}

/// What switching `node` to `profile` would do. Changes nothing.
#[must_use]
pub fn preview(
    profiles: &BTreeMap<ProfileName, ProfileSpec>,
    state: Option<&NodeState>,
    node: &NodeName,
    profile: &ProfileName,
) -> Preview {
    let on = state.and_then(|state| state.power).map(|(on, _)| on);
    let installs = profiles.get(profile).is_some_and(|to| to.root == RootKind::Installer);
    let blocked = refuse_wish(profiles, state, node, profile).map(|refused| match refused {
        Refused::Unknown(text)
        | Refused::Conflict(text)
        | Refused::Forbidden(text)
        | Refused::Unavailable(text) => text,
    });
    Preview {
        node: node.clone(),
        from: state.and_then(|state| state.settled.clone()),
        on,
        steps: profiles.get(profile).map_or_else(Vec::new, |to| steps(node, to, on)),
        blocked: blocked.into_iter().collect(),
        destructive: on != Some(false) || installs,
    }
}

fn steps(node: &NodeName, to: &ProfileSpec, on: Option<bool>) -> Vec<String> {
    let mut steps = Vec::new();
    let soft = to.bounds.soft_off.as_secs();
    steps.push(match on {
        Some(true) => format!(
            "{node} is on: it is asked to shut down; \
             if it does not within {soft} s, its power is cut"
        ),
        Some(false) => format!("{node} is off"),
        None => {
            format!("nobody could read the power of {node} yet; if it is on it is shut down first")
        }
    });
    steps.push(match to.kind {
        ProfileKind::Local => "it is switched on and boots its own disk".to_owned(),
        ProfileKind::Inspect => {
            "it is switched on, boots volund's agent over the network and reports its hardware"
                .to_owned()
        }
        ProfileKind::Linux => {
            format!("it is switched on and boots {} over the network", to.name)
        }
    });
    steps.push(match to.root {
        RootKind::Disk => "no disk is written by volund".to_owned(),
        RootKind::Ram => "it runs from memory; no disk is written by volund".to_owned(),
        RootKind::Installer => {
            "it is an installer: what it writes to disk cannot be undone".to_owned()
        }
    });
    steps
}
