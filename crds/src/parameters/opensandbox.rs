//! Settings of the OpenSandbox adapter.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What becomes of a Job's requests (its limits always reach the sandbox).
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum RequestMapping {
    /// They count for admission only.
    #[default]
    AdmissionOnly,
    /// They reach the server too, which must know them.
    Native,
}

/// How Jobs of a class run as OpenSandbox sandboxes.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "execution.ayatori.ddupan.top",
    version = "v1alpha1",
    kind = "OpenSandboxExecutionParameters",
    plural = "opensandboxexecutionparameters",
    derive = "PartialEq",
    category = "ayatori",
    doc = "Settings of the adapter execution.ayatori.ddupan.top/opensandbox, which runs Jobs in sandboxes of an OpenSandbox server."
)]
#[x_kube(
    validation = Rule::new("(has(self.allowInsecureHTTP) && self.allowInsecureHTTP) || self.endpoint.startsWith('https://')")
        .message("must use https:// unless allowInsecureHTTP is true").field_path(".endpoint"),
    // Credentials would stand before an `@` in what comes before the first `/` of the path. Some URL parsers take any
    // number of slashes, backslashes and line breaks after the scheme, or none.
    validation = Rule::new(r"!self.endpoint.matches(r'^[^:/?#]*:?[/\\\s]*[^/\\?#]*@')")
        .message("must not hold credentials: they belong into the Secret that apiKeySecretRef names").field_path(".endpoint")
)]
pub struct OpenSandboxExecutionParametersSpec {
    /// The base URL of the OpenSandbox server.
    #[schemars(length(min = 1, max = 2048))]
    pub endpoint: String,
    /// The Secret that holds the server's API key.
    pub api_key_secret_ref: SecretKeyReference,
    /// The pool that sandboxes are taken from; none where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub pool_ref: Option<String>,
    /// What becomes of a Job's requests: `AdmissionOnly` or `Native`.
    #[serde(default)]
    pub request_mapping: RequestMapping,
    /// Whether Jobs may pass values of Secrets to this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_secret_env: Option<bool>,
    /// Whether Jobs may pass registry credentials to this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_image_auth: Option<bool>,
    /// Whether `http://` is taken. For isolated development environments only.
    #[serde(default, rename = "allowInsecureHTTP", skip_serializing_if = "Option::is_none")]
    pub allow_insecure_http: Option<bool>,
}

/// One key of a Secret.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
pub struct SecretKeyReference {
    /// The Secret's namespace.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// The Secret's name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// The key in its data.
    #[schemars(length(max = 253))]
    pub key: String,
}
