//! What defaulting adds, to whom, and what it never touches.

use proptest::prelude::*;

use super::*;
use crate::testing::{Cluster, Held, verdict};

const FINALIZER: &str = "execution.ayatori.ddupan.top/job-cleanup";
const GLOBAL: &str = "execution.ayatori.ddupan.top/is-default-job-class";
const OWN: &str = "execution.ayatori.ddupan.top/default-job-class";

fn job(spec: &Value, metadata: &Value) -> Value {
    let mut job = json!({
        "kind": "Job",
        "metadata": {"name": "x", "namespace": "team-a"},
        "spec": {"task": {"image": "registry.example/app:1"}}
    });
    json_patch::merge(&mut job, &json!({"metadata": metadata, "spec": spec}));
    job
}

fn default_mark() -> Value {
    json!({"metadata": {"annotations": {GLOBAL: "true"}}})
}

/// The patch as JSON and the warnings.
async fn defaulted(lookups: Arc<Cluster>, object: &Value, old: Option<&Value>) -> (Value, Vec<String>) {
    match verdict(&JobDefaulting::new(lookups), object, old).await {
        Answer::Allowed { patch, warnings } => {
            (serde_json::to_value(patch.unwrap_or_default()).unwrap(), warnings.texts().to_vec())
        }
        refused @ Answer::Refused(_) => panic!("defaulting refused: {refused:?}"),
    }
}

fn add_class(name: &str) -> Value {
    json!({"op": "add", "path": "/spec/jobClassName", "value": name})
}

