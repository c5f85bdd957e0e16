//! The executor of switches, templates, drivers.
