//! The Kubernetes adapter: a native `batch/v1` Job in the same namespace (spec D3).

mod client;
pub mod leftovers;
pub mod objects;
mod observe;
pub mod render;
mod verdict;
mod waiting;

pub use client::KubernetesBackend;