fn add_finalizers() -> Value {
    json!({"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]})
}

fn guarded() -> Value {
    json!({"finalizers": [FINALIZER]})
}

#[tokio::test]
async fn a_new_job_gets_the_default_class_and_the_finalizer() {
    let cluster = Cluster::fresh(Held::default().namespace("team-a", &[], &[]).class("small", &default_mark()));
    let (patch, warnings) = defaulted(Arc::clone(&cluster), &job(&json!({}), &json!({})), None).await;
    assert_eq!(patch, json!([add_class("small"), add_finalizers()]));
    assert!(warnings.is_empty());
    assert_eq!(cluster.live_reads(), 0, "fresh stores need no live read");
}

#[tokio::test]
async fn the_namespaces_own_default_wins_even_where_it_does_not_exist() {
    let own = format!("{OWN}=absent");
    let cluster = Cluster::fresh(Held::default().namespace("team-a", &[], &[&own]).class("small", &default_mark()));
    let (patch, _) = defaulted(cluster, &job(&json!({}), &guarded()), None).await;
    assert_eq!(patch, json!([add_class("absent")]));
}

#[tokio::test]
async fn a_class_that_is_named_stays_and_an_empty_name_is_none() {
    let held = || Cluster::fresh(Held::default().namespace("team-a", &[], &[]).class("small", &default_mark()));
    let (patch, _) = defaulted(held(), &job(&json!({"jobClassName": "mine"}), &guarded()), None).await;
    assert_eq!(patch, json!([]));
    let (patch, _) = defaulted(held(), &job(&json!({"jobClassName": ""}), &guarded()), None).await;
    assert_eq!(patch, json!([add_class("small")]));
}

#[tokio::test]
async fn without_a_default_the_job_is_admitted_with_a_warning() {
    let cluster = Cluster::fresh(Held::default().namespace("team-a", &[], &[]).class("small", &json!({})));
    let (patch, warnings) = defaulted(cluster, &job(&json!({}), &guarded()), None).await;
    assert_eq!(patch, json!([]));
    assert_eq!(
        warnings,
        ["spec.jobClassName is not set and neither the namespace nor the cluster has a default: the Job waits"]
    );
}

#[tokio::test]
async fn several_defaults_are_named_and_none_is_picked() {
    let held = ["e", "d", "c", "b", "a"].iter().fold(Held::default(), |held, name| held.class(name, &default_mark()));
    let cluster = Cluster::fresh(held.namespace("team-a", &[], &[]));
    let (patch, warnings) = defaulted(cluster, &job(&json!({}), &guarded()), None).await;
    assert_eq!(patch, json!([]));
    assert_eq!(
        warnings,
        ["spec.jobClassName is not set and several classes are the default (a, b, c and 2 more): the Job waits"]
    );
}

#[tokio::test]
async fn a_default_that_the_stores_have_not_seen_yet_is_found_live() {
    let live = Held::default().namespace("team-a", &[], &[]).class("small", &default_mark());
    let (patch, warnings) = defaulted(Cluster::behind(Held::default(), live), &job(&json!({}), &guarded()), None).await;
    assert_eq!(patch, json!([add_class("small")]));
    assert!(warnings.is_empty());
}

#[tokio::test]
async fn a_default_that_cannot_be_looked_up_is_a_warning() {
    let (patch, warnings) = defaulted(Cluster::cut_off(Held::default()), &job(&json!({}), &json!({})), None).await;
    assert_eq!(patch, json!([add_finalizers()]));
    assert_eq!(warnings, ["spec.jobClassName is not set and the default could not be looked up: the Job waits"]);
}

#[tokio::test]
async fn a_finalizer_joins_those_that_are_there() {
    let new = job(&json!({"jobClassName": "a"}), &json!({"finalizers": ["other.example/x"]}));
    let (patch, _) = defaulted(Cluster::cut_off(Held::default()), &new, None).await;
    assert_eq!(patch, json!([{"op": "add", "path": "/metadata/finalizers/-", "value": FINALIZER}]));
}

#[tokio::test]
async fn an_update_takes_the_stored_class_and_puts_the_finalizer_back() {
    let old = job(&json!({"jobClassName": "mine"}), &guarded());
    let cluster = Cluster::fresh(Held::default().namespace("team-a", &[], &[]).class("small", &default_mark()));
    let (patch, warnings) = defaulted(Arc::clone(&cluster), &job(&json!({}), &json!({})), Some(&old)).await;
    assert_eq!(patch, json!([add_class("mine"), add_finalizers()]));
    assert!(warnings.is_empty());

    let classless = job(&json!({}), &guarded());
    let (patch, _) = defaulted(Arc::clone(&cluster), &classless, Some(&classless)).await;
    assert_eq!(patch, json!([]), "a stored Job without a class gets none later");
    assert_eq!(cluster.live_reads(), 0);
}

#[tokio::test]
async fn a_job_that_is_being_deleted_may_lose_its_finalizer() {
    let old = job(
        &json!({"jobClassName": "a"}),
        &json!({"finalizers": [FINALIZER], "deletionTimestamp": "2030-01-01T00:00:00Z"}),
    );
    let new = job(&json!({"jobClassName": "a"}), &json!({}));
    let (patch, _) = defaulted(Cluster::cut_off(Held::default()), &new, Some(&old)).await;
    assert_eq!(patch, json!([]));
}

#[tokio::test]
async fn an_object_of_any_shape_is_admitted_and_what_is_not_understood_stays() {
    for (new, expected) in [
        (json!(5), json!([])),
        (json!(null), json!([])),
        (json!({}), json!([])),
        (json!({"metadata": 3, "spec": "x"}), json!([])),
        (json!({"metadata": {"finalizers": 3}, "spec": {"jobClassName": 5}}), json!([])),
        (json!({"metadata": {"finalizers": null}, "spec": []}), json!([add_finalizers()])),
        (json!({"metadata": {}, "spec": {"jobClassName": "a", "task": "x"}}), json!([add_finalizers()])),
    ] {
        let (patch, _) = defaulted(Cluster::cut_off(Held::default()), &new, None).await;
        assert_eq!(patch, expected, "{new}");
    }
}

/// JSON of any shape.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z/~]{0,4}".prop_map(Value::from),
        Just(Value::from(FINALIZER)),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// An object that has, more often than chance, the fields that defaulting looks at.
fn object() -> impl Strategy<Value = Value> {
    let finalizers = prop_oneof![anything(), Just(json!([FINALIZER])), Just(json!(["a", "b"])), Just(json!([]))];
    let class = prop_oneof![anything(), Just(json!("")), Just(json!("mine"))];
    let field = |name: &'static str, value: BoxedStrategy<Value>| {
        (prop::option::of(value), anything()).prop_map(move |(value, rest)| {
            let mut map = rest.as_object().cloned().unwrap_or_default();
            map.extend(value.map(|value| (name.to_owned(), value)));
            Value::from(map)
        })
    };
    let metadata = prop_oneof![field("finalizers", finalizers.boxed()), anything()];
    let spec = prop_oneof![field("jobClassName", class.boxed()), anything()];
    (prop::option::of(metadata), prop::option::of(spec), anything()).prop_map(|(metadata, spec, rest)| {
        let mut map = rest.as_object().cloned().unwrap_or_default();
        map.extend(metadata.map(|value| ("metadata".to_owned(), value)));
        map.extend(spec.map(|value| ("spec".to_owned(), value)));
        Value::from(map)
    })
}

/// The object without the two places that are ours to fill.
fn without_owned(object: &Value) -> Value {
    let mut rest = object.clone();
    for (part, field) in [("metadata", "finalizers"), ("spec", "jobClassName")] {
        rest.get_mut(part).and_then(Value::as_object_mut).map(|part| part.remove(field));
    }
    rest
}

proptest! {
    /// Twice is once, only owned places change, and no value that was given is lost.
    #[test]
    fn the_patch_is_idempotent_and_touches_only_what_is_ours(
        before in object(), class in prop::option::of("[a-z]{0,3}"), guarded: bool
    ) {
        let mut after = before.clone();
        json_patch::patch(&mut after, &patch(&before, class.as_deref(), guarded)).unwrap();
        prop_assert!(patch(&after, class.as_deref(), guarded).is_empty());
        prop_assert_eq!(without_owned(&after), without_owned(&before));

        let given = before.pointer("/spec/jobClassName").filter(|name| !name.is_null() && **name != "");
        if let Some(given) = given {
            prop_assert_eq!(after.pointer("/spec/jobClassName"), Some(given));
        }
        let list = |object: &Value| object.pointer("/metadata/finalizers").cloned();
        match (list(&before), list(&after)) {
            (Some(Value::Array(before)), Some(Value::Array(after))) => prop_assert!(after.starts_with(&before)),
            (Some(before), Some(after)) if !before.is_null() => prop_assert_eq!(before, after),
            _ => {}
        }
    }
}
