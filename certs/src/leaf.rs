//! The serving certificate, signed by the CA.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::authority::params;
use crate::{Authority, CertError, Certificate, Pair, Validity};

/// A serving certificate with its key, ready for rustls. `Debug` shows times only.
#[derive(Clone)]
pub struct Leaf {
    pair: Pair,
    signer: Certificate,
}

impl Leaf {
    /// When it holds.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.pair.validity()
    }

    /// The leaf's own certificate.
    #[must_use]
    pub fn certificate(&self) -> &Certificate {
        self.pair.certificate()
    }

    /// Signs itself for `names` (DNS names and IP addresses, as text), from at most [`crate::CLOCK_SKEW`] before `now` until
    /// `lifetime` after it: for a server whose clients were told of no CA.
    ///
    /// # Errors
    /// When `names` is empty or holds something that no certificate can carry, or signing fails.
    pub fn self_signed(names: &[String], now: Timestamp, lifetime: SignedDuration) -> Result<Self, CertError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let signed = serving_params(names, &Validity::starting(now, lifetime))?.self_signed(&key)?;
        let pair = pair(signed, &key)?;
        Ok(Self { signer: pair.certificate().clone(), pair })
    }

    /// The certificate that signed it: the CA's, or its own.
    #[must_use]
    pub fn signer(&self) -> &Certificate {
        &self.signer
    }
}

impl AsRef<Pair> for Leaf {
    fn as_ref(&self) -> &Pair {
        &self.pair
    }
}

impl fmt::Debug for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaf").field("validity", &self.validity()).field("signer", &self.signer).finish_non_exhaustive()
    }
}

impl Authority {
    /// Signs a new key for `names` (DNS names and IP addresses, as text), from at most [`crate::CLOCK_SKEW`] before `now` until
    /// `lifetime` after it, but no longer than the CA itself lives: a leaf that outlives its CA only looks valid.
    ///
    /// # Errors
    /// When `names` is empty or holds something that no certificate can carry, or signing fails.
    pub fn issue(&self, names: &[String], now: Timestamp, lifetime: SignedDuration) -> Result<Leaf, CertError> {
        let ca = self.certificate().validity();
        let mut times = Validity::starting(now, lifetime);
        times.not_before = times.not_before.max(ca.not_before);
        times.not_after = times.not_after.min(ca.not_after);

        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = serving_params(names, &times)?;
        // Two CAs of ours share their subject: the key identifier tells clients which one to try.
        params.use_authority_key_identifier_extension = true;
        let pair = pair(params.signed_by(&key, self.issuer())?, &key)?;
        Ok(Leaf { pair, signer: self.certificate().clone() })
    }
}

/// A certificate that serves under `names` and does nothing else.
fn serving_params(names: &[String], times: &Validity) -> Result<CertificateParams, CertError> {
    let mut params = params(times, names.first().ok_or(CertError::NoNames)?)?;
    params.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

fn pair(signed: rcgen::Certificate, key: &KeyPair) -> Result<Pair, CertError> {
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(|_| CertError::PrivateKey("the new leaf"))?;
    Pair::new(vec![CertificateDer::from(signed)], key).map_err(|error| CertError::Signing(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use x509_parser::extensions::GeneralName;

    use super::*;
    use crate::testing::{authority, names, now};
    use crate::{AUTHORITY_LIFETIME, CLOCK_SKEW, LEAF_LIFETIME};

    #[test]
    fn a_leaf_begins_an_hour_ago_and_lives_its_lifetime() {
        let leaf = authority(now() - CLOCK_SKEW).issue(&names(), now(), LEAF_LIFETIME).unwrap();
        assert_eq!(leaf.validity(), Validity { not_before: now() - CLOCK_SKEW, not_after: now() + LEAF_LIFETIME });
    }

    #[test]
    fn one_that_signs_itself_serves_under_its_names_and_is_no_authority() {
        let leaf = Leaf::self_signed(&names(), now(), LEAF_LIFETIME).unwrap();
        assert_eq!(leaf.validity(), Validity { not_before: now() - CLOCK_SKEW, not_after: now() + LEAF_LIFETIME });
        assert_eq!(leaf.signer(), leaf.certificate());
        let (_, parsed) = x509_parser::parse_x509_certificate(leaf.certificate().der()).unwrap();
        assert!(!parsed.is_ca() && parsed.verify_signature(None).is_ok());
        let said = parsed.subject_alternative_name().unwrap().unwrap().value.general_names.len();
        assert_eq!(said, names().len());
        assert_eq!(Leaf::self_signed(&[], now(), LEAF_LIFETIME).unwrap_err(), CertError::NoNames);
    }

    #[test]
    fn a_leaf_never_outlives_its_authority_and_never_begins_before_it() {
        let authority = authority(now());
        let late = now() + AUTHORITY_LIFETIME - SignedDuration::from_hours(24);
        let leaf = authority.issue(&names(), late, LEAF_LIFETIME).unwrap();
        assert_eq!(leaf.validity().not_after, authority.certificate().validity().not_after);

        let leaf = authority.issue(&names(), now() - CLOCK_SKEW, LEAF_LIFETIME).unwrap();
        assert_eq!(leaf.validity().not_before, authority.certificate().validity().not_before);
    }

    #[test]
    fn a_leaf_carries_its_names_and_serves_only() {
        let leaf = authority(now()).issue(&names(), now(), LEAF_LIFETIME).unwrap();
        let (_, parsed) = x509_parser::parse_x509_certificate(leaf.certificate().der()).unwrap();
        assert!(!parsed.is_ca());
        let usage = parsed.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.server_auth && !usage.client_auth && !usage.any);
        let alternatives = &parsed.subject_alternative_name().unwrap().unwrap().value.general_names;
        let local: IpAddr = "127.0.0.1".parse().unwrap();
        let IpAddr::V4(octets) = local else { unreachable!() };
        assert_eq!(
            alternatives.as_slice(),
            [GeneralName::DNSName("ayatori-webhook.ayatori-system.svc"), GeneralName::IPAddress(&octets.octets())]
        );
    }

    #[test]
    fn a_leaf_for_no_name_is_refused() {
        assert_eq!(authority(now()).issue(&[], now(), LEAF_LIFETIME).unwrap_err(), CertError::NoNames);
    }

    #[test]
    fn a_leaf_of_an_authority_read_from_pem_names_it_as_signer() {
        let made = authority(now());
        let read = Authority::from_pem(made.certificate_pem().as_bytes(), made.key_pem().as_bytes()).unwrap();
        let leaf = read.issue(&names(), now(), LEAF_LIFETIME).unwrap();
        assert_eq!(leaf.signer(), made.certificate());
        let (_, ca) = x509_parser::parse_x509_certificate(made.certificate().der()).unwrap();
        let (_, parsed) = x509_parser::parse_x509_certificate(leaf.certificate().der()).unwrap();
        assert_eq!(parsed.issuer(), ca.subject());
    }

    #[test]
    fn debug_shows_times_only() {
        let shown = format!("{:?}", authority(now()).issue(&names(), now(), LEAF_LIFETIME).unwrap());
        assert!(shown.starts_with("Leaf { validity: Validity {"), "{shown}");
        assert!(!shown.contains("key"), "{shown}");
    }
}
