//! Server-sent events: patches for an open page, nodes for whoever reads the API.
//!
//! A stream looks at the lab when something changed, at most twice a second, and every ten seconds anyway, so
//! that readings grow old on the page too. A reader that is too slow loses changes, never order: it sees the
//! newest state next time. No page stream outlives its session, no stream the server.

use std::{collections::BTreeSet, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Extension,
    extract::{Query, State},
    response::{
        Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use tokio::{
    sync::{
        OwnedSemaphorePermit,
        broadcast::{self, error::RecvError},
    },
    time::{Instant, sleep_until, timeout_at},
};

use crate::{
    App,
    auth::Viewer,
    error::ApiError,
    lab::Changed,
    pages::{Partials, Place},
    view::Clock,
};

/// At most two patches per second and element.
const PACE: Duration = Duration::from_millis(500);

/// A look without a change, and the sign of life the page waits for.
const BEAT: Duration = Duration::from_secs(10);

type Events = Result<Event, Infallible>;

/// What changed since the last look.
enum Change {
    /// These nodes.
    Nodes(BTreeSet<String>),
    /// Unknown: the reader was too slow, or has just come.
    Anything,
    /// Nothing, but time has passed.
    Beat,
}

/// Waits for changes and gathers those that come close together.
struct Watch {
    app: App,
    changes: broadcast::Receiver<Changed>,
    last: Instant,
    /// Held until the stream ends.
    _place: OwnedSemaphorePermit,
}

impl Watch {
    fn new(app: &App) -> Result<Self, ApiError> {
        let place = Arc::clone(&app.streams).try_acquire_owned();
        let place = place.map_err(|_| {
            ApiError::Unavailable("too many open pages; close some, then load again".to_owned())
        })?;
        let changes = app.lab.changes();
        Ok(Self { app: app.clone(), changes, last: Instant::now(), _place: place })
    }

    /// The next change; `None` when the server stops or the lab is gone.
    async fn next(&mut self) -> Option<Change> {
        let stop = self.app.stop.clone();
        let change = stop.run_until_cancelled(self.gather()).await??;
        self.last = Instant::now();
        Some(change)
    }

    async fn gather(&mut self) -> Option<Change> {
        let beat = self.last + BEAT;
        let mut change = match timeout_at(beat, self.changes.recv()).await {
            Err(_) => return Some(Change::Beat),
            Ok(Err(RecvError::Closed)) => return None,
            Ok(Err(RecvError::Lagged(_))) => Change::Anything,
            Ok(Ok(changed)) => Change::Nodes(BTreeSet::from([changed.node])),
        };
        sleep_until(self.last + PACE).await;
        loop {
            match self.changes.try_recv() {
                Ok(changed) => {
                    if let Change::Nodes(nodes) = &mut change {
                        nodes.insert(changed.node);
                    }
                }
                Err(broadcast::error::TryRecvError::Lagged(_)) => change = Change::Anything,
                Err(
                    broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed,
                ) => return Some(change),
            }
        }
    }
}

/// Which page is open, and which state it was made from.
#[derive(Deserialize)]
pub(crate) struct Live {
    page: String,
    #[serde(default)]
    seen: String,
}

struct PageStream {
    watch: Watch,
    viewer: Viewer,
    place: Place,
    sent: Partials,
    /// Whether the first look is still to come.
    fresh: bool,
}

/// `GET /live?page=PATH`: `event: patch`, data = id, newline, HTML; `event: beat`, data = time of the look.
pub(crate) async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(live): Query<Live>,
) -> Result<Sse<impl Stream<Item = Events>>, ApiError> {
    let place = Place::parse(&live.page)
        .ok_or_else(|| ApiError::NotFound("this page has no live stream".to_owned()))?;
    let watch = Watch::new(&app)?;
    let mut sent = place.render(&app, &viewer).await?;
    if sent.digest() != live.seen {
        sent = Partials::default();
    }
    let state = PageStream { watch, viewer, place, sent, fresh: true };
    let batches = stream::unfold(state, |mut state| async move {
        let events = state.step().await?;
        Some((stream::iter(events), state))
    });
    Ok(Sse::new(batches.flatten()).keep_alive(KeepAlive::default()))
}

impl PageStream {
    /// The events of one look; `None` ends the stream.
    async fn step(&mut self) -> Option<Vec<Events>> {
        if !std::mem::take(&mut self.fresh) {
            self.watch.next().await?;
        }
        let app = &self.watch.app;
        app.auth.find_session(&self.viewer.session)?;
        let mut events = Vec::new();
        // A lab that does not answer is no reason to end: no beat, so the page says it is out of date.
        if let Ok(now) = self.place.render(app, &self.viewer).await {
            for (id, html) in now.changed_since(&self.sent) {
                events.push(Ok(Event::default().event("patch").data(format!("{id}\n{html}"))));
            }
            self.sent = now;
            let clock = Clock::of(app);
            events.push(Ok(Event::default().event("beat").data(clock.second(clock.now.0))));
        }
        Some(events)
    }
}

struct NodeStream {
    watch: Watch,
    fresh: bool,
}

/// `GET /api/v1/events`: `event: node`, data = a node as JSON; all nodes first, then each that changed.
pub(crate) async fn nodes(
    State(app): State<App>,
) -> Result<Sse<impl Stream<Item = Events>>, ApiError> {
    let state = NodeStream { watch: Watch::new(&app)?, fresh: true };
    // Whoever cannot see the list at all hears so as a status code.
    app.ask(app.lab.nodes(None)).await?;
    let batches = stream::unfold(state, |mut state| async move {
        let events = state.step().await?;
        Some((stream::iter(events), state))
    });
    Ok(Sse::new(batches.flatten()).keep_alive(KeepAlive::default()))
}

impl NodeStream {
    async fn step(&mut self) -> Option<Vec<Events>> {
        let change = if std::mem::take(&mut self.fresh) {
            Change::Anything
        } else {
            self.watch.next().await?
        };
        if matches!(change, Change::Beat) {
            return Some(Vec::new());
        }
        let app = &self.watch.app;
        let Ok(list) = app.ask(app.lab.nodes(None)).await else { return Some(Vec::new()) };
        let wanted = |name: &String| match &change {
            Change::Nodes(names) => names.contains(name),
            Change::Anything => true,
            Change::Beat => false,
        };
        let nodes = list.nodes.iter().filter(|node| wanted(&node.name));
        let event = |node| Event::default().event("node").json_data(node).ok().map(Ok);
        Some(nodes.filter_map(event).collect())
    }
}
