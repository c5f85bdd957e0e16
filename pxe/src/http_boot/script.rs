//! What a node boots, asked once and written in the dialect of the loader that asks.
//!
//! The wire is not authenticated: whoever can take a node's address can ask in its name. So a choice at the console is
//! passed on only when the node's menu offers it, once an attempt, and the engine judges it like a stranger's.

use std::{net::Ipv4Addr, sync::Arc};

use model::{
    BootAnswer, BootEntry, BootIntent, MacAddr, ProfileName, Sighted,
    boot::{AttemptId, BootAsk, BootNetwork, LocalBoot, MenuAct},
};
use pxe_proto::{
    attempt::DhcpOf,
    generated::Generated,
    grub, ipxe,
    pxelinux::{self, Over},
    texts,
};

use super::answer::Answer;
use crate::{
    calls::BootCall,
    state::{BOOT_ANSWER, State, now},
};

const PATH: &str = ipxe::SCRIPT_PATH;

/// A node that asks what to do.
pub(crate) struct Asker {
    pub(crate) entry: Arc<BootEntry>,
    pub(crate) network: BootNetwork,
    /// How it fetches the text.
    pub(crate) over: Over,
    /// The MAC it asks with, one of its own.
    pub(crate) mac: MacAddr,
    /// The address it asks from.
    pub(crate) from: Ipv4Addr,
}

impl Asker {
    fn for_text(&self) -> texts::Asker<'_> {
        let BootEntry { node, traits, .. } = &*self.entry;
        texts::Asker { node, mac: self.mac, local: traits.local, menu: traits.menu.as_ref() }
    }
}

/// The script of the node that has this address. The address is the proof, as far as there is one; a `mac` in
/// the query is only held against it.
pub(super) fn answer(state: &State, query: &str, from: Ipv4Addr) -> Answer {
    let Some((entry, network)) = state.entry_at(from) else {
        let why = format!("boot script asked from {from}, which is no node's address");
        state.saw_stranger(None, Some(from), Sighted::Refused { why });
        return Answer::not_found(PATH);
    };
    let asked = value(query, "mac");
    let mac = match asked.map(|text| text.replace("%3A", ":").replace("%3a", ":").parse()) {
        None => entry.macs.first().copied(),
        Some(Ok(mac)) => entry.macs.contains(&mac).then_some(mac),
        Some(Err(_)) => None,
    };
    let Some(mac) = mac else {
        let why = format!("boot script asked from {from} for a MAC that is not this node's");
        state.saw(&entry, Sighted::Refused { why });
        return Answer::not_found(PATH);
    };
    let asker = Asker { entry, network, over: Over::Http, mac, from };
    if let Some(choice) = value(query, ipxe::CHOOSE) {
        return Answer::text(200, PATH, choose(state, &asker, choice));
    }
    match decided(state, Generated::Ipxe, &asker) {
        Some(text) => Answer::text(200, PATH, text),
        None => Answer::not_found(PATH),
    }
}

/// The first value of `name` in a query.
fn value<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// A text of `kind` under a name that loaders ask for by themselves. May take as long as the engine may. `None`:
/// nothing is to be found under that name, which sends the loader on.
pub(crate) fn text(state: &State, kind: Generated, asker: &Asker) -> Option<String> {
    match kind {
        // It runs before the loader has an address: it gets one, and comes for the script.
        Generated::Ipxe => {
            Some(ipxe::autoexec(&asker.network, &asker.for_text(), asker.entry.intent))
        }
        Generated::Grub | Generated::Pxelinux => decided(state, kind, asker),
    }
}

