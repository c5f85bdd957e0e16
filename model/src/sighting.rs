//! Sightings: what a node showed us on the wire. One boot's sightings are its timeline.

use std::{fmt, net::Ipv4Addr};

use serde::{Deserialize, Serialize};

use crate::{MacAddr, NodeName, UnixMillis};

/// One thing seen on the wire, in the order it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// When.
    pub at: UnixMillis,
    /// The known node it belongs to, if any.
    pub node: Option<NodeName>,
    /// The hardware address, where the packet shows one or the table knows it.
    pub mac: Option<MacAddr>,
    /// The address the packet came from or went to.
    pub peer: Option<Ipv4Addr>,
    /// The boot attempt it belongs to (its first moment), if one is open.
    pub attempt: Option<UnixMillis>,
    /// What was seen.
    pub what: Sighted,
}

/// DHCP message types (RFC 2132, option 53) as far as volund hears or sends them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DhcpKind {
    /// 1
    Discover,
    /// 2
    Offer,
    /// 3
    Request,
    /// 4
    Decline,
    /// 5
    Ack,
    /// 6
    Nak,
    /// 7
    Release,
    /// 8
    Inform,
}

/// What was seen. Each DHCP packet, each TFTP request and end, each HTTP request and end is one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Sighted {
    /// A DHCP packet came in.
    DhcpIn {
        /// Message type.
        kind: DhcpKind,
        /// Transaction id.
        xid: u32,
        /// What the client says it is: `x86 BIOS (0)`, `iPXE`, empty for an operating system.
        client: String,
        /// Relay: giaddr and option 82 circuit id as text, if it came through one.
        relay: Option<String>,
        /// It came to port 4011, where clients ask for the boot file only (PXE 2.1).
        #[serde(default)]
        proxy: bool,
    },
    /// A DHCP packet went out.
    DhcpOut {
        /// Message type.
        kind: DhcpKind,
        /// Transaction id.
        xid: u32,
        /// yiaddr.
        address: Ipv4Addr,
        /// Boot file named, if any.
        file: Option<String>,
    },
    /// A DHCP request got no answer, or one without a boot file, and this is why.
    DhcpSilent {
        /// One sentence for a person.
        why: String,
    },
    /// Another DHCP server is on the segment: its answer was heard, or the client chose it.
    Rival {
        /// The other server's identifier (option 54).
        server: Ipv4Addr,
        /// The address it gives, where that is known.
        address: Option<Ipv4Addr>,
        /// The boot file it names, if any.
        file: Option<String>,
    },
    /// An address of ours is used by a machine it was not given to.
    AddressTaken {
        /// The address.
        address: Ipv4Addr,
        /// Who has it, where that is known.
        by: Option<MacAddr>,
    },
    /// The machine goes round in a circle, and is kept out of it from here on.
    Looped {
        /// What it did over and over: `snponly.efi fetched`.
        what: String,
        /// How often, within the time the rule looks at.
        times: u32,
    },
    /// A person at the console chose an entry of the menu.
    Menu {
        /// The entry.
        choice: String,
    },
    /// volund learnt how this machine boots, or tries the next way.
    Learnt {
        /// One sentence for a person.
        what: String,
    },
    /// A TFTP read request.
    TftpRead {
        /// The name asked for.
        file: String,
    },
    /// A TFTP transfer ended with its last block acknowledged.
    TftpDone {
        /// The name asked for.
        file: String,
        /// Bytes of the file.
        bytes: u64,
        /// Duration.
        millis: u64,
    },
    /// The client only wanted the size (RFC 2349) and ended the transfer itself. Normal.
    TftpProbe {
        /// The name asked for.
        file: String,
    },
    /// A TFTP transfer ended before its last block.
    TftpFailed {
        /// The name asked for.
        file: String,
        /// What ended it.
        why: String,
    },
    /// An HTTP request was answered to its last byte.
    HttpDone {
        /// `GET`, `HEAD`, `POST`.
        method: String,
        /// Path asked for; a ticket in it is masked.
        path: String,
        /// Status code sent.
        status: u16,
        /// Body bytes the kernel took.
        bytes: u64,
        /// Duration.
        millis: u64,
    },
    /// An HTTP answer that did not reach its last byte.
    HttpShort {
        /// Path asked for.
        path: String,
        /// Bytes the kernel took.
        bytes: u64,
        /// Bytes promised.
        of: u64,
    },
    /// A boot script went out.
    Script {
        /// `local boot`, `wait`, or the title of what is started.
        what: String,
    },
    /// The kernel of the attempt was fetched whole, as far as the server can tell: its system took the last byte.
    ///
    /// What the client still had to receive then (a socket buffer at most) may have got lost with it. That is the
    /// harmless side: it costs an attempt, where a whole kernel taken for a cut one would start an installer twice.
    KernelWhole {
        /// Path of the kernel.
        path: String,
    },
    /// Something was refused: a foreign ticket, a wrong address.
    Refused {
        /// One sentence for a person.
        why: String,
    },
    /// The agent spoke.
    Agent {
        /// What it said: `claim`, `report`, `next`, `done`.
        verb: String,
    },
}

