//! `/nodes/NAME`: a node's head, phases, flight recorder, power, history, facts, and what it can become.

use api::{
    BootWayView, FactsView, NodeDetail, NodeDoctor, NodeList, NodeView, PhaseEvent, PowerState,
    ProfileList,
};
use askama::Template;
use axum::{
    extract::Path,
    response::{IntoResponse as _, Response},
};

use super::{Ask, Partials, Place, Shell, overview::Seats};
use crate::{
    App,
    auth::Viewer,
    error::ApiError,
    view::{
        Clock, Figure, Html, RoleTag,
        flight::Flight,
        id_part, node_href,
        phases::{Phases, phase_word},
        plot::Plot,
        role::{Standing, power_word},
        sentence,
        time::duration,
        url_part,
    },
};

/// A node's page at one moment.
pub(crate) struct NodePage {
    detail: NodeDetail,
    doctor: NodeDoctor,
    list: NodeList,
    profiles: ProfileList,
    clock: Clock,
}

#[derive(Template)]
#[template(path = "node.html")]
struct Page<'a> {
    shell: Shell,
    name: String,
    partials: &'a Partials,
}

pub(crate) async fn show(ask: Ask, Path(name): Path<String>) -> Response {
    ask.answer(page(&ask, name).await)
}

async fn page(ask: &Ask, name: String) -> Result<Response, ApiError> {
    let node = NodePage::load(&ask.app, &name).await?;
    let partials = node.partials(&ask.viewer);
    let mut shell = ask.shell(&node.list.lab, "overview");
    shell.live = Place::Node(name.clone()).live(&partials);
    Ok(Html::of(&Page { shell, name, partials: &partials }).into_response())
}

impl NodePage {
    pub(crate) async fn load(app: &App, name: &str) -> Result<Self, ApiError> {
        let detail = app.ask(app.lab.node(name)).await?;
        let doctor = app.ask(app.lab.node_doctor(name)).await?;
        let list = app.ask(app.lab.nodes(None)).await?;
        let profiles = app.ask(app.lab.profiles()).await?;
        Ok(Self { detail, doctor, list, profiles, clock: Clock::of(app) })
    }

    pub(crate) fn partials(&self, viewer: &Viewer) -> Partials {
        let (node, clock) = (&self.detail.node, &self.clock);
        let mut partials = Partials::default();
        partials.add("n-head", &Head::of(node, &self.list, clock, viewer));
        partials.add("phases", &Phases::of(node, &self.detail.history, clock));
        let said = &self.doctor.diagnoses;
        let flight = Flight::of_node(&node.name, &self.detail.timeline, said, clock);
        partials.add("flight", &flight);
        partials.add("power", &Plot::of(&node.name, &self.detail.power, clock));
        partials.add("become", &Become::of(node, &self.profiles));
        partials.add("history", &History::of(&self.detail.history, clock));
        partials.add("facts", &Facts::of(&self.detail, clock));
        partials
    }
}

/// A bay in the thumb-size front.
struct Mini {
    role: &'static str,
    x: u16,
    y: u16,
    marked: bool,
}

/// `#n-head`.
#[derive(Template)]
#[template(path = "node_head.html")]
struct Head {
    name: String,
    href: String,
    lab: String,
    place: Option<(String, u8)>,
    minis: Vec<Mini>,
    mini_height: u16,
    phase: String,
    standing: &'static str,
    tag: RoleTag,
    from: Option<RoleTag>,
    /// What the node is or was to be, where the tag says held or off.
    profile: Option<RoleTag>,
    /// Whether that profile is one it was to have and has not reached.
    on_its_way: bool,
    power: &'static str,
    power_at: String,
    figure: Figure,
    watts_text: String,
    csrf: String,
    /// Why no power verb is offered; empty when they are.
    no_verbs: String,
    is_on: bool,
    is_off: bool,
    protected: String,
}

