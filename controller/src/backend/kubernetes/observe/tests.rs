use serde_json::{Value, json};

use super::*;
use crate::backend::{NOTHING_KNOWN, kubernetes::objects::NativePodSpec};

fn waiting() -> Phase {
    Phase::Waiting { why: NOTHING_KNOWN.into(), failure: None }
}

const SOUGHT: Sought<'static> = Sought { job_uid: "job-uid", recorded: Some("native-uid"), started: false };

fn native(suspend: bool, deadline: Option<i64>, status: Value) -> NativeJob {
    let spec = json!({"suspend": suspend, "activeDeadlineSeconds": deadline});
    let metadata = json!({
        "uid": "native-uid", "labels": {JOB_UID_LABEL: "job-uid"}, "annotations": {RELEASED_ANNOTATION: "false"}, "finalizers": [BACKEND_CLEANUP_FINALIZER],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "job-uid"}],
    });
    serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
}

fn pod(status: Value) -> NativePod {
    let owner = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "n", "uid": "native-uid"}]);
    let spec = json!({"nodeName": "n1"});
    serde_json::from_value(json!({"metadata": {"ownerReferences": owner}, "spec": spec, "status": status})).unwrap()
}

/// A pod that no node has.
fn unbound(status: Value) -> NativePod {
    NativePod { spec: NativePodSpec::default(), ..pod(status) }
}

fn container(state: Value) -> Value {
    json!({"containerStatuses": [{"name": "sidecar", "state": {"terminated": {"exitCode": 9}}}, {"name": "task", "state": state}]})
}

const STARTED_AT: &str = "2026-01-01T00:00:00Z";

fn running() -> NativePod {
    pod(container(json!({"running": {"startedAt": STARTED_AT}})))
}

fn failed(reason: &str, terminating: i32) -> Value {
    json!({"conditions": [{"type": "Failed", "status": "True", "reason": reason}], "terminating": terminating})
}

fn phase_of(sought: Sought<'_>, native: &NativeJob, pods: &[&NativePod]) -> Phase {
    match observe(sought, Some(native), pods) {
        Observation::Present(execution) => execution.phase,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_stands_under_the_name_is_ours_only_by_its_marks_or_by_the_recorded_uid() {
    let ours = native(true, None, json!({}));
    let unrecorded = Sought { recorded: None, ..SOUGHT };
    assert!(matches!(observe(unrecorded, Some(&ours), &[]), Observation::Present(_)));
    let mut orphaned = ours.clone();
    orphaned.metadata.owner_references = None;
    assert_eq!(observe(unrecorded, Some(&orphaned), &[]), Observation::Foreign);
    assert!(matches!(observe(SOUGHT, Some(&orphaned), &[]), Observation::Present(_)), "a recorded UID is still ours");
    let mut other = ours;
    other.metadata.uid = Some("another".into());
    assert_eq!(observe(SOUGHT, Some(&other), &[]), Observation::Absent, "ours is gone");
    assert_eq!(observe(SOUGHT, None, &[]), Observation::Absent);
}

#[test]
fn a_suspended_native_job_is_prepared_and_a_released_one_waits() {
    assert_eq!(phase_of(SOUGHT, &native(true, None, json!({})), &[]), Phase::Prepared);
    assert_eq!(phase_of(SOUGHT, &native(false, None, json!({})), &[]), Phase::Released);
    let pending = pod(json!({"phase": "Pending"}));
    assert_eq!(phase_of(SOUGHT, &native(false, None, json!({})), &[&pending]), waiting());
}

#[test]
fn only_the_container_named_task_is_asked() {
    let started_at = STARTED_AT.parse().unwrap();
    assert_eq!(phase_of(SOUGHT, &native(false, None, json!({})), &[&running()]), Phase::Running { started_at });
    let over = pod(container(json!({"terminated": {"exitCode": 0}})));
    // The native Job says Failed of a task that exited 0: the container is the evidence.
    let Phase::Ended(end) = phase_of(SOUGHT, &native(false, None, failed("BackoffLimitExceeded", 0)), &[&over]) else {
        panic!("the container is terminated")
    };
    assert!(end.success);
}

#[test]
fn a_pod_of_another_native_job_is_not_looked_at() {
    let mut stray = pod(container(json!({"terminated": {"exitCode": 0}})));
    stray.metadata.owner_references.as_mut().unwrap()[0].uid = "another".into();
    assert_eq!(phase_of(SOUGHT, &native(false, None, json!({})), &[&stray]), Phase::Released);
}

#[test]
fn failed_without_a_terminated_container_is_no_verdict() {
    let gave_up = native(false, None, failed("BackoffLimitExceeded", 0));
    let mut lost = container(json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}));
    lost["phase"] = json!("Failed");
    assert!(matches!(phase_of(SOUGHT, &gave_up, &[&pod(lost)]), Phase::Unknown { .. }), "it may still run");
    assert!(matches!(phase_of(SOUGHT, &gave_up, &[]), Phase::Lost { .. }), "nothing runs any more");
    let collected = pod(json!({"phase": "Failed"}));
    assert!(matches!(phase_of(SOUGHT, &gave_up, &[&collected]), Phase::Lost { .. }));
    let started = Sought { started: true, ..SOUGHT };
    assert!(matches!(phase_of(started, &native(false, None, json!({})), &[]), Phase::Unknown { .. }));
}

