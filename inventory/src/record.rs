//! Everything volund writes into its book, as data.

use model::{Lease, NodeName, Sighting, UnixMillis, permit::AuditLine};
use sqlx::AnyConnection;

use crate::{
    AttemptRow, BmcFact, LearntRow, NewFacts, PowerStateRow, Settled, StoreError, SwitchRow,
    TokenRow, Transition, UserRow, Wish, account, assignment, attempt, audit, bmc_fact, facts,
    ids::Ids,
    learnt::{self, Subject},
    lease, power_state, sighting, switch,
};

/// One thing to write. All records of one submit become durable together or not at all, in their order: a
/// switch stands before the transitions and attempts that name it.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// Inserts or replaces a switch by its id. Refused as a conflict when the stored version is not lower,
    /// or when another switch of the node is open.
    Switch(SwitchRow),
    /// Appends a phase entered.
    Transition(Transition),
    /// The node has settled in a profile.
    Settled(Settled),
    /// The node is settled in nothing any more.
    Unsettled(NodeName),
    /// What the node is wanted to be.
    Wish(Wish),
    /// Inserts or replaces a boot attempt by node and id. Old ones go: see [`attempt`].
    Attempt(AttemptRow),
    /// Appends a sighting. The last 2,000 of a node are kept.
    Sighting(Sighting),
    /// Replaces what is known of an address that was given away, unless something later is known.
    Lease(Lease),
    /// Replaces a node's hardware report; its generation grows by one.
    Facts(NewFacts),
    /// Replaces a node's power state.
    PowerState(PowerStateRow),
    /// Appends to the audit trail, which is never pruned.
    Audit(AuditLine),
    /// Replaces what is known of a node's BMC.
    BmcFact(BmcFact),
    /// Replaces what is known of a way a machine boots.
    Learnt(LearntRow),
    /// Forgets everything that was learnt of somebody.
    Forgotten(Subject),
    /// Inserts an API token or replaces the one of that name.
    Token(TokenRow),
    /// Revokes a token.
    TokenRevoked {
        /// Its name.
        name: String,
        /// When.
        at: UnixMillis,
    },
    /// Inserts a user or replaces the password hash.
    User(UserRow),
}

/// Writes one record through the open transaction.
pub(crate) async fn apply(
    db: &mut AnyConnection,
    ids: &mut Ids,
    record: &Record,
) -> Result<(), StoreError> {
    match record {
        Record::Switch(row) => switch::upsert(db, row).await,
        Record::Transition(row) => switch::append(db, &ids.next(), row).await,
        Record::Settled(row) => assignment::settle(db, row).await,
        Record::Unsettled(node) => assignment::unsettle(db, node).await,
        Record::Wish(row) => assignment::wish(db, row).await,
        Record::Attempt(row) => attempt::upsert(db, row).await,
        Record::Sighting(row) => sighting::append(db, &ids.next(), row).await,
        Record::Lease(row) => lease::upsert(db, row).await,
        Record::Facts(row) => facts::upsert(db, row).await,
        Record::PowerState(row) => power_state::upsert(db, row).await,
        Record::Audit(line) => audit::append(db, &ids.next(), line).await,
        Record::BmcFact(row) => bmc_fact::upsert(db, row).await,
        Record::Learnt(row) => learnt::upsert(db, row).await,
        Record::Forgotten(subject) => learnt::forget(db, subject).await,
        Record::Token(row) => account::upsert_token(db, row).await,
        Record::TokenRevoked { name, at } => account::revoke_token(db, name, *at).await,
        Record::User(row) => account::upsert_user(db, row).await,
    }
}
