//! `/`: what is wrong, what is what, what does it draw, what is happening.

use std::collections::BTreeMap;

use api::{EnclosureView, NetworkList, NodeList, NodeView};
use askama::Template;
use axum::response::{IntoResponse as _, Response};

use super::{Ask, Partials, Place, Shell};
use crate::{
    App,
    error::ApiError,
    view::{
        Clock, Html,
        bay::Bay,
        id_part,
        networks::NetLine,
        overview::{EnclosureHead, Figs, Legend, Needs, Row, Running, Select, headline},
    },
};

/// The overview at one moment.
pub(crate) struct Overview {
    list: NodeList,
    networks: NetworkList,
    clock: Clock,
}

/// A bay as the page lays it out.
enum Slot {
    /// The part with this id.
    Node(String),
    /// Nothing is configured here.
    Empty(u8),
}

struct Front {
    head: String,
    name: String,
    slots: Vec<Slot>,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Page<'a> {
    shell: Shell,
    title: String,
    day: String,
    /// When the page was made: said until the stream tells the time.
    time: String,
    partials: &'a Partials,
    fronts: Vec<Front>,
    rows: Vec<String>,
}

pub(crate) async fn show(ask: Ask) -> Response {
    ask.answer(page(&ask).await)
}

async fn page(ask: &Ask) -> Result<Response, ApiError> {
    let overview = Overview::load(&ask.app).await?;
    let partials = overview.partials();
    let mut shell = ask.shell(&overview.list.lab, "overview");
    shell.live = Place::Overview.live(&partials);
    let (fronts, rows) = overview.layout();
    let page = Page {
        shell,
        title: headline(&overview.list),
        day: overview.clock.day(),
        time: overview.clock.second(overview.clock.now.0),
        partials: &partials,
        fronts,
        rows,
    };
    Ok(Html::of(&page).into_response())
}

impl Overview {
    pub(crate) async fn load(app: &App) -> Result<Self, ApiError> {
        let list = app.ask(app.lab.nodes(None)).await?;
        let networks = app.ask(app.lab.networks()).await?;
        Ok(Self { list, networks, clock: Clock::of(app) })
    }

    pub(crate) fn partials(&self) -> Partials {
        let mut partials = Partials::default();
        partials.add("figs", &Figs::of(&self.list));
        partials.add("legend", &Legend::of(&self.list));
        partials.add("net-line", &NetLine::of(&self.networks, &self.clock));
        partials.add("needs", &Needs::of(&self.list, &self.clock));
        partials.add("running", &Running::of(&self.list, &self.clock));
        let mut select = Select::Here;
        let seats = Seats::of(&self.list);
        for enclosure in &self.list.enclosures {
            let nodes = seats.in_enclosure(enclosure);
            let head = EnclosureHead::of(enclosure, &nodes, select);
            select = Select::Elsewhere;
            partials.add(head.id.clone(), &head);
        }
        for node in &self.list.nodes {
            match seats.bay_of(node) {
                Some(number) => {
                    let bay = Bay::of(node, number, &self.clock);
                    partials.add(bay.id.clone(), &bay);
                }
                None => {
                    let row = Row::of(node, &self.clock);
                    partials.add(row.id.clone(), &row);
                }
            }
        }
        partials
    }

    fn layout(&self) -> (Vec<Front>, Vec<String>) {
        let seats = Seats::of(&self.list);
        let front = |enclosure: &EnclosureView| {
            let nodes = seats.in_enclosure(enclosure);
            let slot = |number: u8| {
                let node = nodes.iter().find(|node| node.bay == Some(number));
                node.map_or(Slot::Empty(number), |node| {
                    Slot::Node(format!("bay-{}", id_part(&node.name)))
                })
            };
            Front {
                head: format!("encl-{}", id_part(&enclosure.name)),
                name: enclosure.name.clone(),
                slots: (1..=enclosure.bays).map(slot).collect(),
            }
        };
        let fronts = self.list.enclosures.iter().map(front).collect();
        let outside = self.list.nodes.iter().filter(|node| seats.bay_of(node).is_none());
        let rows = outside.map(|node| format!("row-{}", id_part(&node.name))).collect();
        (fronts, rows)
    }
}

/// Who is drawn in which bay.
pub(crate) struct Seats<'a>(BTreeMap<(&'a str, u8), &'a NodeView>);

impl<'a> Seats<'a> {
    /// Each node in its own bay, unless that does not exist or another node sits there already.
    pub(crate) fn of(list: &'a NodeList) -> Self {
        let bays: BTreeMap<&str, u8> =
            list.enclosures.iter().map(|enclosure| (&*enclosure.name, enclosure.bays)).collect();
        let mut seats = BTreeMap::new();
        for node in &list.nodes {
            if let (Some(enclosure), Some(bay)) = (node.enclosure.as_deref(), node.bay)
                && bays.get(enclosure).is_some_and(|bays| (1..=*bays).contains(&bay))
            {
                seats.entry((enclosure, bay)).or_insert(node);
            }
        }
        Self(seats)
    }

    /// The bay a node is drawn in.
    pub(crate) fn bay_of(&self, node: &NodeView) -> Option<u8> {
        let bay = node.bay?;
        let sits = self.0.get(&(node.enclosure.as_deref()?, bay))?;
        (sits.name == node.name).then_some(bay)
    }

    /// The nodes drawn in this enclosure, by bay.
    pub(crate) fn in_enclosure(&self, enclosure: &'a EnclosureView) -> Vec<&'a NodeView> {
        let name = enclosure.name.as_str();
        self.0.range((name, 0)..=(name, u8::MAX)).map(|(_, node)| *node).collect()
    }
}
