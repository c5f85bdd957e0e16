//! The overview's parts: head figures, legend, needs, running switches, enclosure heads, rows of other nodes.

use std::collections::BTreeMap;

use api::{EnclosureView, NodeList, NodeView, PowerState};
use askama::Template;

use super::{
    Clock, Figure, RoleTag, count, cut,
    figure::watts,
    id_part, node_href,
    phases::phase_word,
    role::{Standing, power_word},
    sentence,
};

/// The sum of what was read, and what is left out of it.
pub(crate) struct Sum {
    pub(crate) figure: Figure,
    /// What was measured, such as `blade input`.
    pub(crate) kind: String,
    /// What the sum leaves out; empty when nothing.
    pub(crate) missing: String,
}

impl Sum {
    /// Sums the readings of the kind that most nodes have: different kinds never enter one sum, and a missing
    /// reading is named, not taken as zero. Margins of independent meters add as squares.
    pub(crate) fn of<'a>(nodes: impl IntoIterator<Item = &'a NodeView>) -> Self {
        let mut kinds: BTreeMap<&str, Vec<(f64, Option<f64>)>> = BTreeMap::new();
        let (mut all, mut off) = (0, 0);
        for node in nodes {
            all += 1;
            off += usize::from(node.watts.value.is_none() && node.power == PowerState::Off);
            let kind = node.watts.kind.as_deref();
            if let (Some(value), Some(kind), "W") = (node.watts.value, kind, &*node.watts.unit) {
                kinds.entry(kind).or_default().push((value, node.watts.margin));
            }
        }
        let most = kinds.into_iter().max_by_key(|(_, readings)| readings.len());
        let Some((kind, readings)) = most else { return Self::empty(all) };
        let value = readings.iter().map(|(value, _)| value).sum();
        let squares: Option<f64> =
            readings.iter().map(|(_, margin)| margin.map(|margin| margin * margin)).sum();
        let missing = missing(off, all - readings.len() - off);
        let figure = Figure::of(&watts(value, squares.map(f64::sqrt), kind));
        Self { figure, kind: kind.to_owned(), missing }
    }

    fn empty(all: usize) -> Self {
        let why = match all {
            0 => "no node is configured",
            _ => "no node has a reading",
        };
        let figure = Figure::none("W", why.to_owned());
        Self { figure, kind: String::new(), missing: why.to_owned() }
    }
}

/// What a sum leaves out: nodes that are off and tell nothing, and nodes that should tell something.
fn missing(off: usize, silent: usize) -> String {
    let parts = [(off, "off"), (silent, "with no such reading")];
    let told = parts.iter().filter(|(number, _)| *number > 0);
    let told: Vec<String> = told.map(|(number, what)| format!("{number} {what}")).collect();
    if told.is_empty() { String::new() } else { format!("without {}", told.join(", ")) }
}

/// `#figs`: the figures in the page's head.
#[derive(Template)]
#[template(path = "figs.html")]
pub(crate) struct Figs {
    sum: Sum,
    needs: usize,
}

impl Figs {
    pub(crate) fn of(list: &NodeList) -> Self {
        let sum = Sum::of(&list.nodes);
        let needs = list.nodes.iter().filter(|node| Standing::of(node).needs_a_person()).count();
        Self { sum: Sum { figure: sum.figure.sized("big"), ..sum }, needs }
    }
}

/// `#legend`: how many nodes are what.
#[derive(Template)]
#[template(path = "legend.html")]
pub(crate) struct Legend {
    chips: Vec<(RoleTag, usize)>,
}

impl Legend {
    pub(crate) fn of(list: &NodeList) -> Self {
        let mut counts: BTreeMap<(u8, String), (RoleTag, usize)> = BTreeMap::new();
        for node in &list.nodes {
            let tag = RoleTag::of_node(node);
            let rank = match tag.role {
                "held" => 3,
                "off" => 2,
                "foreign" => 1,
                _ => 0,
            };
            counts.entry((rank, tag.word.clone())).or_insert((tag, 0)).1 += 1;
        }
        Self { chips: counts.into_values().collect() }
    }
}

/// One thing a person should look at.
struct Need {
    level: &'static str,
    icon: &'static str,
    name: String,
    href: String,
    what: String,
    since: String,
    text: String,
    remedy: String,
}

/// `#needs`: held and failed first, then silent BMCs.
#[derive(Template)]
#[template(path = "needs.html")]
pub(crate) struct Needs {
    needs: Vec<Need>,
    /// How many more there are than are shown.
    more: usize,
}

/// At most this many are listed; the figure in the head counts all that are held or failed.
const MAX_NEEDS: usize = 12;

impl Needs {
    pub(crate) fn of(list: &NodeList, clock: &Clock) -> Self {
        let urgent = |node: &&NodeView| Standing::of(node).needs_a_person();
        let mut first: Vec<&NodeView> = list.nodes.iter().filter(urgent).collect();
        first.sort_by_key(|node| Standing::of(node) != Standing::Failed);
        let silent = list.nodes.iter().filter(|node| !urgent(node) && node.bmc.trouble.is_some());
        let all: Vec<Need> = first
            .into_iter()
            .map(|node| Need::of_stopped(node, clock))
            .chain(silent.map(Need::of_bmc))
            .collect();
        let more = all.len().saturating_sub(MAX_NEEDS);
        Self { needs: all.into_iter().take(MAX_NEEDS).collect(), more }
    }
}

