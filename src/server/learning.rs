//! Learns how machines boot from what is seen of them, keeps it in the book, and puts it into the boot table.
//!
//! What is configured of a node always wins. The evidence comes from an unauthenticated wire: whoever can speak as a
//! machine can make it try another loader of the list, or another way to its own disk, and nothing else.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use inventory::{
    LearntRow, Record, Store, StoreError, Writer,
    learnt::{self, Subject, WayKind},
};
use model::{
    ClientArch, NodeName, Sighted, Sighting, UnixMillis,
    boot::{BootTraits, LocalBoot},
};
use plan::NodeState;
use profiles::{EngineHandle, world::now};
use pxe_proto::ladder::{
    BootMethod, Lesson, Open, School, Standing, local_name, local_way, local_ways,
};
use tokio::sync::{broadcast::error::RecvError, mpsc};

use super::table::Table;
use crate::config::{BootMode, Config, Node};

/// How often it is looked whether something has come to its end by silence.
const LOOK: Duration = Duration::from_secs(20);

/// What is known of all machines. Clones share it.
#[derive(Clone)]
pub(super) struct Learning {
    config: Arc<Config>,
    ladders: Arc<BTreeMap<ClientArch, Vec<String>>>,
    table: Table,
    store: Store,
    writer: Writer,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    nodes: BTreeMap<NodeName, BootMethod>,
    models: BTreeMap<String, BootMethod>,
    /// The model of each node that has reported its hardware.
    model_of: BTreeMap<NodeName, String>,
    /// What is under way, with the power and the order it began under.
    open: BTreeMap<NodeName, (Open, Ground)>,
}

/// What must stay the same for a boot to teach anything: the machine's power as last read, and that nothing of ours
/// works on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ground {
    on: Option<bool>,
    at_work: bool,
    ordered: Option<UnixMillis>,
}

/// Where a way comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Configured,
    Learnt,
    OfModel,
    Default,
}

/// A way a node boots, and those that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) what: String,
    pub(super) way: String,
    pub(super) source: Source,
    pub(super) failed: Vec<String>,
}

impl Known {
    fn method(&self, node: &NodeName) -> BootMethod {
        let own = self.nodes.get(node).cloned().unwrap_or_default();
        let model = self.model_of.get(node).and_then(|model| self.models.get(model));
        model.map_or_else(|| own.clone(), |model| own.with_model(model))
    }

    fn of(&mut self, subject: &Subject) -> &mut BootMethod {
        match subject {
            Subject::Node(node) => self.nodes.entry(node.clone()).or_default(),
            Subject::Model(model) => self.models.entry(model.clone()).or_default(),
        }
    }
}

impl Learning {
    /// What the book knows, put into the boot table.
    ///
    /// # Errors
    /// When the book cannot be read.
    pub(super) async fn begin(
        config: Arc<Config>,
        table: Table,
        store: Store,
        writer: Writer,
    ) -> Result<Self, StoreError> {
        let mut known = Known::default();
        for row in learnt::list(&store).await? {
            restore(&mut known, row);
        }
        for row in inventory::facts::list(&store).await? {
            known.model_of.extend(model(&row.facts.json).map(|model| (row.facts.node, model)));
        }
        let ladders = Arc::new(config.loaders.ladders());
        let known = Arc::new(Mutex::new(known));
        let learning = Self { config, ladders, table, store, writer, known };
        learning.config.nodes.values().for_each(|node| learning.put(node));
        Ok(learning)
    }

    /// Learns from sightings until their sender is gone.
    pub(super) async fn follow(self, mut seen: mpsc::Receiver<Sighting>, engine: EngineHandle) {
        let mut look = tokio::time::interval(LOOK);
        let mut changes = engine.changes();
        loop {
            tokio::select! {
                sighting = seen.recv() => {
                    let Some(sighting) = sighting else { return };
                    self.see(&sighting, &engine).await;
                }
                changed = changes.recv() => match changed {
                    Ok(node) => self.look_at(engine.state(&node).as_ref()),
                    Err(RecvError::Lagged(_)) => {
                        engine.states().iter().for_each(|state| self.look_at(Some(state)));
                    }
                    Err(RecvError::Closed) => return,
                },
                _ = look.tick() => self.time_has_passed(&engine).await,
            }
        }
    }

