//! What has gone through the proxy.

use std::collections::VecDeque;

use http::StatusCode;
use jiff::Timestamp;

use super::Asked;

/// Requests that are remembered. A Job has about ten; the oldest go first.
const REMEMBERED: usize = 50_000;

/// A request and its answer.
#[derive(Debug, Clone)]
pub struct Relayed {
    /// Whose it was.
    pub door: usize,
    /// When it came.
    pub at: Timestamp,
    /// What was asked for.
    pub asked: Asked,
    /// What the API server answered; None where it was not asked, or has not answered yet.
    pub answered: Option<StatusCode>,
}

/// The last requests, by their number.
#[derive(Debug, Default)]
pub(super) struct Log {
    first: usize,
    entries: VecDeque<Relayed>,
}

impl Log {
    /// Remembers a request; answers its number.
    pub(super) fn push(&mut self, entry: Relayed) -> usize {
        if self.entries.len() == REMEMBERED {
            self.entries.pop_front();
            self.first += 1;
        }
        self.entries.push_back(entry);
        self.first + self.entries.len() - 1
    }

    pub(super) fn answered(&mut self, number: usize, code: StatusCode) {
        let entry = number.checked_sub(self.first).and_then(|index| self.entries.get_mut(index));
        if let Some(entry) = entry {
            entry.answered = Some(code);
        }
    }

    pub(super) fn all(&self) -> Vec<Relayed> {
        self.entries.iter().cloned().collect()
    }
}
