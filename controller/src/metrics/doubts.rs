//! Since when the results of Jobs are unknown: pure.
//!
//! A Job does not keep it: its condition says `Unknown` from its first to its last day, whatever the reason. So it is
//! counted from the first look that showed it, and anew in another process.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

/// The Jobs in doubt, by UID, and when they were first seen so.
#[derive(Debug, Default)]
pub(super) struct Doubts(HashMap<String, Timestamp>);

impl Doubts {
    /// How long the oldest doubt has lasted, where these Jobs are in doubt now; zero where none is.
    pub(super) fn oldest<'a>(&mut self, in_doubt: impl Iterator<Item = &'a str>, now: Timestamp) -> SignedDuration {
        let since = |uid: &str| self.0.get(uid).copied().unwrap_or(now);
        self.0 = in_doubt.map(|uid| (uid.to_owned(), since(uid))).collect();
        let first = self.0.values().min().copied().unwrap_or(now);
        now.duration_since(first).max(SignedDuration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_doubt_counts_until_it_is_resolved_and_is_forgotten_then() {
        let mut doubts = Doubts::default();
        let mut age = |in_doubt: &[&str], second| {
            doubts.oldest(in_doubt.iter().copied(), Timestamp::from_second(second).unwrap()).as_secs()
        };
        assert_eq!(age(&[], 100), 0);
        assert_eq!(age(&["a"], 110), 0);
        assert_eq!(age(&["a", "b"], 120), 10);
        assert_eq!(age(&["a", "b"], 130), 20);
        assert_eq!(age(&["b"], 140), 20, "the other one is resolved");
        assert_eq!(age(&[], 150), 0);
        assert_eq!(age(&["a"], 160), 0, "in doubt again, from now on");
        assert_eq!(age(&["a"], 150), 0, "a clock that was set back makes no negative age");
    }
}
