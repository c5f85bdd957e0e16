//! volund.
