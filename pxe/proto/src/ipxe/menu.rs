//! The menu for a person at the console. Without a key pressed it is a question that passes, and its default is what
//! would have happened anyway.

use std::fmt::Write;

use model::boot::{BootNetwork, Menu, MenuAct};

use super::{CHOOSE, SCRIPT_PATH};
use crate::{
    path,
    texts::{Asker, console},
};

/// The key that opens the menu: `m`.
const KEY: &str = "0x6d";
/// How long the open menu stands before its default is taken.
const CHOOSE_MS: u32 = 120_000;

/// The question, the menu and what its entries do; the label `default` follows, and is what happens otherwise.
pub(super) fn write(script: &mut String, menu: &Menu, network: &BootNetwork, asker: &Asker<'_>) {
    let node = asker.node;
    let ask_ms = u32::from(menu.timeout_s.clamp(1, 60)) * 1_000;
    let mut add = |line: std::fmt::Arguments<'_>| {
        script.write_fmt(line).expect("a String takes any text");
        script.push('\n');
    };
    add(format_args!(
        "prompt --key {KEY} --timeout {ask_ms} volund: {node}: m for the menu || goto default"
    ));
    add(format_args!("menu volund: {node}"));
    // The default comes first, whatever the list says, and only once.
    add(format_args!("item default Go on: the local disk, or what was ordered"));
    let items: Vec<_> = menu.items.iter().filter(|item| item.does != MenuAct::Local).collect();
    for (index, item) in items.iter().enumerate() {
        add(format_args!("item item{index} {}", label(&item.label)));
    }
    add(format_args!("choose --default default --timeout {CHOOSE_MS} choice || goto default"));
    add(format_args!("goto ${{choice}} || goto default"));
    for (index, item) in items.iter().enumerate() {
        add(format_args!(":item{index}"));
        add(format_args!("{}", act(&item.does, network, asker)));
        add(format_args!("goto default"));
    }
    add(format_args!(":default"));
}

/// An item without a text would be read as one without a label; a dash in front as an option.
fn label(text: &str) -> String {
    let text = console(text);
    let text = text.trim().trim_start_matches('-').trim_start();
    if text.is_empty() { "?".to_owned() } else { text.to_owned() }
}

/// One line that does what an entry says and comes back when it cannot.
fn act(does: &MenuAct, network: &BootNetwork, asker: &Asker<'_>) -> String {
    let failed = |what: &str| format!("echo volund: {what} failed, error ${{errno}}");
    match does {
        MenuAct::Local => "goto default".to_owned(),
        MenuAct::Shell => {
            "echo volund: leave the shell with exit && shell || echo volund: no shell here"
                .to_owned()
        }
        MenuAct::Chain { url } => {
            let url = foreign(url);
            format!("chain --autofree {url} || {}", failed(&url))
        }
        MenuAct::Tool { kernel } => {
            let url = path::url(network.http, kernel);
            format!("imgfree && kernel {url} && boot || {}", failed(&url))
        }
        MenuAct::Profile(profile) => {
            let url = path::url(network.http, SCRIPT_PATH);
            let (mac, name) = (asker.mac.hyphenated(), encoded(profile.as_str(), ""));
            format!(
                "chain --replace --autofree {url}?mac={mac}&{CHOOSE}={name} || {}",
                failed(&name)
            )
        }
    }
}

/// A URL of somebody else's as one word in which iPXE finds nothing to expand.
fn foreign(url: &str) -> String {
    encoded(url.trim(), ":/?&=+,@%")
}

/// Percent code for all but letters, digits, `-._~` and `also`.
fn encoded(text: &str, also: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let letter = char::from(byte);
        if byte.is_ascii_alphanumeric() || "-._~".contains(letter) || also.contains(letter) {
            out.push(letter);
        } else {
            write!(out, "%{byte:02X}").expect("a String takes any text");
        }
    }
    out
}
