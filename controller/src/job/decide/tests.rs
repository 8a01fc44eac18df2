use std::collections::BTreeMap;

use ayatori_crds::{ConditionStatus, JobClass, rules::Policy};
use serde_json::{Value, json};

use super::*;
use crate::{
    backend::{End, Execution, Settings},
    job::patience::Patience,
};

mod ending;
mod left_behind;
mod refused;
mod rulings;
mod silence;
mod stalling;
mod waiting;

const NOW: &str = "2026-01-01T00:10:00Z";
const EARLIER: &str = "2026-01-01T00:00:00Z";

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A Job at one place of its life, with what `extra` says put over it.
fn job(place: &str, extra: Value) -> Job {
    let condition = |type_: &str, status: &str, reason: &str| json!({"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": EARLIER});
    let accepted = condition("Accepted", "True", "Valid");
    let scheduled = condition("Scheduled", "True", "BackendCreated");
    let class = json!({"name": "c", "uid": "class-uid", "controllerName": "k",
        "parametersRef": {"group": "g", "kind": "K", "name": "p", "uid": "parameters-uid"}});
    let execution = |references: Value| json!({"adapter": "kubernetes", "references": references});
    let recorded = execution(json!([{"type": "Job", "id": "native"}]));
    let accepted_status = |conditions: Value, execution: Value| json!({"conditions": conditions, "resolvedJobClass": class, "effectiveResources": {}, "execution": execution});
    let status = match place {
        "new" => json!({}),
        "accepted" => accepted_status(json!([accepted]), execution(json!([]))),
        "scheduled" => accepted_status(json!([accepted, scheduled]), recorded),
        "running" => {
            let running = condition("Succeeded", "Unknown", "Running");
            let mut status = accepted_status(json!([accepted, scheduled, running]), recorded);
            status["startTime"] = json!(EARLIER);
            status
        }
        "over" => {
            let over = condition("Succeeded", "True", "Completed");
            let mut status = accepted_status(json!([accepted, scheduled, over]), recorded);
            status["startTime"] = json!(EARLIER);
            status["completionTime"] = json!(EARLIER);
            status
        }
        other => panic!("{other}"),
    };
    let mut job = json!({
        "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "Job",
        "metadata": {"name": "j", "namespace": "n", "uid": "u", "finalizers": [JOB_CLEANUP_FINALIZER], "creationTimestamp": EARLIER},
        "spec": {"jobClassName": "c", "task": {"image": "app:1"}},
        "status": status,
    });
    json_patch::merge(&mut job, &extra);
    serde_json::from_value(job).unwrap()
}

fn class(accepted: bool, ready: bool) -> JobClass {
    let condition = |type_: &str, is: bool| {
        json!({"type": type_, "status": if is { "True" } else { "False" }, "reason": "RuntimeClassNotFound",
            "message": "", "lastTransitionTime": EARLIER})
    };
    serde_json::from_value(json!({
        "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "JobClass",
        "metadata": {"name": "c", "uid": "class-uid"},
        "spec": {"controllerName": "k", "parametersRef": {"group": "g", "kind": "K", "name": "p"}},
        "status": {"conditions": [condition("Accepted", accepted), condition("Ready", ready)]},
    }))
    .unwrap()
}

fn execution(phase: Phase) -> Execution {
    Execution {
        id: "native".into(),
        phase,
        stop_requested: false,
        deletion_requested: false,
        protected: true,
        silence: None,
        limited: true,
        limit_reached: None,
        copies: 1,
        orphaned: None,
    }
}

fn ended(success: bool, exit_code: i32, finished_at: &str) -> Phase {
    Phase::Ended(an_end(success, exit_code, finished_at))
}

fn an_end(success: bool, exit_code: i32, finished_at: &str) -> End {
    End {
        success,
        reason: if success { reason::COMPLETED } else { reason::PROCESS_FAILED },
        message: String::new(),
        exit_code: Some(exit_code),
        started_at: Some(time(EARLIER)),
        finished_at: Some(time(finished_at)),
    }
}

/// What is decided, with everything around the Job in order.
fn next(job: &Job, observation: Observation, live: bool) -> Step {
    let class = class(true, true);
    next_with(job, ClassView::Present(&class), Settings::Present { uid: "parameters-uid".into() }, observation, live)
}

fn next_with(job: &Job, class: ClassView<'_>, settings: Settings, observation: Observation, live: bool) -> Step {
    decide(&view(job, class, settings, observation, live), time(NOW))
}

fn view<'a>(job: &'a Job, class: ClassView<'a>, settings: Settings, observation: Observation, live: bool) -> View<'a> {
    static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();
    View {
        job,
        job_is_live: live,
        policy: Policy::default(),
        class,
        namespace_labels: Some(&NO_LABELS),
        namespace_is_going: false,
        namespace_is_live: live,
        settings,
        controller_name: "k",
        adapter: "kubernetes",
        reference_type: "Job",
        observation,
        observation_is_live: live,
        references: None,
        explanation: None,
        backend_fails: false,
        patience: Patience::default(),
    }
}

