//! What a terminated container proves (spec section 6; `docs/contract.md`): the table of evidence, row by row.

use ayatori_crds::conditions::reason;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    objects::{ContainerStatus, NativePod, Terminated, condition_is_true},
    words::cut,
};
use crate::backend::End;

/// The end that a terminated task container shows. A container that was seen as `started` was made, whatever is left of it.
pub(super) fn of_container(
    pod: &NativePod,
    container: &ContainerStatus,
    terminated: &Terminated,
    started: bool,
) -> End {
    let (code, word) = (terminated.exit_code, terminated.reason.as_deref().unwrap_or_default());
    // The kubelet forgets a container that it has removed: after an eviction that is no sign that it never was.
    let may_have_run = started || pod.status.reason.as_deref() == Some("Evicted");
    let started_at = real(terminated.started_at.as_ref());
    let end = |success, reason, message: String, exit_code, started_at| End {
        success,
        reason,
        message,
        exit_code,
        started_at,
        finished_at: real(terminated.finished_at.as_ref()),
    };
    match word {
        // The runtime could not start it: the code is synthetic and the start time is that of 1970.
        "StartError" | "ContainerCannotRun" => {
            let message = terminated.message.as_deref().unwrap_or("the runtime could not start the task");
            end(false, reason::START_FAILED, cut(message), None, None)
        }
        "ContainerStatusUnknown" if container.was_never_made() && !may_have_run => {
            // Whatever times it carries are made up: after our stop it is never an end of its own.
            End { finished_at: None, ..end(false, reason::REJECTED, "its container was never made".into(), None, None) }
        }
        "ContainerStatusUnknown" | "Unknown" => {
            let message = "the task is over, but the node lost its exit code; its result cannot be known";
            end(false, reason::RESULT_LOST, message.into(), None, started_at)
        }
        _ if code == 0 => end(true, reason::COMPLETED, "the task exited with code 0".into(), Some(0), started_at),
        "OOMKilled" if code == 137 => {
            end(false, reason::OUT_OF_MEMORY, "the task used more memory than its limit".into(), Some(code), started_at)
        }
        _ => {
            let (reason, by) = disruption(pod).unwrap_or((reason::PROCESS_FAILED, ""));
            end(false, reason, format!("the task exited with code {code}{by}"), Some(code), started_at)
        }
    }
}

/// Who ended the pod, if somebody did.
fn disruption(pod: &NativePod) -> Option<(&'static str, &'static str)> {
    match pod.status.reason.as_deref() {
        Some("Evicted") => return Some((reason::EVICTED, " after the kubelet evicted it")),
        Some("Terminated" | "NodeShutdown") => return Some((reason::NODE_SHUTDOWN, " as its node was shut down")),
        Some("Preempting") => return Some((reason::PREEMPTED, " after it was preempted")),
        _ => {}
    }
    let target = condition_is_true(&pod.status.conditions, "DisruptionTarget")?;
    match target.reason.as_deref() {
        Some("EvictionByEvictionAPI" | "DeletionByTaintManager") => {
            Some((reason::DRAINED, " after it was evicted through the API"))
        }
        Some("PreemptionByScheduler") => Some((reason::PREEMPTED, " after the scheduler preempted it")),
        Some("TerminationByKubelet") => Some((reason::NODE_SHUTDOWN, " as its node ended it")),
        _ => None,
    }
}

/// A pod that failed by the kubelet's own word and shows no container: nothing ran, or, where the task was `started`
/// before (a node that rebooted refuses what it ran), its code is lost.
pub(super) fn of_refused_pod(pod: &NativePod, started: bool) -> Option<End> {
    let refused = pod.has_failed() && pod.status.container_statuses.is_empty();
    // `NodeLost` is the control plane's word on a kubelet that says nothing.
    let word = pod.status.reason.as_deref().filter(|word| refused && !word.is_empty() && *word != "NodeLost")?;
    let detail = pod.status.message.as_deref().unwrap_or_default();
    Some(End {
        success: false,
        reason: if started { reason::RESULT_LOST } else { reason::REJECTED },
        message: cut(&format!("the node refused it: {word}: {detail}")),
        exit_code: None,
        started_at: None,
        finished_at: None,
    })
}

/// A pod that failed in a container that somebody's policy put before the task: the task was never made, and with
/// `restartPolicy: Never` never will be. Where others than the kubelet say Failed, the kubelet may have gone on unseen.
pub(super) fn of_container_before(pod: &NativePod, task: &ContainerStatus) -> Option<End> {
    let by_kubelet = pod.has_failed() && condition_is_true(&pod.status.conditions, "DisruptionTarget").is_none();
    if !by_kubelet || !task.was_never_made() {
        return None;
    }
    let failed = |before: &ContainerStatus| before.state.terminated.as_ref().map_or(0, |ended| ended.exit_code) != 0;
    let before = pod.status.init_container_statuses.iter().find(|before| failed(before))?;
    let code = before.state.terminated.as_ref()?.exit_code;
    let message = format!("init container {:?}, which is not part of the task, exited with code {code}", before.name);
    Some(End {
        success: false,
        reason: reason::START_FAILED,
        message: cut(&format!("{message}; the task was not started")),
        exit_code: None,
        started_at: None,
        finished_at: None,
    })
}

/// The end of an execution whose pod went before any node had it: nothing ran.
pub(super) fn never_bound() -> End {
    End {
        success: false,
        reason: reason::REJECTED,
        message: "its pod was deleted before any node had it; nothing ran".into(),
        exit_code: None,
        started_at: None,
        finished_at: None,
    }
}

