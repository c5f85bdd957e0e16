//! The BMC client against the twin's BMC with faults, and both against tools nobody here wrote: `ipmitool`
//! drives the twin; our client drives OpenIPMI's `ipmi_sim` and a BMC in Python.
//!
//! A missing tool fails the test where CI is set, and is said otherwise.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test may stop where it stands"
)]

#[path = "bmc_against_peers/foreign.rs"]
mod foreign;
#[path = "bmc_against_peers/rig.rs"]
mod rig;
#[path = "bmc_against_peers/sampler.rs"]
mod sampler;
#[path = "bmc_against_peers/twin_faults.rs"]
mod twin_faults;
#[path = "bmc_against_peers/twin_verbs.rs"]
mod twin_verbs;
