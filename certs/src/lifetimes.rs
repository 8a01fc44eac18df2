//! How long the self-managed certificates hold, and how often they are looked at for that.

use jiff::SignedDuration;

/// Lifetime of a CA unless the caller says otherwise: 365 days.
pub const AUTHORITY_LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);

/// Lifetime of a leaf unless the caller says otherwise: 7 days. Short, because its key lives in one process only and
/// making another costs nothing.
pub const LEAF_LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The shortest life of a leaf. X.509 counts in whole seconds, and a renewal takes a few looks.
pub const SHORTEST_LEAF: SignedDuration = SignedDuration::from_secs(5);

/// How often the Secret and the webhook configurations are looked at, at the least: others may change them at any time.
const LOOK: SignedDuration = SignedDuration::from_secs(10);

/// The lives of CA and leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    authority: SignedDuration,
    leaf: SignedDuration,
}

/// Why two lives do not go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LifetimeError {
    /// There would be no time to renew it.
    #[error("a leaf that lives {0:#} is over before it can be renewed; it must live at least {SHORTEST_LEAF:#}")]
    Leaf(SignedDuration),
    /// Its successor would come before the leaves could follow.
    #[error(
        "a CA that lives {authority:#} is too short for leaves that live {leaf:#}; it must live at least twice as long"
    )]
    Authority {
        /// The CA's life.
        authority: SignedDuration,
        /// The leaf's life.
        leaf: SignedDuration,
    },
}

impl Lifetimes {
    /// These lives, where a renewal fits into them.
    ///
    /// # Errors
    /// A leaf shorter than [`SHORTEST_LEAF`], or a CA shorter than two leaves.
    pub fn new(authority: SignedDuration, leaf: SignedDuration) -> Result<Self, LifetimeError> {
        if leaf < SHORTEST_LEAF {
            return Err(LifetimeError::Leaf(leaf));
        }
        // Halved, for the double of the longest duration is none.
        if authority / 2 < leaf {
            return Err(LifetimeError::Authority { authority, leaf });
        }
        Ok(Self { authority, leaf })
    }

    /// The CA's life.
    #[must_use]
    pub fn authority(&self) -> SignedDuration {
        self.authority
    }

    /// The leaf's life.
    #[must_use]
    pub fn leaf(&self) -> SignedDuration {
        self.leaf
    }

    /// The time between two looks. The last third of a leaf's life, in which it is renewed, has at least four: one may
    /// see a new CA, the next one serves it, and two may fail.
    #[must_use]
    pub fn look(&self) -> SignedDuration {
        LOOK.min(self.leaf / 12)
    }
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self { authority: AUTHORITY_LIFETIME, leaf: LEAF_LIFETIME }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: SignedDuration = SignedDuration::from_secs(1);

    #[test]
    fn the_defaults_go_together_and_are_looked_at_every_ten_seconds() {
        assert_eq!(Lifetimes::new(AUTHORITY_LIFETIME, LEAF_LIFETIME), Ok(Lifetimes::default()));
        assert_eq!(Lifetimes::default().look(), SECOND * 10);
    }

    #[test]
    fn short_leaves_are_looked_at_four_times_in_their_last_third() {
        let lifetimes = Lifetimes::new(SECOND * 24, SECOND * 12).unwrap();
        assert_eq!(lifetimes.look() * 4, lifetimes.leaf() / 3);
    }

    #[test]
    fn lives_without_room_for_a_renewal_are_refused_and_the_message_says_what_would_do() {
        let error = Lifetimes::new(AUTHORITY_LIFETIME, SECOND * 4).unwrap_err();
        assert_eq!(error, LifetimeError::Leaf(SECOND * 4));
        assert_eq!(
            error.to_string(),
            "a leaf that lives 4s is over before it can be renewed; it must live at least 5s"
        );
        let error = Lifetimes::new(SECOND * 119, SECOND * 60).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a CA that lives 1m 59s is too short for leaves that live 1m; it must live at least twice as long"
        );
        assert!(Lifetimes::new(SECOND * 120, SECOND * 60).is_ok());
        assert!(Lifetimes::new(SignedDuration::MAX, SignedDuration::MAX).is_err());
        assert!(Lifetimes::new(SECOND, -SECOND).is_err());
    }
}