impl Need {
    fn of_stopped(node: &NodeView, clock: &Clock) -> Self {
        let failed = Standing::of(node) == Standing::Failed;
        let since = node.phase.since_ms.map(|at| format!("since {}", clock.minute(at)));
        Self {
            level: "held",
            icon: "r-held",
            name: node.name.clone(),
            href: node_href(&node.name),
            what: if failed { "failed" } else { "is held" }.to_owned(),
            since: join([place(node), since]),
            text: node.phase.reason.as_deref().map_or_else(String::new, sentence),
            remedy: node.phase.remedy.as_deref().map_or_else(String::new, sentence),
        }
    }

    fn of_bmc(node: &NodeView) -> Self {
        Self {
            level: "warn",
            icon: "i-warn",
            name: node.name.clone(),
            href: node_href(&node.name),
            what: "has trouble with its BMC".to_owned(),
            since: join([place(node), Some(format!("{}:{}", node.bmc.address, node.bmc.port))]),
            text: node.bmc.trouble.as_deref().map_or_else(String::new, sentence),
            remedy: String::new(),
        }
    }
}

fn place(node: &NodeView) -> Option<String> {
    node.bay.map(|bay| format!("bay {bay}"))
}

fn join(parts: [Option<String>; 2]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A switch under way.
struct Run {
    name: String,
    href: String,
    to: RoleTag,
    phase: String,
    step: usize,
    of: usize,
    note: String,
}

/// `#running`: switches under way.
#[derive(Template)]
#[template(path = "running.html")]
pub(crate) struct Running {
    runs: Vec<Run>,
    more: usize,
}

impl Running {
    pub(crate) fn of(list: &NodeList, clock: &Clock) -> Self {
        let open = |node: &&NodeView| Standing::of(node) == Standing::Switching;
        let runs: Vec<&NodeView> = list.nodes.iter().filter(open).collect();
        let more = runs.len().saturating_sub(MAX_NEEDS);
        let runs = runs.into_iter().take(MAX_NEEDS).map(|node| Run::of(node, clock)).collect();
        Self { runs, more }
    }
}

impl Run {
    fn of(node: &NodeView, clock: &Clock) -> Self {
        let (step, of) = super::phases::progress(&node.phase.name).unwrap_or((0, 1));
        let since = node.phase.since_ms.map(|at| format!("since {}", clock.second(at)));
        let until = node.phase.until_ms.map(|at| format!("waits until {}", clock.minute(at)));
        Self {
            name: node.name.clone(),
            href: node_href(&node.name),
            to: RoleTag::of_node(node),
            phase: phase_word(&node.phase.name),
            step,
            of,
            note: join([since, until]),
        }
    }
}

/// `#encl-NAME`: the head of an enclosure.
#[derive(Template)]
#[template(path = "encl_head.html")]
pub(crate) struct EnclosureHead {
    pub(crate) id: String,
    name: String,
    model: String,
    states: String,
    sum: Sum,
    /// The button for picking stands on the first enclosure only.
    select: bool,
}

/// Whether an enclosure's head carries the button for picking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Select {
    Here,
    Elsewhere,
}

impl EnclosureHead {
    pub(crate) fn of(enclosure: &EnclosureView, nodes: &[&NodeView], select: Select) -> Self {
        let sum = Sum::of(nodes.iter().copied());
        Self {
            id: format!("encl-{}", id_part(&enclosure.name)),
            name: enclosure.name.clone(),
            model: enclosure.model.clone(),
            states: states(nodes),
            sum: Sum { figure: sum.figure.sized("mid"), ..sum },
            select: select == Select::Here,
        }
    }
}

/// `12 on, 1 switching, 3 off`.
fn states(nodes: &[&NodeView]) -> String {
    let words = [
        (Standing::On, "on"),
        (Standing::Switching, "switching"),
        (Standing::Off, "off"),
        (Standing::Held, "held"),
        (Standing::Failed, "failed"),
        (Standing::Silent, "power unknown"),
    ];
    let counted = words.iter().filter_map(|(standing, word)| {
        let number = nodes.iter().filter(|node| Standing::of(node) == *standing).count();
        (number > 0).then(|| format!("{number} {word}"))
    });
    let parts: Vec<String> = counted.collect();
    if parts.is_empty() { "no node here".to_owned() } else { parts.join(", ") }
}

/// `#row-NAME`: a node outside enclosures.
#[derive(Template)]
#[template(path = "row.html")]
pub(crate) struct Row {
    pub(crate) id: String,
    name: String,
    href: String,
    tag: RoleTag,
    phase: String,
    phase_word: String,
    state: &'static str,
    power: &'static str,
    figure: Figure,
    seen: String,
    why: String,
    pickable: bool,
}

impl Row {
    pub(crate) fn of(node: &NodeView, clock: &Clock) -> Self {
        let figure = Figure::of(&node.watts);
        Self {
            id: format!("row-{}", id_part(&node.name)),
            name: node.name.clone(),
            href: node_href(&node.name),
            tag: RoleTag::of_node(node),
            phase: node.phase.name.clone(),
            phase_word: phase_word(&node.phase.name),
            state: Standing::of(node).name(),
            power: power_word(node.power),
            why: figure.why.clone(),
            figure,
            seen: node.last_sighting.as_ref().map_or_else(String::new, |seen| {
                format!("{} {}", clock.second(seen.at_ms), cut(&seen.text, 120))
            }),
            pickable: !node.phase.open && node.protected.is_none(),
        }
    }
}

/// `16 nodes, 12 on` for page titles.
pub(crate) fn headline(list: &NodeList) -> String {
    let on = list.nodes.iter().filter(|node| node.power == PowerState::On).count();
    format!("{}, {on} on", count(list.nodes.len(), "node", "nodes"))
}
