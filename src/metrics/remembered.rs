//! Who may read the metrics, as it was answered lately: pure.
//!
//! A token is never kept, only its hash.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

/// How long it is believed that somebody may: who loses the right reads on for this long at most.
const ALLOWED: Duration = Duration::from_secs(60);
/// How long it is believed that somebody may not: who gets the right waits for this long at most.
const REFUSED: Duration = Duration::from_secs(10);
/// Answers that are kept: a few scrapers ask. Whoever sends many tokens only makes us forget sooner.
const KEPT: usize = 128;

/// Whether the bearer of a token may read the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// He may.
    Allowed,
    /// He is somebody, but may not.
    Forbidden,
    /// The cluster does not know the token.
    Unknown,
}

/// The hash of a token.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; SHA256_OUTPUT_LEN]);

impl Key {
    pub(super) fn of(token: &str) -> Self {
        let mut key = [0; SHA256_OUTPUT_LEN];
        key.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        Self(key)
    }
}

/// The answers, and until when each is believed.
#[derive(Default)]
pub(super) struct Remembered(HashMap<Key, (Verdict, Instant)>);

impl Remembered {
    pub(super) fn get(&self, key: Key, now: Instant) -> Option<Verdict> {
        self.0.get(&key).filter(|(_, until)| now < *until).map(|(verdict, _)| *verdict)
    }

    pub(super) fn put(&mut self, key: Key, verdict: Verdict, now: Instant) {
        if self.0.len() >= KEPT {
            self.0.retain(|_, (_, until)| now < *until);
        }
        if self.0.len() >= KEPT
            && let Some(first) = self.0.iter().min_by_key(|(_, (_, until))| *until).map(|(key, _)| *key)
        {
            self.0.remove(&first);
        }
        let believed = if verdict == Verdict::Allowed { ALLOWED } else { REFUSED };
        self.0.insert(key, (verdict, now + believed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_believed_for_its_time_and_for_its_token_only() {
        let (mut remembered, now) = (Remembered::default(), Instant::now());
        remembered.put(Key::of("a"), Verdict::Allowed, now);
        remembered.put(Key::of("b"), Verdict::Forbidden, now);
        remembered.put(Key::of("c"), Verdict::Unknown, now);
        let after = |seconds: f64| {
            let at = now + Duration::from_secs_f64(seconds);
            ["a", "b", "c", "d"].map(|token| remembered.get(Key::of(token), at))
        };
        assert_eq!(after(0.0), [Some(Verdict::Allowed), Some(Verdict::Forbidden), Some(Verdict::Unknown), None]);
        assert_eq!(after(9.9), after(0.0));
        assert_eq!(after(10.0), [Some(Verdict::Allowed), None, None, None]);
        assert_eq!(after(59.9), after(10.0));
        assert_eq!(after(60.0), [None; 4]);
    }

    #[test]
    fn however_many_tokens_come_only_so_many_answers_are_kept() {
        let (mut remembered, now) = (Remembered::default(), Instant::now());
        remembered.put(Key::of("good"), Verdict::Allowed, now);
        for number in 0..10_000 {
            remembered.put(Key::of(&number.to_string()), Verdict::Unknown, now + Duration::from_micros(number));
            assert!(remembered.0.len() <= KEPT);
        }
        let later = now + Duration::from_millis(10);
        assert_eq!(remembered.get(Key::of("9999"), later), Some(Verdict::Unknown));
        assert_eq!(remembered.get(Key::of("9"), later), None);
        assert_eq!(remembered.get(Key::of("good"), later), Some(Verdict::Allowed), "what holds for longest stays");
    }
}
