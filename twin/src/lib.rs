//! Emulated devices over sockets, and the simulated world; loopback only.
