//! What a machine did, in order, for tests to compare and people to read.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Steps and console lines of one machine. Bounded: of each the last 1,000 are kept; counts are kept of the
/// first 256 different steps.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    steps: VecDeque<String>,
    console: VecDeque<String>,
    counts: BTreeMap<String, u64>,
}

const KEPT: usize = 1000;
const COUNTED: usize = 256;

impl Log {
    /// Notes a step, such as `dhcp discover`.
    pub fn step(&self, step: impl Into<String>) {
        let step = step.into();
        tracing::debug!(step, "twin");
        let mut inner = self.lock();
        if inner.counts.len() < COUNTED || inner.counts.contains_key(&step) {
            *inner.counts.entry(step.clone()).or_default() += 1;
        }
        push(&mut inner.steps, step);
    }

    /// Notes a line of the machine's console.
    pub fn console(&self, line: impl Into<String>) {
        push(&mut self.lock().console, line.into());
    }

    /// The steps, oldest first.
    #[must_use]
    pub fn steps(&self) -> Vec<String> {
        self.lock().steps.iter().cloned().collect()
    }

    /// The console, oldest line first.
    #[must_use]
    pub fn console_lines(&self) -> Vec<String> {
        self.lock().console.iter().cloned().collect()
    }

    /// How often `step` happened since the start or the last [`Log::clear`].
    #[must_use]
    pub fn count(&self, step: &str) -> u64 {
        self.lock().counts.get(step).copied().unwrap_or(0)
    }

    /// Forgets everything, so that a test can look at what follows.
    pub fn clear(&self) {
        *self.lock() = Inner::default();
    }

    /// A panic elsewhere leaves no half-written log: every change is one push.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn push(lines: &mut VecDeque<String>, line: String) {
    if lines.len() == KEPT {
        lines.pop_front();
    }
    lines.push_back(line);
}
