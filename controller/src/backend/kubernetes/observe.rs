//! What a native Job and its pods show: pure, from the objects to an [`Observation`].

use ayatori_crds::{
    conditions::reason,
    names::{BACKEND_CLEANUP_FINALIZER, JOB_UID_LABEL, RELEASED_ANNOTATION},
};
use jiff::Timestamp;

use super::{
    left_behind, limit,
    objects::{NativeJob, NativePod, condition_is_true},
    silence, verdict, waiting,
    words::cut,
};
use crate::backend::{End, Execution, Observation, Phase};

/// The label by which a native Job selects its pods.
const CONTROLLER_UID_LABEL: &str = "batch.kubernetes.io/controller-uid";

/// What the adapter knows of the Job whose execution it looks for.
#[derive(Debug, Clone, Copy)]
pub struct Sought<'a> {
    /// The Job's UID.
    pub job_uid: &'a str,
    /// The native Job's UID, once it is recorded.
    pub recorded: Option<&'a str>,
    /// Whether the task was seen to run before.
    pub started: bool,
}

/// Reads the native Job that stands under the execution's name, and the pods that carry the Job's UID.
#[must_use]
pub fn observe(sought: Sought<'_>, native: Option<&NativeJob>, pods: &[&NativePod]) -> Observation {
    let found = native.and_then(|native| Some((native, native.metadata.uid.as_deref()?)));
    let (native, uid) = match (found, sought.recorded) {
        (Some((native, uid)), Some(recorded)) if recorded == uid => (native, uid),
        // Ours is gone; what stands there now has nothing to do with this Job any more (spec D5). Its pods may be there.
        (_, Some(recorded)) => return left_behind::observe(sought, recorded, pods),
        (Some((native, uid)), None) if is_ours(native, sought.job_uid) => (native, uid),
        (Some(_), None) => return Observation::Foreign,
        // Never recorded, so never released: there are no pods.
        (None, None) => return Observation::Absent,
    };
    let pods = owned_by(uid, pods);
    // The oldest that may have run is the execution; that there is another is a fault to be told (spec E2).
    let refused = |pod: &NativePod| of_pod(sought, pod).is_some_and(|phase| nothing_ran(&phase));
    let mut bound = pods.iter().copied().filter(|pod| !pod.never_ran());
    let pod = bound.clone().find(|pod| !refused(pod)).or_else(|| bound.next());
    let finalizers = native.metadata.finalizers.as_deref().unwrap_or_default();
    Observation::Present(Execution {
        id: uid.to_owned(),
        phase: phase(sought, native, pod, &pods),
        stop_requested: native.spec.active_deadline_seconds == Some(0),
        deletion_requested: native.metadata.deletion_timestamp.is_some(),
        protected: finalizers.iter().any(|finalizer| finalizer == BACKEND_CLEANUP_FINALIZER),
        silence: pod.and_then(silence::of),
        limited: native.spec.active_deadline_seconds.is_some(),
        limit_reached: limit::reached(native),
        copies: pods.len(),
        orphaned: None,
    })
}

/// Before its UID is recorded, ours is the one with our UID label *and* our owner reference (spec D5).
fn is_ours(native: &NativeJob, job_uid: &str) -> bool {
    let label = native.metadata.labels.as_ref().and_then(|labels| labels.get(JOB_UID_LABEL));
    let owned = native.metadata.owner_references.iter().flatten().any(|owner| owner.uid == job_uid);
    owned && label.is_some_and(|uid| uid == job_uid)
}

/// The pods of the native Job with that UID, oldest first.
pub(super) fn owned_by<'a>(native_uid: &str, pods: &[&'a NativePod]) -> Vec<&'a NativePod> {
    let mut pods: Vec<_> = pods.iter().copied().filter(|pod| is_owned_by(pod, native_uid)).collect();
    pods.sort_by(|a, b| a.metadata.creation_timestamp.cmp(&b.metadata.creation_timestamp));
    pods
}

/// By its owner. A deletion with `--cascade=orphan` strips that; what the native Job's controller wrote on it stays.
fn is_owned_by(pod: &NativePod, native_uid: &str) -> bool {
    let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
    let labelled = || pod.metadata.labels.as_ref().and_then(|labels| labels.get(CONTROLLER_UID_LABEL));
    match owners {
        [] => labelled().is_some_and(|uid| uid == native_uid),
        owners => owners.iter().any(|owner| owner.uid == native_uid),
    }
}

