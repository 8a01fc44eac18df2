//! A cluster that answers at once, and the handlers as the process wires them.

use std::collections::BTreeMap;
use std::sync::Arc;

use ayatori_crds::rules::Policy;
use ayatori_crds::rules::references::Referent;
use ayatori_crds::{JobClass, OpenSandboxExecutionParameters};
use ayatori_webhook::configuration::{
    MUTATE_JOBS, VALIDATE_JOB_CLASSES, VALIDATE_JOBS, VALIDATE_KUBERNETES_PARAMETERS, VALIDATE_OPENSANDBOX_PARAMETERS,
};
use ayatori_webhook::lookups::{Live, Lookups, NamespaceMeta};
use ayatori_webhook::{
    JobClassValidation, JobDefaulting, JobValidation, KubernetesParametersValidation, OpenSandboxParametersValidation,
    ReferenceChecks, Reviews,
};
use futures::FutureExt;
use futures::future::ready;
use serde_json::{Value, json};

/// Every path that the process serves, with a kind that comes there.
pub(crate) const PATHS: [(&str, &str); 5] = [
    (MUTATE_JOBS, "jobs"),
    (VALIDATE_JOBS, "jobs"),
    (VALIDATE_JOB_CLASSES, "jobclasses"),
    (VALIDATE_KUBERNETES_PARAMETERS, "kubernetesexecutionparameters"),
    (VALIDATE_OPENSANDBOX_PARAMETERS, "opensandboxexecutionparameters"),
];

#[derive(Debug)]
struct Cluster {
    namespace: Arc<NamespaceMeta>,
    classes: Vec<Arc<JobClass>>,
    parameters: Arc<OpenSandboxExecutionParameters>,
}

pub(crate) fn reviews() -> Reviews {
    let pairs = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let annotations = pairs(&[("execution.ayatori.ddupan.top/default-job-class", "small")]);
    let lookups: Arc<dyn Lookups> = Arc::new(Cluster {
        namespace: Arc::new(NamespaceMeta { labels: pairs(&[("tier", "ci")]), annotations }),
        classes: [
            class("small", "kubernetes", "KubernetesExecutionParameters"),
            class("boxed", "opensandbox", "OpenSandboxExecutionParameters"),
        ]
        .map(|class| Arc::new(serde_json::from_value(class).unwrap()))
        .to_vec(),
        parameters: Arc::new(serde_json::from_value(good("opensandboxexecutionparameters")).unwrap()),
    });
    let (lookups, policy) = (|| Arc::clone(&lookups), policy);
    Reviews::default()
        .with(MUTATE_JOBS, Arc::new(JobDefaulting::new(lookups(), policy())))
        .with(VALIDATE_JOBS, Arc::new(JobValidation::new(lookups(), policy(), ReferenceChecks::On)))
        .with(VALIDATE_JOB_CLASSES, Arc::new(JobClassValidation::new(lookups(), vec![])))
        .with(VALIDATE_KUBERNETES_PARAMETERS, Arc::new(KubernetesParametersValidation::new(lookups())))
        .with(VALIDATE_OPENSANDBOX_PARAMETERS, Arc::new(OpenSandboxParametersValidation::new(lookups())))
}

fn policy() -> Policy {
    serde_json::from_value(json!({"ttl": {"default": 600, "maximum": 86400, "required": true}})).unwrap()
}

fn class(name: &str, adapter: &str, kind: &str) -> Value {
    let mut class = good("jobclasses");
    class["metadata"]["name"] = json!(name);
    class["spec"]["controllerName"] = json!(format!("execution.ayatori.ddupan.top/{adapter}"));
    class["spec"]["parametersRef"]["kind"] = json!(kind);
    class
}

