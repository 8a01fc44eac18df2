//! Handlers, bodies and a cluster for this crate's tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ayatori_crds::rules::references::Referent;
use ayatori_crds::{JobClass, OpenSandboxExecutionParameters};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::lookups::{Live, LookupError, NamespaceMeta};
use crate::{Answer, Arrival, Lookups, Request, Review};

/// What a test's handler does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Script {
    Allow,
    Wait(Duration),
    Panic,
}

impl Review for Script {
    fn resource(&self) -> [&str; 3] {
        ["execution.ayatori.ddupan.top", "v1alpha1", "jobs"]
    }

    fn review<'a>(&'a self, _: &'a Request<'a>) -> BoxFuture<'a, Answer> {
        async move {
            match *self {
                Self::Allow => {}
                Self::Wait(time) => tokio::time::sleep(time).await,
                Self::Panic => panic!("a fault in a handler"),
            }
            Answer::allowed()
        }
        .boxed()
    }
}

/// A good review of a new Job.
pub(crate) fn review_body() -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "execution.ayatori.ddupan.top", "version": "v1alpha1", "kind": "Job"},
            "resource": {"group": "execution.ayatori.ddupan.top", "version": "v1alpha1", "resource": "jobs"},
            "subResource": "",
            "name": "x",
            "namespace": "team-a",
            "operation": "CREATE",
            "userInfo": {"username": "alice"},
            "object": {
                "apiVersion": "execution.ayatori.ddupan.top/v1alpha1",
                "kind": "Job",
                "metadata": {"name": "x", "namespace": "team-a"},
                "spec": {"task": {"image": "registry.example/app:1"}}
            },
            "oldObject": null,
            "dryRun": false
        }
    })
}

/// What a cluster holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    pub(crate) namespaces: BTreeMap<String, NamespaceMeta>,
    pub(crate) classes: Vec<JobClass>,
    pub(crate) sandbox_parameters: Vec<OpenSandboxExecutionParameters>,
    /// Namespace, kind and name of what is neither in a store nor looked into.
    pub(crate) referents: BTreeSet<(String, Referent, String)>,
}

impl Held {
    /// A namespace by its labels and annotations, `key=value`.
    pub(crate) fn namespace(mut self, name: &str, labels: &[&str], annotations: &[&str]) -> Self {
        let pairs = |all: &[&str]| {
            all.iter().map(|pair| pair.split_once('=').unwrap()).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
        };
        let meta = NamespaceMeta { labels: pairs(labels), annotations: pairs(annotations) };
        self.namespaces.insert(name.to_owned(), meta);
        self
    }

    /// A class of the Kubernetes adapter that is accepted, overlaid by `overlay`.
    pub(crate) fn class(mut self, name: &str, overlay: &Value) -> Self {
        let mut class = class_json(name);
        json_patch::merge(&mut class, overlay);
        self.classes.push(serde_json::from_value(class).unwrap());
        self
    }

    /// A class of the OpenSandbox adapter that is accepted, and its settings overlaid by `settings`.
    pub(crate) fn sandbox_class(mut self, name: &str, settings: &Value) -> Self {
        self.classes.push(serde_json::from_value(sandbox_class_json(name)).unwrap());
        self.sandbox_parameters(name, settings)
    }

    /// Settings of the OpenSandbox adapter, overlaid by `overlay`.
    pub(crate) fn sandbox_parameters(mut self, name: &str, overlay: &Value) -> Self {
        let mut parameters = json!({
            "apiVersion": "execution.ayatori.ddupan.top/v1alpha1",
            "kind": "OpenSandboxExecutionParameters",
            "metadata": {"name": name, "uid": format!("uid-of-{name}")},
            "spec": {
                "endpoint": "https://sandbox.example",
                "apiKeySecretRef": {"namespace": "platform", "name": "key", "key": "api-key"}
            }
        });
        json_patch::merge(&mut parameters, overlay);
        self.sandbox_parameters.push(serde_json::from_value(parameters).unwrap());
        self
    }

    /// A Secret or ConfigMap.
    pub(crate) fn referent(mut self, namespace: &str, referent: Referent, name: &str) -> Self {
        self.referents.insert((namespace.to_owned(), referent, name.to_owned()));
        self
    }
}

/// An accepted class of the OpenSandbox adapter; its settings have its name.
pub(crate) fn sandbox_class_json(name: &str) -> Value {
    let mut class = class_json(name);
    class["spec"]["controllerName"] = json!("execution.ayatori.ddupan.top/opensandbox");
    class["spec"]["parametersRef"]["kind"] = json!("OpenSandboxExecutionParameters");
    class["spec"]["parametersRef"]["name"] = json!(name);
    class
}

/// An accepted class of the Kubernetes adapter.
pub(crate) fn class_json(name: &str) -> Value {
    json!({
        "apiVersion": "execution.ayatori.ddupan.top/v1alpha1",
        "kind": "JobClass",
        "metadata": {"name": name},
        "spec": {
            "controllerName": "execution.ayatori.ddupan.top/kubernetes",
            "parametersRef": {
                "group": "execution.ayatori.ddupan.top", "kind": "KubernetesExecutionParameters", "name": "default"
            }
        },
        "status": {"conditions": [{
            "type": "Accepted", "status": "True", "reason": "Accepted", "message": "",
            "lastTransitionTime": "2030-01-01T00:00:00Z"
        }]}
    })
}

/// A cluster as the stores have it and as it is; no `live` is an API server that does not answer.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    pub(crate) stored: Held,
    pub(crate) live: Option<Held>,
    pub(crate) live_reads: AtomicUsize,
    /// How long each live read takes.
    pub(crate) delay: Duration,
}

