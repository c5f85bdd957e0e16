//! Out of band, pure: the codecs and the session machines of RMCP+ and IPMI 2.0, both halves.
//!
//! Bytes in, values out; time and chance are arguments. It opens no socket, asks no clock, draws no random
//! number. `bmc` drives the client half over UDP, `twin` the server half.

#![warn(clippy::wildcard_enum_match_arm)]

pub mod asf;
pub mod ipmi;
pub mod rmcp;
mod wire;

pub use wire::DecodeError;
