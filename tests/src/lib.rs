//! A real Kubernetes on one machine for tests and demos: etcd, API server, controller manager and scheduler, and on
//! request a real node (kubelet, containerd, runc, kube-proxy).
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use ayatori_tests::{Cluster, Options};
//! let cluster = Cluster::start(Options::with_node()).await?;
//! let client = cluster.client().await?;
//! cluster.kubectl().args(["get", "nodes"]).status()?;
//! # Ok(()) }
//! ```
//!
//! Without root there is a control plane but no node: a user namespace is enough for the former.
//!
//! How a cluster lives (each line is a process, started by the line above):
//!
//! * the owner: a test binary, `cargo xtask` or `ayatori-test-cluster`. It holds a pipe; when that closes, because the
//!   owner drops the [`Cluster`], panics or is killed, everything below ends.
//! * [`host`](crate::stage): outside of the namespaces. Makes cgroups, relays a loopback port to the API server,
//!   removes cgroups and data at the end.
//! * `unshare`: makes the network, mount, PID and cgroup namespaces.
//! * `init`: PID 1 inside. Reaps; its end is the end of every process inside.
//! * `parts`: starts etcd, API server and so on and restarts what ends.

pub mod api;
pub mod cargo;
mod cgroups;
mod client;
mod cluster;
mod control_plane;
mod definitions;
mod digest;
mod elf;
mod enter;
pub mod fault_proxy;
mod folder;
mod host;
mod host_process;
mod image;
mod init;
pub mod load;
mod logs;
mod network;
mod node;
mod packages;
mod parts;
mod pki;
mod private_mounts;
pub mod product;
pub mod record;
pub mod registry;
mod relay;
pub mod rows;
pub mod stage;
pub mod suite;
mod supervisor;
pub mod tools;
mod wait;

pub use cluster::{Cluster, Options, Timings};
pub use image::{File, Image};
pub use network::Network;
pub use pki::NODE_NAME;
pub use wait::eventually;
