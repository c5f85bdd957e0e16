//! `/`: what is wrong, what is what, what does it draw, what is happening.

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
        for enclosure in &self.list.enclosures {
            let nodes = in_enclosure(&self.list, enclosure);
            let head = EnclosureHead::of(enclosure, &nodes, select);
            select = Select::Elsewhere;
            partials.add(head.id.clone(), &head);
        }
        for node in &self.list.nodes {
            match bay_of(&self.list, node) {
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
        let front = |enclosure: &EnclosureView| {
            let nodes = in_enclosure(&self.list, enclosure);
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
        let outside = self.list.nodes.iter().filter(|node| bay_of(&self.list, node).is_none());
        let rows = outside.map(|node| format!("row-{}", id_part(&node.name))).collect();
        (fronts, rows)
    }
}

/// The bay a node is drawn in: its own, unless that does not exist or another node sits there already.
pub(crate) fn bay_of(list: &NodeList, node: &NodeView) -> Option<u8> {
    let number = node.bay?;
    let enclosure = list.enclosures.iter().find(|e| Some(&e.name) == node.enclosure.as_ref())?;
    let first = list
        .nodes
        .iter()
        .find(|other| other.enclosure == node.enclosure && other.bay == node.bay)?;
    let fits = (1..=enclosure.bays).contains(&number) && first.name == node.name;
    fits.then_some(number)
}

/// The nodes drawn in this enclosure.
pub(crate) fn in_enclosure<'a>(list: &'a NodeList, enclosure: &EnclosureView) -> Vec<&'a NodeView> {
    let here = |node: &&NodeView| {
        node.enclosure.as_ref() == Some(&enclosure.name) && bay_of(list, node).is_some()
    };
    list.nodes.iter().filter(here).collect()
}
