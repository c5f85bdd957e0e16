//! `/switch`: pick nodes, pick a profile, read what will happen, start it.

use api::{NodeList, NodePreview, NodeView, ProfileList, SwitchPreview, SwitchRequest};
use askama::Template;
use axum::{
    Extension,
    extract::Query,
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
};
use model::{NodeName, hostlist};

use super::{Ask, Shell, overview::Seats};
use crate::{
    auth::FlashLevel,
    error::ApiError,
    guard::Fields,
    view::{Html, RoleTag, count, node_href, role::power_word, sentence, url_part},
};

/// A node in the picker.
struct Pick {
    name: String,
    tag: RoleTag,
    mark: String,
    checked: bool,
    /// Why it cannot be picked; empty when it can.
    barred: String,
}

/// An enclosure's front, thumb-size; empty bays have no pick.
struct PickFront {
    name: String,
    picks: Vec<Option<Pick>>,
}

struct ProfileChoice {
    name: String,
    tag: RoleTag,
    about: String,
    checked: bool,
}

/// What will happen to one node.
struct PlanRow {
    name: String,
    place: String,
    from: RoleTag,
    to: RoleTag,
    power: &'static str,
    steps: Vec<String>,
    blocked: Vec<String>,
    destructive: bool,
    /// It is on, or nobody knows: what runs there is stopped.
    stops: bool,
    without_href: String,
}

struct Plan {
    hash: String,
    profile: String,
    rows: Vec<PlanRow>,
    blocked: usize,
    destructive: usize,
    label: String,
    command: String,
}

#[derive(Template)]
#[template(path = "switch.html")]
struct Page {
    shell: Shell,
    title: String,
    picked: usize,
    fronts: Vec<PickFront>,
    others: Vec<Pick>,
    profiles: Vec<ProfileChoice>,
    plan: Option<Plan>,
    fault: Option<(String, Vec<String>)>,
}

pub(crate) async fn show(ask: Ask, Query(fields): Query<Vec<(String, String)>>) -> Response {
    ask.answer(page(&ask, &Fields(fields), None).await)
}

pub(crate) async fn start(ask: Ask, Extension(fields): Extension<Fields>) -> Response {
    ask.answer(begin(&ask, &fields).await)
}

async fn begin(ask: &Ask, fields: &Fields) -> Result<Response, ApiError> {
    let names = picked(fields)?;
    let request = SwitchRequest {
        nodes: hostlist::fold(&names),
        profile: fields.get("profile").to_owned(),
        confirm: Some(fields.get("confirm").to_owned()),
    };
    match ask.app.ask(ask.app.lab.start_switch(&ask.caller, &request)).await {
        Ok(accepted) => {
            let number = count(accepted.switches.len(), "node", "nodes");
            let text = format!("Switch of {number} to {} has started.", request.profile);
            ask.leave(FlashLevel::Note, text, Vec::new());
            let place = match accepted.switches.as_slice() {
                [only] => node_href(&only.node),
                [] | [_, ..] => "/".to_owned(),
            };
            Ok(Redirect::to(&place).into_response())
        }
        // The plan as it is now, under the reason why the old one was not carried out.
        Err(error) => page(ask, fields, Some(error)).await,
    }
}

/// The names that were ticked or written; an empty list when there are none.
fn picked(fields: &Fields) -> Result<Vec<NodeName>, ApiError> {
    let written = fields.get("nodes");
    let all: Vec<&str> = fields.all("node").chain(Some(written)).collect();
    let text = all.join(",");
    if text.trim_matches([',', ' ']).is_empty() {
        return Ok(Vec::new());
    }
    hostlist::parse(&text)
        .map_err(|error| ApiError::refused("the list of nodes cannot be read", error.to_string()))
}

async fn page(ask: &Ask, fields: &Fields, failed: Option<ApiError>) -> Result<Response, ApiError> {
    let app = &ask.app;
    let list = app.ask(app.lab.nodes(None)).await?;
    let profiles = app.ask(app.lab.profiles()).await?;
    let profile = fields.get("profile");
    let (names, mut fault) = match picked(fields) {
        Ok(names) => (names, failed),
        Err(error) => (Vec::new(), failed.or(Some(error))),
    };
    let plan = if names.is_empty() || profile.is_empty() {
        None
    } else {
        let request = SwitchRequest {
            nodes: hostlist::fold(&names),
            profile: profile.to_owned(),
            confirm: None,
        };
        match app.ask(app.lab.preview_switch(&request)).await {
            Ok(preview) => Some(Plan::of(&preview, &list, &request.nodes)),
            Err(error) => {
                fault = fault.or(Some(error));
                None
            }
        }
    };
    let status = fault.as_ref().map_or(StatusCode::OK, ApiError::status);
    let page = Page::new(ask.shell(&list.lab, "switch"), &list, &profiles, &names, profile)
        .with(plan, fault);
    Ok((status, Html::of(&page)).into_response())
}

