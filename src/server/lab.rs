//! The lab as page and API see it: the trait `web` names, over engine, book and samples.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::{
    BootDetail, BootList, BootMethodForgotten, EnclosureView, LabDoctor, LeaseList, LoopReleased,
    NetworkList, NodeDetail, NodeDoctor, NodeList, NodePreview, NodeView, PowerOutcome,
    PowerRequest, PowerResult, PowerState, ProfileList, SwitchAccepted, SwitchPreview, SwitchRef,
    SwitchRequest,
};
use inventory::{Store, series::Series};
use meter::Latest;
use model::{NodeName, ProfileName, Sighting, UnixMillis, hostlist};
use plan::{NodeState, SwitchId, input::PowerVerb, input::Refused, preview::Preview};
use profiles::{EngineHandle, world::now};
use sha2::{Digest, Sha256};
use tokio::{
    sync::broadcast::{self, error::RecvError},
    task::JoinSet,
};
use web::lab::{Caller, Changed, Fault, Lab, Reply};

use super::{packets::PacketFiles, views};
use crate::config::{Config, Node};

/// Transitions shown of a node.
const HISTORY: u32 = 60;
/// Sightings shown of a boot.
const TIMELINE: u32 = 400;

/// Longest wait for a first reading of power.
const FIRST_READING: Duration = Duration::from_secs(2);

/// The lab behind page and API.
pub(super) struct LiveLab {
    pub(super) config: Arc<Config>,
    pub(super) engine: EngineHandle,
    pub(super) store: Store,
    pub(super) series: Arc<Series>,
    pub(super) latest: Latest,
    pub(super) changes: broadcast::Sender<Changed>,
    pub(super) packets: Arc<PacketFiles>,
    pub(super) status: pxe::Status,
    pub(super) bound: BTreeMap<String, pxe::Bound>,
    pub(super) loops: pxe::BootLoops,
    pub(super) learning: super::learning::Learning,
}

impl LiveLab {
    /// The nodes of a hostlist, in its order; all of them without one. For reading only.
    fn select(&self, hostlist: Option<&str>) -> Result<Vec<&Node>, Fault> {
        match hostlist.filter(|text| !text.trim().is_empty()) {
            Some(text) => self.named(text),
            None => Ok(self.config.nodes.values().collect()),
        }
    }

    /// The nodes of a hostlist that names some: a verb with an empty one must not mean the whole lab.
    fn named(&self, hostlist: &str) -> Result<Vec<&Node>, Fault> {
        let names = hostlist::parse(hostlist).map_err(|error| Fault::Refused {
            error: format!("{hostlist:?} is no list of nodes"),
            faults: vec![error.to_string()],
        })?;
        names.iter().map(|name| self.get(name.as_str())).collect()
    }

    pub(super) fn get(&self, name: &str) -> Result<&Node, Fault> {
        let unknown =
            || Fault::Unknown(format!("there is no node {name:?}; `volund nodes` lists them"));
        self.config.nodes.get(name).ok_or_else(unknown)
    }

    fn state(&self, node: &Node) -> Result<NodeState, Fault> {
        let gone = || Fault::Unavailable("the switch engine has not started yet".to_owned());
        self.engine.state(&node.name).ok_or_else(gone)
    }

    fn view(&self, node: &Node, last: Option<&Sighting>) -> Result<NodeView, Fault> {
        let state = self.state(node)?;
        let sample = self.latest.standing(&node.name, now());
        let row = views::Row { config: &self.config, node, state: &state, sample, last };
        Ok(views::node(&row))
    }

    async fn list(&self, hostlist: Option<&str>) -> Result<NodeList, Fault> {
        let selected = self.select(hostlist)?;
        let last = inventory::sighting::last_per_node(&self.store).await.map_err(store)?;
        let last: BTreeMap<NodeName, Sighting> =
            last.into_iter().filter_map(|one| Some((one.node.clone()?, one))).collect();
        let rows = selected.into_iter().map(|node| self.view(node, last.get(&node.name)));
        let mut nodes = rows.collect::<Result<Vec<_>, _>>()?;
        nodes.sort_by(|a, b| (&a.enclosure, a.bay, &a.name).cmp(&(&b.enclosure, b.bay, &b.name)));
        let enclosures = self.config.enclosures.values().map(|enclosure| EnclosureView {
            name: enclosure.name.to_string(),
            model: enclosure.model.clone(),
            bays: enclosure.bays,
        });
        let (lab, at_ms) = (self.config.lab.name.clone(), now().0);
        Ok(NodeList { lab, at_ms, nodes, enclosures: enclosures.collect() })
    }

