//! Conditions and their reasons: strings that are API (spec A9, A10).

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::moment;

/// The spec, its references, the policy and the JobClass are resolved.
pub const ACCEPTED: &str = "Accepted";
/// The execution exists on the backend and its reference is recorded.
pub const SCHEDULED: &str = "Scheduled";
/// The outcome: Unknown until it is over, then True or False.
pub const SUCCEEDED: &str = "Succeeded";
/// Why and since when we stop the execution ourselves (spec A10).
pub const STOPPING: &str = "Stopping";
/// By what, and since when, the backend fails to start the task (spec A10, E1); False once that is overcome.
pub const STALLED: &str = "Stalled";
/// An administrator's ruling on a Job that says `ResultUnknown`: it cannot go on (spec E4).
pub const BACKEND_LOST: &str = "BackendLost";
/// An administrator's ruling on a Job that is being deleted: it shall go, whatever becomes of its execution (spec F3).
pub const RELEASED: &str = "Released";
/// More than one process was seen for the Job: once True, always True (spec E2).
pub const DUPLICATE_EXECUTION: &str = "DuplicateExecution";
/// JobClass: the backend can be used for new starts.
pub const READY: &str = "Ready";
/// JobClass: it is being deleted, and for what that waits (spec H3).
pub const TERMINATING: &str = "Terminating";
/// JobClass: it is one of several that are marked as the cluster's default (spec H4).
pub const DEFAULT_CONFLICT: &str = "DefaultConflict";

/// Every reason of every condition, in one list (spec A9).
pub mod reason {
    /// `Accepted=True` of a Job.
    pub const VALID: &str = "Valid";
    /// No default JobClass applies (spec B1).
    pub const NO_DEFAULT_JOB_CLASS: &str = "NoDefaultJobClass";
    /// Several JobClasses are marked as the default (spec B1).
    pub const AMBIGUOUS_DEFAULT_JOB_CLASS: &str = "AmbiguousDefaultJobClass";
    /// The JobClass is absent or being deleted.
    pub const JOB_CLASS_NOT_FOUND: &str = "JobClassNotFound";
    /// The JobClass is there, but not accepted itself.
    pub const JOB_CLASS_NOT_ACCEPTED: &str = "JobClassNotAccepted";
    /// The JobClass does not allow this namespace.
    pub const NAMESPACE_NOT_ALLOWED: &str = "NamespaceNotAllowed";
    /// The effective resources break a rule (spec C5).
    pub const INVALID_RESOURCES: &str = "InvalidResources";
    /// The task breaks a rule that no waiting can cure.
    pub const INVALID_TASK: &str = "InvalidTask";
    /// The Job breaks the platform's policy: its TTL, or an image without a digest.
    pub const POLICY_VIOLATION: &str = "PolicyViolation";

    /// A Secret that a variable needs is absent.
    pub const SECRET_NOT_FOUND: &str = "SecretNotFound";
    /// That Secret does not have the key.
    pub const SECRET_KEY_NOT_FOUND: &str = "SecretKeyNotFound";
    /// A ConfigMap that a variable needs is absent.
    pub const CONFIG_MAP_NOT_FOUND: &str = "ConfigMapNotFound";
    /// That ConfigMap does not have the key.
    pub const CONFIG_MAP_KEY_NOT_FOUND: &str = "ConfigMapKeyNotFound";
    /// A Secret for pulling the image is absent.
    pub const IMAGE_PULL_SECRET_NOT_FOUND: &str = "ImagePullSecretNotFound";

    /// `Scheduled=True`: written together with the backend reference.
    pub const BACKEND_CREATED: &str = "BackendCreated";
    /// The class accepted with this Job is gone or was made anew (spec C2).
    pub const JOB_CLASS_REPLACED: &str = "JobClassReplaced";
    /// The parameters accepted with this Job are gone or were made anew (spec C2).
    pub const PARAMETERS_REPLACED: &str = "ParametersReplaced";
    /// Something that is not ours stands under the execution's name (spec D5).
    pub const NAME_CONFLICT: &str = "NameConflict";
    /// The backend refused the execution as it was asked for.
    pub const BACKEND_REFUSED: &str = "BackendRefused";

