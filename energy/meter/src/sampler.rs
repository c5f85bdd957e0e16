//! Reads power state and draw of every node, each in a task of its own: a silent BMC delays nobody else.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, SystemTime},
};

use bmc::{Bmc, BmcError, DcmiOutcome};
use energy::reading::{MarginRule, Meter, from_dcmi, standing};
use inventory::series::{Sample, Series};
use model::{
    NodeName, PowerKind, PowerSource, UnixMillis, Uuid,
    power::{NoReading, PowerSample},
};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval_at},
};
use tokio_util::sync::CancellationToken;

/// A node that is read.
#[derive(Clone)]
pub struct Metered {
    /// The node.
    pub node: NodeName,
    /// Its BMC.
    pub bmc: Arc<Bmc>,
    /// What its BMC's power reading measures: blade input in an enclosure, wall input elsewhere.
    pub kind: PowerKind,
}

/// What the sampler saw, for the engine and the page.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// Power was read, or could not be.
    Power {
        /// Which node.
        node: NodeName,
        /// On, off, or no answer.
        on: Option<bool>,
        /// When.
        at: UnixMillis,
    },
    /// What is known of a BMC changed.
    Bmc {
        /// Which node.
        node: NodeName,
        /// System GUID it tells.
        guid: Option<Uuid>,
        /// Cipher suite in use.
        suite: Option<u8>,
        /// What is wrong with it.
        trouble: Option<String>,
        /// When.
        at: UnixMillis,
    },
    /// A sample was stored.
    Sampled {
        /// Which node.
        node: NodeName,
    },
}

/// The last sample of each node. Clones share it.
#[derive(Debug, Clone)]
pub struct Latest {
    samples: Arc<RwLock<BTreeMap<NodeName, PowerSample>>>,
    period: Duration,
}

/// How to sample.
pub struct Sampler {
    /// Time between two readings of one node; 10 s is what most BMCs refresh at.
    pub period: Duration,
    /// Margin of an uncalibrated reading.
    pub margin: MarginRule,
    /// Where samples are kept.
    pub series: Arc<Series>,
    /// Told of everything seen; when it is full the sampler of that node waits.
    pub seen: mpsc::Sender<Seen>,
}

/// What was last told of a BMC, to tell changes only.
#[derive(Debug, Clone, PartialEq, Default)]
struct Told {
    guid: Option<Uuid>,
    suite: Option<u8>,
    trouble: Option<String>,
}

impl Told {
    /// Whether the BMC was not heard before, or not the last time.
    fn asks_who_it_is(&self) -> bool {
        self.suite.is_none() || self.trouble.is_some()
    }
}

impl Latest {
    fn new(period: Duration) -> Self {
        Self { samples: Arc::default(), period }
    }

    /// What may be shown as the draw of `node` at `now`, or why there is nothing to show.
    ///
    /// # Errors
    /// The reason there is no reading.
    pub fn standing(&self, node: &NodeName, now: UnixMillis) -> PowerSample {
        let samples = self.samples.read().unwrap_or_else(PoisonError::into_inner);
        let sample = samples.get(node).copied().unwrap_or(Err(NoReading::NotReadYet));
        standing(sample, now, self.period)
    }

    fn set(&self, node: &NodeName, sample: PowerSample) {
        let mut samples = self.samples.write().unwrap_or_else(PoisonError::into_inner);
        samples.insert(node.clone(), sample);
    }
}

