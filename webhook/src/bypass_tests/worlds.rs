//! Random Jobs and what is around them, from small vocabularies so that rules meet.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A Job and everything that its verdict rests on.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) policy: Value,
    /// The class `c`, if it exists. It is sound in itself.
    pub(super) class: Option<Value>,
    pub(super) labels: Vec<(&'static str, &'static str)>,
    /// Whether the namespace names `c` as its default.
    pub(super) default_class: bool,
    /// The settings `p` of the OpenSandbox adapter, as an overlay.
    pub(super) settings: Value,
    pub(super) job: Value,
}

pub(super) const TAGGED_IMAGE: &str = "registry.example/app:1";
pub(super) const DIGEST_IMAGE: &str =
    "registry.example/app@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
pub(super) const BAD_IMAGE: &str = "Not An Image";

const OPENSANDBOX: &str = "execution.ayatori.ddupan.top/opensandbox";

pub(super) fn any() -> impl Strategy<Value = World> {
    let labels = prop::sample::subsequence(vec![("tier", "ci"), ("tier", "prod"), ("team", "a")], 0..=2);
    let settings = (prop::option::of(prop::bool::ANY), prop::option::of(prop::bool::ANY)).prop_map(|(env, auth)| {
        let mut spec = Map::new();
        put(&mut spec, "allowSecretEnv", env);
        put(&mut spec, "allowImageAuth", auth);
        json!({"spec": spec})
    });
    (policy(), prop::option::weighted(0.9, class()), labels, any_bool(), settings, job()).prop_map(
        |(policy, class, labels, default_class, settings, job)| World {
            policy,
            class,
            labels,
            default_class,
            settings,
            job,
        },
    )
}

fn any_bool() -> impl Strategy<Value = bool> {
    prop::bool::ANY
}

fn put<T: Into<Value>>(map: &mut Map<String, Value>, key: &str, value: Option<T>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), value.into());
    }
}

fn policy() -> impl Strategy<Value = Value> {
    (prop::option::of(0..100), prop::option::of(50..150), prop::bool::weighted(0.3), prop::bool::weighted(0.3))
        .prop_map(|(default, maximum, required, digest)| {
            let mut ttl = Map::new();
            // A default over the maximum stops the process at its start.
            put(&mut ttl, "default", default.filter(|default| maximum.is_none_or(|maximum| *default <= maximum)));
            put(&mut ttl, "maximum", maximum);
            put(&mut ttl, "required", Some(required));
            json!({"ttl": ttl, "image": {"requireDigest": digest}})
        })
}

fn class() -> impl Strategy<Value = Value> {
    let adapter =
        prop_oneof![Just("execution.ayatori.ddupan.top/kubernetes"), Just(OPENSANDBOX), Just("other.example/x")];
    (adapter, prop::option::of(selector()), bounds()).prop_map(|(adapter, selector, resources)| {
        let kind =
            if adapter == OPENSANDBOX { "OpenSandboxExecutionParameters" } else { "KubernetesExecutionParameters" };
        json!({
            "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "JobClass", "metadata": {"name": "c"},
            "spec": {
                "controllerName": adapter,
                "parametersRef": {"group": "execution.ayatori.ddupan.top", "kind": kind, "name": "p"},
                "allowedNamespaces": selector,
                "resources": resources
            }
        })
    })
}

fn selector() -> impl Strategy<Value = Value> {
    let tier = prop_oneof![Just("ci"), Just("prod")];
    let key = prop_oneof![Just("tier"), Just("team")];
    let expression = prop_oneof![
        (key.clone(), prop_oneof![Just("In"), Just("NotIn")], tier.clone())
            .prop_map(|(key, operator, value)| json!({"key": key, "operator": operator, "values": [value, "other"]})),
        (key, prop_oneof![Just("Exists"), Just("DoesNotExist")])
            .prop_map(|(key, operator)| json!({"key": key, "operator": operator})),
    ];
    prop_oneof![
        Just(json!({})),
        tier.prop_map(|tier| json!({"matchLabels": {"tier": tier}})),
        prop::collection::vec(expression, 1..3).prop_map(|all| json!({"matchExpressions": all})),
    ]
}