    /// `Succeeded=Unknown`: waiting for acceptance.
    pub const PENDING: &str = "Pending";
    /// `Succeeded=Unknown`: accepted, not started yet.
    pub const SCHEDULING: &str = "Scheduling";
    /// `Succeeded=Unknown`: the task runs.
    pub const RUNNING: &str = "Running";
    /// `Succeeded=Unknown`: what became of the execution cannot be known.
    pub const RESULT_UNKNOWN: &str = "ResultUnknown";
    /// `Succeeded=True`.
    pub const COMPLETED: &str = "Completed";
    /// The task ended with a code other than 0.
    pub const PROCESS_FAILED: &str = "ProcessFailed";
    /// The kernel killed the task for its memory.
    pub const OUT_OF_MEMORY: &str = "OutOfMemory";
    /// The task could not be started.
    pub const START_FAILED: &str = "StartFailed";
    /// The node or the scheduler refused the pod; nothing ran.
    pub const REJECTED: &str = "Rejected";
    /// Evicted by the kubelet.
    pub const EVICTED: &str = "Evicted";
    /// Evicted through the API, or drained.
    pub const DRAINED: &str = "Drained";
    /// Preempted by the scheduler.
    pub const PREEMPTED: &str = "Preempted";
    /// The node was shut down.
    pub const NODE_SHUTDOWN: &str = "NodeShutdown";
    /// The task is over, but the node lost its exit code.
    pub const RESULT_LOST: &str = "ResultLost";
    /// The image could not be pulled for as long as its cause deserved; nothing ran (spec E1).
    pub const IMAGE_PULL_FAILED: &str = "ImagePullFailed";
    /// Cancelled by its owner.
    pub const CANCELLED: &str = "Cancelled";
    /// It ran longer than `activeDeadlineSeconds`.
    pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";

    /// An administrator ruled that its execution is lost (spec E4).
    pub const BACKEND_LOST: &str = "BackendLost";
    /// An administrator released it while its execution may have gone on (spec F3).
    pub const RELEASED: &str = "Released";
    /// `BackendLost=False`: the ruling was turned down, as the Job did not say `ResultUnknown`.
    pub const NOT_RESULT_UNKNOWN: &str = "NotResultUnknown";

    /// `DuplicateExecution=True`.
    pub const DUPLICATE_EXECUTION: &str = "DuplicateExecution";

    /// `Stalled=True`: the image's name is none.
    pub const INVALID_IMAGE_NAME: &str = "InvalidImageName";
    /// `Stalled=True`: the registry has no such image.
    pub const IMAGE_NOT_FOUND: &str = "ImageNotFound";
    /// `Stalled=True`: the class never pulls, and the node does not have the image.
    pub const IMAGE_NOT_PRESENT: &str = "ImageNotPresent";
    /// `Stalled=True`: the registry asks for credentials, or for better ones.
    pub const IMAGE_PULL_DENIED: &str = "ImagePullDenied";
    /// `Stalled=True`: the pull fails for any other cause.
    pub const IMAGE_PULL_ERROR: &str = "ImagePullError";
    /// `Stalled=True`: a Secret, a ConfigMap or a key of one is missing.
    pub const REFERENCE_MISSING: &str = "ReferenceMissing";
    /// `Stalled=True`: the task is refused as it was asked for.
    pub const START_REFUSED: &str = "StartRefused";
    /// `Stalled=True`: the task cannot be made for any other cause.
    pub const START_ERROR: &str = "StartError";
    /// `Stalled=False`: what it was stalled by is overcome.
    pub const PROGRESSING: &str = "Progressing";

