//! How a Job ends by our own doing: cancel, deadline, deletion (spec F1 to F3).

use super::*;

#[test]
fn a_cancel_before_anything_exists_is_terminal_at_once_and_starts_nothing() {
    assert_eq!(says(&next(&job("new", cancel()), Observation::Absent, false), "Succeeded"), "False/Cancelled");
    let accepted = job("accepted", cancel());
    assert_eq!(next(&accepted, Observation::Absent, false), Step::ReadExecution, "a create may have landed");
    assert_eq!(says(&next(&accepted, Observation::Absent, true), "Succeeded"), "False/Cancelled");
}

#[test]
fn a_cancel_of_a_running_task_reads_live_records_why_stops_and_waits_for_the_proof() {
    let running = |stop_requested| {
        Observation::Present(Execution { stop_requested, ..execution(Phase::Running { started_at: time(EARLIER) }) })
    };
    let cancelled = job("running", cancel());
    assert_eq!(next(&cancelled, running(false), false), Step::ReadExecution, "a store may lag");
    let status = written(next(&cancelled, running(false), true));
    assert_eq!(conditions::find(&status.conditions, "Stopping").unwrap().reason, "Cancelled");
    let mut stopping = cancelled;
    stopping.status = Some(status);
    assert_eq!(next(&stopping, running(false), false), Step::ReadExecution);
    assert_eq!(next(&stopping, running(false), true), Step::Backend(Request::Stop { id: "native".into() }));
    assert_eq!(next(&stopping, running(true), true), Step::Wait);
    let stopped = Observation::Present(execution(Phase::Stopped));
    assert_eq!(says(&next(&stopping, stopped, true), "Succeeded"), "False/Cancelled");
}

#[test]
fn an_end_before_our_stop_stands_and_a_later_one_is_the_cause_of_the_stop() {
    let stopping = |at: &str| {
        let mut job = job("running", json!({"spec": {"desiredState": "Cancelled"}}));
        let stop = json!({"type": "Stopping", "status": "True", "reason": "Cancelled", "message": "cancelled", "lastTransitionTime": at});
        job.status.as_mut().unwrap().conditions.push(serde_json::from_value(stop).unwrap());
        job
    };
    let (before, at, after) = ("2026-01-01T00:04:59Z", "2026-01-01T00:05:00Z", "2026-01-01T00:05:01Z");
    for (success, code, finished, expected) in [
        (true, 0, before, "True/Completed"),
        (false, 3, before, "False/ProcessFailed"),
        // Within the same second it cannot be told: code 0 is success, any other is our signal's.
        (true, 0, at, "True/Completed"),
        (false, 143, at, "False/Cancelled"),
        (true, 0, after, "False/Cancelled"),
        (false, 143, after, "False/Cancelled"),
    ] {
        let step = next(&stopping(at), Observation::Present(execution(ended(success, code, finished))), true);
        assert_eq!(says(&step, "Succeeded"), expected, "code {code} at {finished}");
        assert_eq!(written(step).result.unwrap().exit_code, Some(code), "the code that was seen is kept");
    }
}

#[test]
fn the_deadline_counts_from_the_start_and_stops_the_task() {
    let running = Observation::Present(execution(Phase::Running { started_at: time(EARLIER) }));
    let step = |seconds: i64| {
        let job = job("running", json!({"spec": {"activeDeadlineSeconds": seconds}}));
        // The first look only brings the message of the condition up to date.
        let mut settled = job.clone();
        if let Step::WriteStatus(status) = next(&job, running.clone(), true) {
            settled.status = Some(*status);
        }
        next(&settled, running.clone(), true)
    };
    assert_eq!(step(900), Step::WaitUntil(time("2026-01-01T00:15:00Z")));
    let Step::WriteStatus(status) = step(600) else { panic!("ten minutes are over") };
    assert_eq!(conditions::find(&status.conditions, "Stopping").unwrap().reason, "DeadlineExceeded");
}

