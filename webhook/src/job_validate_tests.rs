//! Who is refused, for what, and who is only warned.

use serde_json::{Value, json};

use super::*;
use crate::testing::{Cluster, Held, fields, refused, verdict, warned};

fn job(spec: &Value) -> Value {
    let mut job = json!({
        "kind": "Job",
        "metadata": {"name": "x", "namespace": "team-a"},
        "spec": {"jobClassName": "small", "task": {"image": "registry.example/app:1"}}
    });
    json_patch::merge(&mut job, &json!({"spec": spec}));
    job
}

fn tier(value: &str) -> Value {
    json!({"spec": {"allowedNamespaces": {"matchLabels": {"tier": value}}}})
}

/// Namespace `team-a` of tier `ci`, and class `small` overlaid by `class`.
fn held(class: &Value) -> Held {
    Held::default().namespace("team-a", &["tier=ci"], &[]).class("small", class)
}

async fn created(cluster: Arc<Cluster>, spec: &Value) -> Answer {
    created_under(&json!({}), cluster, spec).await
}

async fn created_under(policy: &Value, cluster: Arc<Cluster>, spec: &Value) -> Answer {
    verdict(&validation(policy, cluster), &job(spec), None).await
}

/// What a Job refers to is a matter of its own (`references_tests.rs`).
fn validation(policy: &Value, cluster: Arc<Cluster>) -> JobValidation {
    JobValidation::new(cluster, serde_json::from_value(policy.clone()).unwrap(), ReferenceChecks::Off)
}

#[tokio::test]
async fn a_job_without_fault_passes_without_a_word_and_without_a_live_read() {
    let cluster = Cluster::fresh(held(&tier("ci")));
    assert_eq!(created(Arc::clone(&cluster), &json!({})).await, Answer::allowed());
    assert_eq!(cluster.live_reads(), 0);
}

#[tokio::test]
async fn a_namespace_that_the_class_does_not_allow_is_forbidden_when_that_is_all() {
    let answer = created(Cluster::fresh(held(&tier("prod"))), &json!({})).await;
    let (code, message) = refused(&answer);
    assert_eq!(code, 403);
    let begin =
        "jobs.execution.ayatori.ddupan.top \"x\" is forbidden: JobClass \"small\" does not allow namespace \"team-a\"";
    assert!(message.starts_with(begin), "{message}");
    assert!(fields(&answer).is_empty());
}