/// An object without fault.
pub(crate) fn good(resource: &str) -> Value {
    let (kind, spec) = match resource {
        "jobs" => (
            "Job",
            json!({
                "jobClassName": "small",
                "task": {
                    "image": "registry.example/app:1.2",
                    "imagePullSecrets": [{"name": "registry"}],
                    "command": ["sh", "-c"], "args": ["exit 0"], "workingDir": "/tmp",
                    "env": [
                        {"name": "PLAIN", "value": "x"},
                        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
                        {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "db", "key": "host", "optional": true}}}
                    ]
                },
                "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}, "limits": {"cpu": 1, "memory": "0.25Gi"}},
                "activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 300, "desiredState": "Running"
            }),
        ),
        "jobclasses" => (
            "JobClass",
            json!({
                "controllerName": "execution.ayatori.ddupan.top/kubernetes",
                "parametersRef": {
                    "group": "execution.ayatori.ddupan.top", "kind": "KubernetesExecutionParameters", "name": "default"
                },
                "allowedNamespaces": {
                    "matchLabels": {"tier": "ci"},
                    "matchExpressions": [{"key": "tier", "operator": "In", "values": ["ci", "dev"]}]
                },
                "resources": {
                    "defaults": {"requests": {"cpu": "10m"}, "limits": {"cpu": "1", "memory": "256Mi"}},
                    "minimum": {"requests": {"cpu": "10m"}},
                    "maximum": {"limits": {"cpu": "2", "memory": "1Gi"}}
                }
            }),
        ),
        "kubernetesexecutionparameters" => (
            "KubernetesExecutionParameters",
            json!({
                "serviceAccountName": "default", "runtimeClassName": "kata",
                "scheduling": {"nodeSelector": {"pool": "ci"}, "tolerations": [{"key": "ci", "operator": "Exists"}]},
                "imagePullPolicy": "Always"
            }),
        ),
        _ => (
            "OpenSandboxExecutionParameters",
            json!({
                "endpoint": "https://sandbox.example:8443/api",
                "apiKeySecretRef": {"namespace": "platform", "name": "key", "key": "api-key"},
                "poolRef": "warm", "allowSecretEnv": false
            }),
        ),
    };
    json!({
        "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": kind,
        "metadata": {"name": "x", "namespace": "team-a", "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["e/f"]},
        "spec": spec, "ofALaterVersion": {"list": [3, 1, 2]}
    })
}

/// A review of these objects.
pub(crate) fn review(resource: &str, operation: &str, object: &Value, old: &Value) -> Value {
    let metadata = &if object.is_object() { object } else { old }["metadata"];
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "0b4f0c1e-1111-4222-8333-444455556666",
            "kind": {"group": "execution.ayatori.ddupan.top", "version": "v1alpha1", "kind": "Any"},
            "resource": {"group": "execution.ayatori.ddupan.top", "version": "v1alpha1", "resource": resource},
            "name": metadata["name"].as_str().unwrap_or_default(),
            "namespace": "team-a", "operation": operation, "object": object, "oldObject": old, "dryRun": false
        }
    })
}

impl Lookups for Cluster {
    fn namespace(&self, _: &str) -> Option<Arc<NamespaceMeta>> {
        Some(Arc::clone(&self.namespace))
    }

    fn class(&self, name: &str) -> Option<Arc<JobClass>> {
        self.classes.iter().find(|class| class.metadata.name.as_deref() == Some(name)).cloned()
    }

    fn classes(&self) -> Vec<Arc<JobClass>> {
        self.classes.clone()
    }

    fn sandbox_parameters(&self, _: &str) -> Option<Arc<OpenSandboxExecutionParameters>> {
        Some(Arc::clone(&self.parameters))
    }

    fn live_namespace<'a>(&'a self, name: &'a str) -> Live<'a, Option<Arc<NamespaceMeta>>> {
        ready(Ok(self.namespace(name))).boxed()
    }

    fn live_class<'a>(&'a self, name: &'a str) -> Live<'a, Option<Arc<JobClass>>> {
        ready(Ok(self.class(name))).boxed()
    }

    fn live_classes(&self) -> Live<'_, Vec<Arc<JobClass>>> {
        ready(Ok(self.classes())).boxed()
    }

    fn live_sandbox_parameters<'a>(&'a self, name: &'a str) -> Live<'a, Option<Arc<OpenSandboxExecutionParameters>>> {
        ready(Ok(self.sandbox_parameters(name))).boxed()
    }

    fn live_exists<'a>(&'a self, _: &'a str, _: Referent, name: &'a str) -> Live<'a, bool> {
        ready(Ok(name == "registry")).boxed()
    }
}
