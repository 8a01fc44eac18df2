//! Fixed inputs of this crate's tests.

use jiff::Timestamp;

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