/// A Job that has run for ten minutes, with that deadline.
fn with_deadline(seconds: i64) -> Job {
    let job = job("running", json!({"spec": {"activeDeadlineSeconds": seconds}}));
    let running = Observation::Present(execution(Phase::Running { started_at: time(EARLIER) }));
    match next(&job, running, true) {
        Step::WriteStatus(status) => Job { status: Some(*status), ..job },
        _ => job,
    }
}

#[test]
fn a_running_task_gets_a_limit_of_the_backends_own_once() {
    let running = |limited| {
        let phase = Phase::Running { started_at: time(EARLIER) };
        Observation::Present(Execution { limited, ..execution(phase) })
    };
    let ends = time("2026-01-01T00:15:00Z");
    let limit = Step::Backend(Request::Limit { id: "native".into(), ends });
    assert_eq!(next(&with_deadline(900), running(false), false), limit);
    assert_eq!(next(&with_deadline(900), running(true), false), Step::WaitUntil(ends));
    let step = next(&with_deadline(i64::from(i32::MAX) + 601), running(false), false);
    assert!(matches!(step, Step::WaitUntil(_)), "further away than some can count: {step:?}");
}

#[test]
fn what_the_backends_own_limit_ended_was_our_deadline_unless_it_came_too_early() {
    let job = with_deadline(300);
    let reached = |at: &str, phase| {
        Observation::Present(Execution { limited: true, limit_reached: Some(time(at)), ..execution(phase) })
    };
    let (after, before) = ("2026-01-01T00:06:00Z", "2026-01-01T00:04:00Z");
    assert_eq!(says(&next(&job, reached(after, Phase::Stopped), true), "Succeeded"), "False/DeadlineExceeded");
    assert_eq!(says(&next(&job, reached(before, Phase::Stopped), true), "Succeeded"), "Unknown/ResultUnknown");
    for (success, code, finished, expected) in [
        (true, 0, "2026-01-01T00:05:59Z", "True/Completed"),
        (false, 143, "2026-01-01T00:06:01Z", "False/DeadlineExceeded"),
        (true, 0, "2026-01-01T00:06:01Z", "False/DeadlineExceeded"),
    ] {
        let step = next(&job, reached(after, ended(success, code, finished)), true);
        assert_eq!(says(&step, "Succeeded"), expected, "code {code} at {finished}");
    }
}

#[test]
fn deletion_gives_a_verdict_then_cleans_up_then_lets_go() {
    let deleting = |place| job(place, json!({"metadata": {"deletionTimestamp": NOW}}));
    assert_eq!(says(&next(&deleting("new"), Observation::Absent, false), "Succeeded"), "False/Cancelled");
    let over = deleting("over");
    let present = |deletion_requested, protected| {
        let phase = ended(true, 0, EARLIER);
        Observation::Present(Execution { deletion_requested, protected, ..execution(phase) })
    };
    let id = || "native".to_owned();
    assert_eq!(next(&over, present(false, true), false), Step::Backend(Request::Delete { id: id() }));
    assert_eq!(next(&over, present(true, true), false), Step::Backend(Request::Unprotect { id: id() }));
    assert_eq!(next(&over, present(true, false), false), Step::Wait);
    assert_eq!(next(&over, Observation::Absent, false), Step::ReadExecution);
    assert_eq!(next(&over, Observation::Absent, true), Step::RemoveFinalizer);
    assert_eq!(next(&over, Observation::Foreign, true), Step::RemoveFinalizer, "what is not ours is left alone");
}

fn lost() -> Observation {
    Observation::Present(execution(Phase::Lost { why: "its node is gone".into() }))
}

fn cancel() -> Value {
    json!({"spec": {"desiredState": "Cancelled"}})
}

fn delete() -> Value {
    json!({"metadata": {"deletionTimestamp": NOW}})
}