    async fn detail(&self, name: &str) -> Result<NodeDetail, Fault> {
        let node = self.get(name)?;
        let latest = inventory::sighting::latest(&self.store, Some(&node.name), TIMELINE);
        let latest = latest.await.map_err(store)?;
        let last = latest.last().cloned();
        let timeline = self.timeline(&node.name, latest).await?;
        let history = inventory::switch::history(&self.store, &node.name, HISTORY);
        let history = history.await.map_err(store)?.into_iter().map(views::event).collect();
        let facts = inventory::facts::find(&self.store, &node.name).await.map_err(store)?;
        let samples = self.series.last_hour(&node.name, now());
        Ok(NodeDetail {
            node: self.view(node, last.as_ref())?,
            facts: facts.as_ref().and_then(views::facts),
            timeline: timeline.iter().map(views::sighting).collect(),
            history,
            power: samples.into_iter().map(sampled).collect(),
            boot_method: self.learning.ways(node).into_iter().map(views::way).collect(),
        })
    }

    /// The sightings of the last boot attempt, or the last ones where none was opened. Of a long one, how it
    /// began and what came last: an agent that waits for days asks every few seconds.
    async fn timeline(
        &self,
        node: &NodeName,
        latest: Vec<Sighting>,
    ) -> Result<Vec<Sighting>, Fault> {
        let Some(attempt) = latest.iter().filter_map(|sighting| sighting.attempt).max() else {
            return Ok(latest);
        };
        let begun = inventory::sighting::of_attempt(&self.store, node, attempt, TIMELINE).await;
        let begun = begun.map_err(store)?;
        if begun.len() < TIMELINE as usize {
            return Ok(begun);
        }
        let later = latest.into_iter().filter(|one| one.attempt == Some(attempt));
        let later: Vec<_> = later.filter(|one| !begun.contains(one)).collect();
        Ok(begun.into_iter().chain(later).collect())
    }

    /// Right after a start nobody has read power yet, and a preview would be out of date at once: waits a moment for
    /// the first reading of each node, or the first trouble.
    async fn first_readings(&self, hostlist: &str) {
        let Ok(nodes) = self.named(hostlist) else { return };
        let mut changes = self.engine.changes();
        let known = || {
            nodes.iter().all(|node| {
                let state = self.engine.state(&node.name);
                state.is_some_and(|state| state.power.is_some() || state.bmc_trouble.is_some())
            })
        };
        let all = async {
            // A listener that has missed changes looks again just the same.
            while !known() && !matches!(changes.recv().await, Err(RecvError::Closed)) {}
        };
        // Late readings are no fault: the preview says that power is not known.
        let _known = tokio::time::timeout(FIRST_READING, all).await;
    }

    fn previews(&self, request: &SwitchRequest) -> Result<(ProfileName, Vec<Preview>), Fault> {
        let nodes = self.named(&request.nodes)?;
        let profile: ProfileName = request.profile.parse().map_err(|error| Fault::Refused {
            error: format!("{:?} is no profile", request.profile),
            faults: vec![format!("{error}")],
        })?;
        if !self.config.profiles.contains_key(&profile) {
            let known: Vec<_> = self.config.profiles.keys().map(ToString::to_string).collect();
            let text = format!("there is no profile {profile}; there are {}", known.join(", "));
            return Err(Fault::Unknown(text));
        }
        let previews: Vec<Preview> =
            nodes.iter().map(|node| self.engine.preview(&node.name, &profile)).collect();
        Ok((profile, previews))
    }

    fn preview(&self, request: &SwitchRequest) -> Result<SwitchPreview, Fault> {
        let (profile, previews) = self.previews(request)?;
        let hash = hash(&profile, &previews);
        let nodes = previews.into_iter().map(node_preview).collect();
        Ok(SwitchPreview { profile: profile.to_string(), nodes, hash })
    }

