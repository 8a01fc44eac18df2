//! The certificates that a webhook configuration's `caBundle` tells the API server to trust.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use crate::Certificate;

/// A list of trusted certificates, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bundle(Vec<Certificate>);

impl Bundle {
    /// Reads a `caBundle`. Whatever is no certificate is passed over.
    #[must_use]
    pub fn from_pem(pem: &[u8]) -> Self {
        Self(Certificate::all_from_pem(pem))
    }

    /// Whether `certificate` is trusted.
    #[must_use]
    pub fn holds(&self, certificate: &Certificate) -> bool {
        self.0.contains(certificate)
    }

    /// How many are trusted.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All that both trust, once each; those of `self` first.
    #[must_use]
    pub fn merged(mut self, other: &Self) -> Self {
        for certificate in &other.0 {
            self.push(certificate);
        }
        self
    }

    /// The bundle that also trusts `certificate`. What was trusted stays, as other replicas may still serve a leaf
    /// of the former CA; only what expired a while ago goes, so that the list does not grow for ever.
    #[must_use]
    pub fn with(mut self, certificate: &Certificate, now: Timestamp) -> Self {
        self.0.retain(|held| !held.validity().long_expired(now));
        self.push(certificate);
        self
    }

    /// The bundle as PEM, ready for `caBundle`.
    #[must_use]
    pub fn to_pem(&self) -> Vec<u8> {
        to_pem(&self.0).into_bytes()
    }

    fn push(&mut self, certificate: &Certificate) {
        if !self.holds(certificate) {
            self.0.push(certificate.clone());
        }
    }
}

/// Certificates as PEM, 64 characters a line as RFC 7468 wants.
pub(crate) fn to_pem(certificates: &[Certificate]) -> String {
    let mut text = String::new();
    for certificate in certificates {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = STANDARD.encode(certificate.der());
        for line in encoded.as_bytes().chunks(64) {
            text.extend(line.iter().copied().map(char::from));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{authority, now};
    use crate::{AUTHORITY_LIFETIME, Authority, CLOCK_SKEW};

    fn certificate() -> Certificate {
        authority(now()).certificate().clone()
    }

    #[test]
    fn a_bundle_survives_the_way_through_pem() {
        let bundle = Bundle(vec![certificate(), certificate()]);
        assert_eq!(Bundle::from_pem(&bundle.to_pem()), bundle);
    }

    #[test]
    fn a_new_authority_joins_the_one_that_was_trusted() {
        let (old, new) = (certificate(), certificate());
        assert_eq!(Bundle(vec![old.clone()]).with(&new, now()), Bundle(vec![old, new]));
    }

    #[test]
    fn adding_twice_is_adding_once() {
        let new = certificate();
        let once = Bundle::default().with(&new, now());
        assert_eq!(once.clone().with(&new, now()), once);
        assert!(once.holds(&new) && !once.holds(&certificate()));
    }

    #[test]
    fn an_expired_authority_leaves_when_the_next_one_joins() {
        let old = Authority::create(now() - AUTHORITY_LIFETIME, AUTHORITY_LIFETIME).unwrap();
        let (old, new) = (old.certificate().clone(), certificate());
        let both = Bundle(vec![old.clone(), new.clone()]);
        assert_eq!(Bundle(vec![old.clone()]).with(&new, now()), both, "some clock is behind ours");
        assert_eq!(Bundle(vec![old]).with(&new, now() + CLOCK_SKEW), Bundle(vec![new]));
    }

    #[test]
    fn merging_keeps_each_certificate_once() {
        let (one, two) = (certificate(), certificate());
        let merged = Bundle(vec![one.clone()]).merged(&Bundle(vec![one.clone(), two.clone()]));
        assert_eq!(merged, Bundle(vec![one, two]));
    }
}
