//! Which settings are refused, and which may be deleted.

use serde_json::{Value, json};

use super::*;
use crate::Review;
use crate::testing::{Cluster, Held, fields, refused, verdict, verdict_on_delete};

fn kubernetes(spec: &Value) -> Value {
    let mut object = json!({
        "kind": "KubernetesExecutionParameters",
        "metadata": {"name": "default", "uid": "u"},
        "spec": {"serviceAccountName": "default"}
    });
    json_patch::merge(&mut object, &json!({"spec": spec}));
    object
}

fn sandbox(spec: &Value) -> Value {
    let mut object = json!({
        "kind": "OpenSandboxExecutionParameters",
        "metadata": {"name": "default", "uid": "u"},
        "spec": {
            "endpoint": "https://sandbox.example",
            "apiKeySecretRef": {"namespace": "platform", "name": "key", "key": "api-key"}
        }
    });
    json_patch::merge(&mut object, &json!({"spec": spec}));
    object
}

async fn judged(object: &Value, old: Option<&Value>) -> Answer {
    let cluster = Cluster::cut_off(Held::default());
    let answer = if object["kind"] == KubernetesExecutionParametersSpec::KIND {
        let review = KubernetesParametersValidation::new(Arc::<Cluster>::clone(&cluster));
        verdict(&review, object, old).await
    } else {
        let review = OpenSandboxParametersValidation::new(Arc::<Cluster>::clone(&cluster));
        verdict(&review, object, old).await
    };
    assert_eq!(cluster.live_reads(), 0, "settings are judged by themselves");
    answer
}

#[tokio::test]
async fn settings_without_fault_pass() {
    assert_eq!(judged(&kubernetes(&json!({})), None).await, Answer::allowed());
    assert_eq!(judged(&sandbox(&json!({})), None).await, Answer::allowed());
}

#[tokio::test]
async fn faults_of_settings_are_told_all_at_once() {
    let answer = judged(&kubernetes(&json!({"serviceAccountName": "A b", "runtimeClassName": "-"})), None).await;
    assert_eq!(fields(&answer), ["spec.serviceAccountName", "spec.runtimeClassName"]);
    let wrong = sandbox(&json!({"endpoint": "https://me:secret@sandbox.example", "apiKeySecretRef": {"key": "a/b"}}));
    let answer = judged(&wrong, None).await;
    assert_eq!(fields(&answer), ["spec.endpoint", "spec.apiKeySecretRef.key"]);
    assert!(!format!("{answer:?}").contains("me:secret"), "credentials are repeated: {answer:?}");
}

#[tokio::test]
async fn settings_that_did_not_change_are_not_judged_again() {
    let (faulty, good) = (sandbox(&json!({"endpoint": "https://a?b"})), sandbox(&json!({})));
    let mut labelled = faulty.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(judged(&labelled, Some(&faulty)).await, Answer::allowed());
    let mut written_otherwise = faulty.clone();
    written_otherwise["spec"]["requestMapping"] = json!("AdmissionOnly");
    assert_eq!(judged(&written_otherwise, Some(&faulty)).await, Answer::allowed());
    assert_eq!(refused(&judged(&faulty, Some(&good)).await).0, 422);
}

#[tokio::test]
async fn settings_that_cannot_be_read_are_a_bad_request() {
    let answer = judged(&kubernetes(&json!({"serviceAccountName": 5})), None).await;
    let (code, message) = refused(&answer);
    assert_eq!(code, 400);
    assert!(message.starts_with("cannot read the KubernetesExecutionParameters: "), "{message}");
}

/// Classes of the Kubernetes adapter; their settings are named `default`.
fn used_by(names: &[&str]) -> Held {
    names.iter().fold(Held::default(), |held, name| held.class(name, &json!({})))
}

async fn deleted(cluster: &Arc<Cluster>, old: &Value) -> Answer {
    let review = KubernetesParametersValidation::new(Arc::<Cluster>::clone(cluster));
    verdict_on_delete(&review, old).await
}

#[tokio::test]
async fn settings_that_a_class_uses_are_not_deleted() {
    let object = kubernetes(&json!({}));
    for (names, told) in [
        (&["a"][..], "JobClass a uses it: delete what uses it first"),
        (&["e", "d", "c", "b", "a"], "JobClasses a, b, c and 2 more use it: delete what uses it first"),
    ] {
        let answer = deleted(&Cluster::fresh(used_by(names)), &object).await;
        let begin = "kubernetesexecutionparameters.execution.ayatori.ddupan.top \"default\" is forbidden: ";
        assert_eq!(refused(&answer), (403, format!("{begin}{told}").as_str()));
    }
    let going = json!({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}});
    assert_eq!(refused(&deleted(&Cluster::fresh(Held::default().class("a", &going)), &object).await).0, 403);
}

#[tokio::test]
async fn settings_that_no_class_uses_are_deleted() {
    let other = json!({"spec": {"parametersRef": {"name": "other"}}});
    let kind = json!({"spec": {"parametersRef": {"kind": "OpenSandboxExecutionParameters"}}});
    let uid = json!({"spec": {"parametersRef": {"uid": "another"}}});
    for held in [Held::default(), [other, kind, uid].iter().fold(Held::default(), |held, class| held.class("a", class))]
    {
        assert_eq!(deleted(&Cluster::fresh(held), &kubernetes(&json!({}))).await, Answer::allowed());
    }
}

#[tokio::test]
async fn who_uses_settings_is_read_live() {
    let object = kubernetes(&json!({}));
    let (none, one) = (Held::default(), used_by(&["a"]));
    assert_eq!(refused(&deleted(&Cluster::behind(none.clone(), one.clone()), &object).await).0, 403);
    assert_eq!(deleted(&Cluster::behind(one.clone(), none), &object).await, Answer::allowed());
    assert_eq!(refused(&deleted(&Cluster::cut_off(one), &object).await).0, 500, "nobody could tell");
}

#[tokio::test]
async fn settings_that_are_going_already_may_be_deleted_again() {
    let mut going = kubernetes(&json!({}));
    going["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
    assert_eq!(deleted(&Cluster::fresh(used_by(&["a"])), &going).await, Answer::allowed());
}

#[tokio::test]
async fn a_deleted_collection_is_judged_object_by_object() {
    // The API server names no object in such a request: only the stored object says which one it is.
    let (object, cluster) = (kubernetes(&json!({})), Cluster::fresh(used_by(&["a"])));
    let request = json!({
        "kind": {"group": GROUP, "version": VERSION, "kind": "KubernetesExecutionParameters"},
        "resource": {"group": GROUP, "version": VERSION, "resource": "kubernetesexecutionparameters"},
        "operation": "DELETE", "object": null, "oldObject": object
    });
    let text = request.to_string();
    let review = KubernetesParametersValidation::new(cluster);
    let answer = review.review(&serde_json::from_str(&text).unwrap()).await;
    assert!(refused(&answer).1.contains("\"default\" is forbidden"), "{answer:?}");
}
