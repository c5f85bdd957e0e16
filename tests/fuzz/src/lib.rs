//! What the fuzz targets do with their bytes, a function a target.
//!
//! Each takes any bytes, feeds one parser of volund and panics when a promise of that parser is broken: a panic inside
//! it, an answer that does not read back, an output without a bound. The fuzzer calls them by way of `fuzz_targets/`,
//! the ordinary test run by way of `tests/fuzz_corpus.rs`, which includes this file. They open no socket and run no
//! command; `config` and `series_file` write into a folder of their own in memory or the temporary directory.

mod agent;
mod dhcp;
mod hardware;
mod http;
mod input;
mod ipmi;
mod ipxe;
mod scratch;
pub mod seeds;
mod series;
mod text;
mod tftp;

/// A target: its name, which is that of its file in `fuzz_targets/` and its folder in `corpus/`, and what it does.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("agent_answer", agent::answer),
    ("agent_cmdline", agent::cmdline),
    ("agent_message", hardware::message),
    ("boot_paths", http::paths),
    ("config", text::config),
    ("cpuinfo", hardware::cpuinfo),
    ("dhcp_leases", dhcp::leases),
    ("dhcp_reply", dhcp::reply),
    ("dhcp_request", dhcp::request),
    ("hostlist", text::hostlist),
    ("http_request", http::request),
    ("ipmi_answer", ipmi::answer),
    ("ipmi_message", ipmi::message),
    ("ipmi_request", ipmi::request),
    ("ipxe_script", ipxe::script),
    ("ipxe_written", ipxe::written),
    ("kernel_module", hardware::kernel_module),
    ("rmcp_client", ipmi::client),
    ("rmcp_server", ipmi::server),
    ("series_file", series::file),
    ("smbios", hardware::smbios),
    ("tftp_packet", tftp::packet),
    ("tftp_transfer", tftp::transfer),
    ("words", text::words),
];

/// Runs the target of that name.
///
/// # Panics
/// When there is none, and when the target finds something.
pub fn run(name: &str, data: &[u8]) {
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = found.unwrap_or_else(|| panic!("there is no fuzz target {name}"));
    target(data);
}
