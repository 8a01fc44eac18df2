#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
//! The four CustomResourceDefinitions on a real API server (spec section 2).
//!
//! - [`differential`]: the same objects to our definitions and to those that the project started from (A1 to A7), with
//!   the objects in [`cases`], the written list in [`differences`] and our own verdicts in `verdicts.txt`;
//! - [`shapes`]: the fields of both, side by side;
//! - [`updates`]: for every CEL rule an update that it allows and one that it refuses (A3, A4);
//! - [`unlocked`]: a stored status that breaks the rules locks nothing (A4);
//! - [`columns`], [`explain`]: what people see (A8, K0).

use ayatori_tests::api::{fields, kinds, pointer};

mod cases;
mod columns;
mod differences;
mod differential;
mod explain;
mod server;
mod shapes;
mod unlocked;
mod updates;