impl Sampler {
    /// Starts a task for each node. They join `tasks` and end with `stop`.
    pub fn start(
        self,
        nodes: Vec<Metered>,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> Latest {
        let latest = Latest::new(self.period);
        let shared = Arc::new(self);
        let count = u32::try_from(nodes.len()).unwrap_or(u32::MAX).max(1);
        for (index, metered) in (0_u32..).zip(nodes) {
            // Spread over a second at the start, so that a rack is not asked in one burst.
            let first = Instant::now() + Duration::from_secs(1) * index / count;
            let task = Arc::clone(&shared).watch(metered, latest.clone(), first);
            let stop = stop.clone();
            tasks.spawn(async move {
                let _ended: Option<()> = stop.run_until_cancelled(task).await;
            });
        }
        latest
    }

    async fn watch(self: Arc<Self>, metered: Metered, latest: Latest, first: Instant) {
        let mut tick = interval_at(first, self.period);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut told = Told::default();
        loop {
            tick.tick().await;
            self.sample_once(&metered, &latest, &mut told).await;
        }
    }

    async fn sample_once(&self, metered: &Metered, latest: &Latest, told: &mut Told) {
        let node = metered.node.clone();
        let power = metered.bmc.power_status().await;
        let on = match &power {
            Ok(power) => Some(power.is_on()),
            Err(_) => None,
        };
        self.tell(Seen::Power { node: node.clone(), on, at: now() }).await;
        self.tell_of_bmc(metered, power.as_ref().err(), told).await;
        let answer = match power {
            Err(error) if !is_answer(&error) => Err(absence(&error)),
            // A BMC that cannot tell the power state may still have a meter.
            Ok(_) | Err(_) => dcmi(metered.bmc.power_reading().await),
        };
        let (at, meter) = (now(), self.meter(metered.kind));
        let sample = from_dcmi(answer, &meter, at);
        latest.set(&node, sample);
        if let Err(error) = self.series.append(&node, &Sample { at, power: sample }) {
            tracing::error!(%node, %error, "a sample was not kept");
        }
        self.tell(Seen::Sampled { node }).await;
    }

    /// Tells what is known of the BMC where that has changed: it answered, or it is in this trouble.
    async fn tell_of_bmc(&self, metered: &Metered, trouble: Option<&BmcError>, told: &mut Told) {
        let fact = match trouble {
            None => self.look(metered, told).await,
            Some(error) => Told { trouble: Some(error.to_string()), ..told.clone() },
        };
        if *told != fact {
            told.clone_from(&fact);
            let (node, Told { guid, suite, trouble }) = (metered.node.clone(), fact);
            self.tell(Seen::Bmc { node, guid, suite, trouble, at: now() }).await;
        }
    }

    /// What a BMC that answers says of itself. Which machine it belongs to is asked again after each silence: that
    /// is when another one may have taken its place.
    async fn look(&self, metered: &Metered, told: &Told) -> Told {
        let is_new = told.asks_who_it_is();
        if is_new {
            self.look_at_firmware(metered).await;
        }
        let guid = if is_new || told.guid.is_none() {
            metered.bmc.system_guid().await.ok().flatten().or(told.guid)
        } else {
            told.guid
        };
        Told { guid, suite: metered.bmc.suite(), trouble: None }
    }

    /// "No such command" is remembered until the BMC's firmware changes, and a new firmware comes with a restart
    /// of the BMC: at the first contact and after each silence it is asked which it runs.
    async fn look_at_firmware(&self, metered: &Metered) {
        if let Err(error) = metered.bmc.device_id().await {
            let node = &metered.node;
            tracing::debug!(%node, %error, "the BMC does not say which firmware it runs");
        }
    }

    fn meter(&self, kind: PowerKind) -> Meter {
        // DCMI's current power is an instant; the window it speaks for is one refresh of the BMC.
        let window = self.period.min(Duration::from_secs(10));
        Meter { source: PowerSource::Dcmi, kind, window, margin: self.margin }
    }

    async fn tell(&self, seen: Seen) {
        if self.seen.send(seen).await.is_err() {
            tracing::debug!("nobody listens to the sampler any more");
        }
    }
}

fn dcmi(outcome: Result<DcmiOutcome, BmcError>) -> Result<u16, NoReading> {
    match outcome {
        Ok(DcmiOutcome::Reading { watts, .. }) => Ok(watts),
        Ok(DcmiOutcome::Absent) => Err(NoReading::MeterSaysNone),
        Ok(DcmiOutcome::NotSupported) => Err(NoReading::NotSupported),
        Err(error) => Err(absence(&error)),
    }
}

/// Whether the BMC spoke: others of its commands may work.
fn is_answer(error: &BmcError) -> bool {
    matches!(error, BmcError::Refused { .. } | BmcError::Malformed { .. })
}

fn absence(error: &BmcError) -> NoReading {
    match error {
        BmcError::Refused { .. }
        | BmcError::Malformed { .. }
        | BmcError::LoginRefused { .. }
        | BmcError::NoPrivilege { .. }
        | BmcError::NoSessionFree { .. }
        | BmcError::NoSuite { .. } => NoReading::Unusable,
        BmcError::Unreachable { .. }
        | BmcError::PortClosed { .. }
        | BmcError::Queued { .. }
        | BmcError::Socket { .. }
        | BmcError::Handshake { .. }
        | BmcError::OutcomeUnknown { .. } => NoReading::BmcSilent,
    }
}

fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn a_bmc_that_says_no_is_not_called_silent() {
        let addr = SocketAddr::from(([192, 0, 2, 9], 623));
        let cases = [
            (BmcError::Unreachable { addr, attempts: 3 }, NoReading::BmcSilent),
            (BmcError::PortClosed { addr }, NoReading::BmcSilent),
            (BmcError::NoSessionFree { addr }, NoReading::Unusable),
        ];
        for (error, want) in cases {
            assert_eq!(absence(&error), want, "{error}");
        }
    }
}
