//! For suites: the four kinds as plain JSON, and plain requests to an API server. What is sent may be wrong on purpose,
//! so nothing here goes through the types.

// Every error in here is a test's failure.
#![allow(clippy::missing_errors_doc)]

pub mod fields;
pub mod kinds;
pub mod pointer;
pub mod requests;
pub mod usable_classes;
