//! Meter drivers and the sampler: reads each BMC on a polite cadence, never faster, never in place of another.
//!
//! A value that was not read is never made up: its absence is stored with the reason.

pub mod sampler;

pub use sampler::{Latest, Metered, Sampler, Seen};
