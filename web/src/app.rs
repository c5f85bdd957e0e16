//! What every handler gets to see.

use std::{future::Future, sync::Arc, time::Duration};

use jiff::tz::TimeZone;
use model::UnixMillis;
use tokio::{sync::Semaphore, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    auth::Auth,
    error::ApiError,
    lab::{Fault, Lab},
};

/// The longest a request waits for the lab: a power verb reads the state back, which takes seconds.
const LAB_PATIENCE: Duration = Duration::from_secs(60);

/// At most this many event streams at once; the next one is told to come back later.
const MAX_STREAMS: usize = 256;

/// How the operator's listener is reached; it decides whether the cookie is marked `Secure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Plain HTTP: loopback only.
    Plain,
    /// TLS, ended here or in front of us.
    Tls,
}

/// State of the web server.
#[derive(Clone)]
pub struct App {
    /// The lab.
    pub lab: Arc<dyn Lab>,
    /// Users, tokens, sessions.
    pub auth: Arc<Auth>,
    /// Names the `Host` header may carry: `name`, or `name:port` to pin the port too.
    pub hosts: Arc<[String]>,
    /// How the listener is reached.
    pub transport: Transport,
    /// Time zone in which pages write times.
    pub zone: TimeZone,
    /// The clock of pages and streams; tests bring their own.
    pub now: fn() -> UnixMillis,
    /// Ends the event streams; [`crate::serve`] sets it to the token it was given.
    pub stop: CancellationToken,
    /// Places for event streams.
    pub(crate) streams: Arc<Semaphore>,
}

impl App {
    /// A server for `lab` that answers only under the names in `hosts`, over plain HTTP, in the system's time
    /// zone. The fields can be changed afterwards.
    #[must_use]
    pub fn new(lab: Arc<dyn Lab>, auth: Arc<Auth>, hosts: Vec<String>) -> Self {
        Self {
            lab,
            auth,
            hosts: hosts.into(),
            transport: Transport::Plain,
            zone: TimeZone::system(),
            now: system_now,
            stop: CancellationToken::new(),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
        }
    }

    /// Waits for `reply`, at most a minute.
    ///
    /// # Errors
    /// What the lab says, or 503 when it says nothing in time.
    pub(crate) async fn ask<T>(
        &self,
        reply: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, ApiError> {
        let late = || {
            ApiError::Unavailable(
                "the lab did not answer within a minute; look at the node before trying again"
                    .to_owned(),
            )
        };
        Ok(timeout(LAB_PATIENCE, reply).await.map_err(|_| late())??)
    }
}

fn system_now() -> UnixMillis {
    let millis = jiff::Timestamp::now().as_millisecond();
    UnixMillis(millis)
}
