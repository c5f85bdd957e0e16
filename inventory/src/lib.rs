//! The book of record, and the only SQL of the house.
//!
//! [`Store`] opens the database; reading is done by free functions, a module a table, over a pool of readers;
//! everything written goes as [`Record`]s through one batching [`Writer`], which answers when it is durable.
//! [`series`] keeps power readings in files, [`parse`] understands what agents report. It knows no rule of the
//! engine and never decides anything.

pub mod account;
pub mod assignment;
pub mod attempt;
pub mod audit;
pub mod bmc_fact;
mod dialect;
mod error;
pub mod facts;
mod ids;
pub mod learnt;
pub mod lease;
pub mod parse;
pub mod power_state;
mod record;
mod row;
pub mod series;
pub mod sighting;
mod store;
pub mod switch;
#[cfg(test)]
mod testing;
mod writer;

pub use account::{TokenRow, UserRow};
pub use assignment::{Owner, Settled, Wish};
pub use attempt::{AttemptRow, TicketState};
pub use bmc_fact::BmcFact;
pub use error::StoreError;
pub use facts::{FactsRow, NewFacts};
pub use learnt::LearntRow;
pub use power_state::PowerStateRow;
pub use record::Record;
pub use store::Store;
pub use switch::{HistoryRow, SwitchRow, Transition};
pub use writer::Writer;
