//! Where the server takes its certificate from, at every handshake anew.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::Leaf;

/// A source of the serving certificate (spec J2). The server asks its resolver at every handshake, so a renewed
/// certificate needs neither a restart nor a new listener.
pub trait CertSource: fmt::Debug + Send + Sync {
    /// What rustls asks for the certificate. Without one it aborts the handshake.
    fn resolver(&self) -> Arc<dyn ResolvesServerCert>;

    /// Whether a certificate is served that clients can accept at `now`.
    ///
    /// # Errors
    /// Why not.
    fn healthy(&self, now: Timestamp) -> Result<(), Unhealthy>;
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
}

/// The self-managed source: serves the leaf that it was given last.
#[derive(Debug, Clone, Default)]
pub struct SelfManaged {
    slot: Arc<Slot>,
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
        Arc::<Slot>::clone(&self.slot)
    }

    fn healthy(&self, now: Timestamp) -> Result<(), Unhealthy> {
        let validity = self.served().ok_or(Unhealthy::NoCertificate)?.validity();
        if validity.expired(now) { Err(Unhealthy::Expired(validity.not_after)) } else { Ok(()) }
    }
}

/// The one place where the served leaf lives, shared by the source and the resolver.
#[derive(Debug, Default)]
struct Slot(ArcSwapOption<Leaf>);

impl ResolvesServerCert for Slot {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load().as_ref().map(|leaf| leaf.certified_key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LEAF_LIFETIME;
    use crate::testing::{authority, names, now};

    #[test]
    fn a_source_is_healthy_exactly_while_its_leaf_holds() {
        let source = SelfManaged::default();
        assert_eq!(source.healthy(now()), Err(Unhealthy::NoCertificate));

        source.serve(authority(now()).issue(&names(), now(), LEAF_LIFETIME).unwrap());
        let end = now() + LEAF_LIFETIME;
        assert_eq!(source.healthy(now()), Ok(()));
        assert_eq!(source.healthy(end), Err(Unhealthy::Expired(end)));
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
}
