//! Executions of which nothing is heard (spec section 6), and those of which too much is (spec E2).

use super::*;
use crate::backend::Silence;

fn running(since: Option<&str>) -> Observation {
    let silence = since.map(|since| Silence { since: time(since), why: "node n1 is silent".into() });
    Observation::Present(Execution { silence, ..execution(Phase::Running { started_at: time(EARLIER) }) })
}

#[test]
fn silence_is_told_first_and_is_doubt_only_once_it_has_lasted() {
    let (job, step) = settled(job("running", json!({})), &running(Some("2026-01-01T00:06:00Z")));
    assert_eq!(said(&job), "Unknown/Running: node n1 is silent");
    assert_eq!(step, Step::WaitUntil(time("2026-01-01T00:11:00Z")), "five minutes");
    let long = running(Some("2026-01-01T00:05:00Z"));
    assert_eq!(next(&job, long.clone(), false), Step::ReadExecution, "live, before doubt is told");
    let (job, step) = settled(job, &long);
    assert_eq!((said(&job).as_str(), step), ("Unknown/ResultUnknown: node n1 is silent", Step::Wait));
    assert!(job.status.as_ref().unwrap().completion_time.is_none());
    let (job, _) = settled(job, &running(None));
    assert_eq!(said(&job), "Unknown/Running: the task runs");
}

#[test]
fn an_execution_that_would_be_overdue_later_is_looked_at_then() {
    let (job, step) = settled(job("running", json!({})), &running(Some("2026-01-01T00:10:40Z")));
    assert_eq!(said(&job), "Unknown/Running: the task runs");
    assert_eq!(step, Step::WaitUntil(time("2026-01-01T00:10:40Z")));
}

#[test]
fn an_execution_that_waits_is_looked_at_when_its_node_would_be_overdue() {
    let soon = "2026-01-01T00:10:20Z";
    for failure in [None, Some(crate::backend::StartFailure::ImageNotFound)] {
        let silence = Some(Silence { since: time(soon), why: "node n1 is silent".into() });
        let waiting = Execution { silence, ..execution(Phase::Waiting { why: "because".into(), failure }) };
        let (_, step) = settled(job("scheduled", json!({})), &Observation::Present(waiting));
        assert_eq!(step, Step::WaitUntil(time(soon)), "{failure:?}");
    }
}

#[test]
fn a_stop_on_a_silent_node_is_sent_and_comes_into_doubt_too() {
    let cancelled = job("running", json!({"spec": {"desiredState": "Cancelled"}}));
    let silent = |since| match running(Some(since)) {
        Observation::Present(execution) => Observation::Present(Execution { stop_requested: true, ..execution }),
        other => other,
    };
    let (told, step) = settled(cancelled, &silent("2026-01-01T00:06:00Z"));
    assert!(said(&told).starts_with("Unknown/Running"), "{}", said(&told));
    assert_eq!(step, Step::WaitUntil(time("2026-01-01T00:11:00Z")));
    let (told, step) = settled(told, &silent("2026-01-01T00:05:00Z"));
    assert!(said(&told).starts_with("Unknown/ResultUnknown"), "an administrator can rule: {}", said(&told));
    assert_eq!(step, Step::Wait);
    let stopped = Observation::Present(execution(Phase::Stopped));
    assert_eq!(says(&next(&told, stopped, true), "Succeeded"), "False/Cancelled");
}

#[test]
fn a_deadline_ends_also_where_nothing_is_heard() {
    let job = job("running", json!({"spec": {"activeDeadlineSeconds": 60}}));
    let (job, step) = settled(job, &running(Some("2026-01-01T00:05:00Z")));
    assert!(conditions::is_true(job.conditions(), "Stopping"), "{job:?}");
    assert_eq!(step, Step::Backend(Request::Stop { id: "native".into() }));
}

#[test]
fn more_than_one_process_is_remembered_in_a_condition_and_told_in_every_message_from_then_on() {
    let twice = match running(None) {
        Observation::Present(execution) => Observation::Present(Execution { copies: 2, ..execution }),
        other => other,
    };
    let (mut job, _) = settled(job("running", json!({})), &twice);
    assert_eq!(said(&job), "Unknown/Running: DuplicateExecution: more than one process was seen; the task runs");
    // What is remembered is the condition: neither another message nor a process that is forgotten takes it back.
    for condition in &mut job.status.as_mut().unwrap().conditions {
        condition.message = "somebody else's words".into();
    }
    let remembered = conditions::find(job.conditions(), "DuplicateExecution").cloned();
    assert_eq!(
        remembered.as_ref().map(|it| (it.status, it.reason.as_str())),
        Some((ConditionStatus::True, "DuplicateExecution"))
    );
    let (job, _) = settled(job, &running(None));
    assert_eq!(said(&job), "Unknown/Running: DuplicateExecution: more than one process was seen; the task runs");
    let (job, _) = settled(job, &Observation::Present(execution(ended(true, 0, NOW))));
    assert!(said(&job).starts_with("True/Completed: DuplicateExecution: "), "{}", said(&job));
    assert_eq!(conditions::find(job.conditions(), "DuplicateExecution").cloned(), remembered);
}
