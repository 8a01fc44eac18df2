#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
//! Admission as users meet it: through a real API server, with our definitions, webhooks and controllers (spec 2 to 4).
//! A control plane is enough, so the suite needs no root.
//!
//! - [`table`]: the cases in `cases/*.yaml`, one theme a file, each with its exact verdict: code, reason, causes,
//!   warnings. [`words`]: what kubectl makes of those that people meet most, in `words/*.txt`. [`unseen`]: what the
//!   webhook refuses ends at the same verdict when no webhook sees it (B10).
//! - [`corpus`]: bad input for every field of the four kinds, in `inputs/`, each with the verdict of the schema alone and
//!   with the webhook. [`reviews`]: what is no good AdmissionReview, in `reviews.yaml`.
//!
//! [`world`] is the cluster; [`manifests`], [`theme`] and [`verdict`] are the words in which the files are written.

mod corpus;
mod manifests;
mod reviews;
mod settled;
mod table;
mod theme;
mod unseen;
mod verdict;
mod words;
mod world;
