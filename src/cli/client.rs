//! The command line's half of the API: requests out, typed answers or [`Trouble`] back.
//!
//! The token travels in a header to one server only: no redirect is followed, no proxy is used, and no
//! message holds it.

use std::time::Duration;

use api::{LeaseList, NodeDetail, NodeList, PhaseEvent, Problem};
use model::NodeName;
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url, redirect};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ExitCode, Trouble};

/// Where the server is when nobody says.
pub(super) const DEFAULT_URL: &str = "http://127.0.0.1:8443";

/// No answer of volund is larger.
const MAX_ANSWER: usize = 32 * 1024 * 1024;
/// A connection on a lab's own machine is there at once.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Reading changes nothing and waits for nobody.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Power verbs read the state back before they answer: a shut-down may take minutes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// A volund server.
pub(super) struct Client {
    base: Url,
    token: Option<String>,
    http: reqwest::Client,
}

/// An answer, as it came and as it is understood.
pub(super) struct Answer<T> {
    /// As it came, for `--json`.
    pub(super) json: Value,
    /// As it is understood.
    pub(super) value: T,
}

impl Client {
    /// A client of the server at `url`. Sends nothing yet.
    ///
    /// # Errors
    /// When `url` is none, names another protocol than http, or holds a password.
    pub(super) fn new(url: &str, token: Option<String>) -> Result<Self, Trouble> {
        let base = check_url(url)?;
        let token = token.filter(|token| !token.is_empty());
        if token.as_ref().is_some_and(|token| !token.chars().all(|c| c.is_ascii_graphic())) {
            let trouble = Trouble::usage("the API token holds blanks or control characters");
            return Err(trouble.remedy("a token is one word, such as vlnd_…; copy it again"));
        }
        let http = reqwest::Client::builder()
            .user_agent(concat!("volund/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            .build()
            .map_err(|error| Trouble::new(ExitCode::Failed, format!("HTTP client: {error}")))?;
        Ok(Self { base, token, http })
    }

    /// `GET /api/v1/nodes`, of a hostlist or of all.
    pub(super) async fn nodes(&self, hostlist: Option<&str>) -> Result<Answer<NodeList>, Trouble> {
        let mut url = self.url("/api/v1/nodes");
        if let Some(hostlist) = hostlist {
            url.query_pairs_mut().append_pair("nodes", hostlist);
        }
        self.ask(self.read_request(url), "list the nodes").await
    }

    /// `GET /api/v1/leases`, of one network and one hardware address where they are given.
    pub(super) async fn leases(
        &self,
        network: Option<&str>,
        mac: Option<&str>,
    ) -> Result<Answer<LeaseList>, Trouble> {
        let mut url = self.url("/api/v1/leases");
        for (key, value) in [("network", network), ("mac", mac)] {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(key, value);
            }
        }
        self.ask(self.read_request(url), "list the leases").await
    }

    /// `GET /api/v1/nodes/NAME/history`.
    pub(super) async fn history(
        &self,
        name: &NodeName,
    ) -> Result<Answer<Vec<PhaseEvent>>, Trouble> {
        let what = format!("show the history of {name}");
        self.get(&format!("/api/v1/nodes/{name}/history"), &what).await
    }

    /// `GET /api/v1/nodes/NAME`.
    pub(super) async fn node(&self, name: &NodeName) -> Result<Answer<NodeDetail>, Trouble> {
        self.get(&format!("/api/v1/nodes/{name}"), &format!("show node {name}")).await
    }

    /// `GET path`; `what` says in a message what was wanted.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        what: &str,
    ) -> Result<Answer<T>, Trouble> {
        self.ask(self.read_request(self.url(path)), what).await
    }