/// The condition that a status write says, as `Type=Status/Reason`.
fn says(step: &Step, type_: &str) -> String {
    let Step::WriteStatus(status) = step else { panic!("not a status write: {step:?}") };
    let condition = conditions::find(&status.conditions, type_).unwrap();
    format!("{}/{}", condition.status.as_str(), condition.reason)
}

/// The Job once everything has been told that this shows.
fn settled(mut job: Job, seen: &Observation) -> (Job, Step) {
    for _ in 0..4 {
        match next(&job, seen.clone(), true) {
            Step::WriteStatus(status) => job.status = Some(*status),
            step => return (job, step),
        }
    }
    panic!("it never comes to rest")
}

fn said(job: &Job) -> String {
    let succeeded = conditions::find(job.conditions(), "Succeeded").unwrap();
    format!("{}/{}: {}", succeeded.status.as_str(), succeeded.reason, succeeded.message)
}

fn written(step: Step) -> JobStatus {
    match step {
        Step::WriteStatus(status) => *status,
        other => panic!("not a status write: {other:?}"),
    }
}

#[test]
fn nothing_happens_before_our_finalizer_is_on_the_job() {
    let bare = job("new", json!({"metadata": {"finalizers": null}}));
    assert_eq!(next(&bare, Observation::Absent, true), Step::AddFinalizer);
    let deleting = job("new", json!({"metadata": {"finalizers": null, "deletionTimestamp": NOW}}));
    assert_eq!(next(&deleting, Observation::Absent, true), Step::Wait);
}

#[test]
fn acceptance_pins_class_parameters_resources_and_adapter_in_one_write() {
    let status = written(next(&job("new", json!({})), Observation::Absent, false));
    let class = status.resolved_job_class.unwrap();
    assert_eq!((class.uid.as_str(), class.parameters_ref.uid.as_deref()), ("class-uid", Some("parameters-uid")));
    assert_eq!(status.execution.unwrap().adapter, "kubernetes");
    assert!(status.effective_resources.is_some());
    assert!(conditions::is_true(&status.conditions, ACCEPTED));
}

#[test]
fn each_reason_why_a_job_waits_is_told() {
    let fine = class(true, true);
    let unaccepted = class(false, false);
    let settings = || Settings::Present { uid: "parameters-uid".into() };
    let mut bounded = fine.clone();
    bounded.spec = serde_json::from_value(json!({
        "controllerName": "k", "parametersRef": {"group": "g", "kind": "K", "name": "p"},
        "resources": {"maximum": {"limits": {"cpu": "1"}}},
    }))
    .unwrap();
    let mut closed = fine.clone();
    closed.spec.allowed_namespaces = serde_json::from_value(json!({"matchLabels": {"a": "b"}})).unwrap();
    let mut going = fine;
    going.metadata.deletion_timestamp = serde_json::from_value(json!(NOW)).unwrap();
    for (class, settings, reason) in [
        (ClassView::NoDefault, Settings::Missing, "NoDefaultJobClass"),
        (ClassView::AmbiguousDefault(vec!["a".into(), "b".into()]), Settings::Missing, "AmbiguousDefaultJobClass"),
        (ClassView::Absent("c".into()), Settings::Missing, "JobClassNotFound"),
        (ClassView::Present(&going), settings(), "JobClassNotFound"),
        (ClassView::Present(&unaccepted), settings(), "JobClassNotAccepted"),
        (ClassView::Present(&closed), settings(), "NamespaceNotAllowed"),
        (ClassView::Present(&bounded), settings(), "InvalidResources"),
    ] {
        let step = next_with(&job("new", json!({})), class, settings, Observation::Absent, false);
        assert_eq!(says(&step, "Accepted"), format!("False/{reason}"));
        assert_eq!(says(&step, "Succeeded"), "Unknown/Pending");
    }
    let bad = job("new", json!({"spec": {"task": {"image": "No Image"}}}));
    assert_eq!(says(&next(&bad, Observation::Absent, false), "Accepted"), "False/InvalidTask");
}

