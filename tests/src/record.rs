//! Every version of every Job of a cluster, checked as it is written: an invariant that is broken for a moment and
//! mended by the next write does not show at the end of a test.
//!
//! - `invariants`: what may follow on what, pure;
//! - `history`: the versions in their order, and what they broke, pure;
//! - `recorder`: the watch that feeds it.

// Every error in here is a test's failure.
#![allow(clippy::missing_errors_doc)]

mod history;
pub mod invariants;
mod recorder;

pub use invariants::Invariant;
pub use recorder::Recorder;
