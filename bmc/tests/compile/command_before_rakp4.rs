//! Only an active session makes command packets.

use bmc_proto::ipmi::{chassis::GetChassisStatus, client::Opening};

fn ask(mut session: Opening<'_>) {
    session.begin(&GetChassisStatus);
}

fn main() {}
