//! How long a Job waits for what may still come (spec E1, section 6).

use jiff::{SignedDuration, Timestamp};

use crate::backend::{Nature, StartFailure};

/// How long is waited before a word is said that ends the Job or puts it in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// With a failure to start that hardly ever cures itself.
    pub permanent: SignedDuration,
    /// With credentials that a registry does not take.
    pub authorization: SignedDuration,
    /// With a failure to start that often cures itself.
    pub transient: SignedDuration,
    /// With an execution of which nothing is heard.
    pub unknown_after: SignedDuration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            // A Secret or an image that is made right after the Job.
            permanent: SignedDuration::from_secs(30),
            // Somebody mends credentials by hand.
            authorization: SignedDuration::from_mins(2),
            // Outages of registries: what others found to be too short failed everything at once.
            transient: SignedDuration::from_mins(15),
            // As long as Kubernetes waits before it gives up the pods of a node that does not answer.
            unknown_after: SignedDuration::from_mins(5),
        }
    }
}

/// First and longest wait between two looks at something that no watch tells of.
const LOOKS: (SignedDuration, SignedDuration) = (SignedDuration::from_secs(5), SignedDuration::from_secs(60));

/// When to look again at what has been awaited since then: it grows with the time that went by, within bounds.
#[must_use]
pub fn next_look(since: Timestamp, now: Timestamp) -> Timestamp {
    let half = SignedDuration::from_secs(now.duration_since(since).as_secs() / 2);
    now.saturating_add(half.clamp(LOOKS.0, LOOKS.1)).unwrap_or(Timestamp::MAX)
}

impl Patience {
    /// When a start that has failed since then is given up.
    #[must_use]
    pub fn ends(&self, failure: StartFailure, since: Timestamp) -> Timestamp {
        let grace = match failure.nature() {
            Nature::Permanent => self.permanent,
            Nature::Authorization => self.authorization,
            Nature::Transient => self.transient,
        };
        since.saturating_add(grace).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_rarer_up_to_one_a_minute() {
        let at = |second| Timestamp::from_second(second).unwrap();
        for (waited, wait) in [(-5, 5), (0, 5), (9, 5), (40, 20), (120, 60), (86_400, 60)] {
            assert_eq!(next_look(at(1_000), at(1_000 + waited)), at(1_000 + waited + wait), "after {waited} s");
        }
    }
}
