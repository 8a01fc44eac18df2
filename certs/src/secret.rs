//! The CA as the data of a `kubernetes.io/tls` Secret, under the keys that cert-manager uses.

use std::collections::BTreeMap;

use crate::{Authority, CertError};

/// Key of the certificate.
pub const TLS_CERT: &str = "tls.crt";
/// Key of the private key.
pub const TLS_KEY: &str = "tls.key";
/// Key of the certificate to trust; of a self-signed CA that is the certificate itself.
pub const CA_CERT: &str = "ca.crt";

/// Reads the CA of a Secret's data.
///
/// # Errors
/// When an entry is absent or unreadable, or certificate and key do not make a CA.
pub fn authority_from_secret(data: &BTreeMap<String, Vec<u8>>) -> Result<Authority, CertError> {
    let entry = |key: &'static str| data.get(key).ok_or(CertError::MissingEntry(key));
    Authority::from_pem(entry(TLS_CERT)?, entry(TLS_KEY)?)
}

/// The data of the Secret that holds `authority`.
#[must_use]
pub fn authority_to_secret(authority: &Authority) -> BTreeMap<String, Vec<u8>> {
    let certificate = || authority.certificate_pem().as_bytes().to_vec();
    [(TLS_CERT, certificate()), (TLS_KEY, authority.key_pem().into_bytes()), (CA_CERT, certificate())]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{authority, now};

    #[test]
    fn an_authority_survives_the_way_through_a_secret() {
        let made = authority(now());
        let data = authority_to_secret(&made);
        assert_eq!(data.keys().collect::<Vec<_>>(), ["ca.crt", "tls.crt", "tls.key"]);
        let read = authority_from_secret(&data).unwrap();
        assert_eq!(read.certificate(), made.certificate());
        assert_eq!(read.key_pem(), made.key_pem());
    }

    #[test]
    fn an_absent_entry_is_named() {
        let mut data = authority_to_secret(&authority(now()));
        data.remove(TLS_KEY);
        assert_eq!(authority_from_secret(&data).unwrap_err(), CertError::MissingEntry("tls.key"));
        assert_eq!(authority_from_secret(&BTreeMap::new()).unwrap_err(), CertError::MissingEntry("tls.crt"));
    }
}