#[test]
fn a_native_job_that_was_suspended_after_its_release_is_never_prepared_again() {
    let mut again = native(true, None, json!({}));
    again.metadata.annotations = Some([(RELEASED_ANNOTATION.to_owned(), "true".to_owned())].into());
    assert!(matches!(phase_of(SOUGHT, &again, &[]), Phase::Unknown { .. }));
    again.spec.active_deadline_seconds = Some(0);
    assert!(matches!(phase_of(SOUGHT, &again, &[]), Phase::Lost { .. }), "it can never run again");
    let mut stripped = native(true, None, json!({}));
    stripped.metadata.annotations = None;
    assert!(matches!(phase_of(SOUGHT, &stripped, &[]), Phase::Unknown { .. }), "in doubt it was released");
}

#[test]
fn a_stop_is_proven_by_deadline_exceeded_with_nothing_terminating() {
    assert_eq!(phase_of(SOUGHT, &native(false, Some(0), failed("DeadlineExceeded", 0)), &[]), Phase::Stopped);
    let terminating = native(false, Some(0), failed("DeadlineExceeded", 1));
    assert!(matches!(phase_of(SOUGHT, &terminating, &[]), Phase::Unknown { .. }));
}

#[test]
fn a_success_that_was_counted_before_it_was_seen_has_no_code() {
    let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    let Phase::Ended(end) = phase_of(SOUGHT, &native(false, None, complete), &[]) else { panic!("it is over") };
    assert_eq!((end.success, end.exit_code), (true, None));
}

#[test]
fn a_pod_that_goes_before_any_node_had_it_was_rejected_once_no_other_can_come() {
    let gave_up = native(false, None, failed("BackoffLimitExceeded", 0));
    let rejected = |pod: &NativePod| match phase_of(SOUGHT, &gave_up, &[pod]) {
        Phase::Ended(end) => (end.reason, end.started_at) == (reason::REJECTED, None),
        _ => false,
    };
    let gone = |pod: NativePod| NativePod { gone: true, ..pod };
    assert!(rejected(&gone(unbound(json!({"phase": "Pending"})))));
    assert!(rejected(&unbound(json!({"phase": "Failed"}))), "swept before it was bound");
    assert!(!rejected(&gone(pod(json!({"phase": "Pending"})))), "a node may have begun it");
    assert!(!rejected(&unbound(json!({"phase": "Pending"}))), "it is still there");
    let goes_on = native(false, None, json!({}));
    let departed = gone(unbound(json!({"phase": "Pending"})));
    assert_eq!(phase_of(SOUGHT, &goes_on, &[&departed]), Phase::Released, "another may come");
}

