//! The four kinds, each with a valid object that has every field.

use anyhow::Context;
use ayatori_crds::{
    definitions,
    names::{API_VERSION, GROUP},
};
use serde_json::{Value, json};

/// One of the four kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `Job`
    Job,
    /// `JobClass`
    JobClass,
    /// `KubernetesExecutionParameters`
    KubernetesParameters,
    /// `OpenSandboxExecutionParameters`
    OpenSandboxParameters,
}

impl Kind {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Job, Self::JobClass, Self::KubernetesParameters, Self::OpenSandboxParameters];

    /// As it stands in a manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Job => "Job",
            Self::JobClass => "JobClass",
            Self::KubernetesParameters => "KubernetesExecutionParameters",
            Self::OpenSandboxParameters => "OpenSandboxExecutionParameters",
        }
    }

    /// The file of its definition; without `.yaml` it is the resource.
    pub fn file(self) -> &'static str {
        match self {
            Self::Job => "jobs.yaml",
            Self::JobClass => "jobclasses.yaml",
            Self::KubernetesParameters => "kubernetesexecutionparameters.yaml",
            Self::OpenSandboxParameters => "opensandboxexecutionparameters.yaml",
        }
    }

    /// Whether it has a status.
    pub fn has_status(self) -> bool {
        matches!(self, Self::Job | Self::JobClass)
    }

    /// The path of the kind's objects, those of Jobs in the namespace `default`.
    pub fn collection(self) -> String {
        self.path(GROUP, "default")
    }

    /// The same under another API group.
    pub fn collection_in(self, group: &str) -> String {
        self.path(group, "default")
    }

    /// The path of the kind's objects, those of Jobs in `namespace`.
    pub fn collection_within(self, namespace: &str) -> String {
        self.path(GROUP, namespace)
    }

    fn path(self, group: &str, namespace: &str) -> String {
        let namespace = if self == Self::Job { format!("namespaces/{namespace}/") } else { String::new() };
        format!("/apis/{group}/v1alpha1/{namespace}{}", self.file().trim_end_matches(".yaml"))
    }

    /// The kind that is named so in a manifest.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The schema of our definition.
    pub fn schema(self) -> anyhow::Result<Value> {
        let definition = definitions::all()?.into_iter().find(|one| one.file == self.file());
        Ok(schema_of(&definition.with_context(|| format!("no definition of {}", self.name()))?.object))
    }

    /// A valid object of that name with every field of the spec.
    pub fn object(self, name: &str) -> Value {
        let spec = match self {
            Self::Job => job_spec(),
            Self::JobClass => job_class_spec(),
            Self::KubernetesParameters => kubernetes_spec(),
            Self::OpenSandboxParameters => open_sandbox_spec(),
        };
        json!({
            "apiVersion": API_VERSION, "kind": self.name(), "metadata": {"name": name}, "spec": spec,
        })
    }

    /// A valid status with every field; null for a kind without one.
    pub fn status(self) -> Value {
        match self {
            Self::Job => finished_status(),
            Self::JobClass => {
                json!({"observedGeneration": 1, "conditions": [condition("Ready", "True", "BackendReachable")]})
            }
            Self::KubernetesParameters | Self::OpenSandboxParameters => Value::Null,
        }
    }
}

/// The schema of a definition's one version.
pub fn schema_of(definition: &Value) -> Value {
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

fn resources(cpu: &str) -> Value {
    json!({"requests": {"cpu": cpu, "memory": "256Mi"}, "limits": {"cpu": cpu, "memory": "512Mi"}})
}

fn job_spec() -> Value {
    let selector = json!({"name": "store", "key": "entry", "optional": true});
    json!({
        "jobClassName": "standard",
        "task": {
            "image": "registry.example/team/app:1.2",
            "imagePullSecrets": [{"name": "pull"}],
            "command": ["/bin/app"],
            "args": ["--verbose"],
            "workingDir": "/work",
            "env": [
                {"name": "LITERAL", "value": "text"},
                {"name": "SECRET", "valueFrom": {"secretKeyRef": selector}},
                {"name": "CONFIG", "valueFrom": {"configMapKeyRef": selector}},
            ],
        },
        "resources": resources("1"),
        "activeDeadlineSeconds": 3600,
        "ttlSecondsAfterFinished": 600,
        "desiredState": "Running",
    })
}

fn job_class_spec() -> Value {
    json!({
        "controllerName": "execution.ayatori.ddupan.top/kubernetes",
        "parametersRef": {"group": "execution.ayatori.ddupan.top", "kind": "KubernetesExecutionParameters",
            "name": "standard", "uid": "5f0a"},
        "allowedNamespaces": {
            "matchLabels": {"team": "data"},
            "matchExpressions": [{"key": "stage", "operator": "In", "values": ["test"]}],
        },
        "resources": {"defaults": resources("1"), "minimum": resources("100m"), "maximum": resources("8")},
    })
}

fn kubernetes_spec() -> Value {
    let profile = json!({"type": "Localhost", "localhostProfile": "profiles/app.json"});
    json!({
        "serviceAccountName": "runner",
        "runtimeClassName": "gvisor",
        "scheduling": {
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [
                {"key": "batch", "operator": "Equal", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 60},
            ],
        },
        "podSecurityContext": {
            "appArmorProfile": profile, "seccompProfile": profile,
            "fsGroup": 1000, "runAsGroup": 1000, "runAsUser": 1000, "runAsNonRoot": true,
            "fsGroupChangePolicy": "OnRootMismatch", "seLinuxChangePolicy": "MountOption",
            "seLinuxOptions": {"level": "s0", "role": "r", "type": "t", "user": "u"},
            "supplementalGroups": [2000], "supplementalGroupsPolicy": "Merge",
            "sysctls": [{"name": "net.core.somaxconn", "value": "1024"}],
            "windowsOptions": {"gmsaCredentialSpec": "spec", "gmsaCredentialSpecName": "name", "hostProcess": false,
                "runAsUserName": "user"},
        },
        "imagePullPolicy": "Always",
    })
}

fn open_sandbox_spec() -> Value {
    json!({
        "endpoint": "https://sandbox.example",
        "apiKeySecretRef": {"namespace": "ayatori-system", "name": "sandbox", "key": "api-key"},
        "poolRef": "small",
        "requestMapping": "Native",
        "allowSecretEnv": true,
        "allowImageAuth": true,
        "allowInsecureHTTP": false,
    })
}

/// A condition as the controllers write it.
pub fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": "A sentence.",
        "lastTransitionTime": "2030-01-01T10:00:00Z", "observedGeneration": 1})
}

/// Of a Job that has run and succeeded. The first condition is one on which no rule depends.
fn finished_status() -> Value {
    json!({
        "observedGeneration": 1,
        "conditions": [
            condition("Stalled", "False", "Progressing"),
            condition("Accepted", "True", "Valid"),
            condition("Scheduled", "True", "BackendCreated"),
            condition("Succeeded", "True", "Completed"),
        ],
        "resolvedJobClass": {"name": "standard", "uid": "77aa", "controllerName": "execution.ayatori.ddupan.top/kubernetes",
            "parametersRef": {"group": "execution.ayatori.ddupan.top", "kind": "KubernetesExecutionParameters",
                "name": "standard", "uid": "5f0a"}},
        "effectiveResources": resources("1"),
        "execution": {"adapter": "kubernetes", "references": [{"type": "Job", "id": "1d2c"}]},
        "startTime": "2030-01-01T10:00:00Z",
        "completionTime": "2030-01-01T10:05:00Z",
        "result": {"exitCode": 0, "reason": "Completed"},
    })
}