impl Head {
    fn of(node: &NodeView, list: &NodeList, clock: &Clock, viewer: &Viewer) -> Self {
        let standing = Standing::of(node);
        let bay = Seats::of(list).bay_of(node);
        let profile = node.wanted.as_deref().or(node.profile.as_deref());
        let aside = standing.needs_a_person() || standing == Standing::Off;
        let minis = minis(node, list);
        Self {
            name: node.name.clone(),
            href: node_href(&node.name),
            lab: list.lab.clone(),
            place: node.enclosure.clone().zip(bay),
            mini_height: minis.iter().map(|mini| mini.y).max().unwrap_or(0) + 34,
            minis,
            phase: node.phase.name.clone(),
            standing: standing.name(),
            tag: RoleTag::of_node(node),
            from: (standing == Standing::Switching)
                .then(|| RoleTag::of_profile(node.profile.as_deref())),
            profile: profile.filter(|_| aside).map(|profile| RoleTag::of_profile(Some(profile))),
            on_its_way: node.wanted.is_some(),
            power: power_word(node.power),
            power_at: node.power_at_ms.map_or_else(String::new, |at| clock.second(at)),
            figure: Figure::of(&node.watts).sized("big"),
            watts_text: node.watts.absent.clone().unwrap_or_else(|| node.watts.text.clone()),
            csrf: viewer.csrf.clone(),
            no_verbs: no_verbs(node),
            is_on: node.power != PowerState::Off,
            is_off: node.power != PowerState::On,
            protected: node.protected.clone().unwrap_or_default(),
        }
    }
}

fn no_verbs(node: &NodeView) -> String {
    match (&node.bmc.trouble, node.power) {
        (Some(trouble), PowerState::Unknown) => {
            format!("Power verbs are off while the BMC has trouble: {trouble}")
        }
        (Some(_) | None, PowerState::On | PowerState::Off | PowerState::Unknown) => String::new(),
    }
}

fn minis(node: &NodeView, list: &NodeList) -> Vec<Mini> {
    let home = list.enclosures.iter().find(|e| Some(&e.name) == node.enclosure.as_ref());
    let seats = Seats::of(list);
    let Some(enclosure) = home.filter(|_| seats.bay_of(node).is_some()) else { return Vec::new() };
    let nodes = seats.in_enclosure(enclosure);
    let mini = |number: u8| {
        let here = nodes.iter().find(|other| other.bay == Some(number));
        let at = u16::from(number - 1);
        Mini {
            role: here.map_or("off", |other| RoleTag::of_node(other).role),
            x: 2 + at % 8 * 15,
            y: 2 + at / 8 * 33,
            marked: here.is_some_and(|other| other.name == node.name),
        }
    };
    (1..=enclosure.bays).map(mini).collect()
}

/// A profile the node may get.
struct Choice {
    id: String,
    tag: RoleTag,
    about: String,
    href: String,
    is_now: bool,
}

/// `#become`.
#[derive(Template)]
#[template(path = "become.html")]
struct Become {
    choices: Vec<Choice>,
    /// Why none can be chosen now; empty when they can.
    barred: String,
}

impl Become {
    fn of(node: &NodeView, profiles: &ProfileList) -> Self {
        let is_settled = !node.phase.open && !Standing::of(node).needs_a_person();
        let choice = |name: &String| {
            let profile = profiles.profiles.iter().find(|profile| profile.name == *name);
            Choice {
                id: format!("become-{}", id_part(name)),
                tag: RoleTag::of_profile(Some(name)),
                about: profile.map(|profile| profile.about.clone()).unwrap_or_default(),
                href: format!("/switch?node={}&profile={}", url_part(&node.name), url_part(name)),
                is_now: node.profile.as_ref() == Some(name) && is_settled,
            }
        };
        let barred = match (&node.protected, node.phase.open) {
            (Some(why), _) => format!("Protected: {why}"),
            (None, true) => "One switch at a time: wait until this one has ended.".to_owned(),
            (None, false) => String::new(),
        };
        Self { choices: node.profiles.iter().map(choice).collect(), barred }
    }
}

/// One switch of the past.
struct Past {
    at: String,
    to: RoleTag,
    took: String,
    result: String,
    by: String,
    failed: bool,
    steps: Vec<(String, String, String)>,
}

/// `#history`.
#[derive(Template)]
#[template(path = "history.html")]
struct History {
    switches: Vec<Past>,
}

