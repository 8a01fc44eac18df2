//! The program of a Job and its environment (spec A1, A2).

use kube::{KubeSchema, core::Rule};
use serde::{Deserialize, Serialize};

/// The program to run: image, argv, directory, environment.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskSpec {
    /// The OCI image, for example `registry.example/team/app:1.2` or `…@sha256:…`.
    // 1,024: a name of 255, a tag of 128 and a digest fit several times over.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,
    /// Secrets of type `kubernetes.io/dockerconfigjson` in this namespace, for a private registry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// The argv that replaces the image's entrypoint. No shell is involved and `$(VAR)` stays as it is written.
    // Bounds of one string and of their number: Linux takes no single argument over 128 KiB (MAX_ARG_STRLEN).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096), inner(length(max = 131_072)))]
    pub command: Vec<String>,
    /// The arguments after `command`, or after the image's entrypoint where `command` is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096), inner(length(max = 131_072)))]
    pub args: Vec<String>,
    /// The directory in which the program starts; the image's own where it is left out.
    // PATH_MAX of Linux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub working_dir: Option<String>,
    /// Environment variables, in this order. Names that begin with `AYATORI_` are the platform's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub env: Vec<EnvVar>,
}

/// `env` never changes: neither an entry nor the order of the names (`==` on a map list ignores the order).
pub(super) fn immutable_env() -> Rule {
    let env = |root: &str| format!("(has({root}.task.env) ? {root}.task.env : [])");
    let (new, old) = (env("self"), env("oldSelf"));
    Rule::new(format!("{new} == {old} && {new}.map(e, e.name) == {old}.map(e, e.name)"))
        .message("is immutable, its order too")
        .field_path(".task.env")
}

/// The name of an object in the Job's namespace.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
pub struct LocalObjectReference {
    /// The name of the Secret.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub name: String,
}

/// One environment variable: a literal value, or one key of a Secret or ConfigMap.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.value) != has(self.valueFrom)").message("exactly one of value and valueFrom must be set"))]
pub struct EnvVar {
    /// The variable's name.
    #[schemars(length(max = 1024), regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub name: String,
    /// The value, taken literally: `$(VAR)` is not expanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 131_072))]
    pub value: Option<String>,
    /// Where the value comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<EnvVarSource>,
}

/// One key of a Secret or ConfigMap in the Job's namespace.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.secretKeyRef) != has(self.configMapKeyRef)").message("exactly one of secretKeyRef and configMapKeyRef must be set"))]
pub struct EnvVarSource {
    /// A key of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeySelector>,
    /// A key of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeySelector>,
}

/// Which key of which object.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
pub struct KeySelector {
    /// The name of the Secret or ConfigMap.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub name: String,
    /// The key in its data.
    #[schemars(length(max = 253))]
    pub key: String,
    /// Whether the variable is simply left out where the object or the key does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}