#[test]
fn what_slipped_by_the_platforms_policy_waits_and_says_so() {
    let policy: Policy =
        serde_json::from_value(json!({"ttl": {"maximum": 60}, "image": {"requireDigest": true}})).unwrap();
    let next = |job: &Job| {
        let (class, settings) = (ClassView::Absent("c".into()), Settings::Missing);
        decide(&View { policy, ..view(job, class, settings, Observation::Absent, false) }, time(NOW))
    };
    let slipped = next(&job("new", json!({"spec": {"ttlSecondsAfterFinished": 61}})));
    assert_eq!(says(&slipped, "Accepted"), "False/PolicyViolation", "before anything that its class says");
    let message = conditions::find(&written(slipped).conditions, "Accepted").unwrap().message.clone();
    assert!(message.contains("spec.task.image: ") && message.contains("; spec.ttlSecondsAfterFinished: "), "{message}");
    let bad = next(&job("new", json!({"spec": {"ttlSecondsAfterFinished": 61, "task": {"image": "No Image"}}})));
    assert_eq!(says(&bad, "Accepted"), "False/InvalidTask", "before the policy");
    let digest = format!("app@sha256:{}", "a".repeat(64));
    let kept = next(&job("new", json!({"spec": {"ttlSecondsAfterFinished": 60, "task": {"image": digest}}})));
    assert_eq!(says(&kept, "Accepted"), "False/JobClassNotFound");
}

#[test]
fn an_accepted_job_is_never_judged_again() {
    let policy: Policy = serde_json::from_value(json!({"ttl": {"required": true}})).unwrap();
    let settings = Settings::Present { uid: "parameters-uid".into() };
    let class = class(true, true);
    let (accepted, class) = (job("accepted", json!({})), ClassView::Present(&class));
    let seen = View { policy, ..view(&accepted, class, settings, Observation::Absent, false) };
    assert_eq!(decide(&seen, time(NOW)), Step::Backend(Request::Prepare));
}

#[test]
fn a_replaced_class_or_parameters_never_take_an_accepted_job_over() {
    let job = job("accepted", json!({}));
    let mut other = class(true, true);
    other.metadata.uid = Some("another".into());
    let same = Settings::Present { uid: "parameters-uid".into() };
    let step = next_with(&job, ClassView::Present(&other), same.clone(), Observation::Absent, true);
    assert_eq!(says(&step, "Scheduled"), "False/JobClassReplaced");
    let fine = class(true, true);
    let step =
        next_with(&job, ClassView::Present(&fine), Settings::Present { uid: "new".into() }, Observation::Absent, true);
    assert_eq!(says(&step, "Scheduled"), "False/ParametersReplaced");
    let unready = class(true, false);
    let step = next_with(&job, ClassView::Present(&unready), same, Observation::Absent, true);
    assert_eq!(says(&step, "Scheduled"), "False/RuntimeClassNotFound");
}

#[test]
fn the_way_to_a_start_is_prepare_record_release() {
    let accepted = job("accepted", json!({}));
    assert_eq!(next(&accepted, Observation::Absent, false), Step::Backend(Request::Prepare));
    let prepared = Observation::Present(execution(Phase::Prepared));
    let recorded = written(next(&accepted, prepared.clone(), false));
    assert_eq!(recorded.execution.unwrap().references[0].id, "native");
    let scheduled = job("scheduled", json!({}));
    assert_eq!(next(&scheduled, prepared.clone(), false), Step::ReadJob, "only on a live look");
    assert_eq!(next(&scheduled, prepared, true), Step::Backend(Request::Release { id: "native".into() }));
    assert_eq!(says(&next(&accepted, Observation::Foreign, true), "Scheduled"), "False/NameConflict");
}

#[test]
fn what_was_recorded_is_never_made_again() {
    let scheduled = job("scheduled", json!({}));
    assert_eq!(next(&scheduled, Observation::Absent, false), Step::ReadExecution);
    assert_eq!(says(&next(&scheduled, Observation::Absent, true), "Succeeded"), "Unknown/ResultUnknown");
}

#[test]
fn start_and_end_are_reported_as_they_were_seen() {
    let running = written(next(
        &job("scheduled", json!({})),
        Observation::Present(execution(Phase::Running { started_at: time("2026-01-01T00:05:00Z") })),
        false,
    ));
    assert_eq!(running.start_time.unwrap().0, time("2026-01-01T00:05:00Z"));
    let over = written(next(&job("running", json!({})), Observation::Present(execution(ended(false, 3, NOW))), false));
    assert_eq!(over.result.unwrap().exit_code, Some(3));
    assert_eq!(over.completion_time.unwrap().0, time(NOW));
    assert_eq!(conditions::find(&over.conditions, "Succeeded").unwrap().status, ConditionStatus::False);
}

#[test]
fn a_start_time_lies_between_creation_and_now_whatever_the_nodes_clock_says() {
    for (said, written_down) in [("2025-01-01T00:00:00Z", EARLIER), ("2027-01-01T00:00:00Z", NOW)] {
        let seen = Observation::Present(execution(Phase::Running { started_at: time(said) }));
        assert_eq!(written(next(&job("scheduled", json!({})), seen, false)).start_time.unwrap().0, time(written_down));
    }
}

