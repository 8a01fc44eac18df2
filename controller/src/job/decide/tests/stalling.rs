//! Starts that fail (spec E1).

use super::*;
use crate::backend::StartFailure;

/// A Job that was stalled by this failure two minutes ago.
fn stalled(failure: StartFailure) -> Job {
    let stalled = json!({"type": "Stalled", "status": "True", "reason": failure.reason(), "message": "because",
        "lastTransitionTime": "2026-01-01T00:08:00Z"});
    let mut job = job("scheduled", json!({}));
    let conditions = &mut job.status.as_mut().unwrap().conditions;
    conditions.push(serde_json::from_value(stalled).unwrap());
    job
}

fn failing(failure: StartFailure) -> Observation {
    Observation::Present(execution(Phase::Waiting { why: "because".into(), failure: Some(failure) }))
}

/// The Job as it is once the first write has said everything.
fn told(mut job: Job, seen: &Observation) -> Job {
    if let Step::WriteStatus(status) = next(&job, seen.clone(), true) {
        job.status = Some(*status);
    }
    job
}

#[test]
fn a_start_that_fails_is_told_with_its_cause_and_since_when_and_waited_for() {
    let seen = failing(StartFailure::ImageNotFound);
    let first = next(&job("scheduled", json!({})), seen.clone(), false);
    assert_eq!(says(&first, "Stalled"), "True/ImageNotFound");
    assert_eq!(says(&first, "Succeeded"), "Unknown/Scheduling");
    let told = told(job("scheduled", json!({})), &seen);
    assert_eq!(next(&told, seen, false), Step::WaitUntil(time("2026-01-01T00:10:30Z")), "30 s");
}

#[test]
fn each_cause_has_its_own_patience_that_counts_from_what_was_persisted() {
    for (failure, end) in [
        (StartFailure::ImageNotFound, None),
        (StartFailure::StartRefused, None),
        (StartFailure::ImagePullDenied, None),
        (StartFailure::ImagePullError, Some("2026-01-01T00:23:00Z")),
        (StartFailure::ReferenceMissing, Some("2026-01-01T00:23:00Z")),
    ] {
        let stalled = stalled(failure);
        match end {
            Some(end) => {
                let told = told(stalled, &failing(failure));
                assert_eq!(next(&told, failing(failure), true), Step::WaitUntil(time(end)), "{failure:?}");
            }
            None => {
                let lagging = next(&stalled, failing(failure), false);
                assert_eq!(lagging, Step::ReadExecution, "{failure:?}: live, before a stop");
                let given_up = next(&stalled, failing(failure), true);
                assert_eq!(says(&given_up, "Stopping"), format!("True/{}", failure.verdict()));
            }
        }
    }
}

#[test]
fn a_cause_that_changes_does_not_begin_the_time_anew_unless_the_image_was_pulled() {
    let busy = stalled(StartFailure::ImagePullError);
    let denied = next(&busy, failing(StartFailure::ImagePullDenied), true);
    assert_eq!(says(&denied, "Stopping"), "True/ImagePullFailed", "two minutes are over");
    let since = |step: Step| {
        let status = written(step);
        conditions::find(&status.conditions, "Stalled").unwrap().last_transition_time.0
    };
    let pulled = next(&busy, failing(StartFailure::StartRefused), true);
    assert_eq!(since(pulled), time(NOW));
    let still_busy = next(&stalled(StartFailure::ImagePullDenied), failing(StartFailure::ImagePullError), true);
    assert_eq!(since(still_busy), time("2026-01-01T00:08:00Z"));
}

#[test]
fn a_start_that_is_given_up_is_stopped_and_fails_with_the_words_of_the_backend() {
    let mut job = stalled(StartFailure::ImageNotFound);
    job.status = Some(written(next(&job, failing(StartFailure::ImageNotFound), true)));
    let stop = next(&job, failing(StartFailure::ImageNotFound), true);
    assert_eq!(stop, Step::Backend(Request::Stop { id: "native".into() }));
    let over = next(&job, Observation::Present(execution(Phase::Stopped)), true);
    assert_eq!(says(&over, "Succeeded"), "False/ImagePullFailed");
    let status = written(over);
    assert_eq!(conditions::find(&status.conditions, "Succeeded").unwrap().message, "because");
    assert!(status.start_time.is_none() && status.result.unwrap().exit_code.is_none());
}

#[test]
fn a_task_that_starts_after_all_is_not_stalled_any_more() {
    let running = Observation::Present(execution(Phase::Running { started_at: time(NOW) }));
    let step = next(&stalled(StartFailure::ImagePullError), running, false);
    assert_eq!(says(&step, "Stalled"), "False/Progressing");
    assert_eq!(says(&step, "Succeeded"), "Unknown/Running");
}