    /// JobClass: `Accepted=True`.
    pub const CLASS_ACCEPTED: &str = "Accepted";
    /// JobClass: no adapter here serves its `controllerName`.
    pub const UNSUPPORTED_CONTROLLER: &str = "UnsupportedController";
    /// JobClass: `parametersRef` names a kind that the adapter does not take.
    pub const INVALID_PARAMETERS_REFERENCE: &str = "InvalidParametersReference";
    /// JobClass: the parameters object is absent, or not the one whose UID is pinned.
    pub const PARAMETERS_NOT_FOUND: &str = "ParametersNotFound";
    /// JobClass: minimum, maximum and defaults contradict each other.
    pub const INVALID_RESOURCE_POLICY: &str = "InvalidResourcePolicy";
    /// JobClass: `Ready=True`.
    pub const BACKEND_REACHABLE: &str = "BackendReachable";
    /// JobClass: the RuntimeClass that the parameters name does not exist (spec H2).
    pub const RUNTIME_CLASS_NOT_FOUND: &str = "RuntimeClassNotFound";

    /// JobClass: `Terminating=True`: Jobs that are not over hold it (spec H3).
    pub const JOBS_REMAINING: &str = "JobsRemaining";
    /// JobClass: `DefaultConflict=False`.
    pub const NO_CONFLICT: &str = "NoConflict";

    /// All of the above, for documentation and tests.
    pub const ALL: &[&str] = &[
        VALID,
        NO_DEFAULT_JOB_CLASS,
        AMBIGUOUS_DEFAULT_JOB_CLASS,
        JOB_CLASS_NOT_FOUND,
        JOB_CLASS_NOT_ACCEPTED,
        NAMESPACE_NOT_ALLOWED,
        INVALID_RESOURCES,
        INVALID_TASK,
        SECRET_NOT_FOUND,
        SECRET_KEY_NOT_FOUND,
        CONFIG_MAP_NOT_FOUND,
        CONFIG_MAP_KEY_NOT_FOUND,
        IMAGE_PULL_SECRET_NOT_FOUND,
        POLICY_VIOLATION,
        BACKEND_CREATED,
        JOB_CLASS_REPLACED,
        PARAMETERS_REPLACED,
        NAME_CONFLICT,
        BACKEND_REFUSED,
        PENDING,
        SCHEDULING,
        RUNNING,
        RESULT_UNKNOWN,
        COMPLETED,
        PROCESS_FAILED,
        OUT_OF_MEMORY,
        START_FAILED,
        REJECTED,
        EVICTED,
        DRAINED,
        PREEMPTED,
        NODE_SHUTDOWN,
        RESULT_LOST,
        IMAGE_PULL_FAILED,
        CANCELLED,
        DEADLINE_EXCEEDED,
        BACKEND_LOST,
        RELEASED,
        NOT_RESULT_UNKNOWN,
        DUPLICATE_EXECUTION,
        INVALID_IMAGE_NAME,
        IMAGE_NOT_FOUND,
        IMAGE_NOT_PRESENT,
        IMAGE_PULL_DENIED,
        IMAGE_PULL_ERROR,
        REFERENCE_MISSING,
        START_REFUSED,
        START_ERROR,
        PROGRESSING,
        CLASS_ACCEPTED,
        UNSUPPORTED_CONTROLLER,
        INVALID_PARAMETERS_REFERENCE,
        PARAMETERS_NOT_FOUND,
        INVALID_RESOURCE_POLICY,
        BACKEND_REACHABLE,
        RUNTIME_CLASS_NOT_FOUND,
        JOBS_REMAINING,
        NO_CONFLICT,
    ];
}

/// True, False or Unknown.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// It does not hold.
    False,
    /// It is not decided yet.
    Unknown,
}

impl ConditionStatus {
    /// The word as it stands in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// One aspect of the observed state: a `metav1.Condition` with bounds that keep the CEL rules of a Job affordable.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The aspect, for example `Accepted`, `Scheduled` or `Succeeded`.
    #[serde(rename = "type")]
    #[schemars(
        length(max = 64),
        regex(
            pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
        )
    )]
    pub type_: String,
    /// Whether the condition holds: True, False, or Unknown while that is not decided.
    pub status: ConditionStatus,
    /// A stable word for programs: why the condition has this status.
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"))]
    pub reason: String,
    /// A sentence for people, with details. Programs must not depend on it.
    #[schemars(length(max = 32768))]
    pub message: String,
    /// When the status last changed from one value to another.
    #[schemars(schema_with = "moment::schema")]
    pub last_transition_time: Time,
    /// The `metadata.generation` that this condition speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
}

