//! The bodies of our patches. Each carries what it was decided on: a resourceVersion, or a test on the UID.

use ayatori_crds::names::RELEASED_ANNOTATION;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::Patch;
use serde::Serialize;
use serde_json::{Value, json};

use crate::call::CallError;

/// A status write: one merge patch whose resourceVersion alone protects it (the server ignores a wrong UID there).
#[must_use]
pub fn status<S: Serialize>(metadata: &ObjectMeta, status: &S) -> Value {
    json!({"metadata": {"resourceVersion": metadata.resource_version.as_deref().unwrap_or("missing")}, "status": status})
}

fn tests(metadata: &ObjectMeta) -> Vec<Value> {
    vec![
        json!({"op": "test", "path": "/metadata/uid", "value": metadata.uid}),
        // `replace`, not `test`: a stale one is then a clean 409.
        json!({"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.resource_version}),
    ]
}

/// Puts a finalizer on the object that was seen.
#[must_use]
pub fn add_finalizer(metadata: &ObjectMeta, finalizer: &str) -> Value {
    let mut operations = tests(metadata);
    operations.push(match &metadata.finalizers {
        Some(list) if !list.is_empty() => json!({"op": "add", "path": "/metadata/finalizers/-", "value": finalizer}),
        _ => json!({"op": "add", "path": "/metadata/finalizers", "value": [finalizer]}),
    });
    Value::Array(operations)
}

/// Takes a finalizer off the object that was seen; None where it has none.
#[must_use]
pub fn remove_finalizer(metadata: &ObjectMeta, finalizer: &str) -> Option<Value> {
    let index = metadata.finalizers.iter().flatten().position(|present| present == finalizer)?;
    let path = format!("/metadata/finalizers/{index}");
    let mut operations = tests(metadata);
    operations.push(json!({"op": "test", "path": path, "value": finalizer}));
    operations.push(json!({"op": "remove", "path": path}));
    Some(Value::Array(operations))
}

/// Changes one field of the object with that UID, whatever its resourceVersion.
#[must_use]
pub fn set_by_uid(uid: &str, path: &str, value: &Value) -> Value {
    json!([{"op": "test", "path": "/metadata/uid", "value": uid}, {"op": "add", "path": path, "value": value}])
}

/// Changes one field of the object that was seen.
#[must_use]
pub fn set_where_seen(metadata: &ObjectMeta, path: &str, value: &Value) -> Value {
    let mut operations = tests(metadata);
    operations.push(json!({"op": "add", "path": path, "value": value}));
    Value::Array(operations)
}

/// The one release of the native Job with that UID: it takes effect once, as it turns the mark that it tests.
#[must_use]
pub fn release(uid: &str) -> Value {
    let mark = format!("/metadata/annotations/{}", RELEASED_ANNOTATION.replace('/', "~1"));
    json!([
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": mark, "value": "false"},
        {"op": "replace", "path": mark, "value": "true"},
        {"op": "replace", "path": "/spec/suspend", "value": false},
    ])
}

/// Operations as the body of a JSON patch.
///
/// # Errors
/// Where they are none, which would be a fault of this module.
pub fn json_patch(operations: Value) -> Result<Patch<()>, CallError> {
    Ok(Patch::Json(serde_json::from_value(operations).map_err(kube::Error::SerdeError)?))
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    fn metadata(finalizers: &[&str]) -> ObjectMeta {
        ObjectMeta {
            uid: Some("u".into()),
            resource_version: Some("7".into()),
            finalizers: Some(finalizers.iter().map(|f| (*f).to_owned()).collect()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn a_finalizer_is_removed_by_place_under_test_of_uid_version_and_value() {
        let patch = remove_finalizer(&metadata(&["other", "ours"]), "ours").unwrap();
        let operations = patch.as_array().unwrap();
        assert_eq!(operations[0], json!({"op": "test", "path": "/metadata/uid", "value": "u"}));
        assert_eq!(operations[1], json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}));
        assert_eq!(operations[2], json!({"op": "test", "path": "/metadata/finalizers/1", "value": "ours"}));
        assert_eq!(operations[3], json!({"op": "remove", "path": "/metadata/finalizers/1"}));
        assert_eq!(remove_finalizer(&metadata(&["other"]), "ours"), None);
    }

    #[test]
    fn a_finalizer_is_added_beside_those_of_others() {
        let last = |patch: Value| patch.as_array().unwrap().last().unwrap().clone();
        assert_eq!(last(add_finalizer(&metadata(&["other"]), "ours"))["path"], "/metadata/finalizers/-");
        assert_eq!(last(add_finalizer(&metadata(&[]), "ours"))["value"], json!(["ours"]));
    }

    #[test]
    fn a_release_takes_effect_once_and_only_on_the_recorded_native_job() {
        let mut native = json!({
            "metadata": {"uid": "u", "annotations": {RELEASED_ANNOTATION: "false"}}, "spec": {"suspend": true},
        });
        let apply = |native: &mut Value, uid| {
            let patch: ::json_patch::Patch = serde_json::from_value(release(uid)).unwrap();
            ::json_patch::patch(native, &patch).is_ok()
        };
        assert!(!apply(&mut native, "another"));
        assert!(apply(&mut native, "u"));
        assert_eq!(native["spec"]["suspend"], false);
        native["spec"]["suspend"] = json!(true);
        assert!(!apply(&mut native, "u"), "somebody suspended it: it is not released a second time");
    }

    #[test]
    fn a_status_is_never_written_without_a_resource_version() {
        assert_eq!(status(&metadata(&[]), &json!({}))["metadata"]["resourceVersion"], "7");
        // Not a number: the server refuses it, where an empty one would be taken for "any".
        assert_eq!(status(&ObjectMeta::default(), &json!({}))["metadata"]["resourceVersion"], "missing");
    }
}
