//! The executor of switches: the server's world around the pure engine, and the templates of profiles.
//!
//! It decides nothing: what happens next is `plan`'s business. Here effects become BMC verbs, records become
//! rows, and questions of the boot services find their answers.

pub mod acts;
pub mod handle;
pub mod journal;
pub mod templates;
pub mod world;

pub use handle::EngineHandle;
pub use templates::{Payload, TemplateError, Templates};
pub use world::{LiveWorld, Wiring};
