//! Fixed inputs of this crate's tests.

use jiff::Timestamp;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, date_time_ymd};

use crate::{AUTHORITY_LIFETIME, Authority};

pub(crate) fn now() -> Timestamp {
    "2030-06-01T12:00:00Z".parse().unwrap()
}

pub(crate) fn authority(made: Timestamp) -> Authority {
    Authority::create(made, AUTHORITY_LIFETIME).unwrap()
}

pub(crate) fn names() -> Vec<String> {
    ["ayatori-webhook.ayatori-system.svc", "127.0.0.1"].map(String::from).to_vec()
}

/// A leaf of `authority` and its key, as PEM: what somebody else's files hold.
pub(crate) fn pem_pair(authority: &Authority) -> (String, String) {
    pem_pair_of(authority, (2030, 2031))
}

/// The same, from the beginning of a year until that of another.
pub(crate) fn pem_pair_of(authority: &Authority, (from, until): (i32, i32)) -> (String, String) {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let mut params = CertificateParams::new(names()).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
    (params.signed_by(&key, authority.issuer()).unwrap().pem(), key.serialize_pem())
}
