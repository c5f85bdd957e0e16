//! The engine's records as rows of the book, and back at a start.

use std::{collections::BTreeMap, net::Ipv4Addr};

use inventory::{
    AttemptRow, BmcFact, NewFacts, Owner, PowerStateRow, Settled, Store, StoreError, SwitchRow,
    TicketState, Transition, Wish,
};
use model::{NodeName, ProfileName, Ticket, UnixMillis, boot::AttemptId};
use plan::{Issued, NodeSpec, NodeState, Record, StoredScript, Switch, SwitchId};
use serde::{Deserialize, Serialize};

/// What is kept of an [`Issued`] beside its own columns. The ticket is in its column alone.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    profile: ProfileName,
    script: StoredScript,
    live: bool,
    done: Option<UnixMillis>,
    at: UnixMillis,
    /// Rows of a version before this field have none: their tickets open nothing any more.
    from: Option<Ipv4Addr>,
}

/// Why the book could not be read back into the engine.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The database.
    #[error("could not read the engine's state")]
    Store(#[from] StoreError),
    /// A row this version does not understand.
    #[error("the stored {what} of {node} is not understood")]
    Row {
        /// Which.
        what: &'static str,
        /// Of which node.
        node: NodeName,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// One record as its row. A serialisation that fails is a fault of this program, so it is an error text.
///
/// # Errors
/// A sentence, when a value has no JSON form.
pub fn to_row(record: Record) -> Result<inventory::Record, String> {
    use inventory::Record as Row;
    Ok(match record {
        Record::Switch(switch) => Row::Switch(switch_row(&switch)?),
        Record::Transition { switch, node, at, phase, reason } => Row::Transition(Transition {
            switch_id: switch.0,
            node,
            at,
            phase: phase.name().to_owned(),
            reason,
        }),
        Record::Wish { node, profile, by, at } => {
            Row::Wish(Wish { node, profile, by, at, owner: Owner::Live })
        }
        Record::Settled { node, profile, at } => Row::Settled(Settled { node, profile, at }),
        Record::Issued(issued) => Row::Attempt(attempt_row(*issued)?),
        Record::Sighting(sighting) => Row::Sighting(*sighting),
        Record::Facts { node, at, report } => {
            let facts = inventory::parse::report(&report);
            let json = serde_json::to_string(&facts).map_err(|error| error.to_string())?;
            let raw_json = serde_json::to_string(&report).map_err(|error| error.to_string())?;
            Row::Facts(NewFacts { node, at, json, raw_json })
        }
        Record::Bmc { node, guid, suite, trouble, at } => {
            Row::BmcFact(BmcFact { node, guid, suite, trouble, at })
        }
        Record::Power { node, on, at } => Row::PowerState(PowerStateRow { node, on, at }),
        Record::Audit(line) => Row::Audit(line),
    })
}

fn switch_row(switch: &Switch) -> Result<SwitchRow, String> {
    Ok(SwitchRow {
        id: switch.id.0.clone(),
        node: switch.node.clone(),
        profile: switch.to.name.clone(),
        from_profile: switch.from.clone(),
        phase: switch.phase.name().to_owned(),
        state_json: serde_json::to_string(switch).map_err(|error| error.to_string())?,
        open: switch.phase.is_open(),
        by: switch.by.clone(),
        reason: switch.reason.clone(),
        remedy: switch.remedy.clone(),
        created: switch.created,
        since: switch.since,
        until: Some(switch.until),
        version: switch.version,
    })
}

fn attempt_row(issued: Issued) -> Result<AttemptRow, String> {
    let Issued { node, attempt, switch, profile, ticket, mut script, live, nonce, from, .. } =
        issued;
    // The secret stands in one column only.
    script.args = script.args.replace(ticket.reveal(), TICKET_MARK);
    let answer =
        Answer { profile, script, live, done: issued.done, at: issued.at, from: Some(from) };
    let ticket_state = match (live, nonce.is_some()) {
        (false, _) => TicketState::Spent,
        (true, true) => TicketState::Claimed,
        (true, false) => TicketState::Live,
    };
    Ok(AttemptRow {
        node,
        id: attempt.0,
        kernel_whole: issued.kernel_whole,
        switch_id: switch.map(|id| id.0),
        ticket: Some(ticket),
        ticket_state,
        nonce,
        answer_json: Some(serde_json::to_string(&answer).map_err(|error| error.to_string())?),
        renewals: 0,
    })
}

/// Stands for the ticket in a stored script.
const TICKET_MARK: &str = "{ticket}";

fn issued(row: AttemptRow) -> Result<Option<Issued>, JournalError> {
    let (Some(ticket), Some(json)) = (row.ticket, row.answer_json) else { return Ok(None) };
    let node = row.node;
    let answer: Answer = serde_json::from_str(&json).map_err(|source| JournalError::Row {
        what: "boot answer",
        node: node.clone(),
        source,
    })?;
    Ok(Some(Issued {
        node,
        attempt: AttemptId(row.id),
        switch: row.switch_id.map(SwitchId),
        profile: answer.profile,
        from: answer.from.unwrap_or(Ipv4Addr::UNSPECIFIED),
        script: with_ticket(answer.script, &ticket),
        ticket,
        live: answer.live,
        nonce: row.nonce,
        kernel_whole: row.kernel_whole,
        done: answer.done,
        at: answer.at,
    }))
}

fn with_ticket(mut script: StoredScript, ticket: &Ticket) -> StoredScript {
    script.args = script.args.replace(TICKET_MARK, ticket.reveal());
    script
}

/// The nodes of the configuration as the book remembers them.
///
/// # Errors
/// [`JournalError`] when the database cannot be read or holds what this version does not understand.
pub async fn load(
    store: &Store,
    specs: impl IntoIterator<Item = NodeSpec>,
) -> Result<Vec<NodeState>, JournalError> {
    let mut nodes: BTreeMap<NodeName, NodeState> =
        specs.into_iter().map(|spec| (spec.name.clone(), NodeState::new(spec))).collect();
    for row in inventory::assignment::settled(store).await? {
        if let Some(state) = nodes.get_mut(&row.node) {
            state.settled = Some(row.profile);
        }
    }
    for row in inventory::switch::last_per_node(store).await? {
        if let Some(state) = nodes.get_mut(&row.node) {
            let node = row.node;
            let switch = serde_json::from_str(&row.state_json);
            state.switch = Some(switch.map_err(|source| JournalError::Row {
                what: "switch",
                node,
                source,
            })?);
        }
    }
    for row in inventory::attempt::latest_per_node(store).await? {
        if let Some(state) = nodes.get_mut(&row.node) {
            state.last = issued(row)?;
        }
    }
    for row in inventory::bmc_fact::list(store).await? {
        if let Some(state) = nodes.get_mut(&row.node) {
            (state.recorded, state.suite, state.bmc_trouble) = (row.guid, row.suite, row.trouble);
        }
    }
    for row in inventory::power_state::list(store).await? {
        if let Some(state) = nodes.get_mut(&row.node) {
            state.power = row.on.map(|on| (on, row.at));
        }
    }
    Ok(nodes.into_values().collect())
}