#[test]
fn an_end_is_told_at_our_time_whatever_the_nodes_clock_says() {
    for (said, start) in [("2025-01-01T00:00:00Z", EARLIER), ("2027-01-01T00:00:00Z", NOW)] {
        let end = End { started_at: Some(time(said)), ..an_end(true, 0, said) };
        let seen = Observation::Present(execution(Phase::Ended(end)));
        let status = written(next(&job("scheduled", json!({})), seen, false));
        let times = (status.start_time.unwrap().0, status.completion_time.unwrap().0);
        assert_eq!(times, (time(start), time(NOW)), "a TTL counts from the latter: {said}");
    }
}

#[test]
fn a_job_that_is_over_is_left_alone() {
    assert_eq!(next(&job("over", json!({})), Observation::Absent, false), Step::Wait);
    assert_eq!(
        next(&job("over", json!({"spec": {"desiredState": "Cancelled"}})), Observation::Absent, false),
        Step::Wait
    );
}

#[test]
fn jobs_of_other_adapters_are_never_touched() {
    let mut other = class(true, true);
    other.spec.controller_name = "other.example/x".into();
    let next = |job: &Job| next_with(job, ClassView::Present(&other), Settings::Missing, Observation::Absent, true);
    assert_eq!(next(&job("new", json!({"metadata": {"finalizers": null}}))), Step::Wait);
    assert_eq!(next(&job("new", json!({}))), Step::Wait);
    let elsewhere = json!({"status": {"execution": {"adapter": "another", "references": []}}});
    assert_eq!(next(&job("accepted", elsewhere.clone())), Step::Wait);
    let going = json!({"metadata": {"deletionTimestamp": NOW}});
    assert_eq!(says(&next(&job("new", going)), "Succeeded"), "False/Cancelled", "our webhook put the finalizer there");
    let mut going_elsewhere = job("accepted", elsewhere);
    going_elsewhere.metadata.deletion_timestamp = serde_json::from_value(json!(NOW)).unwrap();
    assert_eq!(next(&going_elsewhere), Step::Wait);
}

#[test]
fn an_acceptance_that_rests_on_labels_reads_them_live() {
    let mut selective = class(true, true);
    selective.spec.allowed_namespaces =
        serde_json::from_value(json!({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]})).unwrap();
    let next = |live| {
        let settings = Settings::Present { uid: "parameters-uid".into() };
        next_with(&job("new", json!({})), ClassView::Present(&selective), settings, Observation::Absent, live)
    };
    assert_eq!(next(false), Step::ReadNamespace);
    assert_eq!(says(&next(true), "Accepted"), "True/Valid");
}

#[test]
fn what_somebody_else_keeps_from_starting_is_unknown_and_not_waited_for() {
    for execution in [
        Execution { deletion_requested: true, ..execution(Phase::Prepared) },
        Execution { deletion_requested: true, ..execution(Phase::Released) },
        Execution { stop_requested: true, ..execution(Phase::Prepared) },
    ] {
        let step = next(&job("scheduled", json!({})), Observation::Present(execution), true);
        assert_eq!(says(&step, "Succeeded"), "Unknown/ResultUnknown");
    }
    let stopped = Observation::Present(execution(Phase::Stopped));
    assert_eq!(says(&next(&job("running", json!({})), stopped, true), "Succeeded"), "Unknown/ResultUnknown");
}

#[test]
fn what_waits_may_start_also_where_somebody_else_deletes_what_was_made_for_it() {
    let waiting = Phase::Waiting { why: "image".into(), failure: None };
    let deleted = Observation::Present(Execution { deletion_requested: true, ..execution(waiting) });
    assert_eq!(says(&next(&job("scheduled", json!({})), deleted, true), "Succeeded"), "Unknown/Scheduling");
}

#[test]
fn a_store_that_lags_takes_nothing_back() {
    let waiting = Observation::Present(execution(Phase::Waiting { why: "x".into(), failure: None }));
    assert_eq!(next(&job("running", json!({})), waiting.clone(), false), Step::Wait);
    let mut unknown = job("scheduled", json!({}));
    unknown.status = Some(written(next(&unknown, Observation::Absent, true)));
    assert_eq!(next(&unknown, waiting, false), Step::ReadExecution);
    // Nor its words, so that two controllers whose stores differ do not write in turn.
    let says = |why: &str| Observation::Present(execution(Phase::Waiting { why: why.into(), failure: None }));
    let (told, _) = settled(job("scheduled", json!({})), &says("newer"));
    assert_eq!(next(&told, says("older"), false), Step::ReadExecution);
    assert_eq!(next(&told, says("newer"), true), Step::Wait);
    let reworded = Job { status: Some(written(next(&told, says("newest"), true))), ..told };
    assert_eq!(said(&reworded), "Unknown/Scheduling: newest");
}
