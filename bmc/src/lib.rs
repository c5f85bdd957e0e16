//! Out of band: BMC sessions over sockets, retries, quirks.
