//! What an administrator rules (spec E4, F3).

use super::*;

fn ruled(place: &str, type_: &str, extra: Value) -> Job {
    let ruling = json!({"type": type_, "status": "True", "reason": "Ruling", "message": "ann: the node burnt down",
        "lastTransitionTime": NOW});
    let mut job = job(place, extra);
    job.status.as_mut().unwrap().conditions.push(serde_json::from_value(ruling).unwrap());
    job
}

/// A running Job whose result became unknown, with the ruling that its execution is lost.
fn unknown() -> Job {
    let mut job = ruled("running", "BackendLost", json!({}));
    let conditions = &mut job.status.as_mut().unwrap().conditions;
    conditions.iter_mut().find(|condition| condition.type_ == "Succeeded").unwrap().reason = "ResultUnknown".into();
    job
}

fn running() -> Observation {
    Observation::Present(execution(Phase::Running { started_at: time(EARLIER) }))
}

#[test]
fn a_lost_backend_ends_a_job_whose_result_is_unknown_with_the_words_of_the_ruling() {
    for seen in [
        Observation::Absent,
        Observation::Present(execution(Phase::Unknown { why: String::new() })),
        Observation::Present(execution(Phase::Lost { why: String::new() })),
    ] {
        assert_eq!(next(&unknown(), seen.clone(), false), Step::ReadExecution, "what is true now is read first");
        let over = written(next(&unknown(), seen, true));
        let succeeded = conditions::find(&over.conditions, "Succeeded").unwrap();
        assert_eq!(
            (succeeded.reason.as_str(), succeeded.message.as_str()),
            ("BackendLost", "ann: the node burnt down")
        );
        assert!(over.completion_time.is_some());
    }
}

#[test]
fn evidence_goes_before_a_ruling() {
    assert_eq!(says(&next(&unknown(), running(), true), "Succeeded"), "Unknown/Running");
    let ended = Observation::Present(execution(ended(true, 0, EARLIER)));
    assert_eq!(says(&next(&unknown(), ended, true), "Succeeded"), "True/Completed");
}

#[test]
fn a_ruling_on_a_job_that_is_not_in_doubt_is_turned_down_once_and_says_so() {
    for place in ["new", "accepted", "scheduled", "running"] {
        let mut job = ruled(place, "BackendLost", json!({}));
        let step = next(&job, running(), true);
        assert_eq!(says(&step, "BackendLost"), "False/NotResultUnknown", "{place}");
        job.status = Some(written(step));
        let said = &conditions::find(job.conditions(), "BackendLost").unwrap().message;
        assert!(said.ends_with("ann: the node burnt down"), "{said}");
        let Step::WriteStatus(status) = next(&job, running(), true) else { continue };
        assert!(!conditions::says_unknown(&status.conditions) && status.completion_time.is_none(), "{place}");
    }
}

#[test]
fn a_released_job_is_stopped_gets_a_verdict_and_goes() {
    let deleting = json!({"metadata": {"deletionTimestamp": NOW}});
    let mut job = ruled("running", "Released", deleting);
    assert_eq!(next(&job, running(), false), Step::ReadExecution);
    let id = || "native".to_owned();
    let recorded = next(&job, running(), true);
    assert_eq!(says(&recorded, "Stopping"), "True/Cancelled", "before a stop is sent");
    job.status = Some(written(recorded));
    assert_eq!(next(&job, running(), true), Step::Backend(Request::Stop { id: id() }));
    let stopping = |deletion_requested| {
        let phase = Phase::Running { started_at: time(EARLIER) };
        Observation::Present(Execution { stop_requested: true, deletion_requested, ..execution(phase) })
    };
    let over = next(&job, stopping(false), true);
    assert_eq!(says(&over, "Succeeded"), "False/Released");
    job.status = Some(written(over));
    let message = &conditions::find(job.conditions(), "Succeeded").unwrap().message;
    assert!(message.contains("native") && message.contains("ann: the node burnt down"), "{message}");
    assert_eq!(next(&job, stopping(false), true), Step::Backend(Request::Delete { id: id() }));
    assert_eq!(next(&job, stopping(true), true), Step::Backend(Request::Unprotect { id: id() }));
    assert_eq!(next(&job, Observation::Absent, true), Step::RemoveFinalizer);
}

