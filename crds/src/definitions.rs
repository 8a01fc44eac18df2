//! The four CustomResourceDefinitions, made from the Rust types and brought into the form that the API asks for.

use kube::CustomResourceExt;
use serde_json::{Map, Value, json};

use crate::{Job, JobClass, KubernetesExecutionParameters, OpenSandboxExecutionParameters};

/// A CustomResourceDefinition with the name of the file that it is kept in.
#[derive(Debug, Clone)]
pub struct Definition {
    /// `jobs.yaml` and so on.
    pub file: &'static str,
    /// The whole object.
    pub object: Value,
}

/// All four definitions.
///
/// # Errors
/// Where a type's schema is no JSON, which would be a fault of this crate.
pub fn all() -> Result<Vec<Definition>, serde_json::Error> {
    [
        ("jobs.yaml", serde_json::to_value(Job::crd())?),
        ("jobclasses.yaml", serde_json::to_value(JobClass::crd())?),
        ("kubernetesexecutionparameters.yaml", serde_json::to_value(KubernetesExecutionParameters::crd())?),
        ("opensandboxexecutionparameters.yaml", serde_json::to_value(OpenSandboxExecutionParameters::crd())?),
    ]
    .into_iter()
    .map(|(file, mut object)| {
        if let Some(version) = object.pointer_mut("/spec/versions/0") {
            if version["additionalPrinterColumns"] == json!([]) {
                remove(version, "additionalPrinterColumns");
            }
            if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
                tidy(schema);
                bare_root(schema);
            }
        }
        Ok(Definition { file, object })
    })
    .collect()
}

/// Lists of the Kubernetes types that are replaced as a whole, and objects that one writer owns as a whole. The Rust
/// types that we embed do not carry these marks.
const ATOMIC_LISTS: [&str; 4] = ["matchExpressions", "values", "supplementalGroups", "sysctls"];
const ATOMIC_OBJECTS: [&str; 3] = ["allowedNamespaces", "secretKeyRef", "configMapKeyRef"];

/// Recursively: no `nullable` (an explicit null is refused, as the API's own kinds refuse it), no null in an enum, no
/// one-line breaks in a description, and the merge marks of embedded types.
fn tidy(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    object.remove("nullable");
    if let Some(Value::Array(words)) = object.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if let Some(Value::String(description)) = object.get_mut("description") {
        *description = unwrapped(description);
    }
    // schemars says whole bounds as floats.
    for bound in ["minimum", "maximum"] {
        #[expect(clippy::cast_possible_truncation, reason = "a whole bound of an integer field")]
        if let Some(number) = object.get(bound).and_then(Value::as_f64).filter(|number| number.fract() == 0.0) {
            object.insert(bound.to_owned(), json!(number as i64));
        }
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        for (name, property) in properties.iter_mut() {
            mark(name, property);
            tidy(property);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(key) {
            tidy(inner);
        }
    }
}

fn mark(name: &str, property: &mut Value) {
    if ATOMIC_LISTS.contains(&name) && property["type"] == "array" {
        property["x-kubernetes-list-type"] = json!("atomic");
    }
    if ATOMIC_OBJECTS.contains(&name) {
        property["x-kubernetes-map-type"] = json!("atomic");
    }
    if name == "imagePullSecrets" {
        property["items"]["x-kubernetes-map-type"] = json!("atomic");
    }
}

/// A description in one paragraph a paragraph: `kubectl explain` wraps by itself.
fn unwrapped(text: &str) -> String {
    text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect::<Vec<_>>().join("\n\n")
}

/// The root says that it is an object, and no title.
fn bare_root(root: &mut Value) {
    remove(root, "title");
    root["type"] = json!("object");
}

fn remove(value: &mut Value, key: &str) {
    value.as_object_mut().map(|object: &mut Map<String, Value>| object.remove(key));
}