/// A time that means something: runtimes say 1970 for "never".
fn real(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0).filter(|time| time.as_second() > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn judged(pod: Value, terminated: Value) -> (bool, &'static str, Option<i32>, bool) {
        let pod: NativePod = serde_json::from_value(json!({"metadata": {}, "status": pod})).unwrap();
        let container = ContainerStatus { container_id: Some("containerd://1".into()), ..ContainerStatus::default() };
        let terminated: Terminated = serde_json::from_value(terminated).unwrap();
        let end = of_container(&pod, &container, &terminated, false);
        (end.success, end.reason, end.exit_code, end.started_at.is_some())
    }

    fn ended(code: i32, reason: &str) -> Value {
        json!({"exitCode": code, "reason": reason, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:09Z"})
    }

    #[test]
    fn each_row_of_the_table_of_evidence() {
        let target =
            |reason: &str| json!({"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason}]});
        let none = || json!({});
        for (pod, terminated, expected) in [
            (none(), ended(0, "Completed"), (true, "Completed", Some(0), true)),
            (none(), ended(3, "Error"), (false, "ProcessFailed", Some(3), true)),
            (none(), ended(137, "OOMKilled"), (false, "OutOfMemory", Some(137), true)),
            // Seen in the field: the runtime's counter says OOM of a task that ended otherwise.
            (none(), ended(143, "OOMKilled"), (false, "ProcessFailed", Some(143), true)),
            (none(), ended(0, "OOMKilled"), (true, "Completed", Some(0), true)),
            (json!({"reason": "Evicted"}), ended(137, "Error"), (false, "Evicted", Some(137), true)),
            (target("EvictionByEvictionAPI"), ended(143, "Error"), (false, "Drained", Some(143), true)),
            (target("PreemptionByScheduler"), ended(137, "Error"), (false, "Preempted", Some(137), true)),
            (target("TerminationByKubelet"), ended(137, "Error"), (false, "NodeShutdown", Some(137), true)),
            // A task that exits 0 after somebody else's SIGTERM has succeeded.
            (target("EvictionByEvictionAPI"), ended(0, "Completed"), (true, "Completed", Some(0), true)),
            (none(), ended(255, "Unknown"), (false, "ResultLost", None, true)),
            (none(), ended(137, "ContainerStatusUnknown"), (false, "ResultLost", None, true)),
            (
                none(),
                json!({"exitCode": 128, "reason": "StartError", "startedAt": "1970-01-01T00:00:00Z", "message": "no such file"}),
                (false, "StartFailed", None, false),
            ),
        ] {
            assert_eq!(judged(pod, terminated.clone()), expected, "{terminated}");
        }
    }

    #[test]
    fn a_container_that_was_never_made_ran_nothing() {
        let terminated =
            Terminated { exit_code: 137, reason: Some("ContainerStatusUnknown".into()), ..Default::default() };
        let end = |pod: &NativePod, started| of_container(pod, &ContainerStatus::default(), &terminated, started);
        let never = end(&NativePod::default(), false);
        assert_eq!((never.reason, never.exit_code, never.started_at), ("Rejected", None, None));

        assert_eq!(end(&NativePod::default(), true).reason, "ResultLost", "it was seen to run");
        let evicted = json!({"metadata": {}, "status": {"phase": "Failed", "reason": "Evicted"}});
        let evicted: NativePod = serde_json::from_value(evicted).unwrap();
        assert_eq!(end(&evicted, false).reason, "ResultLost", "the kubelet removes what it evicts");
    }

    #[test]
    fn a_container_before_the_task_that_failed_is_a_start_that_failed() {
        let pod =
            |status: Value| -> NativePod { serde_json::from_value(json!({"metadata": {}, "status": status})).unwrap() };
        let before =
            |code: i32| json!([{"name": "mesh", "containerID": "c", "state": {"terminated": {"exitCode": code}}}]);
        let status = |code: i32| json!({"phase": "Failed", "initContainerStatuses": before(code)});
        let task = ContainerStatus::default();
        let end = of_container_before(&pod(status(7)), &task).unwrap();
        let words =
            "init container \"mesh\", which is not part of the task, exited with code 7; the task was not started";
        assert_eq!((end.reason, end.exit_code, end.message.as_str()), ("StartFailed", None, words));

        let made = ContainerStatus { container_id: Some("c".into()), ..Default::default() };
        assert_eq!(of_container_before(&pod(status(7)), &made), None, "the task was made");
        assert_eq!(of_container_before(&pod(status(0)), &task), None, "it is not what failed");
        let running = json!({"phase": "Pending", "initContainerStatuses": before(7)});
        assert_eq!(of_container_before(&pod(running), &task), None, "a sidecar is started again");
        let mut lost = status(7);
        lost["conditions"] = json!([{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}]);
        assert_eq!(of_container_before(&pod(lost), &task), None, "the kubelet may have gone on");
    }

    #[test]
    fn a_pod_that_the_kubelet_refused_is_told_from_one_that_lost_its_node() {
        let pod = |status: Value| serde_json::from_value(json!({"metadata": {}, "status": status})).unwrap();
        let refused: NativePod = pod(json!({"phase": "Failed", "reason": "OutOfcpu", "message": "no\nCPU left"}));
        assert_eq!(of_refused_pod(&refused, false).unwrap().message, "the node refused it: OutOfcpu: no CPU left");
        assert_eq!(of_refused_pod(&refused, true).unwrap().reason, "ResultLost", "it was seen to run before");
        let lost: NativePod = pod(json!({"phase": "Failed"}));
        assert_eq!(of_refused_pod(&lost, false), None, "PodGC says Failed without a reason of the kubelet");
    }
}