const FIGURES: [(&str, &str); 4] =
    [("requests", "cpu"), ("requests", "memory"), ("limits", "cpu"), ("limits", "memory")];

/// Bounds and defaults that do not contradict each other: for each figure minimum ≤ default ≤ maximum, and a request's
/// default below its limit's.
fn bounds() -> impl Strategy<Value = Value> {
    let figure =
        (prop::option::weighted(0.3, 1..4), prop::option::weighted(0.5, 4..7), prop::option::weighted(0.4, 7..10));
    prop::collection::vec(figure, 4).prop_map(|figures| {
        let mut policy = json!({"minimum": {}, "defaults": {}, "maximum": {}});
        let limits: Vec<Option<i32>> = figures[2..].iter().map(|(_, default, _)| *default).collect();
        for (index, ((list, resource), (minimum, default, maximum))) in FIGURES.into_iter().zip(figures).enumerate() {
            let limit = if index < 2 { limits[index] } else { None };
            let default = default.filter(|default| limit.is_none_or(|limit| *default <= limit));
            for (part, value) in [("minimum", minimum), ("defaults", default), ("maximum", maximum)] {
                if let Some(value) = value {
                    policy[part][list][resource] = json!(format!("{value}"));
                }
            }
        }
        policy
    })
}

fn job() -> impl Strategy<Value = Value> {
    let class =
        prop_oneof![3 => Just(json!("c")), 1 => Just(json!("absent")), 1 => Just(json!("")), 1 => Just(Value::Null)];
    let ttl = prop_oneof![2 => Just(Value::Null), 3 => (0..200).prop_map(Value::from)];
    (class, task(), prop::option::of(asked()), ttl).prop_map(|(class, task, resources, ttl)| {
        let mut spec = json!({"task": task});
        for (field, value) in [("jobClassName", class), ("ttlSecondsAfterFinished", ttl)] {
            if !value.is_null() {
                spec[field] = value;
            }
        }
        if let Some(resources) = resources {
            spec["resources"] = resources;
        }
        json!({"kind": "Job", "metadata": {"name": "j", "namespace": "team-a"}, "spec": spec})
    })
}

fn task() -> impl Strategy<Value = Value> {
    let image = prop_oneof![4 => Just(TAGGED_IMAGE), 4 => Just(DIGEST_IMAGE), 1 => Just(BAD_IMAGE)];
    let variable = prop_oneof![
        4 => Just(json!({"name": "A", "value": "AYATORI_"})),
        1 => Just(json!({"name": "AYATORI_B", "value": ""})),
        2 => Just(json!({"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}})),
        2 => Just(json!({"name": "D", "valueFrom": {"configMapKeyRef": {"name": "s", "key": "k"}}})),
    ];
    let pulls = prop_oneof![2 => Just(json!([])), 1 => Just(json!([{"name": "registry"}]))];
    let command = prop_oneof![2 => Just(json!(["run"])), 1 => Just(json!([]))];
    (image, prop::collection::vec(variable, 0..3), pulls, command).prop_map(|(image, env, pulls, command)| {
        json!({"image": image, "env": env, "imagePullSecrets": pulls, "command": command})
    })
}

/// Requests and limits around the bounds, in many spellings, some too fine.
fn asked() -> impl Strategy<Value = Value> {
    let spelling = (0..12, 0..6).prop_map(|(n, form)| match form {
        0 => json!(n),
        1 => json!(format!("{n}000m")),
        2 => json!(format!("{n}.5")),
        3 => json!(format!("0.{n}m")),
        4 => json!(format!("{n}k")),
        _ => json!(format!("{n}")),
    });
    prop::collection::vec(prop::option::weighted(0.4, spelling), 4).prop_map(|figures| {
        let mut asked = json!({});
        for ((list, resource), value) in FIGURES.into_iter().zip(figures) {
            if let Some(value) = value {
                asked[list][resource] = value;
            }
        }
        asked
    })
}
