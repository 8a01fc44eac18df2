//! Manifests of Jobs and classes, and what is read off them.

use ayatori_crds::{
    Condition, Job,
    conditions::find,
    names::{API_VERSION, GROUP, KUBERNETES_CONTROLLER},
};
use serde_json::{Value, json};

/// The class that every test may name. It is no default: a Job without a class is a matter of its own.
pub const STANDARD: &str = "standard";

/// A task that goes on until it is told to stop, and then ends at once: a shell without the trap would be PID 1, which
/// TERM does not end, and take the whole grace period of 30 s.
pub const UNTIL_TERM: &str = "trap 'exit 143' TERM; echo ready; while :; do sleep 0.1; done";

/// A task that does not heed TERM: it takes its whole grace period of 30 s.
pub const UNTIL_KILLED: &str = "trap '' TERM; echo ready; while :; do sleep 0.1; done";

/// A Job that runs a shell script.
pub fn job(name: &str, script: &str) -> Value {
    task(name, json!({"image": "localhost/busybox:1", "command": ["sh", "-c", script]}))
}

/// A Job of the standard class with this task.
pub fn task(name: &str, task: Value) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "Job", "metadata": {"name": name},
        "spec": {"jobClassName": STANDARD, "task": task},
    })
}

/// A Job with another value of a field of its spec; null takes it away.
pub fn with(mut job: Value, field: &str, value: Value) -> Value {
    if let Some(spec) = job["spec"].as_object_mut() {
        if value.is_null() {
            spec.remove(field)
        } else {
            spec.insert(field.to_owned(), value)
        };
    }
    job
}

/// A class on the Kubernetes adapter, with the figures of `samples/class.yaml`. Its parameters have its name.
pub fn class(name: &str) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "JobClass", "metadata": {"name": name},
        "spec": {
            "controllerName": KUBERNETES_CONTROLLER,
            "parametersRef": {"group": GROUP, "kind": "KubernetesExecutionParameters", "name": name},
            "resources": {
                "defaults": {
                    "requests": {"cpu": "10m", "memory": "16Mi"},
                    "limits": {"cpu": "1", "memory": "128Mi"},
                },
                "maximum": {"limits": {"cpu": "2", "memory": "1Gi"}},
            },
        },
    })
}

/// Settings of the Kubernetes adapter.
pub fn parameters(name: &str) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "KubernetesExecutionParameters", "metadata": {"name": name},
        "spec": {"serviceAccountName": "default"},
    })
}

/// A condition as `Status/Reason`; empty where there is none.
pub fn condition(job: &Job, type_: &str) -> String {
    in_short(find(conditions(job), type_))
}

/// As [`condition`], of anything that has conditions.
pub fn in_short(condition: Option<&Condition>) -> String {
    condition.map(|found| format!("{}/{}", found.status.as_str(), found.reason)).unwrap_or_default()
}

/// A condition's message; empty where there is none.
pub fn message<'a>(job: &'a Job, type_: &str) -> &'a str {
    find(conditions(job), type_).map_or("", |condition| &condition.message)
}

fn conditions(job: &Job) -> &[Condition] {
    job.status.as_ref().map_or(&[], |status| &status.conditions)
}

/// The UID; empty where it is not stored.
pub fn uid(job: &Job) -> &str {
    job.metadata.uid.as_deref().unwrap_or_default()
}

/// The name of a Job's native Job (spec D3).
pub fn native_name(job: &Job) -> String {
    format!("ay-{}", uid(job))
}

/// Whether it has its `completionTime`.
pub fn is_over(job: &Job) -> bool {
    job.status.as_ref().is_some_and(|status| status.completion_time.is_some())
}

/// Whether it has its `startTime`.
pub fn has_started(job: &Job) -> bool {
    job.status.as_ref().is_some_and(|status| status.start_time.is_some())
}

/// The task's exit code, where one was seen.
pub fn exit_code(job: &Job) -> Option<i32> {
    job.status.as_ref()?.result.as_ref()?.exit_code
}
