//! Whole switches against a small bench in virtual time: a board that does what it is told, or does not.
#![allow(clippy::unwrap_used, reason = "a test's helpers fail by panic")]

mod bench;
mod boots;
mod power;
mod switches;
mod tickets;