/// What is said of a pod that failed, whose container may still run.
pub(super) const FAILED_WITHOUT_A_WORD: &str = "its pod failed, but nothing says how its container ended";

/// `pod` is the one of `pods` that is the execution, where one may have run.
fn phase(sought: Sought<'_>, native: &NativeJob, pod: Option<&NativePod>, pods: &[&NativePod]) -> Phase {
    let conditions = &native.status.conditions;
    if let Some(phase) = pod.and_then(|pod| of_pod(sought, pod)) {
        return phase;
    }
    // Below here no container says how it ended. Neither a pod phase nor the native Job's word is a verdict.
    let pod = pod.filter(|pod| !pod.gone);
    let may_run = pod.and_then(NativePod::task).is_some_and(|container| container.state.running.is_some());
    if condition_is_true(conditions, "Complete").is_some() {
        return Phase::Ended(counted_success());
    }
    if let Some(condition) = condition_is_true(conditions, "Failed") {
        let word = condition.reason.as_deref().unwrap_or("no reason");
        let why = format!("the native Job failed ({word}), but no container says how the task ended");
        return match native.status.terminating.unwrap_or_default() {
            0 if none_ran(sought, pods) => Phase::Ended(verdict::never_bound()),
            0 if word == "DeadlineExceeded" && !may_run => Phase::Stopped,
            0 if !may_run => Phase::Lost { why },
            _ => Phase::Unknown { why },
        };
    }
    let started = sought.started || pods.iter().any(|pod| pod.gone && !pod.never_ran());
    match pod {
        Some(pod) if pod.has_failed() => Phase::Unknown { why: FAILED_WITHOUT_A_WORD.into() },
        Some(pod) => waiting::phase(pod),
        // What was started is never released again, whatever its mark says (I1).
        None if native.spec.suspend && !started && !was_released(native) => Phase::Prepared,
        // Suspending a native Job deletes its pod and counts nothing. It is not ours to let it run a second time (I1).
        None if native.spec.suspend && native.spec.active_deadline_seconds == Some(0) => {
            Phase::Lost { why: "its native Job was suspended by somebody else after its release".into() }
        }
        None if native.spec.suspend => {
            Phase::Unknown { why: "its native Job was suspended by somebody else after its release".into() }
        }
        None if started => Phase::Unknown { why: "its pod is gone; it cannot be proven how the task ended".into() },
        None => Phase::Released,
    }
}

/// It is over, and nothing ran.
pub(super) fn nothing_ran(phase: &Phase) -> bool {
    matches!(phase, Phase::Ended(end) if end.reason == reason::REJECTED)
}

/// There were pods, and no node ever had one of them.
fn none_ran(sought: Sought<'_>, pods: &[&NativePod]) -> bool {
    !sought.started && !pods.is_empty() && pods.iter().all(|pod| pod.never_ran())
}

/// What is said of an execution whose release was refused. A test in it that failed is no refusal: it was released
/// before, or is another one, and what is there now says so.
#[must_use]
pub fn after_refused_release(now: Observation, why: &str) -> Observation {
    match now {
        Observation::Present(Execution { phase: Phase::Prepared, .. }) => Observation::Refused { why: cut(why) },
        now => now,
    }
}

/// The release leaves its mark in the same patch that un-suspends.
fn was_released(native: &NativeJob) -> bool {
    native.metadata.annotations.as_ref().and_then(|all| all.get(RELEASED_ANNOTATION)).is_none_or(|mark| mark != "false")
}

/// What the task's own container shows; None while it shows nothing.
pub(super) fn of_pod(sought: Sought<'_>, pod: &NativePod) -> Option<Phase> {
    let Some(container) = pod.task() else {
        return verdict::of_refused_pod(pod, sought.started).map(Phase::Ended);
    };
    if let Some(terminated) = &container.state.terminated {
        return Some(Phase::Ended(verdict::of_container(pod, container, terminated, sought.started)));
    }
    if pod.has_failed() || pod.gone {
        return verdict::of_container_before(pod, container).map(Phase::Ended);
    }
    let started_at = container.state.running.as_ref()?.started_at.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    Some(Phase::Running { started_at })
}

/// The native Job counted a pod that succeeded, but the pod was gone before it was seen to end.
fn counted_success() -> End {
    End {
        success: true,
        reason: reason::COMPLETED,
        message: "the native Job counted a pod that succeeded; the pod was gone before its exit code was seen".into(),
        exit_code: None,
        started_at: None,
        finished_at: None,
    }
}

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