    async fn switch(&self, by: &str, request: &SwitchRequest) -> Result<SwitchAccepted, Fault> {
        let (profile, previews) = self.previews(request)?;
        let blocked: Vec<String> = previews.iter().flat_map(|node| node.blocked.clone()).collect();
        if !blocked.is_empty() {
            let error = format!("nothing was switched to {profile}");
            return Err(Fault::Refused { error, faults: blocked });
        }
        let hash = hash(&profile, &previews);
        confirmed(request.confirm.as_deref(), &hash)?;
        let mut switches = Vec::new();
        let mut faults = Vec::new();
        for Preview { node, .. } in previews {
            let (id, plan) = (switch_id(), Some(hash.clone()));
            let wish = self.engine.wish(node.clone(), profile.clone(), by.to_owned(), plan, id);
            match wish.await {
                Ok(id) => switches.push(SwitchRef { id: id.0, node: node.to_string() }),
                Err(refused) => faults.push(text(refused)),
            }
        }
        if faults.is_empty() {
            return Ok(SwitchAccepted { switches });
        }
        let begun = switches.iter().map(|switch| switch.node.as_str()).collect::<Vec<_>>();
        let begun = if begun.is_empty() { "none".to_owned() } else { begun.join(", ") };
        Err(Fault::Refused {
            error: format!("not every node was switched (begun: {begun})"),
            faults,
        })
    }

    async fn forget(&self, caller: &Caller, name: &str) -> Result<BootMethodForgotten, Fault> {
        let node = self.get(name)?;
        let was_known = self.learning.forget(&node.name).await;
        tracing::info!(node = %node.name, by = caller.name, "forgot how a machine boots");
        Ok(BootMethodForgotten { node: node.name.to_string(), was_known })
    }

    async fn power_verbs(&self, by: &str, request: &PowerRequest) -> Result<PowerOutcome, Fault> {
        let selected = self.named(&request.nodes)?;
        let takes = matches!(request.verb, api::PowerVerb::Off | api::PowerVerb::Cycle);
        if takes && !request.confirmed {
            let faults =
                vec!["running work is lost; confirm it with `confirmed` (--yes)".to_owned()];
            let error = "cutting power needs a confirmation".to_owned();
            return Err(Fault::Refused { error, faults });
        }
        let verb = match request.verb {
            api::PowerVerb::On => PowerVerb::On,
            api::PowerVerb::Off => PowerVerb::Off,
            api::PowerVerb::Soft => PowerVerb::Soft,
            api::PowerVerb::Cycle => PowerVerb::Cycle,
        };
        let mut running = JoinSet::new();
        for node in selected {
            let (engine, node, by) = (self.engine.clone(), node.name.clone(), by.to_owned());
            running.spawn(async move {
                let outcome = engine.power(node.clone(), verb, by).await;
                (node, outcome)
            });
        }
        let outcomes = running.join_all().await.into_iter();
        let mut nodes: Vec<PowerResult> =
            outcomes.map(|(node, outcome)| power_result(&node, outcome)).collect();
        nodes.sort_by(|a, b| a.node.cmp(&b.node));
        Ok(PowerOutcome { nodes })
    }
}

impl Lab for LiveLab {
    fn nodes<'a>(&'a self, hostlist: Option<&'a str>) -> Reply<'a, NodeList> {
        Box::pin(self.list(hostlist))
    }

    fn node<'a>(&'a self, name: &'a str) -> Reply<'a, NodeDetail> {
        Box::pin(self.detail(name))
    }

    fn boots<'a>(&'a self, name: &'a str) -> Reply<'a, BootList> {
        Box::pin(self.boot_list(name))
    }

    fn boot<'a>(&'a self, name: &'a str, id: i64) -> Reply<'a, BootDetail> {
        Box::pin(self.boot_detail(name, id))
    }

    fn boot_packets<'a>(&'a self, name: &'a str, id: i64) -> Reply<'a, Vec<u8>> {
        Box::pin(self.boot_file(name, id))
    }

    fn node_doctor<'a>(&'a self, name: &'a str) -> Reply<'a, NodeDoctor> {
        Box::pin(self.examine(name))
    }

