//! The ayatori admission server: TLS accept loop, review envelope, defaulting and validation (spec section 3).
//!
//! ```text
//!   socket → TLS → HTTP ─► endpoint: path, method, type, size, time
//!                           └► review: envelope, uid, panic guard ─► one file a kind ─► Answer
//! ```
//!
//! The transport knows nothing of kinds, a kind nothing of HTTP; between them stand [`Request`] and [`Answer`].

pub mod answer;
mod arrival;
#[cfg(test)]
mod bypass_tests;
pub mod configuration;
mod connection;
mod default_lookup;
mod endpoint;
mod envelope;
mod http2;
mod job_by_class;
mod job_class;
mod job_default;
mod job_update;
mod job_validate;
mod limits;
pub mod lookups;
mod metrics;
mod open_connections;
mod outline;
mod parameters;
mod references;
mod review;
mod server;
#[cfg(test)]
mod testing;
mod time_limit;
mod transport;
mod unchecked_job;
mod warnings;

pub use answer::Answer;
pub use arrival::Arrival;
pub use envelope::{GroupVersionKind, GroupVersionResource, Operation, Request};
pub use job_class::JobClassValidation;
pub use job_default::JobDefaulting;
pub use job_validate::JobValidation;
pub use limits::Limits;
pub use lookups::Lookups;
pub use metrics::Metrics;
pub use parameters::{KubernetesParametersValidation, OpenSandboxParametersValidation};
pub use references::ReferenceChecks;
pub use review::{Review, Reviews, Served, Unreadable};
pub use server::{Handler, Server, ServerError};
pub use transport::{Clients, ClientsError, Transport};
pub use warnings::Warnings;
