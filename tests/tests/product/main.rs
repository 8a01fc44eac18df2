#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
//! ayatori as a whole: its binary, with the rights that `deploy/` gives it, on a real Kubernetes with a node.
//!
//! What the suite stands on is in the library ([`ayatori_tests::product`]).
//!
//! The tests, by the section of the contract that they hold (spec 3 to 10, and the matrix of 13).

mod at_most_once;
mod cancel;
mod classes;
mod deadline;
mod defaults;
mod deletion;
mod ends;
mod events;
mod foreign_hands;
mod life;
mod literal;
mod metrics;
mod missing_references;
mod pinned_class;
mod pod_security;
mod policy;
mod protection;
mod references;
mod refusals;
mod refused_pods;
mod rulings;
mod settings;
mod stalled;
mod start;
mod third_party_webhook;
mod ttl;
mod user_roles;
mod waiting;
mod webhook_away;
