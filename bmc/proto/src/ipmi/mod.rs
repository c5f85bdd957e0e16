//! IPMI 2.0 over LAN: RMCP+ sessions and the commands volund needs.
//!
//! Section numbers in this module mean the IPMI 2.0 specification, revision 1.1, unless they say DCMI.

pub mod boot_options;
pub mod channel;
pub mod chassis;
pub mod cipher;
pub mod client;
pub mod dcmi;
pub mod device_id;
pub mod login;
pub mod message;
mod privilege;
pub mod rakp;
mod refusal;
pub mod server;
pub mod session;
mod status;

pub use cipher::Suite;
pub use login::{Login, LoginError, Secret, UserName};
pub use message::{Command, CompletionCode, NetFn};
pub use rakp::{Privilege, RakpStatus};