#[test]
fn a_released_job_goes_also_where_the_backend_does_not_answer() {
    let deleting = json!({"metadata": {"deletionTimestamp": NOW}});
    let mut job = ruled("running", "Released", deleting);
    let away = |job: &Job| {
        let class = class(true, true);
        let seen = view(job, ClassView::Present(&class), Settings::Missing, running(), false);
        decide(&View { backend_fails: true, ..seen }, time(NOW))
    };
    let over = away(&job);
    assert_eq!(says(&over, "Succeeded"), "False/Released");
    job.status = Some(written(over));
    assert_eq!(away(&job), Step::RemoveFinalizer);
}

#[test]
fn a_release_waits_for_the_deletion_and_keeps_an_end_that_was_seen() {
    let living = ruled("running", "Released", json!({}));
    let mut settled = living.clone();
    if let Step::WriteStatus(status) = next(&living, running(), true) {
        settled.status = Some(*status);
    }
    assert_eq!(next(&settled, running(), true), Step::Wait);
    assert!(!is_released(&living), "a backend that is away is not given up for it");
    let deleting = ruled("running", "Released", json!({"metadata": {"deletionTimestamp": NOW}}));
    assert!(is_released(&deleting));
    let ended = Observation::Present(execution(ended(false, 3, EARLIER)));
    assert_eq!(says(&next(&deleting, ended, true), "Succeeded"), "False/ProcessFailed");
}

#[test]
fn a_ruling_does_not_count_on_an_execution_that_may_yet_start() {
    let mut waiting = ruled("scheduled", "BackendLost", json!({}));
    let doubt = json!({"type": "Succeeded", "status": "Unknown", "reason": "ResultUnknown", "message": "",
        "lastTransitionTime": EARLIER});
    waiting.status.as_mut().unwrap().conditions.push(serde_json::from_value(doubt).unwrap());
    let released = Observation::Present(execution(Phase::Released));
    assert_eq!(next(&waiting, released, true), Step::AskWhy("native".into()), "it is there");
    let refused = Observation::Refused { why: "denied by policy".into() };
    assert_eq!(says(&next(&waiting, refused, false), "Succeeded"), "Unknown/Scheduling", "it was not even released");
}

#[test]
fn a_ruling_ends_a_job_in_doubt_that_is_cancelled_or_deleted() {
    for extra in [json!({"spec": {"desiredState": "Cancelled"}}), json!({"metadata": {"deletionTimestamp": NOW}})] {
        let lost = Observation::Present(execution(Phase::Lost { why: String::new() }));
        for seen in [Observation::Absent, lost] {
            let doubted = Job { status: unknown().status, ..job("running", extra.clone()) };
            assert_eq!(says(&next(&doubted, seen, true), "Succeeded"), "False/BackendLost");
        }
    }
}

#[test]
fn a_released_job_says_abandoned_only_of_what_may_go_on() {
    let deleting = json!({"metadata": {"deletionTimestamp": NOW}});
    let never = Execution { stop_requested: true, ..execution(Phase::Prepared) };
    for (seen, expected) in [
        (execution(Phase::Stopped), "False/Cancelled: deleted"),
        (never, "False/Cancelled: deleted; nothing was started"),
    ] {
        let job = ruled("scheduled", "Released", deleting.clone());
        let over = Job { status: Some(written(next(&job, Observation::Present(seen), true))), ..job };
        assert_eq!(said(&over), expected);
    }
    let job = ruled("running", "Released", deleting);
    let lost = Observation::Present(execution(Phase::Lost { why: String::new() }));
    for seen in [Observation::Absent, lost] {
        assert_eq!(says(&next(&job, seen, true), "Succeeded"), "False/Released");
    }
}