    async fn see(&self, sighting: &Sighting, engine: &EngineHandle) {
        let Some(node) = sighting.node.as_ref().and_then(|name| self.node(name)) else { return };
        let Some(state) = engine.state(&node.name) else { return };
        self.look_at(Some(&state));
        if matches!(&sighting.what, Sighted::Agent { verb } if verb == "report") {
            self.read_model(&node.name).await;
        }
        let lessons = self.learn(node, &state, |method, open, school| {
            method.saw(open, school, &sighting.what, sighting.at)
        });
        self.keep(node, lessons, engine).await;
    }

    async fn time_has_passed(&self, engine: &EngineHandle) {
        let open: Vec<NodeName> = self.lock().open.keys().cloned().collect();
        for name in open {
            let Some((node, state)) = self.node(&name).zip(engine.state(&name)) else { continue };
            let lessons =
                self.learn(node, &state, |method, open, school| method.passed(open, school, now()));
            self.keep(node, lessons, engine).await;
        }
    }

    /// What was under way when power was switched, or an order began or ended, teaches nothing.
    fn look_at(&self, state: Option<&NodeState>) {
        let Some(state) = state else { return };
        let mut known = self.lock();
        if let Some((open, begun)) = known.open.get_mut(&state.spec.name) {
            let ground = ground(state);
            let power_moved = begun.on.is_some() && ground.on.is_some() && begun.on != ground.on;
            if power_moved || begun.at_work != ground.at_work || begun.ordered != ground.ordered {
                open.interrupt();
            }
            *begun = Ground { on: ground.on.or(begun.on), ..ground };
        }
    }

