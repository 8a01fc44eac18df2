//! The time, beside what answers of the API server say of it (spec F4): what is persisted, and what a TTL deletes by, is
//! told by the API server's clock where ours is known to differ.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

mod skew;

use skew::{RESOLUTION, Skew};

/// The clock of this process, corrected. Copies share what they know.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    skew: Skew,
    /// The difference that was told last.
    told: SignedDuration,
}

impl Clock {
    /// The time, by the API server's clock where ours is known to differ.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.known(|known| known.skew.corrected(Timestamp::now()))
    }

    /// A time that the API server's clock has reached.
    #[must_use]
    pub fn at_least(&self) -> Timestamp {
        self.known(|known| known.skew.at_least(Timestamp::now()))
    }

    /// By how much the API server's clock is ahead of ours at least, by the answers of the last minutes; negative where it
    /// may be behind. None before it was heard of.
    #[must_use]
    pub fn ahead(&self) -> Option<SignedDuration> {
        self.known(|known| known.skew.ahead())
    }

    /// An answer of the API server to what was sent at this time, by our own clock, came with this `Date`.
    pub fn saw(&self, date: &str, sent: Timestamp) {
        let Ok(date) = jiff::fmt::rfc2822::parse(date) else { return };
        let change = self.known(|known| {
            known.skew.saw(date.timestamp(), sent, Timestamp::now());
            let ahead = known.skew.ahead().unwrap_or_default();
            let moved = (ahead - known.told).abs() > RESOLUTION;
            moved.then(|| std::mem::replace(&mut known.told, ahead)).map(|_| ahead)
        });
        if let Some(ahead) = change {
            tracing::warn!(seconds = ahead.as_secs_f64(), "the API server's clock is ahead of ours by this much");
        }
    }

    fn known<T>(&self, ask: impl FnOnce(&mut Known) -> T) -> T {
        ask(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_header_moves_the_clock_and_anything_else_does_not() {
        let clock = Clock::default();
        let same = clock.clone();
        let year = |clock: &Clock| clock.now().to_string()[..4].to_owned();
        let ours = year(&clock);
        for nonsense in ["", "yesterday", "Mon, 99 Foo 2040 00:00:00 GMT"] {
            clock.saw(nonsense, Timestamp::now());
        }
        assert_eq!(year(&clock), ours);
        clock.saw("Sat, 01 Dec 2040 08:49:37 GMT", Timestamp::now());
        assert_eq!(year(&clock), "2040");
        assert_eq!(year(&same), "2040");
    }
}
