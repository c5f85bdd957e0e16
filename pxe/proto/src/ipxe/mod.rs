//! iPXE: how to recognise it, and the scripts it is given.

pub mod stage;

pub use self::stage::Stage;
