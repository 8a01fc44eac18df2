//! Where the server takes its certificate from, at every handshake anew.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::{Leaf, Pair, Validity};

/// A source of the serving certificate (spec J2). The server asks its resolver at every handshake, so a renewed
/// certificate needs neither a restart nor a new listener.
pub trait CertSource: fmt::Debug + Send + Sync {
    /// What rustls asks for the certificate. Without one it aborts the handshake.
    fn resolver(&self) -> Arc<dyn ResolvesServerCert>;

    /// When the certificate that is served now holds; `None` where there is none.
    fn validity(&self) -> Option<Validity>;

    /// Whether a certificate is served that clients can accept at `now`.
    ///
    /// # Errors
    /// Why not.
    fn healthy(&self, now: Timestamp) -> Result<(), Unhealthy> {
        match self.validity() {
            None => Err(Unhealthy::NoCertificate),
            Some(validity) if validity.expired(now) => Err(Unhealthy::Expired(validity.not_after)),
            Some(validity) if validity.not_yet(now) => Err(Unhealthy::NotYetValid(validity.not_before)),
            Some(_) => Ok(()),
        }
    }
}

/// Why a source cannot serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unhealthy {
    /// Nothing was loaded or issued yet.
    #[error("no certificate is loaded")]
    NoCertificate,
    /// The certificate ended and no successor came.
    #[error("the certificate expired at {0}")]
    Expired(Timestamp),
    /// The certificate's maker and we do not agree about the time.
    #[error("the certificate is not valid before {0}")]
    NotYetValid(Timestamp),
}

/// The self-managed source: serves the leaf that it was given last.
#[derive(Debug, Clone, Default)]
pub struct SelfManaged {
    slot: Arc<Slot<Leaf>>,
}

impl SelfManaged {
    /// Serves `leaf` from the next handshake on; open connections keep what they have.
    pub fn serve(&self, leaf: Leaf) {
        self.slot.0.store(Some(Arc::new(leaf)));
    }

    /// The leaf that is served now.
    #[must_use]
    pub fn served(&self) -> Option<Arc<Leaf>> {
        self.slot.0.load_full()
    }
}

impl CertSource for SelfManaged {
    fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        Arc::<Slot<Leaf>>::clone(&self.slot)
    }

    fn validity(&self) -> Option<Validity> {
        self.slot.validity()
    }
}

/// The source of certificates that others make: serves the pair that it was given last.
#[derive(Debug, Clone, Default)]
pub struct FromFiles {
    slot: Arc<Slot<Pair>>,
}

impl FromFiles {
    /// Serves `pair` from the next handshake on; open connections keep what they have.
    pub fn serve(&self, pair: Pair) {
        self.slot.0.store(Some(Arc::new(pair)));
    }
}

impl CertSource for FromFiles {
    fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        Arc::<Slot<Pair>>::clone(&self.slot)
    }

    fn validity(&self) -> Option<Validity> {
        self.slot.validity()
    }
}

/// The one place where what is served lives, shared by the source and the resolver.
struct Slot<T>(ArcSwapOption<T>);

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self(ArcSwapOption::empty())
    }
}

impl<T: AsRef<Pair>> Slot<T> {
    fn validity(&self) -> Option<Validity> {
        self.0.load().as_deref().map(|held| held.as_ref().validity())
    }
}

impl<T: AsRef<Pair>> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Slot").field(&self.validity()).finish()
    }
}

impl<T: AsRef<Pair> + Send + Sync> ResolvesServerCert for Slot<T> {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load().as_deref().map(|held| held.as_ref().certified_key())
    }
}

impl AsRef<Pair> for Pair {
    fn as_ref(&self) -> &Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::LEAF_LIFETIME;
    use crate::testing::{authority, names, now, pem_pair};

    #[test]
    fn a_source_is_healthy_exactly_while_its_leaf_holds() {
        let source = SelfManaged::default();
        assert_eq!(source.healthy(now()), Err(Unhealthy::NoCertificate));

        source.serve(authority(now()).issue(&names(), now(), LEAF_LIFETIME).unwrap());
        let Validity { not_before, not_after } = source.validity().unwrap();
        assert_eq!(source.healthy(now()), Ok(()));
        assert_eq!(source.healthy(not_after), Err(Unhealthy::Expired(not_after)));
        let early = not_before - SignedDuration::from_secs(1);
        assert_eq!(source.healthy(early), Err(Unhealthy::NotYetValid(not_before)));
    }

    #[test]
    fn the_last_leaf_given_is_the_one_served() {
        let (source, authority) = (SelfManaged::default(), authority(now()));
        let clone = source.clone();
        for _ in 0..2 {
            let leaf = authority.issue(&names(), now(), LEAF_LIFETIME).unwrap();
            source.serve(leaf.clone());
            assert_eq!(clone.served().unwrap().certificate(), leaf.certificate());
        }
    }

    #[test]
    fn a_pair_from_files_is_served_and_judged_by_its_own_times() {
        let source = FromFiles::default();
        assert_eq!(source.healthy(now()), Err(Unhealthy::NoCertificate));
        let (certificate, key) = pem_pair(&authority(now()));
        let pair = Pair::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        source.serve(pair.clone());
        assert_eq!(source.validity(), Some(pair.validity()));
        assert_eq!(source.healthy(now()), Ok(()));
        assert_eq!(source.healthy(pair.validity().not_after), Err(Unhealthy::Expired(pair.validity().not_after)));
    }

    #[test]
    fn debug_shows_times_only() {
        let source = SelfManaged::default();
        source.serve(authority(now()).issue(&names(), now(), LEAF_LIFETIME).unwrap());
        let shown = format!("{source:?}");
        assert!(shown.contains("not_after") && !shown.to_lowercase().contains("key"), "{shown}");
    }
}
