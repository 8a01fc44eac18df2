//! What defaulting adds, to whom, and what it never touches.

use proptest::prelude::*;

use super::*;
use crate::Arrival;
use crate::testing::{Cluster, Held, verdict_on};

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

/// The patch as JSON. Defaulting warns of nothing: whether a Job is refused is not known yet (B3).
async fn defaulted(lookups: Arc<Cluster>, object: &Value, old: Option<&Value>) -> Value {
    defaulted_under(Policy::default(), lookups, object, old, Arrival::default()).await
}

async fn defaulted_under(
    policy: Policy,
    lookups: Arc<Cluster>,
    object: &Value,
    old: Option<&Value>,
    arrival: Arrival,
) -> Value {
    match verdict_on(&JobDefaulting::new(lookups, policy), Some(object), old, arrival).await {
        Answer::Allowed { patch, warnings } => {
            assert!(warnings.is_empty(), "{warnings:?}");
            serde_json::to_value(patch.unwrap_or_default()).unwrap()
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
    let patch = defaulted(Arc::clone(&cluster), &job(&json!({}), &json!({})), None).await;
    assert_eq!(patch, json!([add_class("small"), add_finalizers()]));
    assert_eq!(cluster.live_reads(), 0, "fresh stores need no live read");
}

#[tokio::test]
async fn the_namespaces_own_default_wins_even_where_it_does_not_exist() {
    let own = format!("{OWN}=absent");
    let cluster = Cluster::fresh(Held::default().namespace("team-a", &[], &[&own]).class("small", &default_mark()));
    let patch = defaulted(cluster, &job(&json!({}), &guarded()), None).await;
    assert_eq!(patch, json!([add_class("absent")]));
}

#[tokio::test]
async fn a_class_that_is_named_stays_and_an_empty_name_is_none() {
    let held = || Cluster::fresh(Held::default().namespace("team-a", &[], &[]).class("small", &default_mark()));
    let patch = defaulted(held(), &job(&json!({"jobClassName": "mine"}), &guarded()), None).await;
    assert_eq!(patch, json!([]));
    let patch = defaulted(held(), &job(&json!({"jobClassName": ""}), &guarded()), None).await;
    assert_eq!(patch, json!([add_class("small")]));
}

#[tokio::test]
async fn without_one_default_nothing_is_written() {
    let marked = |names: &[&str]| {
        let held = Held::default().namespace("team-a", &[], &[]).class("unmarked", &json!({}));
        Cluster::fresh(names.iter().fold(held, |held, name| held.class(name, &default_mark())))
    };
    for cluster in [marked(&[]), marked(&["b", "a"]), Cluster::cut_off(Held::default())] {
        assert_eq!(defaulted(cluster, &job(&json!({}), &guarded()), None).await, json!([]));
    }
}

#[tokio::test]
async fn a_default_that_the_stores_have_not_seen_yet_is_found_live() {
    let live = Held::default().namespace("team-a", &[], &[]).class("small", &default_mark());
    let patch = defaulted(Cluster::behind(Held::default(), live), &job(&json!({}), &guarded()), None).await;
    assert_eq!(patch, json!([add_class("small")]));
}

#[tokio::test]
async fn a_finalizer_joins_those_that_are_there() {
    let new = job(&json!({"jobClassName": "a"}), &json!({"finalizers": ["other.example/x"]}));
    let patch = defaulted(Cluster::cut_off(Held::default()), &new, None).await;
    assert_eq!(patch, json!([{"op": "add", "path": "/metadata/finalizers/-", "value": FINALIZER}]));
}

#[tokio::test]
async fn an_update_takes_the_stored_class_and_puts_the_finalizer_back() {
    let old = job(&json!({"jobClassName": "mine"}), &guarded());
    let cluster = Cluster::fresh(Held::default().namespace("team-a", &[], &[]).class("small", &default_mark()));
    let patch = defaulted(Arc::clone(&cluster), &job(&json!({}), &json!({})), Some(&old)).await;
    assert_eq!(patch, json!([add_class("mine"), add_finalizers()]));

    let classless = job(&json!({}), &guarded());
    let patch = defaulted(Arc::clone(&cluster), &classless, Some(&classless)).await;
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
    let patch = defaulted(Cluster::cut_off(Held::default()), &new, Some(&old)).await;
    assert_eq!(patch, json!([]));
}

fn keeps_for(seconds: i32) -> Policy {
    serde_json::from_value(json!({"ttl": {"default": seconds}})).unwrap()
}

/// What a policy adds to an object that needs nothing else.
async fn by_policy(policy: Policy, object: &Value, old: Option<&Value>) -> Value {
    defaulted_under(policy, Cluster::cut_off(Held::default()), object, old, Arrival::default()).await
}

#[tokio::test]
async fn a_new_job_gets_the_platforms_ttl_where_it_names_none() {
    let named = |spec: Value| {
        let mut all = json!({"jobClassName": "a"});
        json_patch::merge(&mut all, &spec);
        job(&all, &guarded())
    };
    let add = json!([{"op": "add", "path": "/spec/ttlSecondsAfterFinished", "value": 600}]);
    assert_eq!(by_policy(keeps_for(600), &named(json!({})), None).await, add);
    let mut null = named(json!({}));
    null["spec"]["ttlSecondsAfterFinished"] = Value::Null;
    assert_eq!(by_policy(keeps_for(600), &null, None).await, add);
    for given in [json!(0), json!(5), json!("soon")] {
        let given = named(json!({"ttlSecondsAfterFinished": given}));
        assert_eq!(by_policy(keeps_for(600), &given, None).await, json!([]), "{given}");
    }
    assert_eq!(by_policy(Policy::default(), &named(json!({})), None).await, json!([]));
}

#[tokio::test]
async fn a_ttl_that_an_update_takes_away_is_one_that_is_not_given() {
    let held = |ttl: Option<i32>, metadata: &Value| {
        let mut object = job(&json!({"jobClassName": "a"}), metadata);
        ttl.iter().for_each(|ttl| object["spec"]["ttlSecondsAfterFinished"] = json!(ttl));
        object
    };
    let bare = held(None, &guarded());
    let add = json!([{"op": "add", "path": "/spec/ttlSecondsAfterFinished", "value": 600}]);
    assert_eq!(by_policy(keeps_for(600), &bare, Some(&held(Some(5), &guarded()))).await, add);
    assert_eq!(by_policy(keeps_for(600), &bare, Some(&bare)).await, json!([]), "it never had one");
    assert_eq!(by_policy(keeps_for(600), &held(Some(5), &guarded()), Some(&bare)).await, json!([]));
    let deleting = held(Some(5), &json!({"deletionTimestamp": "2030-01-01T00:00:00Z"}));
    assert_eq!(by_policy(keeps_for(600), &bare, Some(&deleting)).await, json!([]), "it is going");
}

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const PARENT_KEY: &str = "execution.ayatori.ddupan.top/traceparent";
const STATE_KEY: &str = "execution.ayatori.ddupan.top/tracestate";

async fn traced(metadata: &Value, old: Option<&Value>, state: Option<&str>) -> Value {
    let arrival = Arrival { trace: TraceContext::parse(PARENT, state), ..Arrival::default() };
    let object = job(&json!({"jobClassName": "a"}), metadata);
    defaulted_under(Policy::default(), Cluster::cut_off(Held::default()), &object, old, arrival).await
}

#[tokio::test]
async fn the_trace_of_the_request_is_stored_where_the_user_gave_none() {
    assert_eq!(
        traced(&guarded(), None, Some("a=1")).await,
        json!([{"op": "add", "path": "/metadata/annotations", "value": {PARENT_KEY: PARENT, STATE_KEY: "a=1"}}])
    );
    let mut annotated = guarded();
    annotated["annotations"] = json!({"other": "x"});
    assert_eq!(
        traced(&annotated, None, None).await,
        json!([{
            "op": "add", "path": "/metadata/annotations/execution.ayatori.ddupan.top~1traceparent", "value": PARENT
        }])
    );
    for given in [PARENT_KEY, STATE_KEY] {
        annotated["annotations"] = json!({given: "the user's own"});
        assert_eq!(traced(&annotated, None, Some("a=1")).await, json!([]), "{given}");
    }
    annotated["annotations"] = json!("odd");
    assert_eq!(traced(&annotated, None, Some("a=1")).await, json!([]));
}

#[tokio::test]
async fn an_update_stores_no_trace() {
    let old = job(&json!({"jobClassName": "a"}), &guarded());
    assert_eq!(traced(&guarded(), Some(&old), Some("a=1")).await, json!([]));
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
        let patch = defaulted(Cluster::cut_off(Held::default()), &new, None).await;
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

/// The patch of an object as it is sent.
fn patch_of(object: &Value, filling: &Filling<'_>) -> Patch {
    patch(&UncheckedJob::of(&serde_json::value::to_raw_value(object).unwrap()), filling)
}

/// An object that has, more often than chance, the fields that defaulting looks at.
fn object() -> impl Strategy<Value = Value> {
    let finalizers = prop_oneof![anything(), Just(json!([FINALIZER])), Just(json!(["a", "b"])), Just(json!([]))];
    let class = prop_oneof![anything(), Just(json!("")), Just(json!("mine"))];
    let ttl = prop_oneof![anything(), Just(json!(0)), Just(json!(60))];
    let annotations = prop_oneof![
        anything(),
        Just(json!({})),
        Just(json!({"other": "x"})),
        Just(json!({PARENT_KEY: "mine"})),
        Just(json!({STATE_KEY: "mine"})),
    ];
    let fields = |names: [&'static str; 2], values: [BoxedStrategy<Value>; 2]| {
        (values.map(prop::option::of), anything()).prop_map(move |(values, rest)| {
            let mut map = rest.as_object().cloned().unwrap_or_default();
            let named = names.into_iter().zip(values);
            map.extend(named.filter_map(|(name, value)| Some((name.to_owned(), value?))));
            Value::from(map)
        })
    };
    let metadata =
        prop_oneof![fields(["finalizers", "annotations"], [finalizers.boxed(), annotations.boxed()]), anything()];
    let spec =
        prop_oneof![fields(["jobClassName", "ttlSecondsAfterFinished"], [class.boxed(), ttl.boxed()]), anything()];
    (prop::option::of(metadata), prop::option::of(spec), anything()).prop_map(|(metadata, spec, rest)| {
        let mut map = rest.as_object().cloned().unwrap_or_default();
        map.extend(metadata.map(|value| ("metadata".to_owned(), value)));
        map.extend(spec.map(|value| ("spec".to_owned(), value)));
        Value::from(map)
    })
}

/// The object without the places that are ours to fill.
fn without_owned(object: &Value) -> Value {
    let mut rest = object.clone();
    for (part, field) in [("metadata", "finalizers"), ("spec", "jobClassName"), ("spec", "ttlSecondsAfterFinished")] {
        rest.get_mut(part).and_then(Value::as_object_mut).map(|part| part.remove(field));
    }
    // Annotations of others stay; an empty map and none are the same.
    if let Some(metadata) = rest.get_mut("metadata").and_then(Value::as_object_mut) {
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| ![PARENT_KEY, STATE_KEY].contains(&key.as_str()));
        }
        if metadata.get("annotations").is_some_and(|all| all.is_null() || *all == json!({})) {
            metadata.remove("annotations");
        }
    }
    rest
}

proptest! {
    /// Twice is once, only owned places change, and no value that was given is lost.
    #[test]
    fn the_patch_is_idempotent_and_touches_only_what_is_ours(
        before in object(),
        class in prop::option::of("[a-z]{0,3}"),
        ttl in prop::option::of(0..9),
        state in prop::option::of(Just("a=1")),
        traced: bool,
        guarded: bool,
    ) {
        let trace = TraceContext::parse(PARENT, state).filter(|_| traced);
        let filling = Filling { class: class.as_deref(), ttl, trace: trace.as_ref(), guarded };
        let mut after = before.clone();
        json_patch::patch(&mut after, &patch_of(&before, &filling)).unwrap();
        prop_assert!(patch_of(&after, &filling).is_empty());
        prop_assert_eq!(without_owned(&after), without_owned(&before));

        let annotation = |key: &str| format!("/metadata/annotations/{}", key.replace('/', "~1"));
        let mut places = vec!["/spec/ttlSecondsAfterFinished".to_owned(), "/spec/jobClassName".to_owned()];
        places.extend([annotation(PARENT_KEY), annotation(STATE_KEY)]);
        for place in places {
            let given = before.pointer(&place).filter(|given| !given.is_null() && **given != "");
            if let Some(given) = given {
                prop_assert_eq!(after.pointer(&place), Some(given));
            }
        }
        let list = |object: &Value| object.pointer("/metadata/finalizers").cloned();
        match (list(&before), list(&after)) {
            (Some(Value::Array(before)), Some(Value::Array(after))) => prop_assert!(after.starts_with(&before)),
            (Some(before), Some(after)) if !before.is_null() => prop_assert_eq!(before, after),
            _ => {}
        }
    }

    /// The patch applies to the bytes as they came: unknown fields, the order of lists and every number stay.
    #[test]
    fn the_patch_applies_to_the_object_as_it_was_sent(before in object(), extra in anything()) {
        let mut sent = before;
        if let Some(spec) = sent.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("ofALaterVersion".to_owned(), json!({"list": [3, 1, 2, extra], "big": u64::MAX, "small": 1e-7}));
        }
        let text = serde_json::to_string(&sent).unwrap();
        let parsed: Value = serde_json::from_str(&text).unwrap();
        let trace = TraceContext::parse(PARENT, None);
        let filling = Filling { class: Some("a"), ttl: Some(5), trace: trace.as_ref(), guarded: true };
        let mut after = parsed.clone();
        json_patch::patch(&mut after, &patch_of(&parsed, &filling)).unwrap();
        let later = "/spec/ofALaterVersion";
        prop_assert_eq!(
            after.pointer(later).map(Value::to_string),
            sent.pointer(later).map(Value::to_string)
        );
    }
}
