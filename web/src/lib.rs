//! The page, the API, authentication and the event stream.

pub mod lab;
