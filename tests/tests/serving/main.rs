#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
//! The webhook under load (spec B9, J2, J3): the binary in two replicas, on a real control plane. Needs no node, and so no
//! root.
//!
//! What is asked comes from `ayatori-webhook-client`, which works inside of the cluster's network as API servers do
//! ([`ayatori_tests::load`]).

mod client;
mod files;
mod rolling_stop;
mod rotation;
mod site;
mod slow_clients;
mod volume;
