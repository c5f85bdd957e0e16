//! The switch engine, pure: phases, steps, boot answers, and the world they act in.
//!
//! Nothing here does I/O, asks a clock or rolls a die. [`Engine::handle`] takes one [`Input`] and a moment and
//! gives [`Output`]: records to make durable, effects to carry out, replies to send. [`run`] is the loop around
//! it, generic over [`World`]; the server's world speaks to BMCs and a database, the twin's is simulated.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod boot;
pub mod effect;
pub mod engine;
pub mod input;
pub mod phase;
pub mod preview;
pub mod record;
pub mod spec;
pub mod step;
pub mod switch;
pub mod world;

pub use boot::{Issued, StoredScript};
pub use effect::{Act, BootTarget, Cause, Effect, Observation, Observed, Trouble, TroubleKind};
pub use engine::{Engine, NodeState, Output};
pub use input::{AgentSays, Input, Replied, Reply, Token};
pub use phase::Phase;
pub use record::Record;
pub use spec::{Bounds, FileOwned, NodeSpec, ProfileKind, ProfileSpec, Specs};
pub use switch::{Progress, Switch, SwitchId};
pub use world::{PersistError, Stopped, World, run};
