#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
//! ayatori as a whole: its binary, with the rights that `deploy/` gives it, on a real Kubernetes with a node.
//!
//! What the suite stands on:
//! - [`binary`], [`installation`], [`process`]: the binary of this build, what `deploy/` gives it, and one running;
//! - [`shared`]: the one cluster with one ayatori that most tests share, and a namespace for each;
//! - [`scene`]: what a test does in its namespace; [`jobs`]: manifests and what is read off a Job; [`audit`]: what the
//!   API server says was done; [`kubectl`]: what people see;
//! - [`own`]: a second cluster for the tests that kill ayatori or stop its webhook, one at a time.
//!
//! The tests, by the section of the contract that they hold (spec 3 to 10, and the matrix of 13).

mod audit;
mod binary;
mod installation;
mod jobs;
mod kubectl;
mod own;
mod process;
mod scene;
mod shared;

mod at_most_once;
mod cancel;
mod classes;
mod deadline;
mod defaults;
mod deletion;
mod ends;
mod foreign_hands;
mod life;
mod literal;
mod pinned_class;
mod pod_security;
mod refusals;
mod start;
mod ttl;
mod waiting;
mod webhook_away;
