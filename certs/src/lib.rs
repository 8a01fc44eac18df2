//! The serving certificate of the ayatori webhook: its CA, its issuing and its renewal (spec J2).
//!
//! ```text
//!   Secret (CA) ──► secret ──► Authority ──issue──► Leaf ──► SelfManaged (CertSource) ──► rustls
//!        │                                            │
//!        └──────────────► rotation::decide(view, now) ┴──► one Step, carried out by the server binary
//!
//!   two files ──► files::Watched::look(bytes, now) ──► Pair ──► FromFiles (CertSource) ──► rustls
//! ```
//!
//! Everything here is free of I/O and of a clock: times and bytes are parameters, and the steps that touch the API
//! server (create or replace the Secret, patch a caBundle) are returned as values.

mod authority;
mod bundle;
mod certificate;
mod error;
pub mod files;
mod leaf;
mod lifetimes;
mod pair;
pub mod rotation;
mod secret;
mod source;
#[cfg(test)]
mod testing;
mod validity;

pub use authority::Authority;
pub use bundle::Bundle;
pub use certificate::Certificate;
pub use error::CertError;
pub use leaf::Leaf;
pub use lifetimes::{AUTHORITY_LIFETIME, LEAF_LIFETIME, LifetimeError, Lifetimes, SHORTEST_LEAF};
pub use pair::{Pair, PairError};
pub use secret::{CA_CERT, TLS_CERT, TLS_KEY, authority_from_secret, authority_to_secret};
pub use source::{CertSource, FromFiles, SelfManaged, Unhealthy};
pub use validity::{CLOCK_SKEW, Validity};