impl fmt::Display for DhcpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Discover => "DISCOVER",
            Self::Offer => "OFFER",
            Self::Request => "REQUEST",
            Self::Decline => "DECLINE",
            Self::Ack => "ACK",
            Self::Nak => "NAK",
            Self::Release => "RELEASE",
            Self::Inform => "INFORM",
        })
    }
}

impl fmt::Display for Sighted {
    /// One line of a timeline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DhcpIn { kind, client, relay, proxy, .. } => {
                write!(f, "DHCP {kind}{}", if *proxy { " on port 4011" } else { "" })?;
                if !client.is_empty() {
                    write!(f, " from {client}")?;
                }
                relay.as_ref().map_or(Ok(()), |relay| write!(f, " through {relay}"))
            }
            Self::DhcpOut { kind, address, file, .. } => {
                write!(f, "DHCP {kind}")?;
                // A proxy gives none, and neither does an ACK to INFORM.
                match address.is_unspecified() {
                    true => write!(f, " without an address")?,
                    false => write!(f, " {address}")?,
                }
                file.as_ref().map_or(Ok(()), |file| write!(f, ", boot file {file}"))
            }
            Self::DhcpSilent { why } => write!(f, "DHCP: {why}"),
            Self::Rival { server, address, file } => {
                write!(f, "another DHCP server, {server}")?;
                address.map_or(Ok(()), |address| write!(f, ", gives {address}"))?;
                file.as_ref().map_or(Ok(()), |file| write!(f, ", boot file {file}"))
            }
            Self::AddressTaken { address, by } => {
                let by = by.map_or_else(|| "another machine".to_owned(), |by| by.to_string());
                write!(f, "address {address} is used by {by}")
            }
            Self::Looped { what, times } => write!(f, "boot loop: {what} {times} times"),
            Self::Menu { choice } => write!(f, "chosen at the console: {choice}"),
            Self::Learnt { what } => write!(f, "learnt: {what}"),
            Self::TftpRead { file } => write!(f, "TFTP asked for {file}"),
            Self::TftpDone { file, bytes, millis } => {
                write!(f, "TFTP sent {file}, {bytes} bytes in {millis} ms")
            }
            Self::TftpProbe { file } => write!(f, "TFTP size asked of {file}"),
            Self::TftpFailed { file, why } => write!(f, "TFTP {file} failed: {why}"),
            Self::HttpDone { method, path, status, bytes, millis } => {
                write!(f, "HTTP {method} {path} {status}, {bytes} bytes in {millis} ms")
            }
            Self::HttpShort { path, bytes, of } => {
                write!(f, "HTTP {path} cut short: {bytes} of {of} bytes")
            }
            Self::Script { what } => write!(f, "boot script: {what}"),
            Self::KernelWhole { path } => write!(f, "kernel {path} fetched whole"),
            Self::Refused { why } => write!(f, "refused: {why}"),
            Self::Agent { verb } => write!(f, "agent: {verb}"),
        }
    }
}
