//! What a node can be.

use serde::{Deserialize, Serialize};

/// Where the root file system of a profile lives; it decides what a settled node is told when it boots again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RootKind {
    /// On the node's own disk: settled nodes boot locally.
    Disk,
    /// In memory: settled nodes get the same kernel and initrd again.
    Ram,
    /// A network installer that writes a disk: one script per switch, then the node boots locally.
    Installer,
}
