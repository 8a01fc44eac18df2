//! The self-managed source's next step, decided from what is seen now (spec J2).
//!
//! Level-triggered: every look decides afresh, so a step that was lost, done twice or done by another replica is
//! made good by the next look. The order is CA → every caBundle → leaf: no replica serves a certificate that the API
//! server was not yet told to trust. What keeps the present CA in service goes first, so a Secret that cannot be
//! replaced never stops a leaf from being renewed.
//!
//! What is written into a caBundle is seen by the API servers a moment later, and a replica that finds it there does not
//! know since when. So a usable leaf of the former CA stays until the new one has been seen in every caBundle for a
//! while ([`Trusted`]). A replica that serves nothing yet does not wait: nobody asks it before it has said that it is
//! ready.
//!
//! A CA leaves a caBundle when it has expired, as late as that: no leaf outlives its CA, so by then none of its leaves
//! holds, on whatever replica.

use jiff::{SignedDuration, Timestamp};

use crate::{Bundle, Certificate, Leaf, Validity};

/// What is seen at one moment.
#[derive(Debug, Clone)]
pub struct View {
    /// The CA in the Secret that all replicas share.
    pub stored: Stored,
    /// The leaf that this process serves.
    pub served: Option<Served>,
    /// Every webhook configuration that exists and points at us.
    pub configurations: Vec<Configuration>,
    /// What this process remembers of its looks, this one included: see [`Trusted::after`].
    pub trusted: Option<Trusted>,
}

/// The shared Secret.
#[derive(Debug, Clone)]
pub enum Stored {
    /// There is none.
    Absent,
    /// There is one, but it holds no CA, for the reason given.
    Unreadable(String),
    /// It holds this CA.
    Present(Certificate),
}

/// The leaf in service.
#[derive(Debug, Clone)]
pub struct Served {
    /// When it holds.
    pub validity: Validity,
    /// The CA that signed it.
    pub signer: Certificate,
}

impl From<&Leaf> for Served {
    fn from(leaf: &Leaf) -> Self {
        Self { validity: leaf.validity(), signer: leaf.signer().clone() }
    }
}

/// One webhook configuration.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// Its name, which comes back in [`Publication`].
    pub name: String,
    /// The caBundle of each of its webhooks; an absent one is an empty bundle.
    pub bundles: Vec<Bundle>,
}

/// Since when one process has seen a CA in every caBundle, at each of its looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    authority: Certificate,
    since: Timestamp,
}

impl Trusted {
    /// What to remember after a look at `now`: `before` as far as it still holds, else a new beginning; nothing where
    /// some caBundle lacks the stored CA.
    #[must_use]
    pub fn after(
        before: Option<Self>,
        stored: &Stored,
        configurations: &[Configuration],
        now: Timestamp,
    ) -> Option<Self> {
        let Stored::Present(authority) = stored else { return None };
        if !configurations.iter().all(|configuration| configuration.holds(authority)) {
            return None;
        }
        // Not from a time that lies ahead: the clock was set back, and the wait would take as long as that.
        let before = before.filter(|before| before.authority == *authority && before.since <= now);
        Some(before.unwrap_or_else(|| Self { authority: authority.clone(), since: now }))
    }
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Make a CA and create the Secret. Losing to another replica (`AlreadyExists`) is fine: look again.
    CreateAuthority,
    /// Make a CA and replace the Secret's data, under its resourceVersion.
    ReplaceAuthority(ReplaceReason),
    /// Sign a leaf with the stored CA and serve it.
    IssueLeaf(LeafReason),
    /// Write these caBundles.
    PublishBundle(Vec<Publication>),
    /// Nothing is due before this time. Look again earlier all the same: others may change what was seen.
    WaitUntil(Timestamp),
}

/// Why the stored CA is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplaceReason {
    /// The Secret holds no usable CA.
    Unreadable(String),
    /// Its life is over.
    Expired,
    /// Its life has not begun: whoever made it had a clock far ahead of ours.
    NotYetValid,
    /// Two thirds of its life are over.
    Due,
}

/// Why a leaf is issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafReason {
    /// Nothing is served yet.
    NoneServed,
    /// What is served was signed by another CA than the stored one.
    SignedByAnother,
    /// What is served is not valid yet: our clock was set back.
    NotYetValid,
    /// Two thirds of its life are over.
    Due,
}

