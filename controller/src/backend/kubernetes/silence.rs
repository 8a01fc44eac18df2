//! What a pod shows of a node that does not answer any more (spec section 6): pure.

use jiff::{SignedDuration, Timestamp};

use super::objects::NativePod;
use crate::backend::Silence;

/// How long after the end of its grace period a pod may still be shown: the kubelet kills the task then, and says so
/// within a few seconds.
const OVERDUE: SignedDuration = SignedDuration::from_secs(10);

/// Since when nothing was heard of the pod's node; the time may lie ahead.
pub(super) fn of(pod: &NativePod) -> Option<Silence> {
    let node = pod.spec.node_name.as_deref()?;
    let over = matches!(pod.status.phase.as_deref(), Some("Succeeded" | "Failed"));
    if over || pod.gone || pod.task().is_some_and(|container| container.state.terminated.is_some()) {
        return None;
    }
    let since = [unready_since(pod), overdue_since(pod)].into_iter().flatten().min()?;
    Some(Silence { since, why: format!("node {node} has not answered since {since}; the task may still run there") })
}

/// The control plane takes Ready away from the pods of a node that is silent, and gives no reason; a kubelet gives one.
fn unready_since(pod: &NativePod) -> Option<Timestamp> {
    let ready = pod.status.conditions.iter().find(|condition| condition.type_ == "Ready")?;
    let by_the_kubelet = !matches!(ready.reason.as_deref(), None | Some("" | "NodeLost"));
    if ready.status != "False" || by_the_kubelet {
        return None;
    }
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// The end of the grace period of a pod that was deleted, plus what a kubelet needs to report it.
fn overdue_since(pod: &NativePod) -> Option<Timestamp> {
    pod.metadata.deletion_timestamp.as_ref()?.0.checked_add(OVERDUE).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const READY_GONE: &str = "2026-01-01T00:01:00Z";

    fn pod(metadata: Value, ready: Value, state: Value) -> NativePod {
        serde_json::from_value(json!({
            "metadata": metadata, "spec": {"nodeName": "n1"},
            "status": {"phase": "Running", "conditions": [ready], "containerStatuses": [{"name": "task", "state": state}]},
        }))
        .unwrap()
    }

    fn ready(status: &str, reason: Option<&str>) -> Value {
        json!({"type": "Ready", "status": status, "reason": reason, "lastTransitionTime": READY_GONE})
    }

    fn since(pod: &NativePod) -> Option<String> {
        of(pod).map(|silence| silence.since.to_string())
    }

    #[test]
    fn a_pod_whose_readiness_the_control_plane_took_away_is_on_a_silent_node() {
        let running = || json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
        assert_eq!(since(&pod(json!({}), ready("False", None), running())).as_deref(), Some(READY_GONE));
        assert_eq!(since(&pod(json!({}), ready("False", Some("NodeLost")), running())).as_deref(), Some(READY_GONE));
        // The kubelet speaks: some other container is not ready.
        assert_eq!(since(&pod(json!({}), ready("False", Some("ContainersNotReady")), running())), None);
        assert_eq!(since(&pod(json!({}), ready("True", None), running())), None);
        let ended = json!({"terminated": {"exitCode": 0}});
        assert_eq!(since(&pod(json!({}), ready("False", None), ended)), None, "it has said how it ended");
    }

    #[test]
    fn a_pod_that_outlives_its_grace_period_is_on_a_silent_node() {
        let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:30Z"});
        let running = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
        let pod = pod(deleted, ready("True", None), running);
        assert_eq!(since(&pod).as_deref(), Some("2026-01-01T00:00:40Z"));
        assert_eq!(since(&NativePod { gone: true, ..pod.clone() }), None);
        assert_eq!(since(&NativePod { spec: Default::default(), ..pod }), None, "no node has it");
    }
}
