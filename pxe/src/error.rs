//! Why the boot services do not start.

use std::{io, net::SocketAddrV4, path::PathBuf};

/// What can go wrong at start. Later faults are sightings or log lines, never the end of a service.
#[derive(Debug, thiserror::Error)]
pub enum PxeError {
    /// The port needs a right this process does not have.
    #[error(
        "may not bind {service} to {addr}: it needs CAP_NET_BIND_SERVICE; in the systemd unit: \
         AmbientCapabilities=CAP_NET_BIND_SERVICE CAP_NET_RAW"
    )]
    NoRight {
        /// `DHCP`, `proxy DHCP`, `TFTP` or `HTTP`.
        service: &'static str,
        /// Where.
        addr: SocketAddrV4,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// Somebody else has the port.
    #[error(
        "could not bind {service} to {addr}: another program has the port; `ss -lnp` names it (often dnsmasq \
         or tftpd-hpa)"
    )]
    InUse {
        /// `DHCP`, `proxy DHCP`, `TFTP` or `HTTP`.
        service: &'static str,
        /// Where.
        addr: SocketAddrV4,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// Any other fault of a socket.
    #[error("could not bind {service} to {addr}; the address has to be one of this machine's own")]
    Bind {
        /// `DHCP`, `proxy DHCP`, `TFTP` or `HTTP`.
        service: &'static str,
        /// Where.
        addr: SocketAddrV4,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// The interface does not exist or may not be used.
    #[error(
        "could not bind DHCP to interface {interface}; `ip link` lists them, and it needs CAP_NET_RAW"
    )]
    Interface {
        /// Its name.
        interface: String,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// The lease log is there and cannot be read.
    #[error(
        "could not read the lease log {}: without it addresses would be given away twice; make it readable for \
         this user, or move it away to begin without leases",
        path.display()
    )]
    LeaseLog {
        /// Where it is.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: io::Error,
    },
}

impl PxeError {
    /// The variant for a failed bind.
    pub(crate) fn bind(service: &'static str, addr: SocketAddrV4, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::NoRight { service, addr, source },
            io::ErrorKind::AddrInUse => Self::InUse { service, addr, source },
            _ => Self::Bind { service, addr, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_names_the_capability_and_the_systemd_line() {
        let addr = SocketAddrV4::new([192, 0, 2, 1].into(), 67);
        let error = PxeError::bind("DHCP", addr, io::ErrorKind::PermissionDenied.into());
        assert_eq!(
            error.to_string(),
            "may not bind DHCP to 192.0.2.1:67: it needs CAP_NET_BIND_SERVICE; in the systemd unit: \
             AmbientCapabilities=CAP_NET_BIND_SERVICE CAP_NET_RAW"
        );
    }
}
