//! An execution of which only what it started is left on the backend (spec section 6, F1, F3): nothing is over before
//! that is.

use super::*;

const LEFT: &str = "its pod is left";

fn left(phase: Phase) -> Observation {
    let gone = Execution { stop_requested: true, deletion_requested: true, protected: false, ..execution(phase) };
    Observation::Present(Execution { orphaned: Some(LEFT.into()), ..gone })
}

fn running() -> Observation {
    left(Phase::Running { started_at: time(EARLIER) })
}

#[test]
fn what_is_left_of_a_cancelled_execution_is_waited_for() {
    let cancelled = job("running", json!({"spec": {"desiredState": "Cancelled"}}));
    let (stopping, step) = settled(cancelled, &running());
    assert_eq!((said(&stopping), step), (format!("Unknown/Running: {LEFT}"), Step::Wait));
    assert_eq!(conditions::find(stopping.conditions(), "Stopping").unwrap().reason, "Cancelled");
    assert_eq!(says(&next(&stopping, left(ended(false, 143, NOW)), true), "Succeeded"), "False/Cancelled");
    assert_eq!(says(&next(&stopping, Observation::Absent, true), "Succeeded"), "False/Cancelled");
    let (unknown, _) = settled(stopping, &left(Phase::Unknown { why: "its node is gone".into() }));
    assert!(unknown.status.unwrap().completion_time.is_none(), "it may still run");
}

#[test]
fn a_job_that_is_deleted_stays_until_nothing_is_left_of_its_execution() {
    let deleting = job("running", json!({"metadata": {"deletionTimestamp": NOW}}));
    let (stopping, step) = settled(deleting, &running());
    assert_eq!(step, Step::Wait);
    assert_eq!(says(&next(&stopping, left(ended(false, 9, EARLIER)), true), "Succeeded"), "False/ProcessFailed");
    // Over, by evidence or by a ruling: nothing on the backend is ours to delete.
    let over = job("over", json!({"metadata": {"deletionTimestamp": NOW}}));
    assert_eq!(next(&over, running(), true), Step::RemoveFinalizer);
}

#[test]
fn what_is_left_is_followed_to_its_end() {
    let (told, step) = settled(job("running", json!({"spec": {"activeDeadlineSeconds": 3600}})), &running());
    assert_eq!(said(&told), format!("Unknown/Running: {LEFT}"));
    assert!(matches!(step, Step::WaitUntil(_)), "no limit can be given to it: {step:?}");
    assert_eq!(says(&next(&told, left(ended(true, 0, NOW)), true), "Succeeded"), "True/Completed");
    let waiting = left(Phase::Waiting { why: "no node takes it".into(), failure: None });
    let (waits, _) = settled(job("scheduled", json!({})), &waiting);
    assert_eq!(said(&waits), "Unknown/Scheduling: no node takes it", "a node may yet take it");
}

#[test]
fn a_store_that_lags_behind_a_create_is_no_proof_that_only_something_is_left() {
    let job = |metadata| job("running", json!({"metadata": metadata, "spec": {"desiredState": "Cancelled"}}));
    for job in [super::job("running", json!({})), job(json!({})), job(json!({"deletionTimestamp": NOW}))] {
        assert_eq!(next(&job, running(), false), Step::ReadExecution);
    }
}

#[test]
fn a_job_that_is_released_does_not_wait_for_what_is_left() {
    let mut going = job("running", json!({"metadata": {"deletionTimestamp": NOW}}));
    let ruling =
        json!({"type": "Released", "status": "True", "reason": "R", "message": "ann", "lastTransitionTime": NOW});
    going.status.as_mut().unwrap().conditions.push(serde_json::from_value(ruling).unwrap());
    let (abandoned, step) = settled(going, &running());
    assert!(said(&abandoned).starts_with("False/Released"), "{}", said(&abandoned));
    assert_eq!(step, Step::RemoveFinalizer);
}
