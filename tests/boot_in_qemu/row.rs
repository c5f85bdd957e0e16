//! One boot of one machine, held against the wire, in one line: a row of the matrix of firmware.

use std::time::{Duration, Instant};

use model::{Sighted, Sighting, UnixMillis};

use crate::{
    capture_agrees,
    segment::{Machine, Segment},
    sightings,
};

/// Longest boot, power-on to the last thing a row waits for, on two busy cores without KVM.
const BOUND: &str = "4m";

/// One row of the matrix.
pub(crate) struct Row {
    pub(crate) machine: Machine,
    /// What it is switched to.
    pub(crate) profile: &'static str,
    /// Parts of lines of its timeline that have to be there, in this order.
    pub(crate) story: Vec<&'static str>,
    /// What its console has to show at last, when no agent can say that the kernel runs.
    pub(crate) console: Option<&'static str>,
}

impl Row {
    /// A row that ends with the agent's report.
    pub(crate) fn inspected(machine: Machine, story: &[&'static str]) -> Self {
        Self { machine, profile: "inspect", story: story.to_vec(), console: None }
    }

    /// Boots once, holds the timeline against the wire and the row's story against the timeline, prints the row.
    pub(crate) fn prove(self) {
        let machine = &self.machine;
        let Some(segment) = Segment::up(machine) else {
            println!("ROW {} | not proved | - | something is missing here", machine.name);
            return;
        };
        let begun = Instant::now();
        segment.volund(&[
            "switch",
            machine.name,
            self.profile,
            "--yes",
            "--wait",
            "--timeout",
            BOUND,
        ]);
        let took = begun.elapsed();
        if let Some(text) = self.console {
            segment.console_shows(machine.name, text, Duration::from_secs(60));
        }
        let (dir, capture) = segment.down();
        let sightings = sightings(&dir, machine.name);
        let told: Vec<String> =
            sightings.iter().map(|sighting| sighting.what.to_string()).collect();
        let mut rest = told.iter();
        for part in &self.story {
            assert!(
                rest.any(|line| line.contains(part)),
                "{}: no {part:?} in its place:\n{}",
                machine.name,
                told.join("\n")
            );
        }
        capture_agrees(&capture, &sightings, machine);
        let seen = summary(&sightings);
        println!("ROW {} | passes | {} | {seen}", machine.name, took.as_secs());
    }
}

/// The boot in one line: each step once, with the seconds since the first packet.
fn summary(sightings: &[Sighting]) -> String {
    let first = sightings.first().map_or(UnixMillis(0), |sighting| sighting.at);
    let mut steps: Vec<(String, i64)> = Vec::new();
    for Sighting { at, what, .. } in sightings {
        let step = match what {
            Sighted::DhcpIn { client, proxy, .. } if !client.is_empty() => {
                format!("{client}{}", if *proxy { " on 4011" } else { "" })
            }
            Sighted::Rival { server, .. } => format!("beside {server}"),
            Sighted::TftpDone { file, .. } => format!("TFTP {file}"),
            Sighted::HttpDone { path, status: 200, .. } if !path.starts_with("/agent") => {
                format!("HTTP {path}")
            }
            Sighted::Agent { verb } if verb == "report" => "agent's report".to_owned(),
            _ => continue,
        };
        if !steps.iter().any(|(earlier, _)| *earlier == step) {
            steps.push((step, (at.0 - first.0) / 1_000));
        }
    }
    steps.iter().map(|(step, at)| format!("{step} ({at} s)")).collect::<Vec<_>>().join(" → ")
}