/// The caBundle that every webhook of one configuration shall have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The configuration's name.
    pub configuration: String,
    /// What it held and has not expired, the CA of the leaf that we serve, and the stored CA.
    pub ca_bundle: Bundle,
}

impl Configuration {
    /// Whether every webhook of it is told to trust `certificate`.
    fn holds(&self, certificate: &Certificate) -> bool {
        self.bundles.iter().all(|bundle| bundle.holds(certificate))
    }
}

/// The next step. Total: it has an answer for every view. `settle` is how long after a look at the caBundles every API
/// server is taken to have seen the same.
#[must_use]
pub fn decide(view: &View, settle: SignedDuration, now: Timestamp) -> Step {
    let authority = match &view.stored {
        Stored::Absent => return Step::CreateAuthority,
        Stored::Unreadable(why) => return Step::ReplaceAuthority(ReplaceReason::Unreadable(why.clone())),
        Stored::Present(ca) if ca.validity().expired(now) => return Step::ReplaceAuthority(ReplaceReason::Expired),
        Stored::Present(ca) if ca.validity().not_yet(now) => return Step::ReplaceAuthority(ReplaceReason::NotYetValid),
        Stored::Present(ca) => ca,
    };
    let unpublished = unpublished(view, authority, now);

    match leaf_reason(view.served.as_ref(), authority, now) {
        // A leaf of the CA that is served already is trusted wherever its predecessor is: nothing to wait for.
        Some(reason @ (LeafReason::Due | LeafReason::NotYetValid)) => return Step::IssueLeaf(reason),
        Some(_) if !unpublished.is_empty() => return Step::PublishBundle(unpublished),
        Some(reason) => {
            return match settled_at(view, settle, now) {
                Some(at) if at > now => Step::WaitUntil(at),
                _ => Step::IssueLeaf(reason),
            };
        }
        None => {}
    }
    let renew_at = authority.validity().renew_at();
    if now >= renew_at {
        return Step::ReplaceAuthority(ReplaceReason::Due);
    }
    if !unpublished.is_empty() {
        return Step::PublishBundle(unpublished);
    }
    let leaf_due = view.served.as_ref().map(|leaf| leaf.validity.renew_at()).filter(|due| *due > now);
    Step::WaitUntil(leaf_due.map_or(renew_at, |due| due.min(renew_at)))
}

fn leaf_reason(served: Option<&Served>, authority: &Certificate, now: Timestamp) -> Option<LeafReason> {
    let Some(leaf) = served else { return Some(LeafReason::NoneServed) };
    if leaf.signer != *authority {
        return Some(LeafReason::SignedByAnother);
    }
    if leaf.validity.not_yet(now) {
        return Some(LeafReason::NotYetValid);
    }
    // A leaf that ends with its CA cannot be bettered by that CA: issuing again would be a loop without end.
    let can_last_longer = leaf.validity.not_after < authority.validity().not_after;
    (can_last_longer && now >= leaf.validity.renew_at()).then_some(LeafReason::Due)
}

/// Until when what is served stays; `None` where it is of no use to anybody.
fn settled_at(view: &View, settle: SignedDuration, now: Timestamp) -> Option<Timestamp> {
    view.served.as_ref().filter(|leaf| leaf.validity.holds(now))?;
    let since = view.trusted.as_ref().map_or(now, |trusted| trusted.since);
    Some(since.checked_add(settle).unwrap_or(Timestamp::MAX))
}

/// The configurations that lack the stored CA, or the CA of what we serve: somebody may have emptied them.
fn unpublished(view: &View, authority: &Certificate, now: Timestamp) -> Vec<Publication> {
    let signer = view.served.as_ref().map(|leaf| &leaf.signer).filter(|signer| !signer.validity().expired(now));
    let wanted: Vec<&Certificate> = signer.into_iter().chain([authority]).collect();
    let lacks = |configuration: &&Configuration| !wanted.iter().all(|wanted| configuration.holds(wanted));
    view.configurations
        .iter()
        .filter(lacks)
        .map(|configuration| {
            let held = configuration.bundles.iter().fold(Bundle::default(), Bundle::merged);
            let ca_bundle = wanted.iter().fold(held, |bundle, wanted| bundle.with(wanted, now));
            Publication { configuration: configuration.name.clone(), ca_bundle }
        })
        .collect()
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