#[tokio::test]
async fn a_refused_namespace_is_told_which_classes_it_may_use() {
    let told = async |held: Held| {
        let answer = created(Cluster::fresh(held), &json!({})).await;
        let message = refused(&answer).1;
        let (_, instead) = message.split_once("\"team-a\": ").unwrap();
        instead.split_once(", or ask an administrator").unwrap().0.to_owned()
    };
    let waiting = json!({"status": {"conditions": []}});
    let going = json!({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}});
    let unusable = || {
        let held = held(&tier("prod")).class("other", &tier("prod"));
        held.class("waiting", &waiting).class("going", &going)
    };
    assert_eq!(told(unusable()).await, "no class does: ask for one");
    let some = unusable().class("b", &tier("ci")).class("a", &json!({}));
    assert_eq!(told(some).await, r#"use one that does ("a", "b")"#);
    let many = ["d", "b", "a", "c"].iter().fold(unusable(), |held, name| held.class(name, &json!({})));
    assert_eq!(told(many).await, r#"use one that does ("a", "b", "c" and 1 more)"#);
}

#[tokio::test]
async fn every_fault_is_told_in_one_answer_the_namespace_too() {
    let mut class = tier("prod");
    json_patch::merge(&mut class, &json!({"spec": {"resources": {"maximum": {"limits": {"cpu": "1"}}}}}));
    let spec = json!({
        "task": {"image": "No Image", "env": [{"name": "AYATORI_X", "value": "1"}]},
        "resources": {"limits": {"cpu": "2"}}
    });
    let answer = created(Cluster::fresh(held(&class)), &spec).await;
    assert_eq!(refused(&answer).0, 422);
    assert_eq!(
        fields(&answer),
        ["spec.task.image", "spec.task.env[0].name", "spec.jobClassName", "spec.resources.limits.cpu"]
    );
}

#[tokio::test]
async fn one_fault_reads_like_that_of_a_built_in_kind() {
    let answer = created(Cluster::fresh(held(&json!({}))), &json!({"task": {"image": "a b"}})).await;
    let (code, message) = refused(&answer);
    assert_eq!(code, 422);
    let begin = "Job.execution.ayatori.ddupan.top \"x\" is invalid: spec.task.image: Invalid value: \"a b\": must be";
    assert!(message.starts_with(begin), "{message}");
}

#[tokio::test]
async fn a_job_that_has_no_name_yet_is_told_by_its_generate_name() {
    let mut nameless = job(&json!({"task": {"image": "a b"}}));
    nameless["metadata"] = json!({"generateName": "x-", "namespace": "team-a"});
    let answer = verdict(&validation(&json!({}), Cluster::fresh(held(&json!({})))), &nameless, None).await;
    assert!(refused(&answer).1.starts_with("Job.execution.ayatori.ddupan.top \"x-\" is invalid"));
}

#[tokio::test]
async fn a_store_that_is_behind_never_refuses() {
    let live = held(&tier("ci"));
    for stored in [
        held(&tier("prod")),
        Held::default().namespace("team-a", &[], &[]).class("small", &tier("ci")),
        Held::default().class("small", &tier("ci")),
        Held::default(),
    ] {
        assert_eq!(created(Cluster::behind(stored, live.clone()), &json!({})).await, Answer::allowed());
    }
}

#[tokio::test]
async fn a_refusal_that_cannot_be_confirmed_is_our_failure_and_not_the_jobs() {
    let answer = created(Cluster::cut_off(held(&tier("prod"))), &json!({})).await;
    assert_eq!(refused(&answer), (500, "cannot read class: no answer; try again"));
}

#[tokio::test]
async fn what_no_class_could_allow_is_refused_without_a_class() {
    let spec = json!({"jobClassName": null, "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}});
    let answer = created(Cluster::fresh(Held::default()), &spec).await;
    assert_eq!(fields(&answer), ["spec.resources.requests.cpu"]);
}

#[tokio::test]
async fn a_job_without_a_class_is_warned_of_with_the_reason() {
    let mark = json!({"metadata": {"annotations": {"execution.ayatori.ddupan.top/is-default-job-class": "true"}}});
    let marked = |names: &[&str]| {
        let held = Held::default().namespace("team-a", &[], &[]).class("unmarked", &json!({}));
        names.iter().fold(held, |held, name| held.class(name, &mark))
    };
    for (cluster, why) in [
        (Cluster::fresh(marked(&[])), "neither the namespace nor the cluster has a default"),
        (Cluster::fresh(marked(&["e", "d", "c", "b", "a"])), "several classes are the default (a, b, c and 2 more)"),
        (Cluster::cut_off(Held::default()), "the default could not be looked up"),
    ] {
        for class in [Value::Null, json!("")] {
            let answer = created(Arc::clone(&cluster), &json!({"jobClassName": class})).await;
            assert_eq!(warned(&answer), [format!("spec.jobClassName is not set and {why}: the Job waits")]);
        }
    }
    // It came between defaulting and validation: the controller finds it.
    let answer = created(Cluster::fresh(marked(&["a"])), &json!({"jobClassName": null})).await;
    assert_eq!(answer, Answer::allowed());
}

#[tokio::test]
async fn a_class_that_may_come_or_be_mended_is_a_warning() {
    let deleting = json!({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}, "spec": tier("prod")["spec"]});
    let refused_class = json!({"status": {"conditions": [{
        "type": "Accepted", "status": "False", "reason": "ParametersNotFound", "message": "",
        "lastTransitionTime": "2030-01-01T00:00:00Z"
    }]}});
    for (held, warning) in [
        (Held::default(), "JobClass \"small\" does not exist: the Job waits until it does"),
        (held(&deleting), "JobClass \"small\" is being deleted: the Job waits until it is there again"),
        (held(&refused_class), "JobClass \"small\" is not accepted (ParametersNotFound): the Job waits until it is"),
        (
            held(&json!({"status": null})),
            "JobClass \"small\" is not accepted (not looked at yet): the Job waits until it is",
        ),
    ] {
        assert_eq!(warned(&created(Cluster::fresh(held), &json!({})).await), [warning]);
    }
}

#[tokio::test]
async fn a_class_that_is_not_accepted_yet_counts_unless_it_is_faulty_itself() {
    let mut class = tier("prod");
    class["status"] = Value::Null;
    assert_eq!(refused(&created(Cluster::fresh(held(&class)), &json!({})).await).0, 403);

    let bounds = json!({"minimum": {"limits": {"cpu": "2"}}, "maximum": {"limits": {"cpu": "1"}}});
    json_patch::merge(&mut class, &json!({"spec": {"resources": bounds}}));
    assert_eq!(warned(&created(Cluster::fresh(held(&class)), &json!({})).await).len(), 1);
}

#[tokio::test]
async fn what_is_legal_but_likely_wrong_is_a_warning() {
    let cluster = || Cluster::fresh(held(&json!({})));
    let answer = created(cluster(), &json!({"ttlSecondsAfterFinished": 0, "task": {"image": "app"}})).await;
    assert_eq!(
        warned(&answer),
        [
            "spec.task.image has the tag latest: it may name another image tomorrow; a digest does not",
            "spec.ttlSecondsAfterFinished is 0: the Job and its result are gone as soon as it is over"
        ]
    );
    assert!(warned(&created(cluster(), &json!({"ttlSecondsAfterFinished": 1})).await).is_empty());
}

#[tokio::test]
async fn what_the_platform_asks_for_is_told_among_the_other_faults() {
    let policy = json!({"ttl": {"required": true}, "image": {"requireDigest": true}});
    let spec = json!({"task": {"image": "app:1", "env": [{"name": "AYATORI_X", "value": ""}]}});
    let answer = created_under(&policy, Cluster::fresh(held(&tier("prod"))), &spec).await;
    assert_eq!(
        fields(&answer),
        ["spec.task.env[0].name", "spec.task.image", "spec.ttlSecondsAfterFinished", "spec.jobClassName"]
    );
    let digest = format!("registry.example/app@sha256:{}", "0".repeat(64));
    let spec = json!({"task": {"image": digest}, "ttlSecondsAfterFinished": 5});
    assert_eq!(created_under(&policy, Cluster::fresh(held(&tier("ci"))), &spec).await, Answer::allowed());
}

/// A task with a command, a Secret in its environment and registry credentials.
fn secretive() -> Value {
    json!({
        "command": ["run"],
        "imagePullSecrets": [{"name": "registry"}],
        "env": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]
    })
}

fn allowing(secrets: bool) -> Value {
    json!({"spec": {"allowSecretEnv": secrets, "allowImageAuth": secrets}})
}

#[tokio::test]
async fn a_sandbox_class_refuses_what_its_settings_do_not_allow() {
    let spec = json!({"task": secretive()});
    for settings in [json!({}), allowing(false)] {
        let cluster = Cluster::fresh(Held::default().sandbox_class("small", &settings));
        let answer = created(cluster, &spec).await;
        assert_eq!(refused(&answer).0, 422);
        assert_eq!(fields(&answer), ["spec.task.imagePullSecrets", "spec.task.env[0].valueFrom.secretKeyRef"]);
    }
    let cluster = Cluster::fresh(Held::default().sandbox_class("small", &allowing(true)));
    assert_eq!(created(Arc::clone(&cluster), &spec).await, Answer::allowed());
    assert_eq!(cluster.live_reads(), 0, "fresh stores need no live read");
}

#[tokio::test]
async fn settings_of_a_sandbox_class_are_read_live_before_a_refusal() {
    let (strict, open) = (
        Held::default().sandbox_class("small", &allowing(false)),
        Held::default().sandbox_class("small", &allowing(true)),
    );
    let spec = json!({"task": secretive()});
    assert_eq!(created(Cluster::behind(strict.clone(), open.clone()), &spec).await, Answer::allowed());
    assert_eq!(refused(&created(Cluster::cut_off(strict), &spec).await).0, 500, "not to be confirmed");
}

#[tokio::test]
async fn a_sandbox_class_whose_settings_are_missing_forbids_nothing_yet() {
    let mut held = Held::default().sandbox_class("small", &allowing(false));
    held.classes[0].spec.parameters_ref.uid = Some("another".to_owned());
    let spec = json!({"task": secretive()});
    assert_eq!(created(Cluster::fresh(held.clone()), &spec).await, Answer::allowed());
    held.sandbox_parameters.clear();
    assert_eq!(created(Cluster::fresh(held), &spec).await, Answer::allowed());
}

#[tokio::test]
async fn a_sandbox_class_asks_for_a_command_and_a_kubernetes_class_for_none() {
    let cluster = Cluster::fresh(Held::default().sandbox_class("small", &json!({})));
    let answer = created(cluster, &json!({"task": {"args": ["x"]}})).await;
    assert_eq!(fields(&answer), ["spec.task.command"]);
    let spec = json!({"task": {"imagePullSecrets": secretive()["imagePullSecrets"], "env": secretive()["env"]}});
    assert_eq!(created(Cluster::fresh(held(&json!({}))), &spec).await, Answer::allowed());
}

#[tokio::test]
async fn a_class_name_that_is_none_is_never_part_of_a_request() {
    for name in ["small/status", "../jobclasses/small", "a b", "x?y=z"] {
        let cluster = Cluster::fresh(held(&json!({})));
        let answer = created(Arc::clone(&cluster), &json!({"jobClassName": name})).await;
        assert_eq!(warned(&answer), [format!("JobClass {name:?} does not exist: the Job waits until it does")]);
        assert_eq!(cluster.live_reads(), 0);
    }
}

#[tokio::test]
async fn a_job_that_cannot_be_read_is_a_bad_request() {
    let answer = created(Cluster::fresh(Held::default()), &json!({"task": "x"})).await;
    let (code, message) = refused(&answer);
    assert_eq!(code, 400);
    assert!(message.starts_with("cannot read the Job: "), "{message}");
}

async fn updated(old: &Value, new: &Value) -> Answer {
    updated_under(&json!({}), old, new).await
}

async fn updated_under(policy: &Value, old: &Value, new: &Value) -> Answer {
    let cluster = Cluster::cut_off(held(&tier("prod")));
    let answer = verdict(&validation(policy, Arc::<Cluster>::clone(&cluster)), new, Some(old)).await;
    assert_eq!(cluster.live_reads(), 0, "an update needs no look-up");
    answer
}

#[tokio::test]
async fn policy_that_became_stricter_locks_no_existing_job() {
    let old = job(&json!({"task": {"image": "No Image"}}));
    assert_eq!(updated(&old, &old).await, Answer::allowed());
    let mut cancelled = old.clone();
    cancelled["spec"]["desiredState"] = json!("Cancelled");
    assert_eq!(updated(&old, &cancelled).await, Answer::allowed());
}

#[tokio::test]
async fn a_spec_that_is_only_written_otherwise_passes() {
    let old = job(&json!({"resources": {"requests": {"cpu": "1"}}}));
    let new = job(&json!({"resources": {"requests": {"cpu": "1000m"}, "limits": {}}}));
    assert_eq!(updated(&old, &new).await, Answer::allowed());
}

#[tokio::test]
async fn a_deleting_jobs_metadata_may_change_and_its_spec_not() {
    let deleting = |spec: &Value| {
        let mut job = job(spec);
        job["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
        job
    };
    let old = deleting(&json!({"task": {"image": "No Image"}, "resources": {"requests": {"cpu": "1"}}}));
    let mut released = old.clone();
    released["metadata"]["finalizers"] = json!([]);
    released["spec"]["resources"] = json!({"requests": {"cpu": "1000m"}, "limits": {}});
    assert_eq!(updated(&old, &released).await, Answer::allowed(), "the same by value");
    for change in [json!({"ttlSecondsAfterFinished": 5}), json!({"desiredState": "Cancelled"})] {
        let mut changed = old.clone();
        json_patch::merge(&mut changed, &json!({"spec": change}));
        let answer = updated(&old, &changed).await;
        assert_eq!((refused(&answer).0, fields(&answer)), (422, vec!["spec"]), "{change}");
    }
}

#[tokio::test]
async fn only_a_ttl_that_changed_is_judged_by_the_platforms_policy() {
    let policy = json!({"ttl": {"maximum": 60, "required": true}, "image": {"requireDigest": true}});
    let kept = |ttl: Value| job(&json!({"ttlSecondsAfterFinished": ttl}));
    let (long, none) = (kept(json!(3600)), kept(Value::Null));
    for old in [&long, &none] {
        let mut cancelled = old.clone();
        cancelled["spec"]["desiredState"] = json!("Cancelled");
        assert_eq!(updated_under(&policy, old, &cancelled).await, Answer::allowed());
        assert_eq!(updated_under(&policy, old, &kept(json!(60))).await, Answer::allowed());
    }
    for (old, new, told) in [
        (&none, kept(json!(61)), "Invalid value: \"61\": must be at most 60, the platform's maximum"),
        (&long, kept(json!(3601)), "Invalid value: \"3601\": must be at most 60, the platform's maximum"),
        (&long, none.clone(), "Required value: the platform asks every Job for a TTL of at most 60, in seconds"),
    ] {
        let answer = updated_under(&policy, old, &new).await;
        assert_eq!(fields(&answer), ["spec.ttlSecondsAfterFinished"]);
        assert!(refused(&answer).1.ends_with(told), "{}", refused(&answer).1);
    }
}

#[tokio::test]
async fn an_unreadable_spec_that_did_not_change_passes_and_a_new_one_does_not() {
    let odd = job(&json!({"task": 5}));
    assert_eq!(updated(&odd, &odd).await, Answer::allowed());
    assert_eq!(updated(&odd, &job(&json!({}))).await, Answer::allowed());
    assert_eq!(refused(&updated(&job(&json!({})), &odd).await).0, 400);
}

#[tokio::test]
async fn an_update_warns_of_what_it_changed_alone() {
    let (kept, gone) = (job(&json!({"ttlSecondsAfterFinished": 60})), job(&json!({"ttlSecondsAfterFinished": 0})));
    assert_eq!(warned(&updated(&kept, &gone).await).len(), 1);
    let cancelled = job(&json!({"ttlSecondsAfterFinished": 0, "desiredState": "Cancelled"}));
    assert!(warned(&updated(&gone, &cancelled).await).is_empty());

    let mut finished = gone.clone();
    finished["status"] = json!({"completionTime": "2030-01-01T00:00:00Z", "conditions": 7});
    assert_eq!(
        warned(&updated(&finished, &cancelled).await),
        ["the Job is over already: cancelling it changes nothing"]
    );
}
