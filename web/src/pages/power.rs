//! Power verbs of one node: the page that says what will happen, and the act.

use api::{PowerRequest, PowerVerb};
use askama::Template;
use axum::{
    Extension,
    extract::{Path, Query},
    response::{IntoResponse as _, Redirect, Response},
};
use serde::Deserialize;

use super::{Ask, Shell};
use crate::{
    auth::FlashLevel,
    error::ApiError,
    guard::Fields,
    view::{Html, RoleTag, node_href, role::power_word},
};

#[derive(Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    verb: String,
}

#[derive(Template)]
#[template(path = "power_confirm.html")]
struct Page {
    shell: Shell,
    href: String,
    verb: &'static str,
    question: String,
    happens: Vec<&'static str>,
    label: String,
    keep: &'static str,
    tag: RoleTag,
    power: &'static str,
    phase_open: bool,
}

pub(crate) async fn confirm(
    ask: Ask,
    Path(name): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Response {
    ask.answer(page(&ask, &name, &wanted.verb).await)
}

async fn page(ask: &Ask, name: &str, verb: &str) -> Result<Response, ApiError> {
    let verb = parse(verb)?;
    let detail = ask.app.ask(ask.app.lab.node(name)).await?;
    let lab = ask.app.ask(ask.app.lab.nodes(Some(name))).await?.lab;
    let node = &detail.node;
    let (question, happens, label, keep) = words(verb, &node.name);
    let page = Page {
        shell: ask.shell(&lab, "overview"),
        href: node_href(&node.name),
        verb: key(verb),
        question,
        happens,
        label,
        keep,
        tag: RoleTag::of_node(node),
        power: power_word(node.power),
        phase_open: node.phase.open,
    };
    Ok(Html::of(&page).into_response())
}

pub(crate) async fn act(
    ask: Ask,
    Path(name): Path<String>,
    Extension(fields): Extension<Fields>,
) -> Response {
    ask.answer(carry_out(&ask, name, &fields).await)
}

async fn carry_out(ask: &Ask, name: String, fields: &Fields) -> Result<Response, ApiError> {
    let verb = parse(fields.get("verb"))?;
    let confirmed = fields.get("confirmed") == "yes";
    let back = Redirect::to(&node_href(&name)).into_response();
    let request = PowerRequest { nodes: name, verb, confirmed };
    let outcome = ask.app.ask(ask.app.lab.power(&ask.caller, &request)).await?;
    let said = |result: &api::PowerResult| {
        let power = power_word(result.power);
        format!("{}: power reads {power}.", result.node)
    };
    let errors: Vec<String> =
        outcome.nodes.iter().filter_map(|result| result.error.clone()).collect();
    let level = if errors.is_empty() { FlashLevel::Note } else { FlashLevel::Fault };
    let text = outcome.nodes.iter().map(said).collect::<Vec<_>>().join(" ");
    ask.leave(level, text, errors);
    Ok(back)
}

fn parse(text: &str) -> Result<PowerVerb, ApiError> {
    match text {
        "on" => Ok(PowerVerb::On),
        "off" => Ok(PowerVerb::Off),
        "soft" => Ok(PowerVerb::Soft),
        "cycle" => Ok(PowerVerb::Cycle),
        other => Err(ApiError::refused(
            format!("{other:?} is no power verb"),
            "use on, off, soft or cycle",
        )),
    }
}

fn key(verb: PowerVerb) -> &'static str {
    match verb {
        PowerVerb::On => "on",
        PowerVerb::Off => "off",
        PowerVerb::Soft => "soft",
        PowerVerb::Cycle => "cycle",
    }
}

/// Question, what happens, label of the button, label of the safe one.
fn words(verb: PowerVerb, name: &str) -> (String, Vec<&'static str>, String, &'static str) {
    match verb {
        PowerVerb::On => (
            format!("Switch {name} on?"),
            vec!["Its BMC switches it on; it boots what its profile says."],
            format!("Switch {name} on"),
            "Leave it as it is",
        ),
        PowerVerb::Off => (
            format!("Cut the power of {name}?"),
            vec![
                "What runs on it ends at once, without being asked. Unsaved work is lost; this \
                 cannot be undone.",
                "Disks keep what was written to them. The profile stays as it is.",
            ],
            format!("Cut the power of {name}"),
            "Keep it running",
        ),
        PowerVerb::Soft => (
            format!("Shut {name} down?"),
            vec![
                "Its operating system is asked to shut down and may take its time or refuse.",
                "The profile stays as it is.",
            ],
            format!("Shut {name} down"),
            "Keep it running",
        ),
        PowerVerb::Cycle => (
            format!("Power cycle {name}?"),
            vec![
                "What runs on it ends at once, without being asked. Unsaved work is lost; this \
                 cannot be undone.",
                "Then it starts again and boots what its profile says.",
            ],
            format!("Power cycle {name}"),
            "Keep it running",
        ),
    }
}
