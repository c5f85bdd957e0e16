//! The web server from outside: requests in, answers out, with a lab made of data behind it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that finds something else than expected has failed"
)]

mod api_v1;
mod budget;
mod fake;
mod hostile;
mod live;
mod log_in;
mod networks;
mod pages;
mod support;
mod wall;
