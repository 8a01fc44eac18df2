//! A certificate chain with its private key, as rustls serves it.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::{Certificate, Validity};

/// A serving certificate, the intermediates that lead to its CA, and its key. `Debug` shows times only.
#[derive(Clone)]
pub struct Pair {
    key: Arc<CertifiedKey>,
    certificate: Certificate,
}

/// Why two PEM texts make no pair. No variant ever carries key material.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// Nothing to serve.
    #[error("the certificate file holds no certificate in PEM")]
    NoCertificate,
    /// One of the chain, counted from 1.
    #[error("certificate {0} of the certificate file cannot be read")]
    BrokenCertificate(usize),
    /// Nothing to sign with.
    #[error("the key file holds no private key in PEM (PKCS #8, PKCS #1 or SEC 1)")]
    NoKey,
    /// An algorithm or a size that TLS here does not take, or a damaged key.
    #[error(
        "the private key cannot be used: it must be an RSA key of 2048 bits or more, ECDSA P-256 or P-384, or Ed25519"
    )]
    UnusableKey,
    /// Halves of two pairs.
    #[error("the private key does not belong to the first certificate")]
    Mismatch,
}

impl Pair {
    /// Reads a chain, the serving certificate first, and its key. Unlike a caBundle, a chain with one unreadable
    /// certificate is refused whole: clients would get it as it is.
    ///
    /// # Errors
    /// What is missing, unreadable, or does not belong together.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, PairError> {
        let mut chain = Vec::new();
        for der in CertificateDer::pem_slice_iter(certificates) {
            chain.push(der.map_err(|_: pem::Error| PairError::BrokenCertificate(chain.len() + 1))?);
        }
        if chain.is_empty() {
            return Err(PairError::NoCertificate);
        }
        if let Some(broken) = chain.iter().position(|der| Certificate::from_der(der).is_none()) {
            return Err(PairError::BrokenCertificate(broken + 1));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| PairError::NoKey)?;
        Self::new(chain, key)
    }

    pub(crate) fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, PairError> {
        let first = chain.first().ok_or(PairError::NoCertificate)?;
        let certificate = Certificate::from_der(first).ok_or(PairError::BrokenCertificate(1))?;
        let key = CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => PairError::Mismatch,
            _ => PairError::UnusableKey,
        })?;
        Ok(Self { key: Arc::new(key), certificate })
    }

    /// The serving certificate, without its intermediates.
    #[must_use]
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// When the serving certificate holds.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.certificate.validity()
    }

    pub(crate) fn certified_key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.key)
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("validity", &self.validity()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{authority, now, pem_pair};

    #[test]
    fn a_chain_is_served_whole_and_its_first_certificate_is_the_one_that_counts() {
        let ca = authority(now());
        let (certificate, key) = pem_pair(&ca);
        let chain = format!("{certificate}{}", ca.certificate_pem());
        let pair = Pair::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
        assert_eq!(pair.certificate(), &Certificate::all_from_pem(certificate.as_bytes())[0]);
        assert_eq!(pair.certified_key().cert.len(), 2);
        assert_eq!(pair.certified_key().cert[1].as_ref(), ca.certificate().der());
    }

    #[test]
    fn what_is_wrong_with_a_pair_is_said() {
        let ca = authority(now());
        let ((certificate, key), (_, another)) = (pem_pair(&ca), pem_pair(&ca));
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let cut = &certificate[..certificate.len() / 2];
        for (certificates, key, error) in [
            ("", key.as_str(), PairError::NoCertificate),
            (key.as_str(), key.as_str(), PairError::NoCertificate),
            (broken, key.as_str(), PairError::BrokenCertificate(1)),
            (cut, key.as_str(), PairError::BrokenCertificate(1)),
            (&format!("{certificate}{broken}"), key.as_str(), PairError::BrokenCertificate(2)),
            (certificate.as_str(), "", PairError::NoKey),
            (certificate.as_str(), certificate.as_str(), PairError::NoKey),
            (certificate.as_str(), another.as_str(), PairError::Mismatch),
            (
                certificate.as_str(),
                "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
                PairError::UnusableKey,
            ),
        ] {
            assert_eq!(Pair::from_pem(certificates.as_bytes(), key.as_bytes()).unwrap_err(), error);
        }
    }

    #[test]
    fn debug_shows_times_only() {
        let (certificate, key) = pem_pair(&authority(now()));
        let shown = format!("{:?}", Pair::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap());
        assert!(shown.starts_with("Pair { validity: Validity {") && !shown.contains("key"), "{shown}");
    }
}