impl Page {
    fn new(
        shell: Shell,
        list: &NodeList,
        profiles: &ProfileList,
        names: &[NodeName],
        profile: &str,
    ) -> Self {
        let pick = |node: &NodeView| Pick::of(node, names);
        let seats = Seats::of(list);
        let front = |enclosure: &api::EnclosureView| {
            let nodes = seats.in_enclosure(enclosure);
            let at = |bay: u8| nodes.iter().find(|node| node.bay == Some(bay)).map(|n| pick(n));
            PickFront {
                name: enclosure.name.clone(),
                picks: (1..=enclosure.bays).map(at).collect(),
            }
        };
        let choice = |view: &api::ProfileView| ProfileChoice {
            name: view.name.clone(),
            tag: RoleTag::of_profile(Some(&view.name)),
            about: view.about.clone(),
            checked: view.name == profile,
        };
        let outside = list.nodes.iter().filter(|node| seats.bay_of(node).is_none());
        Self {
            shell,
            title: "Switch nodes".to_owned(),
            picked: names.len(),
            fronts: list.enclosures.iter().map(front).collect(),
            others: outside.map(pick).collect(),
            profiles: profiles.profiles.iter().map(choice).collect(),
            plan: None,
            fault: None,
        }
    }

    fn with(self, plan: Option<Plan>, fault: Option<ApiError>) -> Self {
        let title = plan.as_ref().map_or(self.title, |plan| match plan.rows.as_slice() {
            [only] => format!("Switch {} to {}", only.name, plan.profile),
            rows => format!("Switch {} nodes to {}", rows.len(), plan.profile),
        });
        let fault = fault.map(|error| (error.to_string(), error.faults()));
        Self { title, plan, fault, ..self }
    }
}

impl Pick {
    fn of(node: &NodeView, names: &[NodeName]) -> Self {
        let barred = match (&node.protected, node.phase.open) {
            (Some(why), _) => format!("protected: {why}"),
            (None, true) => "a switch is under way".to_owned(),
            (None, false) => String::new(),
        };
        Self {
            name: node.name.clone(),
            tag: RoleTag::of_node(node),
            mark: node.bay.map_or_else(String::new, |bay| bay.to_string()),
            checked: names.iter().any(|name| name.as_str() == node.name),
            barred,
        }
    }
}

impl Plan {
    fn of(preview: &SwitchPreview, list: &NodeList, nodes: &str) -> Self {
        let rows: Vec<PlanRow> =
            preview.nodes.iter().map(|node| PlanRow::of(node, preview, list)).collect();
        let blocked = rows.iter().filter(|row| !row.blocked.is_empty()).count();
        let destructive = rows.iter().filter(|row| row.destructive).count();
        Self {
            hash: preview.hash.clone(),
            profile: preview.profile.clone(),
            label: label(&rows, &preview.profile),
            blocked,
            destructive,
            command: format!("volund switch {nodes} {}", preview.profile),
            rows,
        }
    }

    fn names_of_blocked(&self) -> String {
        let blocked = self.rows.iter().filter(|row| !row.blocked.is_empty());
        blocked.map(|row| row.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// The button says what happens.
fn label(rows: &[PlanRow], profile: &str) -> String {
    let stopped = rows.iter().filter(|row| row.stops).count();
    let written = rows.iter().filter(|row| row.destructive && !row.stops).count();
    match (rows, stopped, written) {
        ([only], 0, 0) => format!("Switch {} to {profile}", only.name),
        ([only], 0, _) => format!("Switch {} to {profile}, its disk may be lost", only.name),
        ([only], ..) => format!("Stop what runs on {}, switch it to {profile}", only.name),
        (rows, 0, 0) => format!("Switch {} nodes to {profile}", rows.len()),
        (rows, 0, _) => format!("Switch {} nodes to {profile}, disks may be lost", rows.len()),
        (rows, stopped, _) => {
            let stopped = count(stopped, "node", "nodes");
            format!("Stop what runs on {stopped}, switch {} to {profile}", rows.len())
        }
    }
}

impl PlanRow {
    fn of(node: &NodePreview, preview: &SwitchPreview, list: &NodeList) -> Self {
        let view = list.nodes.iter().find(|view| view.name == node.node);
        let others = preview.nodes.iter().filter(|other| other.node != node.node);
        let picks: String =
            others.map(|other| format!("node={}&", url_part(&other.node))).collect();
        Self {
            name: node.node.clone(),
            place: view
                .and_then(|view| view.bay)
                .map_or_else(String::new, |bay| format!("bay {bay}")),
            from: RoleTag::of_profile(node.from.as_deref()),
            to: RoleTag::of_profile(Some(&preview.profile)),
            power: power_word(node.power),
            steps: node.steps.iter().map(|step| sentence(step)).collect(),
            blocked: node.blocked.iter().map(|why| sentence(why)).collect(),
            destructive: node.destructive,
            stops: node.destructive && node.power != api::PowerState::Off,
            without_href: format!("/switch?{picks}profile={}", url_part(&preview.profile)),
        }
    }
}
