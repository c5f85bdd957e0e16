//! Watts and joules: what a meter said becomes a reading with a margin, readings become energy.
//!
//! Pure: no I/O, no clock. It never turns an absent reading into a number and never bridges a gap.

pub mod integrate;
pub mod reading;

pub use integrate::{Energy, IntegrateError, integrate};
pub use reading::{MarginRule, Meter, from_dcmi, is_stale, standing};
