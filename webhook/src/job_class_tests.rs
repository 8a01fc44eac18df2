//! Which classes are refused, and which are only warned of.

use serde_json::{Value, json};

use super::*;
use crate::testing::{Cluster, Held, class_json, fields, refused, verdict, warned};

const KUBERNETES: &str = "execution.ayatori.ddupan.top/kubernetes";

fn class(overlay: &Value) -> Value {
    let mut class = class_json("small");
    json_patch::merge(&mut class, overlay);
    class
}

fn bad_policy() -> Value {
    json!({"spec": {"resources": {"minimum": {"limits": {"cpu": "2"}}, "maximum": {"limits": {"cpu": "1"}}}}})
}

fn default_mark() -> Value {
    json!({"metadata": {"annotations": {IS_DEFAULT_JOB_CLASS_ANNOTATION: "true"}}})
}

async fn judged(held: Held, object: &Value, old: Option<&Value>) -> Answer {
    let review = JobClassValidation::new(Cluster::fresh(held), vec![KUBERNETES.to_owned()]);
    verdict(&review, object, old).await
}

#[tokio::test]
async fn a_class_without_fault_passes_without_a_word() {
    assert_eq!(judged(Held::default(), &class(&json!({})), None).await, Answer::allowed());
}

#[tokio::test]
async fn every_fault_of_a_class_is_told_in_one_answer() {
    let mut faulty = class(&bad_policy());
    let more = json!({"spec": {
        "allowedNamespaces": {"matchExpressions": [{"key": "tier", "operator": "Near"}]},
        "parametersRef": {"kind": "OpenSandboxExecutionParameters"}
    }});
    json_patch::merge(&mut faulty, &more);
    let answer = judged(Held::default(), &faulty, None).await;
    let (code, message) = refused(&answer);
    assert_eq!(code, 422);
    assert!(message.starts_with("JobClass.execution.ayatori.ddupan.top \"small\" is invalid: ["), "{message}");
    assert_eq!(
        fields(&answer),
        [
            "spec.parametersRef.kind",
            "spec.allowedNamespaces.matchExpressions[0].operator",
            "spec.resources.minimum.limits.cpu"
        ]
    );
}

#[tokio::test]
async fn a_controller_under_our_domain_that_nobody_here_serves_is_a_warning() {
    let named = |name: &str| class(&json!({"spec": {"controllerName": name}}));
    let later = judged(Held::default(), &named("execution.ayatori.ddupan.top/later"), None).await;
    assert_eq!(
        warned(&later),
        ["no adapter here serves \"execution.ayatori.ddupan.top/later\": if none elsewhere does, its Jobs wait"]
    );
    let foreign = named("other.example/runner");
    assert!(warned(&judged(Held::default(), &foreign, None).await).is_empty());
}

#[tokio::test]
async fn a_second_default_is_a_warning_when_it_becomes_one() {
    let held = || Held::default().class("first", &default_mark()).class("small", &json!({}));
    let warning = ["first is the default already: with several, Jobs without a class wait"];
    assert_eq!(warned(&judged(held(), &class(&default_mark()), None).await), warning);
    assert_eq!(warned(&judged(held(), &class(&default_mark()), Some(&class(&json!({})))).await), warning);
    assert!(warned(&judged(held(), &class(&default_mark()), Some(&class(&default_mark()))).await).is_empty());

    let alone = Held::default().class("small", &default_mark());
    assert!(warned(&judged(alone, &class(&default_mark()), None).await).is_empty());
}

#[tokio::test]
async fn an_existing_class_is_judged_only_where_its_spec_changes() {
    let faulty = class(&bad_policy());
    let mut marked = faulty.clone();
    json_patch::merge(&mut marked, &default_mark());
    assert_eq!(judged(Held::default(), &marked, Some(&faulty)).await, Answer::allowed());
    assert_eq!(refused(&judged(Held::default(), &faulty, Some(&class(&json!({})))).await).0, 422);
}

#[tokio::test]
async fn a_class_that_is_only_written_otherwise_is_not_judged_again() {
    let mut faulty = class(&bad_policy());
    faulty["spec"]["resources"]["maximum"]["requests"] = json!({"memory": "1Gi"});
    let mut same = faulty.clone();
    same["spec"]["resources"]["minimum"]["limits"]["cpu"] = json!("2000m");
    same["spec"]["resources"]["maximum"]["requests"]["memory"] = json!("1024Mi");
    assert_eq!(judged(Held::default(), &same, Some(&faulty)).await, Answer::allowed());
}

#[tokio::test]
async fn a_deleting_class_may_lose_its_finalizer_whatever_it_says() {
    let deleting = json!({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["x/y"]}});
    let mut held = class(&bad_policy());
    json_patch::merge(&mut held, &deleting);
    let mut released = held.clone();
    released["metadata"]["finalizers"] = json!([]);
    assert_eq!(judged(Held::default(), &released, Some(&held)).await, Answer::allowed());
    let mut good = class(&json!({}));
    json_patch::merge(&mut good, &deleting);
    assert_eq!(refused(&judged(Held::default(), &class(&bad_policy()), Some(&good)).await).0, 422);
}

#[tokio::test]
async fn a_second_default_is_noticed_before_the_store_knows_of_the_first() {
    let live = Held::default().class("first", &default_mark());
    let judged = async |cluster| {
        let review = JobClassValidation::new(cluster, vec![KUBERNETES.to_owned()]);
        verdict(&review, &class(&default_mark()), None).await
    };
    let warning = ["first is the default already: with several, Jobs without a class wait"];
    assert_eq!(warned(&judged(Cluster::behind(Held::default(), live.clone())).await), warning);
    assert_eq!(warned(&judged(Cluster::cut_off(live)).await), warning);
}

#[tokio::test]
async fn a_class_that_cannot_be_read_is_a_bad_request() {
    let answer = judged(Held::default(), &class(&json!({"spec": {"controllerName": 5}})), None).await;
    let (code, message) = refused(&answer);
    assert_eq!(code, 400);
    assert!(message.starts_with("cannot read the JobClass: "), "{message}");
}
