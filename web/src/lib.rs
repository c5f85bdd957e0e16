//! The page, the API, authentication and the event stream.
//!
//! Turns requests into calls of [`lab::Lab`] and its answers into JSON, HTML and server-sent events. It never
//! speaks to a BMC, a database or the engine, decides nothing about a lab, and answers nothing but the health
//! check, the log-in page and static files to somebody it does not know.

mod api_v1;
mod app;
mod assets;
pub mod auth;
mod cookie;
mod error;
mod guard;
pub mod lab;
mod listener;
mod pages;
mod routes;
mod serve;
mod stream;
mod view;

pub use app::{App, Transport};
pub use error::ApiError;
pub use routes::{Access, RouteInfo, router, routes};
pub use serve::{ServeError, serve};
