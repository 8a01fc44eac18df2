//! Settings of the Kubernetes adapter.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodSecurityContext, Toleration};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When the image is pulled.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum PullPolicy {
    /// At every start.
    Always,
    /// Never: the node must have it.
    Never,
    /// Where the node does not have it.
    #[default]
    IfNotPresent,
}

impl PullPolicy {
    /// The word as it stands in a pod.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::Never => "Never",
            Self::IfNotPresent => "IfNotPresent",
        }
    }
}

/// How Jobs of a class run as native Jobs.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "execution.ayatori.ddupan.top",
    version = "v1alpha1",
    kind = "KubernetesExecutionParameters",
    plural = "kubernetesexecutionparameters",
    derive = "PartialEq",
    category = "ayatori",
    doc = "Settings of the adapter execution.ayatori.ddupan.top/kubernetes, which runs Jobs as native batch/v1 Jobs in their own namespace."
)]
pub struct KubernetesExecutionParametersSpec {
    /// The ServiceAccount of the pods. It must exist in the namespace of each Job.
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: String,
    /// The RuntimeClass of the pods; the node's default where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub runtime_class_name: Option<String>,
    /// Which nodes the pods may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<Scheduling>,
    /// The security context of the pods. With `runAsNonRoot: true` the container also drops all capabilities and
    /// privilege escalation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_security_context: Option<PodSecurityContext>,
    /// When the image is pulled: `Always`, `Never` or `IfNotPresent`.
    #[serde(default)]
    pub image_pull_policy: PullPolicy,
}

/// Which nodes the pods may use.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Scheduling {
    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64))]
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Taints that the pods tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub tolerations: Vec<Toleration>,
}
