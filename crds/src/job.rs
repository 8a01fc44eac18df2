//! `Job`: one bounded execution, as callers write it (spec A1 to A4, A8 to A10).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Condition, ResourceRequirements, cel, job_class::ParametersReference};

mod status;
mod task;

pub use status::{Execution, JobResult, JobStatus, Reference, ResolvedJobClass};
pub use task::{EnvVar, EnvVarSource, KeySelector, LocalObjectReference, TaskSpec};

/// What shall become of the Job.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum DesiredState {
    /// Run the task.
    #[default]
    Running,
    /// Stop it, and keep the Job until its TTL.
    Cancelled,
}

/// What to run, at which service level, within which bounds.
///
/// Everything but `ttlSecondsAfterFinished`, and `desiredState` going to `Cancelled`, is fixed at creation.
// spec A3
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "execution.ayatori.ddupan.top",
    version = "v1alpha1",
    kind = "Job",
    namespaced,
    derive = "PartialEq",
    status = "JobStatus",
    shortname = "ajob",
    category = "ayatori",
    doc = "One bounded execution with one clear result. At most one execution is ever started for a Job; running it again means creating another Job.",
    selectable = ".status.completionTime",
    printcolumn(name = "Class", type_ = "string", json_path = ".spec.jobClassName"),
    printcolumn(name = "Accepted", type_ = "string", json_path = ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn(name = "Scheduled", type_ = "string", json_path = ".status.conditions[?(@.type=='Scheduled')].status"),
    printcolumn(name = "Succeeded", type_ = "string", json_path = ".status.conditions[?(@.type=='Succeeded')].status"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type=='Succeeded')].reason"),
    printcolumn(name = "Exit", type_ = "integer", json_path = ".status.result.exitCode", priority = 1),
    printcolumn(name = "Adapter", type_ = "string", json_path = ".status.execution.adapter", priority = 1),
    printcolumn(name = "Started", type_ = "date", json_path = ".status.startTime", priority = 1),
    printcolumn(name = "Completed", type_ = "date", json_path = ".status.completionTime", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("!has(oldSelf.status) || has(self.status)").message("is never removed once it is set").field_path(".status")
)]
#[x_kube(
    validation = Rule::new("self.task.image == oldSelf.task.image").message("is immutable").field_path(".task.image"),
    validation = cel::immutable(".task.command", "[]"),
    validation = cel::immutable(".task.args", "[]"),
    validation = cel::immutable(".task.imagePullSecrets", "[]"),
    validation = cel::immutable(".task.workingDir", "''"),
    validation = task::immutable_env(),
    validation = cel::immutable(".jobClassName", "''"),
    validation = Rule::new("self.?activeDeadlineSeconds == oldSelf.?activeDeadlineSeconds").message("is immutable").field_path(".activeDeadlineSeconds"),
    validation = cel::immutable_quantity(&["resources", "requests", "cpu"]),
    validation = cel::immutable_quantity(&["resources", "requests", "memory"]),
    validation = cel::immutable_quantity(&["resources", "limits", "cpu"]),
    validation = cel::immutable_quantity(&["resources", "limits", "memory"]),
    validation = Rule::new("self.desiredState == oldSelf.desiredState || self.desiredState == 'Cancelled'")
        .message("may only go from Running to Cancelled, once").field_path(".desiredState")
)]
pub struct JobSpec {
    /// The service level: the name of a JobClass. Where it is left out, the default of the namespace or of the cluster
    /// is written here at creation. `kubectl get jobclasses` lists what there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub job_class_name: Option<String>,
    /// The program to run. Fixed at creation.
    pub task: TaskSpec,
    /// CPU and memory. What is left out takes the defaults of the class; `status.effectiveResources` shows the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// The longest that the task may run, in seconds from `status.startTime`. Waiting and pulling do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub active_deadline_seconds: Option<i64>,
    /// How long the finished Job is kept, in seconds from `status.completionTime`; 0 deletes it at once. May be changed
    /// at any time. Without it the Job stays until somebody deletes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,
    /// `Running`, or `Cancelled` to stop the task and keep the Job. Cancelling cannot be undone.
    #[serde(default)]
    pub desired_state: DesiredState,
}

impl Job {
    /// The conditions, empty where there is no status yet.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }
}