/// What `asker` is to boot, as a text of `kind`. `None`: it is to go on by finding nothing.
fn decided(state: &State, kind: Generated, asker: &Asker) -> Option<String> {
    let entry = &asker.entry;
    let (attempt, answer) = decide(state, asker);
    let local_by_nothing = entry.traits.local == LocalBoot::NotFound && kind == Generated::Ipxe;
    if local_by_nothing && matches!(answer, BootAnswer::Local { .. }) {
        let what = format!("{}, by finding no script", told(&answer));
        state.saw_in(entry, Some(attempt), now(), Sighted::Script { what });
        return None;
    }
    let (text, what) = match write(kind, &answer, asker) {
        Ok(text) => (text, told(&answer)),
        Err(error) => {
            state.attempts().answered(entry, attempt, None);
            state.saw_in(entry, Some(attempt), now(), Sighted::Refused { why: error.to_string() });
            let why = "what it is to boot cannot be written, see the timeline".to_owned();
            let safe = BootAnswer::Local { why };
            let text = write(kind, &safe, asker);
            (text.expect("a local boot has neither arguments nor paths"), told(&safe))
        }
    };
    state.saw_in(entry, Some(attempt), now(), Sighted::Script { what });
    Some(text)
}

/// One attempt has one answer, in whatever dialect it is asked for.
fn decide(state: &State, asker: &Asker) -> (AttemptId, BootAnswer) {
    let Asker { entry, mac, from, .. } = asker;
    let at = now();
    let attempt = attempt(state, asker);
    let local = |why: &str| BootAnswer::Local { why: why.to_owned() };
    let answer = match entry.intent {
        BootIntent::NoBootFile | BootIntent::Local => {
            state.attempts().answered(entry, attempt, None);
            local("nothing else is ordered")
        }
        BootIntent::Ask => state
            .ask_boot(entry, (*mac, *from), attempt, at)
            .unwrap_or_else(|| local("no answer from the engine in time")),
    };
    (attempt, answer)
}

fn attempt(state: &State, asker: &Asker) -> AttemptId {
    let is_silent = state.silent_dhcp.contains(&asker.network.server);
    let dhcp = if is_silent { DhcpOf::Another } else { DhcpOf::Volund };
    state.attempts().at_script(&asker.entry, dhcp, now())
}

fn write(
    kind: Generated,
    answer: &BootAnswer,
    asker: &Asker,
) -> Result<String, texts::ScriptError> {
    let (network, whom) = (&asker.network, asker.for_text());
    match kind {
        Generated::Ipxe => ipxe::script(answer, network, &whom),
        Generated::Grub => grub::config(answer, network, &whom),
        Generated::Pxelinux => pxelinux::config(answer, network, &whom, asker.over),
    }
}

/// The script for a choice at the console: what the engine says to it, or why it is not even asked.
fn choose(state: &State, asker: &Asker, choice: &str) -> String {
    let entry = &asker.entry;
    let is_offered = |profile: &ProfileName| {
        let items = entry.traits.menu.iter().flat_map(|menu| &menu.items);
        items.map(|item| &item.does).any(|does| *does == MenuAct::Profile(profile.clone()))
    };
    let attempt = attempt(state, asker);
    let Some(profile) = choice.parse().ok().filter(is_offered) else {
        let why = format!("{} asked for a choice its menu does not offer", asker.from);
        state.saw_in(entry, Some(attempt), now(), Sighted::Refused { why });
        return ipxe::refused("the menu does not offer this", &asker.for_text());
    };
    let what = Sighted::Menu { choice: choice.to_owned() };
    state.saw_in(entry, Some(attempt), now(), what);
    let (node, mac, from) = (entry.node.clone(), asker.mac, asker.from);
    let ask = BootAsk { node, mac, from, attempt, at: now() };
    let answer = state.ask(BOOT_ANSWER, |reply| BootCall::Choose { ask, profile, reply });
    // What is started goes by the plain script, once the node has its order: a choice never gives a kernel.
    match answer {
        Some(BootAnswer::Wait { why }) => {
            let whom = texts::Asker { menu: None, ..asker.for_text() };
            let wait = BootAnswer::Wait { why };
            let text = ipxe::script(&wait, &asker.network, &whom);
            text.expect("waiting has no arguments")
        }
        Some(BootAnswer::Local { why }) => ipxe::refused(&why, &asker.for_text()),
        Some(BootAnswer::Kernel(_)) | None => {
            ipxe::refused("no answer in time, nothing was ordered", &asker.for_text())
        }
    }
}

fn told(answer: &BootAnswer) -> String {
    match answer {
        BootAnswer::Local { why } => format!("local boot ({why})"),
        BootAnswer::Wait { why } => format!("wait ({why})"),
        BootAnswer::Kernel(script) => script.title.clone(),
    }
}
