//! How far the API server's clock is from ours, by the `Date` of its answers: pure.

use jiff::{SignedDuration, Timestamp};

/// How long a bound counts: a clock may be set meanwhile.
const WINDOW: SignedDuration = SignedDuration::from_mins(5);

/// What a `Date` does not tell: it is in whole seconds, and an answer takes its time.
pub(super) const RESOLUTION: SignedDuration = SignedDuration::from_millis(1_500);

/// Bounds of the difference, from the answers of the last minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Skew {
    current: Option<Bound>,
    previous: Option<Bound>,
}

/// The API server's clock is ahead of ours by at least this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bound {
    ahead: SignedDuration,
    since: Timestamp,
}

impl Skew {
    /// An answer with this `Date` came at this time by our clock, to what was sent at that time.
    ///
    /// It was dated in between: the API server's clock is ahead by what the `Date` is ahead of the answer's coming at
    /// least, and by what its end is ahead of the sending at most. An answer that comes late, as it does to a process
    /// that was stopped for a while, so bounds the difference badly, and takes nothing back.
    pub(super) fn saw(&mut self, date: Timestamp, sent: Timestamp, at: Timestamp) {
        let (ahead, most) = (date.duration_since(at), date.duration_since(sent) + SignedDuration::from_secs(1));
        // One of the clocks was set back: what was known before is wrong.
        if self.ahead().is_some_and(|known| most < known) {
            *self = Self::default();
        }
        match &mut self.current {
            Some(bound) if at.duration_since(bound.since) < WINDOW => bound.ahead = bound.ahead.max(ahead),
            current => self.previous = current.replace(Bound { ahead, since: at }),
        }
    }

    /// By how much the API server's clock is ahead of ours at least; negative where it may be behind.
    pub(super) fn ahead(&self) -> Option<SignedDuration> {
        [self.current, self.previous].into_iter().flatten().map(|bound| bound.ahead).max()
    }

    /// What the API server's clock shows at least. Before anything was heard of it, ours.
    pub(super) fn at_least(&self, ours: Timestamp) -> Timestamp {
        ours.saturating_add(self.ahead().unwrap_or_default()).unwrap_or(ours)
    }

    /// What the API server's clock shows, as far as it is known to differ from ours.
    pub(super) fn corrected(&self, ours: Timestamp) -> Timestamp {
        match self.ahead() {
            Some(ahead) if ahead.abs() > RESOLUTION => ours.saturating_add(ahead).unwrap_or(ours),
            _ => ours,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(millisecond).unwrap()
    }

    fn date(millisecond: i64) -> Timestamp {
        Timestamp::from_second(millisecond.div_euclid(1_000)).unwrap()
    }

    #[test]
    fn clocks_that_agree_within_what_a_date_tells_are_not_corrected() {
        let mut skew = Skew::default();
        assert_eq!(skew.at_least(at(7)), at(7));
        skew.saw(date(10_900), at(10_850), at(10_950));
        assert_eq!(skew.at_least(at(11_000)), at(10_050), "0.95 s are not known");
        skew.saw(date(12_000), at(11_900), at(12_010));
        assert_eq!(skew.at_least(at(13_000)), at(12_990));
        assert_eq!(skew.corrected(at(13_000)), at(13_000));
    }

    #[test]
    fn a_clock_that_is_set_is_noticed() {
        let mut skew = Skew::default();
        skew.saw(date(600_000), at(-10), at(0));
        assert_eq!(skew.corrected(at(0)), at(600_000));
        skew.saw(date(1_000), at(990), at(1_000));
        assert_eq!(skew.corrected(at(1_000)), at(1_000), "ours was set forward");
        // The other way round the better bound wins at once.
        skew.saw(date(602_000), at(1_990), at(2_000));
        assert_eq!(skew.corrected(at(2_000)), at(602_000));
    }

    #[test]
    fn an_answer_that_comes_late_takes_nothing_back() {
        let mut skew = Skew::default();
        skew.saw(date(10_000), at(9_990), at(10_010));
        skew.saw(date(11_000), at(11_000), at(20_000));
        assert_eq!(skew.corrected(at(20_000)), at(20_000), "the process was stopped for 9 s");
    }

    #[test]
    fn what_was_known_long_ago_does_not_count() {
        let mut skew = Skew::default();
        skew.saw(date(1_000), at(990), at(1_000));
        for minute in 1..=11 {
            // A clock that goes too slowly: it falls behind little by little.
            let now = minute * 60_000;
            skew.saw(at(now - minute * 100), at(now - 10), at(now));
        }
        assert!(skew.ahead().unwrap() <= SignedDuration::from_millis(-100), "{skew:?}");
    }

    proptest! {
        /// Whatever the difference, the delays and the order: what is said is never ahead of the API server's clock.
        #[test]
        fn no_time_is_told_that_the_api_server_has_not_reached(
            difference in -1_000_000_i64..1_000_000,
            answers in prop::collection::vec((1_i64..10_000, 0_i64..3_000), 1..40),
        ) {
            let (mut skew, mut ours) = (Skew::default(), 5_000_000);
            for (wait, delay) in answers {
                ours += wait;
                skew.saw(date(ours - delay + difference), at(ours - delay), at(ours));
                prop_assert!(skew.at_least(at(ours)) <= at(ours + difference));
            }
        }

        /// Once one answer came at once, the time that is told falls behind by what a `Date` does not tell, however late
        /// others come.
        #[test]
        fn no_late_answer_sets_the_clock_back(
            difference in -1_000_000_i64..1_000_000,
            answers in prop::collection::vec((1_i64..5_000, 0_i64..1_000, 0_i64..20_000), 1..10),
        ) {
            let (mut skew, mut ours) = (Skew::default(), 5_000_000);
            skew.saw(date(ours + difference), at(ours), at(ours));
            for (wait, there, back) in answers {
                ours += wait;
                let (sent, dated) = (ours, ours + there);
                ours = dated + back;
                skew.saw(date(dated + difference), at(sent), at(ours));
                prop_assert!(skew.corrected(at(ours)) >= at(ours + difference - 2_500));
            }
        }
    }
}
