//! Warnings of one report, bounded.

/// More than this many are only counted.
pub(super) const MOST: usize = 64;

/// Collects sentences.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    sentences: Vec<String>,
    more: usize,
}

impl Warnings {
    pub(super) fn add(&mut self, sentence: impl Into<String>) {
        if self.sentences.len() < MOST {
            self.sentences.push(sentence.into());
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    pub(super) fn into_sentences(mut self) -> Vec<String> {
        if self.more > 0 {
            self.sentences.push(format!("and {} more", self.more));
        }
        self.sentences
    }
}
