//! Native Jobs and pods with only the fields that the adapter reads: the rest is dropped while decoding.

use k8s_openapi::{
    api::{batch::v1::Job as BatchJob, core::v1::Pod as CorePod},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::Resource;
use serde::{Deserialize, Serialize};

use super::render::CONTAINER;

/// A native Job.
#[derive(Resource, Serialize, Deserialize, Clone, Debug, Default)]
#[resource(inherit = BatchJob)]
pub struct NativeJob {
    /// Name, UID, owners, finalizers, labels.
    pub metadata: ObjectMeta,
    /// What was asked for.
    #[serde(default)]
    pub spec: NativeJobSpec,
    /// What the native Job controller says.
    #[serde(default)]
    pub status: NativeJobStatus,
}

/// The part of a native Job's spec that we read.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct NativeJobSpec {
    /// Not released yet.
    #[serde(default)]
    pub suspend: bool,
    /// 0 is our stop (spec F1), another our own limit beside a deadline (spec F2).
    pub active_deadline_seconds: Option<i64>,
}

/// The part of a native Job's status that we read.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct NativeJobStatus {
    /// `Complete`, `Failed`, …
    #[serde(default)]
    pub conditions: Vec<NativeCondition>,
    /// When its controller first saw it released: its limit counts from then.
    pub start_time: Option<Time>,
    /// Pods that are terminating and not over.
    #[serde(default)]
    pub terminating: Option<i32>,
}

/// A condition of a native Job or a pod.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct NativeCondition {
    /// Which one.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why.
    pub reason: Option<String>,
    /// Details.
    pub message: Option<String>,
    /// Since when its status is this.
    pub last_transition_time: Option<Time>,
}

/// A pod of a native Job.
#[derive(Resource, Serialize, Deserialize, Clone, Debug, Default)]
#[resource(inherit = CorePod)]
pub struct NativePod {
    /// Name, owners, labels.
    pub metadata: ObjectMeta,
    /// Where it is.
    #[serde(default)]
    pub spec: NativePodSpec,
    /// What the kubelet says.
    #[serde(default)]
    pub status: NativePodStatus,
    /// The API server said that it is gone; this is how it was at last.
    #[serde(skip)]
    pub gone: bool,
}

/// The part of a pod's spec that we read.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct NativePodSpec {
    /// The node that it is bound to.
    pub node_name: Option<String>,
}

impl NativeJob {
    /// It is being deleted, and nothing holds it any more: whoever sees it so sees what was.
    #[must_use]
    pub fn is_let_go(&self) -> bool {
        self.metadata.deletion_timestamp.is_some() && self.metadata.finalizers.as_ref().is_none_or(Vec::is_empty)
    }
}

impl NativePod {
    /// The task's own container; others may be injected.
    #[must_use]
    pub fn task(&self) -> Option<&ContainerStatus> {
        self.status.container_statuses.iter().find(|container| container.name == CONTAINER)
    }

    /// No node ever had it, and none ever will: what is being deleted is not bound any more.
    #[must_use]
    pub fn never_ran(&self) -> bool {
        let over = self.gone || self.metadata.deletion_timestamp.is_some() || self.has_failed();
        over && self.spec.node_name.as_deref().unwrap_or_default().is_empty()
    }

    /// Its phase, which is never a verdict by itself.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.status.phase.as_deref() == Some("Failed")
    }
}

/// The part of a pod's status that we read.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct NativePodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed`.
    pub phase: Option<String>,
    /// The kubelet's own word on a pod that it refused or evicted.
    pub reason: Option<String>,
    /// Details of it.
    pub message: Option<String>,
    /// `DisruptionTarget` and others.
    #[serde(default)]
    pub conditions: Vec<NativeCondition>,
    /// One a container.
    #[serde(default)]
    pub container_statuses: Vec<ContainerStatus>,
    /// One a container that runs before the others. We ask for none; the cluster may add some.
    #[serde(default)]
    pub init_container_statuses: Vec<ContainerStatus>,
}

/// A container of a pod.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct ContainerStatus {
    /// `task` is ours; others may be injected.
    pub name: String,
    /// The runtime's identifier; empty where the container never existed.
    #[serde(rename = "containerID")]
    pub container_id: Option<String>,
    /// Waiting, running or terminated.
    #[serde(default)]
    pub state: ContainerState,
}

impl ContainerStatus {
    /// Whether the runtime never had it.
    #[must_use]
    pub fn was_never_made(&self) -> bool {
        self.container_id.as_deref().unwrap_or_default().is_empty()
    }
}

/// What a container is doing: at most one of the three is there.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
pub struct ContainerState {
    /// It does not run yet.
    pub waiting: Option<Waiting>,
    /// It runs.
    pub running: Option<Running>,
    /// It is over.
    pub terminated: Option<Terminated>,
}

/// A container that does not run yet.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Waiting {
    /// `ContainerCreating`, `ErrImagePull`, …
    pub reason: Option<String>,
    /// The kubelet's message.
    pub message: Option<String>,
}

/// A running container.
#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    /// Since when.
    pub started_at: Option<Time>,
}

/// A container that is over.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct Terminated {
    /// Its exit code; synthetic for some reasons.
    pub exit_code: i32,
    /// `Completed`, `Error`, `OOMKilled`, `StartError`, `Unknown`, `ContainerStatusUnknown` …
    pub reason: Option<String>,
    /// The runtime's message.
    pub message: Option<String>,
    /// When it started; 1970 where it never did.
    pub started_at: Option<Time>,
    /// When it ended.
    pub finished_at: Option<Time>,
}

/// Whether that condition is True.
#[must_use]
pub fn condition_is_true<'a>(conditions: &'a [NativeCondition], type_: &str) -> Option<&'a NativeCondition> {
    conditions.iter().find(|condition| condition.type_ == type_ && condition.status == "True")
}
