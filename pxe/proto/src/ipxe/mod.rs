//! iPXE: how to recognise it, and the scripts it is given.

mod menu;
pub mod script;
#[cfg(test)]
mod script_tests;
pub mod stage;

pub use self::{
    script::{autoexec, check_arguments, refused, script},
    stage::Stage,
};
pub use crate::texts::ScriptError;

/// URL path of the script on the boot service.
pub const SCRIPT_PATH: &str = "/boot.ipxe";
/// What the query of the script's URL says when a person chose a profile from the console's menu: `choose=NAME`.
pub const CHOOSE: &str = "choose";