/// At most this many switches; the API has all.
const MAX_SWITCHES: usize = 10;

impl History {
    fn of(events: &[PhaseEvent], clock: &Clock) -> Self {
        let mut ids: Vec<&str> = Vec::new();
        for event in events {
            if !ids.contains(&event.switch_id.as_str()) {
                ids.push(&event.switch_id);
            }
        }
        let past = |id: &&str| {
            let mut own: Vec<&PhaseEvent> = events.iter().filter(|e| e.switch_id == **id).collect();
            own.sort_by_key(|event| event.at_ms);
            Past::of(&own, clock)
        };
        Self { switches: ids.iter().take(MAX_SWITCHES).filter_map(past).collect() }
    }
}

impl Past {
    fn of(events: &[&PhaseEvent], clock: &Clock) -> Option<Self> {
        let (first, last) = (events.first()?, events.last()?);
        let failed = matches!(last.phase.as_str(), "held" | "failed");
        let step = |event: &&PhaseEvent| {
            (clock.second(event.at_ms), phase_word(&event.phase), sentence(&event.reason))
        };
        let word = phase_word(&last.phase);
        let result = match last.phase.as_str() {
            "held" | "failed" => format!("{word}. {}", sentence(&last.reason)),
            "done" => word,
            _ => format!("under way: {word}"),
        };
        Some(Self {
            at: clock.minute(first.at_ms),
            to: RoleTag::of_profile(Some(&first.profile)),
            took: duration(last.at_ms.saturating_sub(first.at_ms)),
            result,
            by: first.by.clone(),
            failed,
            steps: events.iter().map(step).collect(),
        })
    }
}

fn boots_by(way: &BootWayView) -> (String, &str) {
    let BootWayView { what, way, source, failed } = way;
    let failed = match failed.as_slice() {
        [] => String::new(),
        failed => format!("; {} did not work", failed.join(", ")),
    };
    let source = match source.as_str() {
        "configured" => "configuration",
        "learnt" => "learnt from its boots",
        "model" => "learnt from others of its model",
        _ => "default",
    };
    (format!("{what}: {way}{failed}"), source)
}

/// `#facts`: who said what, and when.
#[derive(Template)]
#[template(path = "facts.html")]
struct Facts<'a> {
    node: &'a NodeView,
    /// How it boots: a sentence, and where it comes from.
    boots: Vec<(String, &'a str)>,
    facts: Option<&'a FactsView>,
    at: String,
    memory: String,
    disks: Vec<(String, String)>,
}

impl<'a> Facts<'a> {
    fn of(detail: &'a NodeDetail, clock: &Clock) -> Self {
        let (node, facts) = (&detail.node, detail.facts.as_ref());
        let memory = facts.and_then(|facts| facts.memory_mib).map_or_else(String::new, gib);
        let disks = facts.map(|facts| {
            facts.disks.iter().map(|disk| (disk.name.clone(), gigabytes(disk.bytes))).collect()
        });
        Self {
            node,
            boots: detail.boot_method.iter().map(boots_by).collect(),
            facts,
            at: facts.map_or_else(String::new, |facts| clock.minute(facts.at_ms)),
            memory,
            disks: disks.unwrap_or_default(),
        }
    }

    fn size_of(&self, name: &str) -> &str {
        self.disks.iter().find(|(disk, _)| disk == name).map_or("", |(_, size)| size)
    }

    fn dimm_size(mib: &Option<u64>) -> String {
        mib.map_or_else(|| "empty".to_owned(), gib)
    }
}

/// `8 GiB`; odd sizes stay in MiB.
fn gib(mib: u64) -> String {
    if mib.is_multiple_of(1_024) { format!("{} GiB", mib / 1_024) } else { format!("{mib} MiB") }
}

/// As makers count: `300 GB`.
fn gigabytes(bytes: u64) -> String {
    match bytes / 100_000_000 {
        0 => format!("{} MB", bytes / 1_000_000),
        tenths if tenths < 100 => format!("{}.{} GB", tenths / 10, tenths % 10),
        tenths => format!("{} GB", tenths / 10),
    }
}
