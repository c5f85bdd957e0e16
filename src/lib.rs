//! volund as a library: configuration, wiring, command line. No rules of its own: those live in the crates
//! beside it.

pub mod cli;
pub mod config;
pub mod demo;
pub mod image;
pub mod server;
