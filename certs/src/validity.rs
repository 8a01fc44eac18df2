//! From when until when a certificate holds, and when it is due for renewal.

use jiff::{SignedDuration, Timestamp};

/// How far in the past a new certificate begins, so that a client whose clock is behind ours accepts it, and how long
/// after its end a CA is trusted on, for leaves whose replica's clock is behind ours. Of short lives a tenth is enough:
/// else two thirds of a life could be over at its beginning.
pub const CLOCK_SKEW: SignedDuration = SignedDuration::from_hours(1);

/// The times of one certificate, in whole seconds as X.509 has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// Clients refuse the certificate before this time.
    pub not_before: Timestamp,
    /// Clients refuse the certificate after this time.
    pub not_after: Timestamp,
}

impl Validity {
    /// The times of a certificate that is made `now` and holds for `lifetime` from then on.
    pub(crate) fn starting(now: Timestamp, lifetime: SignedDuration) -> Self {
        Self {
            not_before: now.checked_sub(skew(lifetime)).unwrap_or(Timestamp::MIN),
            not_after: now.checked_add(lifetime).unwrap_or(Timestamp::MAX),
        }
    }

    /// Expired by every clock that is not too far behind ours.
    pub(crate) fn long_expired(&self, now: Timestamp) -> bool {
        self.not_after.checked_add(skew(self.life())).is_ok_and(|end| now >= end)
    }

    fn life(&self) -> SignedDuration {
        self.not_before.duration_until(self.not_after).max(SignedDuration::ZERO)
    }

    /// True before `not_before`. Our own certificates begin in the past, so it is true of one only where its maker's
    /// clock was far ahead of ours.
    #[must_use]
    pub fn not_yet(&self, now: Timestamp) -> bool {
        now < self.not_before
    }

    /// True from `not_after` on: one second early, so that nothing is served in its last instant.
    #[must_use]
    pub fn expired(&self, now: Timestamp) -> bool {
        now >= self.not_after
    }

    /// Neither of both: clients accept it.
    #[must_use]
    pub fn holds(&self, now: Timestamp) -> bool {
        !self.not_yet(now) && !self.expired(now)
    }

    /// When a successor is due: at two thirds of the life (spec J2). The last third is the time in which an
    /// operator can notice and cure a renewal that fails.
    #[must_use]
    pub fn renew_at(&self) -> Timestamp {
        self.not_before.checked_add(self.life() / 3 * 2).unwrap_or(self.not_after)
    }
}

fn skew(life: SignedDuration) -> SignedDuration {
    CLOCK_SKEW.min(life / 10).max(SignedDuration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validity() -> Validity {
        Validity {
            not_before: "2030-01-01T00:00:00Z".parse().unwrap(),
            not_after: "2030-01-31T00:00:00Z".parse().unwrap(),
        }
    }

    #[test]
    fn a_certificate_is_due_at_two_thirds_of_its_life() {
        assert_eq!(validity().renew_at(), "2030-01-21T00:00:00Z".parse().unwrap());
    }

    #[test]
    fn a_certificate_is_expired_from_its_end_on_and_not_before() {
        assert!(!validity().expired("2030-01-30T23:59:59Z".parse().unwrap()));
        assert!(validity().expired("2030-01-31T00:00:00Z".parse().unwrap()));
    }

    #[test]
    fn a_certificate_holds_from_its_beginning_on() {
        let first = validity().not_before;
        assert!(validity().holds(first) && !validity().not_yet(first));
        assert!(validity().not_yet(first - SignedDuration::from_nanos(1)));
        assert!(!validity().holds(first - SignedDuration::from_nanos(1)) && !validity().holds(validity().not_after));
    }

    #[test]
    fn what_has_just_expired_has_not_for_a_clock_behind_ours() {
        let end = validity().not_after;
        assert!(!validity().long_expired(end + CLOCK_SKEW - SignedDuration::from_secs(1)));
        assert!(validity().long_expired(end + CLOCK_SKEW));
        let short = Validity { not_before: end - SignedDuration::from_secs(100), not_after: end };
        assert!(!short.long_expired(end + SignedDuration::from_secs(9)));
        assert!(short.long_expired(end + SignedDuration::from_secs(10)));
    }

    #[test]
    fn a_validity_that_ends_before_it_begins_is_due_at_its_beginning() {
        let odd = Validity { not_before: validity().not_after, not_after: validity().not_before };
        assert_eq!(odd.renew_at(), odd.not_before);
    }
}