    fn learn(
        &self,
        node: &Node,
        state: &NodeState,
        take: impl FnOnce(&mut BootMethod, &mut Open, &School<'_>) -> Vec<Lesson>,
    ) -> Vec<Lesson> {
        let traits = &node.traits;
        let school = School {
            ladders: &self.ladders,
            efi: node.boot_mode == BootMode::Uefi,
            loaders: traits.loaders.is_empty(),
            local: traits.local == LocalBoot::ByFirmware,
        };
        let mut known = self.lock();
        // It goes on from what its model taught, so that it does not learn the same again.
        let mut method = known.method(&node.name);
        let before = method.clone();
        let entry = known.open.entry(node.name.clone());
        let (open, _) = entry.or_insert_with(|| (Open::default(), ground(state)));
        let lessons = take(&mut method, open, &school);
        if open.is_empty() {
            known.open.remove(&node.name);
        }
        if method != before {
            let own = known.nodes.entry(node.name.clone()).or_default();
            own.loaders.extend(differing(&before.loaders, &method.loaders));
            own.local.extend(differing(&before.local, &method.local));
        }
        lessons
    }

    /// Notes what was learnt and tells it.
    async fn keep(&self, node: &Node, lessons: Vec<Lesson>, engine: &EngineHandle) {
        if lessons.is_empty() {
            return;
        }
        let at = now();
        self.note(node, &lessons, at).await;
        for lesson in lessons {
            tracing::info!(node = %node.name, %lesson, "learnt how a machine boots");
            let what = Sighted::Learnt { what: lesson.to_string() };
            let (mac, name) = (node.macs.first().copied(), Some(node.name.clone()));
            let sighting = Sighting { at, node: name, mac, peer: None, attempt: None, what };
            engine.sighted(sighting).await;
        }
    }

    /// Writes down what was learnt, and lets the boot table follow.
    async fn note(&self, node: &Node, lessons: &[Lesson], at: UnixMillis) {
        let subjects = self.teach_model(&node.name, lessons);
        let records = {
            let mut known = self.lock();
            subjects.iter().flat_map(|subject| rows(subject, known.of(subject), at)).collect()
        };
        self.submit(records).await;
        self.config.nodes.values().for_each(|node| self.put(node));
    }

    /// A machine that found a way that works after others had failed teaches its model, where nothing else is known.
    fn teach_model(&self, node: &NodeName, lessons: &[Lesson]) -> Vec<Subject> {
        let mut subjects = vec![Subject::Node(node.clone())];
        let mut known = self.lock();
        let works = lessons
            .iter()
            .any(|lesson| matches!(lesson, Lesson::LoaderWorks(_) | Lesson::LocalWorks(_)));
        let own = known.nodes.get(node).filter(|own| works && own.is_peculiar()).cloned();
        if let Some((own, model)) = own.zip(known.model_of.get(node).cloned()) {
            let of_model = known.models.entry(model.clone()).or_default();
            *of_model = of_model.with_model(&settled(&own));
            subjects.push(Subject::Model(model));
        }
        subjects
    }

    /// Forgets what a node, and its model with it, taught. Gives whether there was anything.
    pub(super) async fn forget(&self, node: &NodeName) -> bool {
        let subjects = {
            let mut known = self.lock();
            let own = known.nodes.remove(node).map(|_| Subject::Node(node.clone()));
            known.open.remove(node);
            let model = known.model_of.get(node).cloned();
            let model = model.filter(|model| known.models.remove(model).is_some());
            own.into_iter().chain(model.map(Subject::Model)).collect::<Vec<_>>()
        };
        let was_known = !subjects.is_empty();
        self.submit(subjects.into_iter().map(Record::Forgotten).collect()).await;
        self.config.nodes.values().for_each(|node| self.put(node));
        was_known
    }

    /// How a node boots now.
    pub(super) fn ways(&self, node: &Node) -> Vec<Way> {
        let known = self.lock();
        let (method, own) = (known.method(&node.name), known.nodes.get(&node.name));
        let efi = node.boot_mode == BootMode::Uefi;
        let archs: &[u16] = if efi { &[7, 11] } else { &[0] };
        let loaders = archs.iter().filter_map(|code| self.loader(node, &method, own, *code));
        let local = local_of(node, &method, own, efi);
        loaders.chain([local]).collect()
    }

    fn loader(
        &self,
        node: &Node,
        method: &BootMethod,
        own: Option<&BootMethod>,
        code: u16,
    ) -> Option<Way> {
        let arch = ClientArch(code);
        let what = format!("loader for {arch}");
        if let Some(way) = node.traits.loaders.get(&arch) {
            let (way, source) = (way.clone(), Source::Configured);
            return Some(Way { what, way, source, failed: vec![] });
        }
        let first = self.config.loaders.table().0.get(&arch).cloned()?;
        let ladder = self.ladders.get(&arch).cloned().unwrap_or_else(|| vec![first.clone()]);
        let way = method.chosen_loaders(&self.ladders).remove(&arch).unwrap_or(first);
        let failed = |name: &&String| method.loaders.get(*name) == Some(&Standing::Failed);
        let failed = ladder.iter().filter(failed).cloned().collect();
        let source = source(own.map(|own| &own.loaders), &method.loaders, &way);
        Some(Way { what, way, source, failed })
    }

    /// Puts what is configured and learnt of a node into the boot table.
    fn put(&self, node: &Node) {
        let traits = &node.traits;
        let method = self.lock().method(&node.name);
        let efi = node.boot_mode == BootMode::Uefi;
        let (mut loaders, mut local) = (traits.loaders.clone(), traits.local);
        if loaders.is_empty() {
            loaders = method.chosen_loaders(&self.ladders);
        }
        if local == LocalBoot::ByFirmware {
            local = method.chosen_local(efi);
        }
        self.table.set_traits(&node.name, |old| BootTraits { loaders, local, ..old });
    }

    /// A node that has just reported its hardware shows its model.
    async fn read_model(&self, node: &NodeName) {
        match inventory::facts::find(&self.store, node).await {
            Ok(facts) => {
                let model = facts.and_then(|facts| model(&facts.facts.json));
                let mut known = self.lock();
                known.model_of.extend(model.map(|model| (node.clone(), model)));
            }
            Err(error) => tracing::warn!(%node, %error, "the model of a node cannot be read"),
        }
    }

    async fn submit(&self, records: Vec<Record>) {
        if records.is_empty() {
            return;
        }
        if let Err(error) = self.writer.submit(records).await {
            tracing::warn!(%error, "what was learnt is not kept beyond a restart");
        }
    }

    fn node(&self, name: &NodeName) -> Option<&Node> {
        self.config.nodes.get(name.as_str())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ground(state: &NodeState) -> Ground {
    Ground {
        on: state.power.map(|(on, _)| on),
        at_work: state.order.is_some() || state.open_switch().is_some(),
        ordered: state.ordered,
    }
}

fn local_of(node: &Node, method: &BootMethod, own: Option<&BootMethod>, efi: bool) -> Way {
    let (configured, what) = (node.traits.local, "local disk".to_owned());
    if configured != LocalBoot::ByFirmware {
        let (way, source) = (local_name(configured).to_owned(), Source::Configured);
        return Way { what, way, source, failed: vec![] };
    }
    let way = method.chosen_local(efi);
    let failed = |way: &&LocalBoot| method.local.get(*way) == Some(&Standing::Failed);
    let failed = local_ways(efi).iter().filter(failed).map(|way| local_name(*way).to_owned());
    let source = source(own.map(|own| &own.local), &method.local, &way);
    Way { what, way: local_name(way).to_owned(), source, failed: failed.collect() }
}

fn source<T: Ord>(
    own: Option<&BTreeMap<T, Standing>>,
    both: &BTreeMap<T, Standing>,
    way: &T,
) -> Source {
    let works = |known: &BTreeMap<T, Standing>| known.get(way) == Some(&Standing::Works);
    match own {
        Some(own) if works(own) => Source::Learnt,
        _ if works(both) => Source::OfModel,
        _ => Source::Default,
    }
}

/// What is known after that was not known before.
fn differing<T: Ord + Clone>(
    before: &BTreeMap<T, Standing>,
    after: &BTreeMap<T, Standing>,
) -> Vec<(T, Standing)> {
    let new = after.iter().filter(|(way, standing)| before.get(*way) != Some(*standing));
    new.map(|(way, standing)| (way.clone(), *standing)).collect()
}

/// Without doubts: they are a machine's own.
fn settled(method: &BootMethod) -> BootMethod {
    let mut method = method.clone();
    method.loaders.retain(|_, standing| !matches!(standing, Standing::Doubted(_)));
    method.local.retain(|_, standing| !matches!(standing, Standing::Doubted(_)));
    method
}

fn model(json: &str) -> Option<String> {
    let facts: serde_json::Value = serde_json::from_str(json).ok()?;
    let product = facts.get("product")?.as_str()?.trim();
    (!product.is_empty()).then(|| product.to_owned())
}

fn rows(subject: &Subject, method: &BootMethod, at: UnixMillis) -> Vec<Record> {
    let row = |kind, way: &str, standing: Standing| {
        let (standing, points) = match standing {
            Standing::Doubted(points) => (learnt::Standing::Doubted, points),
            Standing::Failed => (learnt::Standing::Failed, 0),
            Standing::Works => (learnt::Standing::Works, 0),
        };
        let (subject, way) = (subject.clone(), way.to_owned());
        Record::Learnt(LearntRow { subject, kind, way, standing, points, at })
    };
    let loaders = method.loaders.iter().map(|(way, standing)| row(WayKind::Loader, way, *standing));
    let local =
        method.local.iter().map(|(way, standing)| row(WayKind::Local, local_name(*way), *standing));
    loaders.chain(local).collect()
}

fn restore(known: &mut Known, row: LearntRow) {
    let standing = match row.standing {
        learnt::Standing::Doubted => Standing::Doubted(row.points),
        learnt::Standing::Failed => Standing::Failed,
        learnt::Standing::Works => Standing::Works,
    };
    let method = known.of(&row.subject);
    match row.kind {
        WayKind::Loader => _ = method.loaders.insert(row.way, standing),
        // A way this volund does not know was learnt by a later one.
        WayKind::Local => _ = local_way(&row.way).map(|way| method.local.insert(way, standing)),
    }
}

#[cfg(test)]
#[path = "learning_tests.rs"]
mod tests;