impl Cluster {
    /// One whose stores are up to date.
    pub(crate) fn fresh(held: Held) -> Arc<Self> {
        Arc::new(Self { stored: held.clone(), live: Some(held), ..Self::default() })
    }

    /// One whose stores are behind.
    pub(crate) fn behind(stored: Held, live: Held) -> Arc<Self> {
        Arc::new(Self { stored, live: Some(live), ..Self::default() })
    }

    /// One whose API server does not answer.
    pub(crate) fn cut_off(stored: Held) -> Arc<Self> {
        Arc::new(Self { stored, ..Self::default() })
    }

    pub(crate) fn live_reads(&self) -> usize {
        self.live_reads.load(Ordering::Relaxed)
    }

    fn read<T: Send + 'static>(&self, what: &str, read: impl FnOnce(&Held) -> T) -> Live<'_, T> {
        self.live_reads.fetch_add(1, Ordering::Relaxed);
        let error = || LookupError { what: what.to_owned(), why: "no answer".to_owned() };
        let (answer, delay) = (self.live.as_ref().map(read).ok_or_else(error), self.delay);
        async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            answer
        }
        .boxed()
    }
}

impl Lookups for Cluster {
    fn namespace(&self, name: &str) -> Option<Arc<NamespaceMeta>> {
        self.stored.namespaces.get(name).cloned().map(Arc::new)
    }

    fn class(&self, name: &str) -> Option<Arc<JobClass>> {
        find(&self.stored, name)
    }

    fn classes(&self) -> Vec<Arc<JobClass>> {
        self.stored.classes.iter().cloned().map(Arc::new).collect()
    }

    fn sandbox_parameters(&self, name: &str) -> Option<Arc<OpenSandboxExecutionParameters>> {
        find_parameters(&self.stored, name)
    }

    fn live_namespace<'a>(&'a self, name: &'a str) -> Live<'a, Option<Arc<NamespaceMeta>>> {
        self.read("namespace", |held| held.namespaces.get(name).cloned().map(Arc::new))
    }

    fn live_class<'a>(&'a self, name: &'a str) -> Live<'a, Option<Arc<JobClass>>> {
        self.read("class", |held| find(held, name))
    }

    fn live_classes(&self) -> Live<'_, Vec<Arc<JobClass>>> {
        self.read("classes", |held| held.classes.iter().cloned().map(Arc::new).collect())
    }

    fn live_sandbox_parameters<'a>(&'a self, name: &'a str) -> Live<'a, Option<Arc<OpenSandboxExecutionParameters>>> {
        self.read("parameters", |held| find_parameters(held, name))
    }

    fn live_exists<'a>(&'a self, namespace: &'a str, referent: Referent, name: &'a str) -> Live<'a, bool> {
        self.read("referent", |held| held.referents.contains(&(namespace.to_owned(), referent, name.to_owned())))
    }
}

fn find_parameters(held: &Held, name: &str) -> Option<Arc<OpenSandboxExecutionParameters>> {
    held.sandbox_parameters.iter().find(|found| found.metadata.name.as_deref() == Some(name)).cloned().map(Arc::new)
}

fn find(held: &Held, name: &str) -> Option<Arc<JobClass>> {
    held.classes.iter().find(|class| class.metadata.name.as_deref() == Some(name)).cloned().map(Arc::new)
}

/// What `review` says of an object (its CREATE) or of the change from an old one (its UPDATE).
pub(crate) async fn verdict(review: &dyn Review, object: &Value, old: Option<&Value>) -> Answer {
    verdict_on(review, Some(object), old, Arrival::default()).await
}

/// What `review` says of a DELETE.
pub(crate) async fn verdict_on_delete(review: &dyn Review, old: &Value) -> Answer {
    verdict_on(review, None, Some(old), Arrival::default()).await
}

/// What `review` says of a request that came like that.
pub(crate) async fn verdict_on(
    review: &dyn Review,
    object: Option<&Value>,
    old: Option<&Value>,
    arrival: Arrival,
) -> Answer {
    let [group, version, resource] = review.resource();
    let any = object.or(old).unwrap_or(&Value::Null);
    let operation = match (object, old) {
        (None, _) => "DELETE",
        (Some(_), None) => "CREATE",
        (Some(_), Some(_)) => "UPDATE",
    };
    let request = json!({
        "uid": "u-1",
        "kind": {"group": group, "version": version, "kind": any["kind"].as_str().unwrap_or("Job")},
        "resource": {"group": group, "version": version, "resource": resource},
        "name": any["metadata"]["name"].as_str().unwrap_or_default(),
        "namespace": any["metadata"]["namespace"].as_str().unwrap_or_default(),
        "operation": operation,
        "object": object,
        "oldObject": old
    });
    let text = serde_json::to_string(&request).unwrap();
    let request = Request { arrival, ..serde_json::from_str(&text).unwrap() };
    review.review(&request).await
}

/// The warnings of an answer that allows without a patch.
pub(crate) fn warned(answer: &Answer) -> Vec<&str> {
    match answer {
        Answer::Allowed { patch: None, warnings } => warnings.texts().iter().map(String::as_str).collect(),
        other => panic!("not simply allowed: {other:?}"),
    }
}

/// Code and message of a refusal.
pub(crate) fn refused(answer: &Answer) -> (i32, &str) {
    match answer {
        Answer::Refused(status) => (status.code.unwrap(), status.message.as_deref().unwrap()),
        other => panic!("not refused: {other:?}"),
    }
}

/// The fields of a refusal's causes.
pub(crate) fn fields(answer: &Answer) -> Vec<&str> {
    let Answer::Refused(status) = answer else { panic!("not refused: {answer:?}") };
    let causes = status.details.as_ref().and_then(|details| details.causes.as_deref()).unwrap_or_default();
    causes.iter().map(|cause| cause.field.as_deref().unwrap()).collect()
}
