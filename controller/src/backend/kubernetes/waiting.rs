//! Why a released task has not started yet, in words for people (spec E5), and by what failure
//! of the kubelet (spec E1). Neither is a verdict.

use std::collections::BTreeSet;

use super::{
    objects::{ContainerStatus, NativePod, Waiting},
    render::CONTAINER,
    start_failure,
    words::cut,
};
use crate::backend::{NOTHING_KNOWN, Phase};

/// A released execution whose pod has not started the task.
pub(super) fn phase(pod: &NativePod) -> Phase {
    let failure = |(_, waiting): (&ContainerStatus, &Waiting)| start_failure::of(waiting);
    Phase::Waiting { why: why(pod), failure: in_want(pod).and_then(failure) }
}

/// The container that does not start for a reason: the task's own, or one that the cluster put before it.
fn in_want(pod: &NativePod) -> Option<(&ContainerStatus, &Waiting)> {
    pod.task().into_iter().chain(&pod.status.init_container_statuses).find_map(|container| {
        let waiting = container.state.waiting.as_ref()?;
        let usual = matches!(waiting.reason.as_deref(), None | Some("" | "ContainerCreating" | "PodInitializing"));
        (!usual).then_some((container, waiting))
    })
}

/// What the scheduler or the kubelet says of the pod.
fn why(pod: &NativePod) -> String {
    if let Some((container, waiting)) = in_want(pod) {
        let words =
            steady(waiting.reason.as_deref().unwrap_or_default(), waiting.message.as_deref().unwrap_or_default());
        let whose = if container.name == CONTAINER { "" } else { &format!("init container {:?}: ", container.name) };
        return cut(&format!("{whose}{words}"));
    }
    if let Some(before) = pod.status.init_container_statuses.iter().find(|before| before.state.running.is_some()) {
        return cut(&format!("waiting for init container {:?} to end", before.name));
    }
    let unscheduled =
        pod.status.conditions.iter().find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    match unscheduled.and_then(|condition| condition.message.as_deref()) {
        Some(message) => cut(&format!("no node takes it yet: {}", without_counts(message))),
        None => NOTHING_KNOWN.to_owned(),
    }
}

/// `0/57 nodes are available: 33 Insufficient cpu, 24 node(s) …. preemption: …` without its numbers, which change with
/// every pod of the cluster: each change would be a status write of every Job that waits.
fn without_counts(message: &str) -> String {
    let Some((_, causes)) = message.split_once("nodes are available: ") else { return message.to_owned() };
    let causes = causes.split_once(". ").map_or(causes, |(causes, _)| causes).trim_end_matches('.');
    let words = causes.split(", ").map(|cause| cause.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' '));
    words.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}

/// The kubelet goes to and fro between `ErrImagePull: WHY` and `ImagePullBackOff: Back-off pulling image "X":
/// ErrImagePull: WHY`. Both are said alike, so that a pull that goes on failing costs no status write each time.
fn steady(reason: &str, message: &str) -> String {
    match (reason, message.split_once("ErrImagePull: ")) {
        ("ErrImagePull", None) => format!("the image cannot be pulled: {message}"),
        ("ErrImagePull" | "ImagePullBackOff", Some((_, error))) => format!("the image cannot be pulled: {error}"),
        _ => format!("{reason}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(status: Value) -> String {
        why(&serde_json::from_value(json!({"metadata": {}, "status": status})).unwrap())
    }

    fn waiting(reason: &str, message: &str) -> Value {
        json!({"containerStatuses": [{"name": "task", "state": {"waiting": {"reason": reason, "message": message}}}]})
    }

    #[test]
    fn a_pull_that_goes_on_failing_is_told_in_the_same_words() {
        let first = told(waiting("ErrImagePull", "rpc error: code = NotFound"));
        let later = told(waiting(
            "ImagePullBackOff",
            r#"Back-off pulling image "x": ErrImagePull: rpc error: code = NotFound"#,
        ));
        assert_eq!(first, "the image cannot be pulled: rpc error: code = NotFound");
        assert_eq!(first, later);
    }

    #[test]
    fn other_causes_are_told_as_they_are_and_none_is_made_up() {
        assert_eq!(
            told(waiting("CreateContainerConfigError", "secret \"s\" not found")),
            "CreateContainerConfigError: secret \"s\" not found"
        );
        assert_eq!(told(waiting("ContainerCreating", "")), NOTHING_KNOWN);
        let message = "0/3 nodes are available: 2 Insufficient memory, 1 Insufficient cpu. preemption: 0/3 nodes are available: 3 none.";
        let unscheduled = json!({"conditions": [{"type": "PodScheduled", "status": "False", "message": message}]});
        assert_eq!(told(unscheduled), "no node takes it yet: Insufficient cpu, Insufficient memory");
        assert_eq!(told(json!({})), NOTHING_KNOWN);
    }

    #[test]
    fn what_stands_before_the_task_is_told_by_its_name_and_counts_as_its_start() {
        let pod = |state: Value| {
            let before = json!([{"name": "mesh", "state": state}]);
            let task = json!([{"name": "task", "state": {"waiting": {"reason": "PodInitializing"}}}]);
            json!({"containerStatuses": task, "initContainerStatuses": before})
        };
        let absent = pod(json!({"waiting": {"reason": "ErrImagePull", "message": "rpc error: code = NotFound"}}));
        let wanted = "init container \"mesh\": the image cannot be pulled: rpc error: code = NotFound";
        assert_eq!(told(absent.clone()), wanted);
        let pod_of = |status| serde_json::from_value(json!({"metadata": {}, "status": status})).unwrap();
        let Phase::Waiting { failure, .. } = phase(&pod_of(absent)) else { panic!("it waits") };
        assert!(failure.is_some());
        assert_eq!(told(pod(json!({"running": {}}))), "waiting for init container \"mesh\" to end");
    }
}