/// The condition of that type, if the list has it.
#[must_use]
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the list holds that condition with status True.
#[must_use]
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == ConditionStatus::True)
}

/// Whether a Job's conditions say that its result is unknown.
#[must_use]
pub fn says_unknown(conditions: &[Condition]) -> bool {
    find(conditions, SUCCEEDED).is_some_and(|condition| {
        condition.status == ConditionStatus::Unknown && condition.reason == reason::RESULT_UNKNOWN
    })
}

/// What a writer wants a condition to say; the transition time follows from what stands there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The condition's type.
    pub type_: &'a str,
    /// The status it shall have.
    pub status: ConditionStatus,
    /// The reason it shall have.
    pub reason: &'a str,
    /// The message it shall have; cut to what the schema takes.
    pub message: String,
}

/// Longest condition message that we write, in bytes. The schema takes 32,768 characters; people read one screen.
const MESSAGE_LIMIT: usize = 1024;

/// Puts `wanted` into the list. `lastTransitionTime` moves to `now` only when the status changes, as everywhere in
/// Kubernetes, so that writing the same thing twice changes nothing.
pub fn set(conditions: &mut Vec<Condition>, wanted: Wanted<'_>, generation: Option<i64>, now: Timestamp) {
    let mut message = wanted.message;
    if message.len() > MESSAGE_LIMIT {
        let end = (0..=MESSAGE_LIMIT).rev().find(|&end| message.is_char_boundary(end)).unwrap_or(0);
        message.truncate(end);
    }
    // Whole seconds: metav1.Time carries no more, and a rounded-off fraction would look like a change.
    let now = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
    match conditions.iter_mut().find(|condition| condition.type_ == wanted.type_) {
        Some(present) => {
            if present.status != wanted.status {
                present.last_transition_time = now;
            }
            present.status = wanted.status;
            present.reason = wanted.reason.to_owned();
            present.message = message;
            present.observed_generation = generation;
        }
        None => conditions.push(Condition {
            type_: wanted.type_.to_owned(),
            status: wanted.status,
            reason: wanted.reason.to_owned(),
            message,
            last_transition_time: now,
            observed_generation: generation,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(status: ConditionStatus) -> Wanted<'static> {
        Wanted { type_: SUCCEEDED, status, reason: reason::RUNNING, message: "…".repeat(600) }
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let mut conditions = vec![];
        let (first, later) = (Timestamp::from_second(10).unwrap(), Timestamp::from_second(20).unwrap());
        set(&mut conditions, wanted(ConditionStatus::Unknown), Some(1), first);
        set(&mut conditions, wanted(ConditionStatus::Unknown), Some(2), later);
        assert_eq!(conditions[0].last_transition_time.0, first);
        assert_eq!(conditions[0].observed_generation, Some(2));
        set(&mut conditions, wanted(ConditionStatus::True), Some(2), later);
        assert_eq!(conditions[0].last_transition_time.0, later);
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let mut conditions = vec![];
        set(&mut conditions, wanted(ConditionStatus::True), None, Timestamp::UNIX_EPOCH);
        assert_eq!(conditions[0].message, "…".repeat(341), "341 × 3 bytes are the most that fit 1,024");
    }

    #[test]
    fn every_reason_is_a_word_the_schema_takes_and_stands_once() {
        let mut seen = std::collections::BTreeSet::new();
        for word in reason::ALL {
            assert!(word.chars().all(|c| c.is_ascii_alphanumeric()), "{word}");
            assert!(seen.insert(word), "{word} stands twice");
        }
    }

    #[test]
    fn every_reason_is_explained_to_administrators() {
        let page = include_str!("../../docs/states.md");
        let missing: Vec<_> = reason::ALL.iter().filter(|word| !page.contains(&format!("`{word}`"))).collect();
        assert_eq!(missing, Vec::<&&str>::new(), "docs/states.md");
    }
}
