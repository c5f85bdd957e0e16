//! volund.

pub mod config;
pub mod image;
