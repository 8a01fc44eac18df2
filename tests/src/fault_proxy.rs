//! A proxy between one or two programs and the API server that disturbs chosen requests: it cuts, holds, refuses, or
//! carries out and says nothing.
//!
//! - `asked`: a request as Kubernetes reads it, pure;
//! - `fault`: what is done to the n-th request of a class;
//! - `proxy`: the server, which listens inside of the cluster's network.
//!
//! A program reaches it by plain HTTP with its own token: what is disturbed is the answer, not the encryption. Each
//! program has a door (a port) of its own, so that it is known whose request was disturbed.

// Every error in here is a test's failure.
#![allow(clippy::missing_errors_doc)]

mod asked;
mod fault;
mod proxy;
mod relayed;

pub use asked::Asked;
pub use fault::{Fault, Injected};
pub use proxy::FaultProxy;
pub use relayed::Relayed;
