//! The Kubernetes adapter: a native `batch/v1` Job in the same namespace (spec D3).

mod client;
mod left_behind;
pub mod leftovers;
pub mod limit;
pub mod objects;
pub mod observe;
mod refused_pods;
pub mod render;
mod send;
mod silence;
mod start_failure;
mod verdict;
mod waiting;
mod words;

pub use client::KubernetesBackend;
