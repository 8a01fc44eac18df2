//! Settings of the adapters (spec A6): one kind an adapter, cluster-scoped, written by administrators.

mod kubernetes;
mod opensandbox;

pub use kubernetes::{KubernetesExecutionParameters, KubernetesExecutionParametersSpec, PullPolicy, Scheduling};
pub use opensandbox::{
    OpenSandboxExecutionParameters, OpenSandboxExecutionParametersSpec, RequestMapping, SecretKeyReference,
};
