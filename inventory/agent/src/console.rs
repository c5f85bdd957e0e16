//! Lines for the person in front of the console. Never a secret: tickets are shown masked.

use std::{
    io::{self, Write},
    sync::LazyLock,
    time::Instant,
};

static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

/// One line with the seconds since the agent's first line. A console that cannot be written is no reason to stop.
pub(crate) fn say(line: &str) {
    let seconds = STARTED.elapsed().as_secs_f32();
    let _nobody_watches = writeln!(io::stdout(), "volund [{seconds:7.2}] {line}");
}
