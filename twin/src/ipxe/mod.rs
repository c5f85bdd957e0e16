//! The part of iPXE a modelled blade needs: settings, images and the script language.
//!
//! Sans-IO: [`Script::next`] says what has to be fetched or started and is told the outcome. It never opens a
//! socket and never sleeps. Behaviour follows iPXE's own documentation of its commands (ipxe.org/cmd).

mod commands;
mod script;
mod settings;

pub use commands::{Action, Handover, State};
pub use script::{Script, ScriptError};
pub use settings::Settings;
