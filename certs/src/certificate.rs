//! The public side of a certificate: its bytes and its times.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::Validity;

/// One X.509 certificate without its key. Two are equal when their DER bytes are.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    der: Arc<[u8]>,
    validity: Validity,
}

impl Certificate {
    /// Reads DER bytes; `None` when they are no X.509 certificate.
    #[must_use]
    pub fn from_der(der: &[u8]) -> Option<Self> {
        let (rest, parsed) = x509_parser::parse_x509_certificate(der).ok()?;
        let times = parsed.validity();
        let time = |time: &x509_parser::time::ASN1Time| Timestamp::from_second(time.timestamp()).ok();
        let validity = Validity { not_before: time(&times.not_before)?, not_after: time(&times.not_after)? };
        rest.is_empty().then(|| Self { der: der.into(), validity })
    }

    /// Every readable certificate of a PEM text, in order. Whatever else stands there is passed over: a caBundle
    /// may hold anything, and a view of it must not fail.
    #[must_use]
    pub fn all_from_pem(pem: &[u8]) -> Vec<Self> {
        CertificateDer::pem_slice_iter(pem).filter_map(|der| Self::from_der(der.ok()?.as_ref())).collect()
    }

    /// The DER bytes.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// From when until when it holds.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.validity
    }
}

#[cfg(test)]
impl Certificate {
    /// One that stands for a real one where only its times count, and which one it is.
    pub(crate) fn made_up(id: u64, validity: Validity) -> Self {
        Self { der: id.to_be_bytes().as_slice().into(), validity }
    }
}

/// Times only: the bytes say nothing to a reader.
impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("validity", &self.validity).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{authority, now};

    #[test]
    fn pem_text_gives_its_certificates_in_order_and_passes_over_the_rest() {
        let (one, two) = (authority(now()), authority(now()));
        let text = format!(
            "a comment\n{}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n{}{}",
            one.certificate_pem(),
            one.key_pem(),
            two.certificate_pem()
        );
        assert_eq!(Certificate::all_from_pem(text.as_bytes()), [one.certificate().clone(), two.certificate().clone()]);
    }

    #[test]
    fn garbage_gives_no_certificate() {
        assert!(Certificate::all_from_pem(b"\xff\x00 -----BEGIN CERTIFICATE-----").is_empty());
        assert!(Certificate::from_der(b"").is_none());
    }

    #[test]
    fn bytes_behind_the_certificate_make_it_unreadable() {
        let mut der = authority(now()).certificate().der().to_vec();
        der.push(0);
        assert!(Certificate::from_der(&der).is_none());
    }
}
