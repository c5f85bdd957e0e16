//! iPXE: how to recognise it, and the scripts it is given.

pub mod script;
pub mod stage;

pub use self::{
    script::{ScriptError, check_arguments, script},
    stage::Stage,
};

/// URL path of the script on the boot service.
pub const SCRIPT_PATH: &str = "/boot.ipxe";
