//! A wish becomes a switch, or is refused.

use std::collections::BTreeMap;

use model::{NodeName, ProfileName, UnixMillis};

use crate::{
    Engine, NodeState, Output, Phase, ProfileSpec, Record, Replied, Reply, Switch, SwitchId, Token,
    engine::transition, input::Refused, step::Event, switch::Beginning,
};

/// A wish, whole.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) node: NodeName,
    pub(crate) profile: ProfileName,
    pub(crate) by: String,
    pub(crate) plan_hash: Option<String>,
    pub(crate) id: SwitchId,
}

impl Engine {
    pub(crate) fn wish(&mut self, token: Token, wish: Wish, now: UnixMillis, output: &mut Output) {
        let what = match refuse_wish(
            &self.profiles,
            self.nodes.get(&wish.node),
            &wish.node,
            &wish.profile,
        ) {
            Some(refused) => Err(refused),
            None => self.begin(wish, now, output),
        };
        output.replies.push(Reply { token, what: Replied::Switch(what) });
    }

    fn begin(
        &mut self,
        wish: Wish,
        now: UnixMillis,
        output: &mut Output,
    ) -> Result<SwitchId, Refused> {
        let Wish { node, profile, by, plan_hash, id } = wish;
        let unknown = || Refused::Unknown(format!("there is no node {node} or profile {profile}"));
        let to = self.profiles.get(&profile).cloned().ok_or_else(unknown)?;
        let state = self.nodes.get_mut(&node).ok_or_else(unknown)?;
        let (from, efi) = (state.settled.clone(), state.spec.efi);
        let beginning = Beginning {
            id: id.clone(),
            node: node.clone(),
            from,
            to,
            efi,
            by: by.clone(),
            plan_hash,
        };
        let switch = Switch::begin(beginning, now);
        debug_assert_eq!(switch.phase, Phase::Guarding);
        output.records.push(Record::Wish { node: node.clone(), profile, by, at: now });
        output.records.push(Record::Switch(Box::new(switch.clone())));
        output.records.push(transition(&switch, now));
        state.switch = Some(switch);
        self.advance(&node, Event::Entered, now, output);
        Ok(id)
    }
}

/// Why `node` cannot be switched to `profile` now, if so. Also what a preview says.
#[must_use]
pub fn refuse_wish(
    profiles: &BTreeMap<ProfileName, ProfileSpec>,
    state: Option<&NodeState>,
    node: &NodeName,
    profile: &ProfileName,
) -> Option<Refused> {
    let Some(state) = state else {
        return Some(no_such_node(node));
    };
    if !profiles.contains_key(profile) {
        let text = format!("there is no profile {profile}; `volund profiles` lists them");
        return Some(Refused::Unknown(text));
    }
    if !state.spec.profiles.contains(profile) {
        let text = format!("{node} may not become {profile}; add it to the node's `profiles` list");
        return Some(Refused::Forbidden(text));
    }
    if let Some(refused) = state.refuse_protected() {
        return Some(refused);
    }
    if let Some(owned) = state.spec.owned.as_ref().filter(|owned| owned.profile != *profile) {
        let (place, assigned) = (&owned.place, &owned.profile);
        let text =
            format!("the profile of {node} is owned by {place} ({assigned}): change it there");
        return Some(Refused::Conflict(text));
    }
    state.refuse_busy()
}

impl NodeState {
    /// Refused while a switch or a power verb is under way: both act on the same BMC.
    pub(super) fn refuse_busy(&self) -> Option<Refused> {
        let node = &self.spec.name;
        if let Some(open) = self.open_switch() {
            let (to, phase) = (&open.to.name, open.phase);
            let text =
                format!("{node} is already on its way to {to} ({phase}); wait until it ends");
            return Some(Refused::Conflict(text));
        }
        self.order.is_some().then(|| {
            Refused::Conflict(format!("a power verb on {node} is under way; try again in a moment"))
        })
    }

    /// Refused because its owner protects it.
    pub(super) fn refuse_protected(&self) -> Option<Refused> {
        let (node, reason) = (&self.spec.name, self.spec.protected.as_ref()?);
        Some(Refused::Forbidden(format!("{node} is protected: {reason}; lift `protect` first")))
    }
}

pub(super) fn no_such_node(node: &NodeName) -> Refused {
    Refused::Unknown(format!("there is no node {node}; `volund nodes` lists them"))
}
