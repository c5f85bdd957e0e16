//! volund.

pub mod config;
