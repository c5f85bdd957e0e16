//! `/nodes/NAME/boots` and `/nodes/NAME/boots/ID`: what became of a node's boots, and all that was seen of one.

use api::{BootDetail, BootView};
use askama::Template;
use axum::{
    extract::{Path, rejection::PathRejection},
    response::{IntoResponse as _, Response},
};

use super::{Ask, Shell};
use crate::{
    error::ApiError,
    view::{
        Clock, Html,
        flight::{Flight, Said},
        node_href, sentence,
        time::duration,
    },
};

/// A boot in the list.
struct Row {
    href: String,
    at: String,
    took: String,
    text: String,
    /// Why it did not get on; empty when nothing is wrong.
    cause: String,
    failed: bool,
    /// Stages with how long each took.
    stages: Vec<(String, String)>,
    /// Address of its packets; empty when none are kept.
    packets: String,
}

#[derive(Template)]
#[template(path = "boots.html")]
struct List {
    shell: Shell,
    name: String,
    href: String,
    rows: Vec<Row>,
}

#[derive(Template)]
#[template(path = "boot.html")]
struct One {
    shell: Shell,
    name: String,
    href: String,
    row: Row,
    said: Vec<Said>,
    flight: Html,
}

pub(crate) async fn show(ask: Ask, Path(name): Path<String>) -> Response {
    ask.answer(list(&ask, &name).await)
}

pub(crate) async fn show_one(
    ask: Ask,
    boot: Result<Path<(String, i64)>, PathRejection>,
) -> Response {
    let page = match boot {
        Ok(Path((name, id))) => one(&ask, &name, id).await,
        Err(_) => Err(ApiError::NotFound("there is no such boot".to_owned())),
    };
    ask.answer(page)
}

async fn list(ask: &Ask, name: &str) -> Result<Response, ApiError> {
    let kept = ask.app.ask(ask.app.lab.boots(name)).await?;
    let lab = ask.app.ask(ask.app.lab.nodes(Some(name))).await?.lab;
    let clock = Clock::of(&ask.app);
    let page = List {
        shell: ask.shell(&lab, "overview"),
        href: node_href(&kept.node),
        rows: kept.boots.iter().map(|boot| Row::of(&kept.node, boot, &clock)).collect(),
        name: kept.node,
    };
    Ok(Html::of(&page).into_response())
}

async fn one(ask: &Ask, name: &str, id: i64) -> Result<Response, ApiError> {
    let BootDetail { node, boot, timeline } = ask.app.ask(ask.app.lab.boot(name, id)).await?;
    let lab = ask.app.ask(ask.app.lab.nodes(Some(name))).await?.lab;
    let clock = Clock::of(&ask.app);
    let page = One {
        shell: ask.shell(&lab, "overview"),
        href: node_href(&node),
        row: Row::of(&node, &boot, &clock),
        said: boot.diagnoses.iter().map(Said::of).collect(),
        flight: Html::of(&Flight::of_boot(&timeline, &clock)),
        name: node,
    };
    Ok(Html::of(&page).into_response())
}

impl Row {
    fn of(node: &str, boot: &BootView, clock: &Clock) -> Self {
        let stage = |stage: &api::BootStage| {
            let took = stage.to_ms.saturating_sub(stage.from_ms);
            (sentence(&stage.name).trim_end_matches('.').to_owned(), took_text(took))
        };
        let id = boot.id;
        Self {
            href: format!("{}/boots/{id}", node_href(node)),
            at: clock.second(boot.from_ms),
            took: took_text(boot.to_ms.saturating_sub(boot.from_ms)),
            text: sentence(&boot.text),
            cause: boot.diagnoses.first().map_or_else(String::new, |first| sentence(&first.cause)),
            failed: matches!(boot.outcome.as_str(), "failed" | "looped"),
            stages: boot.stages.iter().map(stage).collect(),
            packets: match boot.packets {
                true => format!("/api/v1{}/boots/{id}/pcap", node_href(node)),
                false => String::new(),
            },
        }
    }
}

/// A stage that was seen once took no time that could be told.
fn took_text(millis: i64) -> String {
    if millis <= 0 { "–".to_owned() } else { duration(millis) }
}