    /// `POST path` with a JSON body; `what` says in a message what was wanted.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl serde::Serialize,
        what: &str,
    ) -> Result<Answer<T>, Trouble> {
        self.ask(self.http.request(Method::POST, self.url(path)).json(body), what).await
    }

    /// `GET path` of a file; `what` says in a message what was wanted.
    pub(super) async fn download(&self, path: &str, what: &str) -> Result<Vec<u8>, Trouble> {
        self.fetch(self.read_request(self.url(path)), what).await
    }

    fn read_request(&self, url: Url) -> RequestBuilder {
        self.http.request(Method::GET, url).timeout(READ_TIMEOUT)
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(path);
        url
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        what: &str,
    ) -> Result<Answer<T>, Trouble> {
        let body = self.fetch(request, what).await?;
        let strange = |error: serde_json::Error| {
            let text = format!("cannot {what}: {} answered what is no answer: {error}", self.base);
            Trouble::new(ExitCode::Failed, text)
                .remedy("is it volund, and of this version? see VOLUND_URL")
        };
        let json: Value = serde_json::from_slice(&body).map_err(strange)?;
        let value = T::deserialize(&json).map_err(strange)?;
        Ok(Answer { json, value })
    }

    /// Sends the request; gives the body of an answer that is a success.
    async fn fetch(&self, request: RequestBuilder, what: &str) -> Result<Vec<u8>, Trouble> {
        let request = match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let response = request.send().await.map_err(|error| self.no_answer(what, &error))?;
        let status = response.status();
        let body = self.read(response, what).await?;
        if status.is_success() { Ok(body) } else { Err(self.refusal(what, status, &body)) }
    }

    async fn read(&self, mut response: Response, what: &str) -> Result<Vec<u8>, Trouble> {
        let mut body = Vec::new();
        while let Some(chunk) =
            response.chunk().await.map_err(|error| self.no_answer(what, &error))?
        {
            if body.len() + chunk.len() > MAX_ANSWER {
                let text = format!("cannot {what}: the answer of {} has no end", self.base);
                return Err(Trouble::new(ExitCode::Failed, text).remedy("is it volund?"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn no_answer(&self, what: &str, error: &reqwest::Error) -> Trouble {
        let why = root_cause(error);
        let text = format!("cannot {what}: no answer from {}: {why}", self.base);
        Trouble::new(ExitCode::Unreachable, text)
            .remedy("start it with `volund serve`, or set VOLUND_URL to where it listens")
    }

    /// The server does not know who asks.
    fn unknown(&self, what: &str) -> Trouble {
        let (why, remedy) = match self.token {
            None => (
                "wants an API token",
                "set VOLUND_TOKEN, or name a file that holds the token with --token-file; `volund token NAME` makes one",
            ),
            Some(_) => (
                "does not know the API token it was sent",
                "look whether the token is of this server; `volund token NAME` makes another one",
            ),
        };
        let text = format!("cannot {what}: {} {why}", self.base);
        Trouble::new(ExitCode::Refused, text).remedy(remedy)
    }

    fn refusal(&self, what: &str, status: StatusCode, body: &[u8]) -> Trouble {
        let exit = match status {
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND => ExitCode::Usage,
            StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::CONFLICT
            | StatusCode::MISDIRECTED_REQUEST
            | StatusCode::UNPROCESSABLE_ENTITY => ExitCode::Refused,
            _ => ExitCode::Failed,
        };
        let problem: Option<Problem> = serde_json::from_slice(body).ok();
        let (error, faults) = match problem {
            Some(problem) => (problem.error, problem.faults),
            None => (format!("{} answered {status}", self.base), Vec::new()),
        };
        if status == StatusCode::UNAUTHORIZED {
            return self.unknown(what);
        }
        Trouble::new(exit, format!("cannot {what}: {error}")).faults(faults)
    }
}

fn check_url(text: &str) -> Result<Url, Trouble> {
    let form = format!("write it as {DEFAULT_URL}");
    let url: Url = text.parse().map_err(|error| {
        Trouble::usage(format!("--url or VOLUND_URL is no URL: {error}")).remedy(&form)
    })?;
    if url.password().is_some() || !url.username().is_empty() {
        let trouble = Trouble::usage("the server's URL holds a user or password");
        return Err(trouble.remedy("leave it out; API tokens go into VOLUND_TOKEN"));
    }
    match url.scheme() {
        "http" => Ok(url),
        "https" => {
            Err(Trouble::usage(format!("{url}: https needs TLS, which comes with a later version"))
                .remedy("tunnel with ssh -L 8443:127.0.0.1:8443 and use http://127.0.0.1:8443"))
        }
        other => {
            Err(Trouble::usage(format!("{url}: {other} is no protocol volund speaks")).remedy(form))
        }
    }
}

/// The innermost cause: `connection refused` says more than "error sending request".
fn root_cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it took too long".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
