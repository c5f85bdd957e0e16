//! The whole program: `volund serve` as a process of its own against the twin of an enclosure, on loopback, no rights
//! needed. What it must bear: to be killed in any phase, machines that misbehave, input that is wrong.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this whole crate is a test"
)]

mod asks;
mod bad_input;
mod boots;
mod files;
mod kill;
mod networks;
mod promised;
mod rig;
mod secrets;
mod story;
mod watts;
mod wire;