    fn doctor(&self) -> Reply<'_, LabDoctor> {
        Box::pin(self.rounds())
    }

    fn release_loop<'a>(&'a self, caller: &'a Caller, name: &'a str) -> Reply<'a, LoopReleased> {
        Box::pin(std::future::ready(self.release(caller, name)))
    }

    fn forget_boot_method<'a>(
        &'a self,
        caller: &'a Caller,
        name: &'a str,
    ) -> Reply<'a, BootMethodForgotten> {
        Box::pin(self.forget(caller, name))
    }

    fn networks(&self) -> Reply<'_, NetworkList> {
        Box::pin(std::future::ready(Ok(self.network_list())))
    }

    fn leases<'a>(
        &'a self,
        network: Option<&'a str>,
        mac: Option<&'a str>,
    ) -> Reply<'a, LeaseList> {
        Box::pin(self.lease_list(network, mac))
    }

    fn profiles(&self) -> Reply<'_, ProfileList> {
        let about = |name: &ProfileName| {
            self.config.profiles.get(name).map_or("", |profile| profile.about.as_str())
        };
        let specs = self.engine.profiles().values();
        let profiles = specs.map(|spec| views::profile(spec, about(&spec.name))).collect();
        Box::pin(std::future::ready(Ok(ProfileList { profiles })))
    }

    fn preview_switch<'a>(&'a self, request: &'a SwitchRequest) -> Reply<'a, SwitchPreview> {
        Box::pin(async move {
            self.first_readings(&request.nodes).await;
            self.preview(request)
        })
    }

    fn start_switch<'a>(
        &'a self,
        caller: &'a Caller,
        request: &'a SwitchRequest,
    ) -> Reply<'a, SwitchAccepted> {
        Box::pin(self.switch(&caller.name, request))
    }

    fn power<'a>(
        &'a self,
        caller: &'a Caller,
        request: &'a PowerRequest,
    ) -> Reply<'a, PowerOutcome> {
        Box::pin(self.power_verbs(&caller.name, request))
    }

    fn changes(&self) -> broadcast::Receiver<Changed> {
        self.changes.subscribe()
    }
}

/// A sample that is part of a series keeps its own moment, an absent one too.
fn sampled(sample: inventory::series::Sample) -> api::Quantity {
    let mut quantity = views::quantity(sample.power);
    quantity.to_ms = quantity.to_ms.or(Some(sample.at.0));
    quantity
}

/// Nothing is begun but what somebody has looked at, as it would happen now.
fn confirmed(confirm: Option<&str>, hash: &str) -> Result<(), Fault> {
    match confirm {
        Some(confirmed) if confirmed == hash => Ok(()),
        Some(_) => {
            let text = "what was confirmed is not what would happen now; look at the preview again";
            Err(Fault::Conflict(text.to_owned()))
        }
        None => {
            let faults = vec!["ask for a preview and send its hash as `confirm`".to_owned()];
            let error = "a switch needs a confirmed preview".to_owned();
            Err(Fault::Refused { error, faults })
        }
    }
}

/// Over everything a person confirmed: profile, and per node what will happen to it.
fn hash(profile: &ProfileName, previews: &[Preview]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(profile.as_str());
    for preview in previews {
        hasher.update(format!("{preview:?}"));
    }
    model::hex::encode(&hasher.finalize()).chars().take(16).collect()
}

fn node_preview(preview: Preview) -> NodePreview {
    let Preview { node, from, on, steps, blocked, destructive } = preview;
    NodePreview {
        node: node.to_string(),
        from: from.map(|from| from.to_string()),
        power: views::power_state(on),
        steps,
        blocked,
        destructive,
    }
}

fn power_result(node: &NodeName, outcome: Result<Option<bool>, Refused>) -> PowerResult {
    let refused = match &outcome {
        Ok(_) | Err(Refused::Unavailable(_)) => false,
        Err(Refused::Unknown(_) | Refused::Conflict(_) | Refused::Forbidden(_)) => true,
    };
    let (power, error) = match outcome {
        Ok(on) => (views::power_state(on), None),
        Err(refused) => (PowerState::Unknown, Some(text(refused))),
    };
    PowerResult { node: node.to_string(), power, error, refused }
}

fn text(refused: Refused) -> String {
    match refused {
        Refused::Unknown(text)
        | Refused::Conflict(text)
        | Refused::Forbidden(text)
        | Refused::Unavailable(text) => text,
    }
}

pub(super) fn switch_id() -> SwitchId {
    let mut chance = [0; 5];
    getrandom::fill(&mut chance).expect("the kernel's random source answers once it is seeded");
    let UnixMillis(millis) = now();
    SwitchId(format!("{millis:012x}{}", model::hex::encode(&chance)))
}

pub(super) fn store(error: inventory::StoreError) -> Fault {
    tracing::error!(%error, "the book could not be read");
    Fault::Unavailable("the database cannot be read; look at volund's log".to_owned())
}
