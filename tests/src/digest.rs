//! SHA-256 in hex: names image layers and versions of tools.

use std::fmt::Write;

use ring::digest::{SHA256, digest};

/// The SHA-256 of `data` in lower-case hex (64 digits).
pub(crate) fn sha256_hex(data: &[u8]) -> String {
    digest(&SHA256, data).as_ref().iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
