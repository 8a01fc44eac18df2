//! From when until when a certificate holds, and when it is due for renewal.

use jiff::{SignedDuration, Timestamp};

/// The times of one certificate, in whole seconds as X.509 has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// Clients refuse the certificate before this time.
    pub not_before: Timestamp,
    /// Clients refuse the certificate after this time.
    pub not_after: Timestamp,
}

impl Validity {
    /// True from `not_after` on: one second early, so that nothing is served in its last instant.
    #[must_use]
    pub fn expired(&self, now: Timestamp) -> bool {
        now >= self.not_after
    }

    /// When a successor is due: at two thirds of the life (spec J2). The last third is the time in which an
    /// operator can notice and cure a renewal that fails.
    #[must_use]
    pub fn renew_at(&self) -> Timestamp {
        let life = self.not_before.duration_until(self.not_after).max(SignedDuration::ZERO);
        self.not_before.checked_add(life / 3 * 2).unwrap_or(self.not_after)
    }
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
    fn a_validity_that_ends_before_it_begins_is_due_at_its_beginning() {
        let odd = Validity { not_before: validity().not_after, not_after: validity().not_before };
        assert_eq!(odd.renew_at(), odd.not_before);
    }
}