#[test]
fn the_last_words_of_a_pod_that_is_gone_are_evidence_and_its_running_state_is_none() {
    let goes_on = native(false, None, json!({}));
    let ended = NativePod { gone: true, ..pod(container(json!({"terminated": {"exitCode": 9}}))) };
    let Phase::Ended(end) = phase_of(SOUGHT, &goes_on, &[&ended]) else { panic!("it said how it ended") };
    assert_eq!(end.exit_code, Some(9));
    let forced = NativePod { gone: true, ..running() };
    assert!(matches!(phase_of(SOUGHT, &goes_on, &[&forced]), Phase::Unknown { .. }));
}

#[test]
fn every_pod_that_was_ever_seen_is_counted() {
    let mut second = pod(json!({"phase": "Pending"}));
    second.metadata.uid = Some("2".into());
    let first = NativePod { gone: true, ..pod(json!({"phase": "Pending"})) };
    let Observation::Present(execution) = observe(SOUGHT, Some(&native(false, None, json!({}))), &[&first, &second])
    else {
        panic!("it is there")
    };
    assert_eq!(execution.copies, 2);
}

/// What the pods of a native Job show that is gone.
fn left(sought: Sought<'_>, pods: &[&NativePod]) -> Option<Execution> {
    match observe(sought, None, pods) {
        Observation::Present(execution) => Some(execution),
        Observation::Absent => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_pods_of_a_native_job_that_is_gone_are_the_execution_until_they_are_over() {
    let started = Sought { started: true, ..SOUGHT };
    let gone = |pod: NativePod| NativePod { gone: true, ..pod };
    let ended = || pod(container(json!({"terminated": {"exitCode": 9}})));
    let failed = || {
        let mut lost = running();
        lost.status.phase = Some("Failed".into());
        lost
    };
    let refused = || pod(json!({"phase": "Failed", "reason": "OutOfcpu"}));
    for (pod, expected) in [
        (running(), "runs"),
        (pod(json!({"phase": "Pending"})), "waits"),
        (failed(), "unknown"),
        (ended(), "ProcessFailed"),
        (gone(ended()), "ProcessFailed"),
        (refused(), "ResultLost"),
        (gone(running()), "nothing"),
        (gone(unbound(json!({"phase": "Pending"}))), "nothing"),
    ] {
        let said = match left(started, &[&pod]).map(|execution| execution.phase) {
            None => "nothing",
            Some(Phase::Running { .. }) => "runs",
            Some(Phase::Waiting { .. }) => "waits",
            Some(Phase::Unknown { .. }) => "unknown",
            Some(Phase::Ended(end)) => end.reason,
            Some(other) => panic!("{other:?}"),
        };
        assert_eq!(said, expected, "{pod:?}");
    }
    let never = gone(unbound(json!({"phase": "Pending"})));
    assert!(
        matches!(left(SOUGHT, &[&never]).unwrap().phase, Phase::Ended(end) if end.reason == reason::REJECTED),
        "no other pod can come"
    );
}

#[test]
fn nothing_is_over_while_one_of_the_pods_that_are_left_may_run() {
    let aged = |pod: NativePod, second: i64| {
        let mut pod = pod;
        pod.metadata.creation_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::from_second(second).unwrap()));
        pod
    };
    let first = aged(pod(container(json!({"terminated": {"exitCode": 9}}))), 1);
    let second = aged(running(), 2);
    let execution = left(SOUGHT, &[&second, &first]).unwrap();
    assert!(matches!(execution.phase, Phase::Running { .. }) && execution.copies == 2, "{execution:?}");
    let second = NativePod { gone: true, ..second };
    let Phase::Ended(end) = left(SOUGHT, &[&second, &first]).unwrap().phase else { panic!("none runs any more") };
    assert_eq!(end.exit_code, Some(9), "the oldest is the execution");
}

