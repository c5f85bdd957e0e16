//! What each path answers.

use std::{net::Ipv4Addr, time::Duration};

use model::{Sighted, Ticket};
use pxe_proto::{ipxe, path::http_path};

use super::{
    files::{self, Served},
    request::{Method, Request},
    script,
};
use crate::{
    calls::{AgentReply, BootCall},
    generated,
    state::State,
};

/// How long a document or an agent's call may take.
const CALL: Duration = Duration::from_secs(5);
const TEXT: &str = "text/plain; charset=utf-8";

/// An answer, ready to be sent.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) body: Body,
    /// The path for the timeline: normal form, ticket masked.
    pub(super) shown: String,
}

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Body {
    Bytes(Vec<u8>),
    /// A file of the table.
    File(Box<Served>),
}

impl Answer {
    pub(super) fn text(status: u16, shown: &str, text: impl Into<String>) -> Self {
        let body = Body::Bytes(text.into().into_bytes());
        Self { status, content_type: TEXT.to_owned(), body, shown: shown.to_owned() }
    }

    /// Nothing here. The same for what does not exist and for what is not given to this asker.
    pub(super) fn not_found(shown: &str) -> Self {
        Self::text(404, shown, "not found\n")
    }

    /// For requests that could not be read.
    pub(super) fn bad(status: u16) -> Self {
        Self::text(status, "?", format!("{}\n", reason(status)))
    }
}

/// Words for a status code.
pub(super) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        416 => "Range Not Satisfiable",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

/// Answers a request of `from`.
pub(super) fn answer(state: &State, request: &mut Request, from: Ipv4Addr) -> Answer {
    let target = std::mem::take(&mut request.target);
    let Some((path, query)) = http_path(&target) else {
        return Answer::bad(400);
    };
    let reads = request.method != Method::Post;
    if path == ipxe::SCRIPT_PATH && reads {
        return script::answer(state, query, from);
    }
    if path == "/healthz" && reads {
        return Answer::text(200, &path, "ok\n");
    }
    if let Some(rest) = path.strip_prefix("/t/") {
        return with_ticket(state, request, rest, from);
    }
    if let Some(verb) = path.strip_prefix("/agent/v1/")
        && request.method == Method::Post
    {
        return agent(state, request, verb, from);
    }
    let file = reads.then(|| files::file(state, request, &path, from)).flatten();
    let generated = || {
        let text = reads.then(|| generated::named(state, path.trim_start_matches('/'), from));
        text.flatten().map(|text| Answer::text(200, &path, text))
    };
    file.or_else(generated).unwrap_or_else(|| Answer::not_found(&path))
}

/// `/t/TICKET/NAME`: a document, or `done`.
fn with_ticket(state: &State, request: &mut Request, rest: &str, from: Ipv4Addr) -> Answer {
    let (ticket, name) = rest.split_once('/').unwrap_or((rest, ""));
    let Ok(ticket) = ticket.parse::<Ticket>() else {
        let why = format!("{from} came with something that is no ticket");
        state.saw_at(from, Sighted::Refused { why });
        return Answer::not_found("/t/…");
    };
    let shown = format!("/t/{ticket}/{name}");
    if name == "done" && request.method != Method::Head {
        return call_agent(state, request, ticket, "done", from, &shown);
    }
    if name.is_empty() || request.method == Method::Post {
        return Answer::not_found(&shown);
    }
    if let Some(refused) = stranger(state, from, &shown) {
        return refused;
    }
    let name = name.to_owned();
    let given = state.ask(CALL, |reply| BootCall::Document { ticket, name, from, reply });
    match given {
        Some(Ok(document)) => {
            let body = Body::Bytes(document.bytes);
            Answer { status: 200, content_type: document.content_type, body, shown }
        }
        Some(Err(refused)) => {
            state.saw_at(from, Sighted::Refused { why: refused.why });
            Answer::text(403, &shown, "refused\n")
        }
        None => Answer::text(503, &shown, "no answer in time, try again\n"),
    }
}

/// The answer to whoever comes with a ticket from an address that is no node's. The engine would refuse it too;
/// it is not even asked, so that strangers cannot keep it busy.
fn stranger(state: &State, from: Ipv4Addr, shown: &str) -> Option<Answer> {
    // Where another server gives the addresses, a node is known by where it was seen.
    if state.entry_at(from).is_some() {
        return None;
    }
    let why = format!("a ticket was used from {from}, which is no node's address");
    state.saw_stranger(None, Some(from), Sighted::Refused { why });
    Some(Answer::text(403, shown, "refused\n"))
}

/// `POST /agent/v1/VERB`.
fn agent(state: &State, request: &mut Request, verb: &str, from: Ipv4Addr) -> Answer {
    let shown = format!("/agent/v1/{verb}");
    let is_verb = (1..=32).contains(&verb.len()) && verb.bytes().all(|b| b.is_ascii_lowercase());
    if !is_verb {
        return Answer::not_found(&shown);
    }
    let ticket = request.ticket.as_deref().and_then(|ticket| ticket.parse().ok());
    let Some(ticket) = ticket else {
        let why = format!("{from} called the agent's {verb} without a ticket");
        state.saw_at(from, Sighted::Refused { why });
        return Answer::text(401, &shown, "needs Authorization: Ticket\n");
    };
    call_agent(state, request, ticket, verb, from, &shown)
}

fn call_agent(
    state: &State,
    request: &mut Request,
    ticket: Ticket,
    verb: &str,
    from: Ipv4Addr,
    shown: &str,
) -> Answer {
    if let Some(refused) = stranger(state, from, shown) {
        return refused;
    }
    let body = std::mem::take(&mut request.body);
    let verb = verb.to_owned();
    let call = |reply| BootCall::Agent { ticket, verb: verb.clone(), from, body, reply };
    let Some(AgentReply { status, body }) = state.ask(CALL, call) else {
        return Answer::text(503, shown, "no answer in time, try again\n");
    };
    if (200..300).contains(&status) {
        state.saw_at(from, Sighted::Agent { verb });
    }
    let content_type = "application/json".to_owned();
    Answer { status, content_type, body: Body::Bytes(body), shown: shown.to_owned() }
}
