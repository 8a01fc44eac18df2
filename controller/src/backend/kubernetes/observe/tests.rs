use serde_json::{Value, json};

use super::*;

fn waiting() -> Phase {
    Phase::Waiting { why: waiting::NOTHING_KNOWN.into() }
}

const WANTED: Wanted<'static> = Wanted { job_uid: "job-uid", recorded: Some("native-uid"), started: false };

fn native(suspend: bool, deadline: Option<i64>, status: Value) -> NativeJob {
    let spec = json!({"suspend": suspend, "activeDeadlineSeconds": deadline});
    let metadata = json!({
        "uid": "native-uid", "labels": {JOB_UID_LABEL: "job-uid"}, "finalizers": [BACKEND_CLEANUP_FINALIZER],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "job-uid"}],
    });
    serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
}

fn pod(status: Value) -> NativePod {
    let owner = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "n", "uid": "native-uid"}]);
    serde_json::from_value(json!({"metadata": {"ownerReferences": owner}, "status": status})).unwrap()
}

fn container(state: Value) -> Value {
    json!({"containerStatuses": [{"name": "sidecar", "state": {"terminated": {"exitCode": 9}}}, {"name": "task", "state": state}]})
}

fn failed(reason: &str, terminating: i32) -> Value {
    json!({"conditions": [{"type": "Failed", "status": "True", "reason": reason}], "terminating": terminating})
}

fn phase_of(wanted: Wanted<'_>, native: &NativeJob, pods: &[&NativePod]) -> Phase {
    match observe(wanted, Some(native), pods) {
        Observation::Present(execution) => execution.phase,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_stands_under_the_name_is_ours_only_by_its_marks_or_by_the_recorded_uid() {
    let ours = native(true, None, json!({}));
    let unrecorded = Wanted { recorded: None, ..WANTED };
    assert!(matches!(observe(unrecorded, Some(&ours), &[]), Observation::Present(_)));
    let mut orphaned = ours.clone();
    orphaned.metadata.owner_references = None;
    assert_eq!(observe(unrecorded, Some(&orphaned), &[]), Observation::Foreign);
    assert!(matches!(observe(WANTED, Some(&orphaned), &[]), Observation::Present(_)), "a recorded UID is still ours");
    let mut other = ours;
    other.metadata.uid = Some("another".into());
    assert_eq!(observe(WANTED, Some(&other), &[]), Observation::Absent, "ours is gone");
    assert_eq!(observe(WANTED, None, &[]), Observation::Absent);
}

#[test]
fn a_suspended_native_job_is_prepared_and_a_released_one_waits() {
    assert_eq!(phase_of(WANTED, &native(true, None, json!({})), &[]), Phase::Prepared);
    assert_eq!(phase_of(WANTED, &native(false, None, json!({})), &[]), waiting());
    let pending = pod(json!({"phase": "Pending"}));
    assert_eq!(phase_of(WANTED, &native(false, None, json!({})), &[&pending]), waiting());
}

#[test]
fn only_the_container_named_task_is_asked() {
    let running = pod(container(json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})));
    let started_at = "2026-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(phase_of(WANTED, &native(false, None, json!({})), &[&running]), Phase::Running { started_at });
    let over = pod(container(json!({"terminated": {"exitCode": 0}})));
    // The native Job says Failed of a task that exited 0: the container is the evidence.
    let Phase::Ended(end) = phase_of(WANTED, &native(false, None, failed("BackoffLimitExceeded", 0)), &[&over]) else {
        panic!("the container is terminated")
    };
    assert!(end.success);
}

#[test]
fn a_pod_of_another_native_job_is_not_looked_at() {
    let mut stray = pod(container(json!({"terminated": {"exitCode": 0}})));
    stray.metadata.owner_references.as_mut().unwrap()[0].uid = "another".into();
    assert_eq!(phase_of(WANTED, &native(false, None, json!({})), &[&stray]), waiting());
}

#[test]
fn failed_without_a_terminated_container_proves_nothing() {
    let running = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
    let mut lost = container(running);
    lost["phase"] = json!("Failed");
    let unknown = |phase| assert!(matches!(phase, Phase::Unknown { .. }), "{phase:?}");
    unknown(phase_of(WANTED, &native(false, None, failed("BackoffLimitExceeded", 0)), &[&pod(lost)]));
    unknown(phase_of(WANTED, &native(false, None, failed("BackoffLimitExceeded", 0)), &[]));
    unknown(phase_of(Wanted { started: true, ..WANTED }, &native(false, None, json!({})), &[]));
}

#[test]
fn a_stop_is_proven_by_deadline_exceeded_with_nothing_terminating() {
    assert_eq!(phase_of(WANTED, &native(false, Some(0), failed("DeadlineExceeded", 0)), &[]), Phase::Stopped);
    assert!(matches!(
        phase_of(WANTED, &native(false, Some(0), failed("DeadlineExceeded", 1)), &[]),
        Phase::Unknown { .. }
    ));
}

#[test]
fn a_success_that_was_counted_before_it_was_seen_has_no_code() {
    let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    let Phase::Ended(end) = phase_of(WANTED, &native(false, None, complete), &[]) else { panic!("it is over") };
    assert_eq!((end.success, end.exit_code), (true, None));
}
