//! What a node boots, asked once and written in the dialect of the loader that asks.

use std::{net::Ipv4Addr, sync::Arc};

use model::{
    BootAnswer, BootEntry, BootIntent, MacAddr, Sighted,
    boot::{AttemptId, BootNetwork},
};
use pxe_proto::{attempt::DhcpOf, generated::Generated, ipxe};

use super::answer::Answer;
use crate::state::{State, now};

/// A node that asks what to do.
pub(crate) struct Asker {
    pub(crate) entry: Arc<BootEntry>,
    pub(crate) network: BootNetwork,
    /// The MAC it asks with, one of its own.
    pub(crate) mac: MacAddr,
    /// The address it asks from.
    pub(crate) from: Ipv4Addr,
}

/// The script of the node that has this address. The address is the proof, as far as there is one; a `mac` in
/// the query is only held against it.
pub(super) fn answer(state: &State, query: &str, from: Ipv4Addr) -> Answer {
    const PATH: &str = ipxe::SCRIPT_PATH;
    let Some((entry, network)) = state.entry_at(from) else {
        let why = format!("boot script asked from {from}, which is no node's address");
        state.saw_stranger(None, Some(from), Sighted::Refused { why });
        return Answer::not_found(PATH);
    };
    let asked = query.split('&').find_map(|pair| pair.strip_prefix("mac="));
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
    let asker = Asker { entry, network, mac, from };
    match text(state, Generated::Ipxe, &asker) {
        Some(text) => Answer::text(200, PATH, text),
        None => Answer::not_found(PATH),
    }
}

/// What `asker` is to boot, as a text of `kind`. Asks the engine when the entry says so, and so may take as long as
/// the engine may. `None`: nothing is to be found under that name, which sends the loader on.
pub(crate) fn text(state: &State, kind: Generated, asker: &Asker) -> Option<String> {
    let Asker { entry, .. } = asker;
    match kind {
        Generated::Ipxe => (),
        Generated::Grub | Generated::Pxelinux => return None,
    }
    let at = now();
    let (attempt, answer) = decide(state, asker);
    let (text, what) = match write(&answer, asker) {
        Ok(text) => (text, told(&answer)),
        Err(error) => {
            state.attempts().answered(entry, attempt, None);
            state.saw_in(entry, Some(attempt), at, Sighted::Refused { why: error.to_string() });
            let why = "the profile's kernel arguments are refused, see the timeline".to_owned();
            let safe = BootAnswer::Local { why };
            let text = write(&safe, asker);
            (text.expect("a local boot has no arguments"), told(&safe))
        }
    };
    state.saw_in(entry, Some(attempt), now(), Sighted::Script { what });
    Some(text)
}

/// One attempt has one answer, in whatever dialect it is asked for.
fn decide(state: &State, asker: &Asker) -> (AttemptId, BootAnswer) {
    let Asker { entry, network, mac, .. } = asker;
    let at = now();
    let is_silent = state.silent_dhcp.contains(&network.server);
    let dhcp = if is_silent { DhcpOf::Another } else { DhcpOf::Volund };
    let attempt = state.attempts().at_script(entry, dhcp, at);
    let local = |why: &str| BootAnswer::Local { why: why.to_owned() };
    let answer = match entry.intent {
        BootIntent::NoBootFile | BootIntent::Local => {
            state.attempts().answered(entry, attempt, None);
            local("nothing else is ordered")
        }
        BootIntent::Ask => state
            .ask_boot(entry, *mac, attempt, at)
            .unwrap_or_else(|| local("no answer from the engine in time")),
    };
    (attempt, answer)
}

fn write(answer: &BootAnswer, asker: &Asker) -> Result<String, ipxe::ScriptError> {
    ipxe::script(answer, &asker.network, &asker.entry.node, asker.mac)
}

fn told(answer: &BootAnswer) -> String {
    match answer {
        BootAnswer::Local { why } => format!("local boot ({why})"),
        BootAnswer::Wait { why } => format!("wait ({why})"),
        BootAnswer::Kernel(script) => script.title.clone(),
    }
}
