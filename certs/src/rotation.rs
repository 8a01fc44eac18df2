//! The self-managed source's next step, decided from what is seen now (spec J2).
//!
//! Level-triggered: every look decides afresh, so a step that was lost, done twice or done by another replica is
//! made good by the next look. The order is CA → every caBundle → leaf: no replica serves a certificate that the API
//! server was not yet told to trust. What keeps the present CA in service goes first, so a Secret that cannot be
//! replaced never stops a leaf from being renewed.

use jiff::Timestamp;

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
    /// Two thirds of its life are over.
    Due,
}

/// The caBundle that every webhook of one configuration shall have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The configuration's name.
    pub configuration: String,
    /// What it held and has not expired, and the stored CA.
    pub ca_bundle: Bundle,
}

/// The next step. Total: it has an answer for every view.
#[must_use]
pub fn decide(view: &View, now: Timestamp) -> Step {
    let authority = match &view.stored {
        Stored::Absent => return Step::CreateAuthority,
        Stored::Unreadable(why) => return Step::ReplaceAuthority(ReplaceReason::Unreadable(why.clone())),
        Stored::Present(ca) if ca.validity().expired(now) => return Step::ReplaceAuthority(ReplaceReason::Expired),
        Stored::Present(ca) => ca,
    };
    let unpublished = unpublished(&view.configurations, authority, now);

    match leaf_reason(view.served.as_ref(), authority, now) {
        // A leaf of the CA that is served already is trusted wherever its predecessor is: nothing to wait for.
        Some(LeafReason::Due) => return Step::IssueLeaf(LeafReason::Due),
        Some(reason) if unpublished.is_empty() => return Step::IssueLeaf(reason),
        Some(_) => return Step::PublishBundle(unpublished),
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
    // A leaf that ends with its CA cannot be bettered by that CA: issuing again would be a loop without end.
    let can_last_longer = leaf.validity.not_after < authority.validity().not_after;
    (can_last_longer && now >= leaf.validity.renew_at()).then_some(LeafReason::Due)
}

fn unpublished(configurations: &[Configuration], authority: &Certificate, now: Timestamp) -> Vec<Publication> {
    configurations
        .iter()
        .filter(|configuration| !configuration.bundles.iter().all(|bundle| bundle.holds(authority)))
        .map(|configuration| Publication {
            configuration: configuration.name.clone(),
            ca_bundle: configuration.bundles.iter().fold(Bundle::default(), Bundle::merged).with(authority, now),
        })
        .collect()
}

#[cfg(test)]
#[path = "rotation_tests.rs"]
mod tests;
