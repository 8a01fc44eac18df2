//! What is warned of when something that a Job names is missing, and what that costs.

use ayatori_crds::rules::Policy;
use serde_json::{Value, json};

use super::*;
use crate::testing::{Cluster, Held, verdict, verdict_on, warned};
use crate::{Answer, Arrival, JobValidation};
use std::sync::Arc;

fn job(task: &Value) -> Value {
    let mut job = json!({
        "kind": "Job",
        "metadata": {"name": "x", "namespace": "team-a"},
        "spec": {"jobClassName": "small", "task": {"image": "registry.example/app:1"}}
    });
    json_patch::merge(&mut job, &json!({"spec": {"task": task}}));
    job
}

/// Variables that take a key of these.
fn env(word: &str, names: &[&str]) -> Vec<Value> {
    let of = |(index, name): (usize, &&str)| json!({"name": format!("{word}_{index}"), "valueFrom": {word: {"name": name, "key": "k"}}});
    names.iter().enumerate().map(of).collect()
}

fn held() -> Held {
    Held::default().namespace("team-a", &[], &[]).class("small", &json!({}))
}

fn validation(cluster: &Arc<Cluster>, references: ReferenceChecks) -> JobValidation {
    JobValidation::new(Arc::<Cluster>::clone(cluster), Policy::default(), references)
}

async fn created(cluster: &Arc<Cluster>, task: &Value) -> Answer {
    verdict(&validation(cluster, ReferenceChecks::On), &job(task), None).await
}

#[tokio::test]
async fn what_is_missing_is_a_warning_for_each_kind() {
    let cluster = Cluster::fresh(held().referent("team-a", Referent::Secret, "here"));
    let mut variables = env("secretKeyRef", &["here", "db"]);
    variables.extend(env("configMapKeyRef", &["a", "b", "c", "d"]));
    let task = json!({"imagePullSecrets": [{"name": "here"}], "env": variables});
    assert_eq!(
        warned(&created(&cluster, &task).await),
        [
            "Secret \"db\" does not exist: the Job waits until it does",
            "ConfigMaps a, b, c and 1 more do not exist: the Job waits until they do"
        ]
    );
    let task = json!({"imagePullSecrets": [{"name": "registry"}]});
    let warning = ["Secret \"registry\" does not exist: the Job waits until it does"];
    assert_eq!(warned(&created(&cluster, &task).await), warning);
    let elsewhere = Cluster::fresh(held().referent("team-b", Referent::Secret, "registry"));
    assert_eq!(warned(&created(&elsewhere, &task).await), warning, "another namespace has it");
    let other_kind = Cluster::fresh(held().referent("team-a", Referent::ConfigMap, "registry"));
    assert_eq!(warned(&created(&other_kind, &task).await), warning, "another kind has it");
}

#[tokio::test]
async fn what_is_there_or_optional_or_without_a_name_is_not_told() {
    let cluster = Cluster::fresh(held().referent("team-a", Referent::Secret, "here"));
    let mut variables = env("secretKeyRef", &["here", ""]);
    variables.push(json!({"name": "C", "valueFrom": {"secretKeyRef": {"name": "gone", "key": "k", "optional": true}}}));
    assert_eq!(created(&cluster, &json!({"env": variables})).await, Answer::allowed());
    assert_eq!(cluster.live_reads(), 1, "each name once, and only those");
}

#[tokio::test]
async fn a_job_that_names_nothing_is_judged_without_any_request() {
    let cluster = Cluster::fresh(held());
    assert_eq!(created(&cluster, &json!({"env": [{"name": "A", "value": "1"}]})).await, Answer::allowed());
    assert_eq!(cluster.live_reads(), 0);
}

#[tokio::test]
async fn only_the_first_few_names_are_asked_for_and_each_once() {
    let cluster = Cluster::fresh(held());
    let names: Vec<String> = (0..40).map(|n| format!("s{}", n / 2)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let answer = created(&cluster, &json!({"env": env("secretKeyRef", &names)})).await;
    assert_eq!(warned(&answer), ["Secrets s0, s1, s2 and 5 more do not exist: the Job waits until they do"]);
    assert_eq!(cluster.live_reads(), 8);
}

#[tokio::test]
async fn what_cannot_be_asked_is_not_told() {
    let cluster = Cluster::cut_off(held());
    assert_eq!(created(&cluster, &json!({"imagePullSecrets": [{"name": "registry"}]})).await, Answer::allowed());
}

#[tokio::test]
async fn what_cannot_be_a_name_exists_nowhere_and_is_never_part_of_a_request() {
    let cluster = Cluster::fresh(held());
    let answer = created(&cluster, &json!({"imagePullSecrets": [{"name": "../../team-b/secrets/x"}]})).await;
    assert_eq!(warned(&answer), ["Secret \"../../team-b/secrets/x\" does not exist: the Job waits until it does"]);
    assert_eq!(cluster.live_reads(), 0);
}

#[tokio::test]
async fn checks_that_are_off_ask_nothing() {
    let cluster = Cluster::fresh(held());
    let task = json!({"imagePullSecrets": [{"name": "registry"}]});
    let answer = verdict(&validation(&cluster, ReferenceChecks::Off), &job(&task), None).await;
    assert_eq!((answer, cluster.live_reads()), (Answer::allowed(), 0));
}

#[tokio::test]
async fn a_job_that_is_refused_or_changed_asks_nothing() {
    let cluster = Cluster::fresh(held());
    let task = json!({"image": "No Image", "imagePullSecrets": [{"name": "registry"}]});
    assert!(matches!(created(&cluster, &task).await, Answer::Refused(_)));
    let old = job(&json!({"imagePullSecrets": [{"name": "registry"}]}));
    let mut new = old.clone();
    new["spec"]["ttlSecondsAfterFinished"] = json!(5);
    assert_eq!(verdict(&validation(&cluster, ReferenceChecks::On), &new, Some(&old)).await, Answer::allowed());
    assert_eq!(cluster.live_reads(), 0);
}

#[tokio::test(start_paused = true)]
async fn slow_answers_take_a_short_part_of_the_requests_time_and_fail_nothing() {
    let slow =
        Arc::new(Cluster { delay: Duration::from_secs(60), stored: held(), live: Some(held()), ..Cluster::default() });
    let object = job(&json!({"imagePullSecrets": [{"name": "registry"}]}));
    for (time, most) in [(None, 1000), (Some(9_000), 1000), (Some(900), 225)] {
        let begin = Instant::now();
        let deadline = time.map(|time| begin + Duration::from_millis(time));
        let arrival = Arrival { deadline, ..Arrival::default() };
        let answer = verdict_on(&validation(&slow, ReferenceChecks::On), Some(&object), None, arrival).await;
        assert_eq!(answer, Answer::allowed());
        assert!(begin.elapsed() <= Duration::from_millis(most + 1), "{time:?}: {:?}", begin.elapsed());
    }
}
