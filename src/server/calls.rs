//! Questions of the boot services, put to the engine; agents' messages are understood here.

use std::{net::Ipv4Addr, sync::Arc};

use model::{Sighting, Ticket, agent};
use plan::{AgentSays, input::AgentAnswer, input::Refused};
use profiles::{EngineHandle, Templates};
use pxe::{AgentReply, BootCall, Document, SightingSink};
use serde::Serialize;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::console::Console;

/// Longest nonce an agent may choose; ours has 32 digits. It is kept with the ticket.
const MAX_NONCE: usize = 128;

/// Answers until the boot services are gone. Each question is answered in a task of its own, so that a slow one
/// keeps nobody waiting; the task ends when whoever asked has stopped waiting, so there are never more than the
/// boot services have threads, however long the engine takes.
pub(super) async fn answer_calls(
    mut calls: mpsc::Receiver<BootCall>,
    engine: EngineHandle,
    templates: Arc<Templates>,
    console: Console,
) {
    let mut answers = JoinSet::new();
    loop {
        tokio::select! {
            call = calls.recv() => {
                let Some(call) = call else { return };
                let (engine, templates) = (engine.clone(), Arc::clone(&templates));
                let console = console.clone();
                answers.spawn(async move { answer(call, &engine, &templates, &console).await });
            }
            Some(ended) = answers.join_next() => {
                // Whoever asked boots locally; the engine and everybody else go on.
                if let Err(error) = ended {
                    tracing::error!(%error, "a question of the boot services broke its answer");
                }
            }
        }
    }
}

/// Hands sightings to the engine, in their order, until the sink's owner stops; a copy of each goes to where is learnt
/// from them. When that is behind, a copy is left out: a lesson more or less harms nobody.
pub(super) async fn forward_sightings(
    sink: SightingSink,
    engine: EngineHandle,
    learns: mpsc::Sender<Sighting>,
) {
    loop {
        let sighting = sink.recv().await;
        if let Err(error) = learns.try_send(sighting.clone()) {
            tracing::debug!(%error, "a sighting nobody learnt from");
        }
        engine.sighted(sighting).await;
    }
}

async fn answer(call: BootCall, engine: &EngineHandle, templates: &Templates, console: &Console) {
    match call {
        BootCall::Boot { ask, reply } => while_awaited(reply, engine.boot(ask)).await,
        BootCall::Choose { ask, profile, reply } => {
            while_awaited(reply, console.choose(ask, profile)).await;
        }
        BootCall::Document { ticket, name, from, reply } => {
            while_awaited(reply, document(engine, templates, ticket, name, from)).await;
        }
        BootCall::Agent { ticket, verb, from, body, reply } => {
            while_awaited(reply, agent_reply(engine, ticket, &verb, from, &body)).await;
        }
    }
}

/// Sends what `answer` gives, unless whoever waits for it has gone before.
async fn while_awaited<T>(mut reply: oneshot::Sender<T>, answer: impl Future<Output = T>) {
    tokio::select! {
        answer = answer => drop(reply.send(answer)),
        () = reply.closed() => (),
    }
}

async fn document(
    engine: &EngineHandle,
    templates: &Templates,
    ticket: Ticket,
    name: String,
    from: Ipv4Addr,
) -> Result<Document, pxe::Refused> {
    let grant = engine.document(ticket, name, from).await;
    let grant = grant.map_err(|refused| pxe::Refused { why: sentence(refused).1 })?;
    let text =
        templates.document(&grant.node, &grant.profile, &grant.name, &grant.ticket, grant.from);
    let text = text.map_err(|error| pxe::Refused { why: error.to_string() })?;
    let content_type = "text/plain; charset=utf-8".to_owned();
    Ok(Document { content_type, bytes: text.into_bytes() })
}

async fn agent_reply(
    engine: &EngineHandle,
    ticket: Ticket,
    verb: &str,
    from: Ipv4Addr,
    body: &[u8],
) -> AgentReply {
    let says = match understand(verb, body) {
        Ok(AgentSays::Claim { nonce }) if nonce.len() > MAX_NONCE => {
            return refusal(400, &format!("a nonce has at most {MAX_NONCE} bytes"));
        }
        Ok(says) => says,
        Err(why) => return refusal(400, &why),
    };
    match engine.agent(ticket, from, says).await {
        Ok(AgentAnswer::Claimed(claimed)) => json(200, &claimed),
        Ok(AgentAnswer::Order(order)) => json(200, &order),
        Ok(AgentAnswer::Thanks) => json(200, &"thanks"),
        Err(refused) => {
            let (status, why) = sentence(refused);
            tracing::warn!(%from, verb, why, "refused an agent");
            refusal(status, &why)
        }
    }
}

fn understand(verb: &str, body: &[u8]) -> Result<AgentSays, String> {
    fn message<'a, T: serde::Deserialize<'a>>(verb: &str, body: &'a [u8]) -> Result<T, String> {
        serde_json::from_slice(body)
            .map_err(|error| format!("the {verb} message is not understood: {error}"))
    }
    match verb {
        "claim" => {
            message::<agent::Claim>(verb, body).map(|claim| AgentSays::Claim { nonce: claim.nonce })
        }
        "report" => message(verb, body).map(|report| AgentSays::Report(Box::new(report))),
        "next" => {
            message::<agent::Next>(verb, body).map(|next| AgentSays::Next { nonce: next.nonce })
        }
        "done" => Ok(AgentSays::Done),
        _ => {
            Err(format!("there is no agent verb {verb:?}; there are claim, report, next and done"))
        }
    }
}

fn sentence(refused: Refused) -> (u16, String) {
    match refused {
        Refused::Unknown(text) => (404, text),
        Refused::Conflict(text) => (409, text),
        Refused::Forbidden(text) => (403, text),
        Refused::Unavailable(text) => (503, text),
    }
}

#[derive(Serialize)]
struct Why<'a> {
    error: &'a str,
}

fn refusal(status: u16, why: &str) -> AgentReply {
    json(status, &Why { error: why })
}

fn json<T: Serialize>(status: u16, value: &T) -> AgentReply {
    match serde_json::to_vec(value) {
        Ok(body) => AgentReply { status, body },
        Err(error) => {
            tracing::error!(%error, "an answer to an agent has no JSON form");
            AgentReply { status: 500, body: Vec::new() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_question_nobody_waits_for_any_more_is_given_up() {
        let (reply, gone) = oneshot::channel::<()>();
        drop(gone);
        let bound = std::time::Duration::from_secs(10);
        let ended = tokio::time::timeout(bound, while_awaited(reply, std::future::pending()));
        ended.await.expect("it would have waited for ever");
        let (reply, answer) = oneshot::channel();
        while_awaited(reply, async { 7 }).await;
        assert_eq!(answer.await, Ok(7));
    }
}
