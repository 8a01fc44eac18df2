//! What an acceptance waits for (spec C3), and executions that show nothing (spec E5).

use ayatori_crds::rules::references::Referent;

use super::*;
use crate::job::references::{Answer, Answers, Reference};

fn with_answers(job: &Job, answers: &Answers) -> Step {
    let class = class(true, true);
    let settings = Settings::Present { uid: "parameters-uid".into() };
    let seen = view(job, ClassView::Present(&class), settings, Observation::Absent, false);
    decide(&View { references: Some(answers), ..seen }, time(NOW))
}

#[test]
fn a_job_is_accepted_only_once_what_it_needs_was_seen() {
    let env = json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]);
    let mut job = job("new", json!({"spec": {"task": {"env": env}}}));
    assert_eq!(says(&next(&job, Observation::Absent, false), "Accepted"), "True/Valid", "the checks are off");
    let secret = || Reference { kind: Referent::Secret, name: "s".into() };
    let keys: BTreeSet<_> = ["k".to_owned()].into();
    let mut answers = Answers::new();
    assert_eq!(with_answers(&job, &answers), Step::ReadReference(secret(), keys.clone()));
    answers.insert(secret(), Answer::Absent);
    let step = with_answers(&job, &answers);
    assert_eq!(says(&step, "Accepted"), "False/SecretNotFound");
    job.status = Some(written(step));
    assert_eq!(with_answers(&job, &answers), Step::WaitUntil(time("2026-01-01T00:10:05Z")), "it is looked at again");
    answers.insert(secret(), Answer::Present(keys));
    assert_eq!(says(&with_answers(&job, &answers), "Accepted"), "True/Valid");
}

#[test]
fn a_cancelled_job_is_over_whatever_it_needs() {
    let env = json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]);
    let job = job("new", json!({"spec": {"desiredState": "Cancelled", "task": {"env": env}}}));
    assert_eq!(says(&with_answers(&job, &Answers::new()), "Succeeded"), "False/Cancelled");
}

#[test]
fn an_execution_that_shows_nothing_for_some_time_is_explained_now_and_then() {
    let class = class(true, true);
    let seen = |job: &Job, explanation: Option<&str>, now: &str| {
        let released = Observation::Present(execution(Phase::Released));
        let settings = Settings::Present { uid: "parameters-uid".into() };
        let seen = view(job, ClassView::Present(&class), settings, released, true);
        decide(&View { explanation, ..seen }, time(now))
    };
    // It was scheduled ten minutes ago; its message is brought up to date first.
    let mut waiting = job("scheduled", json!({}));
    let soon = seen(&waiting, None, "2026-01-01T00:00:01Z");
    assert_eq!(says(&soon, "Succeeded"), "Unknown/Scheduling");
    waiting.status = Some(written(soon));
    assert_eq!(seen(&waiting, None, "2026-01-01T00:00:01Z"), Step::WaitUntil(time("2026-01-01T00:00:05Z")));
    assert_eq!(seen(&waiting, None, NOW), Step::AskWhy("native".into()));
    let next_minute = Step::WaitUntil(time("2026-01-01T00:11:00Z"));
    assert_eq!(seen(&waiting, Some(""), NOW), next_minute, "the records say nothing");
    let told = written(seen(&waiting, Some("exceeded quota"), NOW));
    assert_eq!(conditions::find(&told.conditions, "Succeeded").unwrap().message, "exceeded quota");
    waiting.status = Some(told);
    assert_eq!(seen(&waiting, Some("exceeded quota"), NOW), next_minute, "it is written once");
}