#[test]
fn what_was_gone_before_our_stop_is_in_doubt_and_not_stopped() {
    for extra in [cancel(), delete()] {
        for seen in [Observation::Absent, lost()] {
            assert_eq!(next(&job("running", extra.clone()), seen.clone(), false), Step::ReadExecution);
            let (doubted, step) = settled(job("running", extra.clone()), &seen);
            assert!(said(&doubted).starts_with("Unknown/ResultUnknown"), "{}", said(&doubted));
            assert_eq!(step, Step::Wait, "for evidence, or for a ruling");
            assert!(conditions::find(doubted.conditions(), "Stopping").is_none());
        }
    }
    let late = job("running", json!({"spec": {"activeDeadlineSeconds": 60}}));
    let (doubted, step) = settled(late, &lost());
    assert!(said(&doubted).starts_with("Unknown/ResultUnknown"), "a deadline proves nothing: {}", said(&doubted));
    assert_eq!(step, Step::Wait);
}

#[test]
fn a_stop_of_what_is_in_doubt_is_sent_and_does_not_end_the_doubt() {
    let unknown = Observation::Present(execution(Phase::Unknown { why: "its pod is gone".into() }));
    for extra in [cancel(), delete()] {
        let (stopping, step) = settled(job("running", extra), &unknown);
        assert_eq!(step, Step::Backend(Request::Stop { id: "native".into() }), "it may be let run again");
        assert!(conditions::is_true(stopping.conditions(), "Stopping"));
        for gone in [Observation::Absent, lost()] {
            let (doubted, step) = settled(stopping.clone(), &gone);
            assert!(said(&doubted).starts_with("Unknown/ResultUnknown"), "{}", said(&doubted));
            assert_eq!(step, Step::Wait);
        }
        let proven = next(&stopping, Observation::Present(execution(Phase::Stopped)), true);
        assert_eq!(says(&proven, "Succeeded"), "False/Cancelled");
        // Once it was heard of again, our stop came before what follows.
        let running = Observation::Present(execution(Phase::Running { started_at: time(EARLIER) }));
        let (heard, _) = settled(stopping, &running);
        assert!(said(&heard).starts_with("Unknown/Running"), "{}", said(&heard));
        assert_eq!(says(&next(&heard, Observation::Absent, true), "Succeeded"), "False/Cancelled");
    }
}

#[test]
fn what_our_stop_left_without_a_word_is_told_and_in_no_doubt() {
    let running = Observation::Present(execution(Phase::Running { started_at: time(EARLIER) }));
    let (stopping, _) = settled(job("running", cancel()), &running);
    let unheard = Phase::Unknown { why: "its pod is gone".into() };
    let silent = Observation::Present(Execution { stop_requested: true, ..execution(unheard) });
    let (told, step) = settled(stopping, &silent);
    assert_eq!((said(&told).as_str(), step), ("Unknown/Running: its pod is gone", Step::Wait));
    assert_eq!(says(&next(&told, lost(), true), "Succeeded"), "False/Cancelled", "once it is counted");
}

#[test]
fn what_is_gone_after_our_stop_is_the_recorded_cause() {
    let running = Observation::Present(execution(Phase::Running { started_at: time(EARLIER) }));
    for extra in [cancel(), delete()] {
        let (stopping, _) = settled(job("running", extra), &running);
        for gone in [Observation::Absent, lost()] {
            assert_eq!(says(&next(&stopping, gone, true), "Succeeded"), "False/Cancelled");
        }
    }
}

#[test]
fn a_job_does_not_keep_a_namespace_that_goes() {
    let class = class(true, true);
    let next = |job: &Job, seen: Observation, namespace_is_live| {
        let view = view(job, ClassView::Present(&class), Settings::Missing, seen, true);
        decide(&View { namespace_is_going: true, namespace_is_live, ..view }, time(NOW))
    };
    for seen in [Observation::Absent, lost()] {
        let (doubted, _) = settled(job("running", delete()), &seen);
        for going in [job("running", delete()), doubted] {
            assert_eq!(next(&going, seen.clone(), false), Step::ReadNamespace, "a store may lag");
            let over = Job { status: Some(written(next(&going, seen.clone(), true))), ..going };
            assert_eq!(said(&over), "False/Cancelled: cancelled; its execution was gone already");
        }
        let step = next(&job("running", cancel()), seen.clone(), true);
        assert_eq!(says(&step, "Succeeded"), "Unknown/ResultUnknown", "it is not deleted yet");
    }
}