#[test]
fn what_is_left_belongs_to_the_recorded_uid_alone() {
    let mut stray = running();
    stray.metadata.owner_references.as_mut().unwrap()[0].uid = "another".into();
    assert_eq!(left(SOUGHT, &[&stray]), None);
    assert_eq!(left(Sought { recorded: None, ..SOUGHT }, &[&running()]), None, "what is not recorded never ran");
    let mut other = native(true, None, json!({}));
    other.metadata.uid = Some("another".into());
    let Observation::Present(execution) = observe(SOUGHT, Some(&other), &[&running()]) else { panic!("it runs") };
    assert!(execution.id == "native-uid" && execution.orphaned.is_some(), "not what stands under the name now");
    // `--cascade=orphan` takes the owner away; the label stays.
    let mut orphan = running();
    orphan.metadata.owner_references = None;
    assert_eq!(left(SOUGHT, &[&orphan]), None);
    orphan.metadata.labels = Some([(CONTROLLER_UID_LABEL.to_owned(), "native-uid".to_owned())].into());
    assert!(left(SOUGHT, &[&orphan]).is_some());
    assert!(matches!(phase_of(SOUGHT, &native(false, None, json!({})), &[&orphan]), Phase::Running { .. }));
}

#[test]
fn what_was_started_is_never_prepared_again_whatever_its_mark_says() {
    let unmarked = native(true, None, json!({}));
    let started = Sought { started: true, ..SOUGHT };
    assert!(matches!(phase_of(started, &unmarked, &[]), Phase::Unknown { .. }));
    let ran = NativePod { gone: true, ..running() };
    assert!(matches!(phase_of(SOUGHT, &unmarked, &[&ran]), Phase::Unknown { .. }));
}

#[test]
fn nothing_ran_only_where_that_is_so_of_every_pod() {
    let gave_up = native(false, None, failed("BackoffLimitExceeded", 0));
    let never = || NativePod { gone: true, ..unbound(json!({"phase": "Pending"})) };
    let refused = || pod(json!({"phase": "Failed", "reason": "OutOfcpu"}));
    let silent = || NativePod { gone: true, ..running() };
    for first in [never(), refused()] {
        let phase = phase_of(SOUGHT, &gave_up, &[&first, &silent()]);
        assert!(matches!(phase, Phase::Lost { .. }), "another may have run: {phase:?}");
        let phase = phase_of(SOUGHT, &native(false, None, json!({})), &[&first, &running()]);
        assert!(matches!(phase, Phase::Running { .. }), "another runs: {phase:?}");
        assert_eq!(left(SOUGHT, &[&first, &silent()]), None, "another may have run");
        let Phase::Ended(end) = left(SOUGHT, &[&first, &never()]).unwrap().phase else { panic!("none ran") };
        assert_eq!(end.reason, reason::REJECTED);
    }
    let ended = pod(container(json!({"terminated": {"exitCode": 9}})));
    let Phase::Ended(end) = left(SOUGHT, &[&refused(), &ended]).unwrap().phase else { panic!("it ended") };
    assert_eq!(end.exit_code, Some(9), "the one that ran is the execution");
}

#[test]
fn a_release_was_refused_where_what_was_to_be_released_is_still_prepared() {
    let now = |native: &NativeJob| observe(SOUGHT, Some(native), &[]);
    let prepared = now(&native(true, None, json!({})));
    assert_eq!(after_refused_release(prepared, "a\npolicy"), Observation::Refused { why: "a policy".into() });
    for other in [now(&native(false, None, json!({}))), Observation::Absent] {
        assert_eq!(after_refused_release(other.clone(), "a test failed"), other);
    }
}
