//! Where a BMC is and how patiently it is spoken to.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use bmc_proto::ipmi::{Suite, rakp::Privilege};

/// Where a BMC listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BmcAddress {
    /// Its address.
    pub host: IpAddr,
    /// UDP port; 623 on real machines.
    pub port: u16,
}

impl BmcAddress {
    pub(crate) fn socket(self) -> SocketAddr {
        SocketAddr::new(self.host, self.port)
    }
}

/// Which cipher suite to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuiteChoice {
    /// 17, or 3 where 17 does not come about; remembered for the life of the [`Bmc`](crate::Bmc).
    Auto,
    /// This one or none.
    Only(Suite),
}

/// How patiently a BMC is spoken to. [`Options::default`] is right for real machines.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Which cipher suite.
    pub suite: SuiteChoice,
    /// Highest privilege asked for; lower ones are tried when the account has not got it.
    pub privilege: Privilege,
    /// A verb ends by then, waiting for its turn, log-in and retransmissions included.
    pub deadline: Duration,
    /// Wait for an answer before the first retransmission; doubles each time up to 4 s.
    pub first_wait: Duration,
    /// Unanswered transmissions in a kept session before it is opened anew, once a verb.
    pub silent_tries: u32,
    /// A session that was not used for so long is closed.
    pub idle: Duration,
    /// After a refused log-in nothing is sent for so long: BMCs lock accounts.
    pub login_pause: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            suite: SuiteChoice::Auto,
            privilege: Privilege::Administrator,
            deadline: Duration::from_secs(5),
            first_wait: Duration::from_secs(1),
            silent_tries: 2,
            idle: Duration::from_secs(30),
            login_pause: Duration::from_secs(60),
        }
    }
}
