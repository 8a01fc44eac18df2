//! `JobClass`: a service level that administrators offer (spec A5, section 10).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::{Condition, ResourceRequirements};

/// Which adapter, for whom, with which resources.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "execution.ayatori.ddupan.top",
    version = "v1alpha1",
    kind = "JobClass",
    plural = "jobclasses",
    derive = "PartialEq",
    status = "JobClassStatus",
    shortname = "ajc",
    category = "ayatori",
    doc = "A service level for Jobs, offered by the administrators: which adapter runs them, which namespaces may use it, and which resources they get.",
    printcolumn(name = "Controller", type_ = "string", json_path = ".spec.controllerName"),
    printcolumn(name = "Accepted", type_ = "string", json_path = ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    validation = Rule::new("self.controllerName == oldSelf.controllerName").message("is immutable").field_path(".controllerName"),
    validation = Rule::new("self.parametersRef == oldSelf.parametersRef").message("is immutable").field_path(".parametersRef")
)]
pub struct JobClassSpec {
    /// The adapter: `execution.ayatori.ddupan.top/kubernetes` or `execution.ayatori.ddupan.top/opensandbox`. Fixed at
    /// creation. A name under another domain is left to whoever serves it.
    #[schemars(length(min = 1, max = 253))]
    pub controller_name: String,
    /// The adapter's settings, a cluster-scoped object. Fixed at creation.
    pub parameters_ref: ParametersReference,
    /// The namespaces that may use this class, by their labels. Absent or empty allows all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_namespaces: Option<LabelSelector>,
    /// The CPU and memory that Jobs of this class get and may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcePolicy>,
}

/// The settings object of an adapter.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
pub struct ParametersReference {
    /// The API group of the settings, `execution.ayatori.ddupan.top`.
    #[schemars(length(max = 253))]
    pub group: String,
    /// The kind of the settings, `KubernetesExecutionParameters` or `OpenSandboxExecutionParameters`.
    #[schemars(length(max = 63))]
    pub kind: String,
    /// The name of the settings object.
    #[schemars(length(max = 253))]
    pub name: String,
    /// The UID that the settings object must have. Where it is left out, any object of that name will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub uid: Option<String>,
}

/// Defaults and bounds of a Job's CPU and memory.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
pub struct ResourcePolicy {
    /// What a Job gets where it asks for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<ResourceRequirements>,
    /// What a Job must ask for at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<ResourceRequirements>,
    /// What a Job may ask for at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<ResourceRequirements>,
}

/// Whether the class can be used. Written by the controller only.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobClassStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Accepted` (the class makes sense, Jobs may use it) and `Ready` (its backend takes new starts).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl JobClass {
    /// The conditions, empty where there is no status yet.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }
}