#[test]
fn what_was_never_released_is_over_at_once_where_it_cannot_be_any_more() {
    for (stop_requested, deletion_requested) in [(true, false), (false, true)] {
        let prepared = Execution { stop_requested, deletion_requested, ..execution(Phase::Prepared) };
        for extra in [cancel(), delete()] {
            // It was told as unknown before: it cannot start any more.
            let (doubted, _) = settled(job("scheduled", json!({})), &Observation::Present(prepared.clone()));
            assert!(said(&doubted).starts_with("Unknown/ResultUnknown"));
            let unwanted = Job { status: doubted.status, ..job("scheduled", extra) };
            let step = next(&unwanted, Observation::Present(prepared.clone()), true);
            let over = Job { status: Some(written(step)), ..unwanted };
            assert_eq!(said(&over), "False/Cancelled: cancelled; nothing was started");
        }
    }
}

#[test]
fn a_limit_that_fired_before_a_cancel_or_a_deletion_was_our_deadline() {
    let reached = |phase| {
        let at = Some(time("2026-01-01T00:06:00Z"));
        Observation::Present(Execution { limited: true, limit_reached: at, ..execution(phase) })
    };
    for extra in [cancel(), delete()] {
        let mut job = Job { status: with_deadline(300).status, ..job("running", extra) };
        job.spec.active_deadline_seconds = Some(300);
        assert_eq!(says(&next(&job, reached(Phase::Stopped), true), "Succeeded"), "False/DeadlineExceeded");
        let running = Phase::Running { started_at: time(EARLIER) };
        let stopping = Job { status: Some(written(next(&job, reached(running), true))), ..job.clone() };
        assert_eq!(conditions::find(stopping.conditions(), "Stopping").unwrap().reason, "DeadlineExceeded");
        for (success, code, finished, expected) in [
            (true, 0, "2026-01-01T00:05:59Z", "True/Completed"),
            (false, 143, "2026-01-01T00:06:01Z", "False/DeadlineExceeded"),
            (true, 0, "2026-01-01T00:06:01Z", "False/DeadlineExceeded"),
        ] {
            for job in [&job, &stopping] {
                let step = next(job, reached(ended(success, code, finished)), true);
                assert_eq!(says(&step, "Succeeded"), expected, "code {code} at {finished}");
                assert_eq!(written(step).result.unwrap().exit_code, Some(code));
            }
        }
    }
}

#[test]
fn what_runs_before_it_was_recorded_is_recorded_with_its_stop() {
    let cancelled = job("accepted", json!({"spec": {"desiredState": "Cancelled"}}));
    let running = Observation::Present(execution(Phase::Running { started_at: time(EARLIER) }));
    let status = written(next(&cancelled, running, true));
    assert!(conditions::is_true(&status.conditions, conditions::SCHEDULED), "a start may be told only after that (A4)");
    assert_eq!(status.execution.unwrap().references[0].id, "native");
    assert!(status.start_time.is_some() && conditions::find(&status.conditions, "Stopping").is_some());
}

/// Found by the model: released, deleted by somebody before its pod was made, and then the Job is deleted too.
#[test]
fn what_somebody_deletes_is_let_go_instead_of_stopped_in_vain() {
    for phase in [Phase::Released, Phase::Running { started_at: time(EARLIER) }] {
        let deleted = Observation::Present(Execution { deletion_requested: true, ..execution(phase) });
        let mut going = job("running", json!({"metadata": {"deletionTimestamp": NOW}}));
        let status = written(next(&going, deleted.clone(), true));
        assert_eq!(
            conditions::find(&status.conditions, "Stopping").unwrap().reason,
            "Cancelled",
            "the cause comes first"
        );
        going.status = Some(status);
        assert_eq!(next(&going, deleted.clone(), false), Step::ReadExecution);
        assert_eq!(next(&going, deleted, true), Step::Backend(Request::Unprotect { id: "native".into() }));
        assert_eq!(says(&next(&going, Observation::Absent, true), "Succeeded"), "False/Cancelled");
    }
}
