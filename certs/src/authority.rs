//! The CA: a self-signed ECDSA P-256 certificate and its key, which signs the leaves of every replica.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256,
};
use x509_parser::time::ASN1Time;

use crate::{CertError, Certificate, Validity};

/// A CA certificate with its private key. `Debug` shows the certificate's times only.
pub struct Authority {
    certificate: Certificate,
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes a CA that holds from at most [`crate::CLOCK_SKEW`] before `now` until `lifetime` after it.
    ///
    /// # Errors
    /// When no key can be made or signing fails.
    pub fn create(now: Timestamp, lifetime: SignedDuration) -> Result<Self, CertError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = params(&Validity::starting(now, lifetime), "ayatori webhook CA")?;
        // Path length 0: it signs leaves, never another CA.
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?;
        Self::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes())
    }

    /// Reads a CA from the PEM texts of its certificate (the first one counts) and its PKCS #8 key.
    ///
    /// # Errors
    /// When either cannot be read, the certificate is no CA, or the key is another one's.
    pub fn from_pem(certificate_pem: &[u8], key_pem: &[u8]) -> Result<Self, CertError> {
        let unreadable = || CertError::Certificate(crate::TLS_CERT);
        let certificate = Certificate::all_from_pem(certificate_pem).into_iter().next().ok_or_else(unreadable)?;
        let key = std::str::from_utf8(key_pem).ok().and_then(|text| KeyPair::from_pem(text).ok());
        let key = key.ok_or(CertError::PrivateKey(crate::TLS_KEY))?;

        let (_, parsed) = x509_parser::parse_x509_certificate(certificate.der()).map_err(|_| unreadable())?;
        if !parsed.is_ca() {
            return Err(CertError::NotAuthority);
        }
        if parsed.public_key().subject_public_key.data != key.public_key_raw() {
            return Err(CertError::KeyMismatch);
        }
        let issuer = Issuer::from_ca_cert_der(&certificate.der().into(), key)?;
        let certificate_pem = crate::bundle::to_pem(std::slice::from_ref(&certificate));
        Ok(Self { certificate, certificate_pem, issuer })
    }

    /// The CA certificate, which clients are told to trust.
    #[must_use]
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The CA certificate as PEM.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The private key as PKCS #8 PEM. For the Secret only.
    #[must_use]
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    pub(crate) fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.issuer
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// What CA and leaf have in common. rcgen's own default holds from 1975 to 4096.
pub(crate) fn params(validity: &Validity, common_name: &str) -> Result<CertificateParams, CertError> {
    // rcgen panics on a year that X.509 cannot write; the calendar of `Timestamp` itself ends before the year 10000.
    let time = |time: Timestamp| match ASN1Time::from_timestamp(time.max(Timestamp::UNIX_EPOCH).as_second()) {
        Ok(time) => Ok(time.to_datetime()),
        Err(error) => Err(CertError::Signing(error.to_string())),
    };
    let mut params = CertificateParams::default();
    params.not_before = time(validity.not_before)?;
    params.not_after = time(validity.not_after)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{authority, now};
    use crate::{AUTHORITY_LIFETIME, CLOCK_SKEW, LEAF_LIFETIME};

    #[test]
    fn a_new_authority_begins_an_hour_ago_and_lives_its_lifetime() {
        let validity = authority(now()).certificate().validity();
        assert_eq!(validity.not_before, now() - CLOCK_SKEW);
        assert_eq!(validity.not_after, now() + AUTHORITY_LIFETIME);
    }

    #[test]
    fn a_short_life_begins_a_tenth_of_it_ago_and_is_not_due_at_once() {
        let lifetime = SignedDuration::from_secs(20);
        let validity = Authority::create(now(), lifetime).unwrap().certificate().validity();
        assert_eq!(validity.not_before, now() - SignedDuration::from_secs(2));
        let early = now().duration_until(validity.renew_at());
        assert!(early > lifetime / 2 && early < lifetime * 2 / 3, "{early}");
    }

    #[test]
    fn an_authority_survives_the_way_through_pem() {
        let made = authority(now());
        let read = Authority::from_pem(made.certificate_pem().as_bytes(), made.key_pem().as_bytes()).unwrap();
        assert_eq!(read.certificate(), made.certificate());
        assert_eq!(read.key_pem(), made.key_pem());
    }

    #[test]
    fn another_authoritys_key_is_refused() {
        let (one, two) = (authority(now()), authority(now()));
        let error = Authority::from_pem(one.certificate_pem().as_bytes(), two.key_pem().as_bytes()).unwrap_err();
        assert_eq!(error, CertError::KeyMismatch);
    }

    #[test]
    fn a_leaf_is_no_authority() {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let leaf = params(&Validity::starting(now(), LEAF_LIFETIME), "leaf").unwrap().self_signed(&key).unwrap();
        let error = Authority::from_pem(leaf.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap_err();
        assert_eq!(error, CertError::NotAuthority);
    }

    #[test]
    fn text_that_is_no_pem_is_refused_by_name() {
        let made = authority(now());
        assert_eq!(Authority::from_pem(b"x", b"y").unwrap_err(), CertError::Certificate("tls.crt"));
        let error = Authority::from_pem(made.certificate_pem().as_bytes(), b"\xff").unwrap_err();
        assert_eq!(error, CertError::PrivateKey("tls.key"));
    }

    #[test]
    fn debug_shows_no_key() {
        let made = authority(now());
        let key: String = made.key_pem().lines().nth(1).unwrap().to_owned();
        assert!(!format!("{made:?}").contains(&key));
    }

    #[test]
    fn a_lifetime_beyond_the_calendar_ends_with_the_calendar() {
        let last = Authority::create(now(), SignedDuration::MAX).unwrap();
        assert_eq!(last.certificate().validity().not_after.as_second(), Timestamp::MAX.as_second());
        let first = Authority::create(Timestamp::MIN, AUTHORITY_LIFETIME).unwrap();
        assert_eq!(first.certificate().validity().not_before, Timestamp::UNIX_EPOCH);
    }
}
