//! The fields of a schema, and where the valid object has them.

use std::collections::BTreeSet;

use serde_json::Value;

/// A field of the schema, at the first place where the valid object has it.
#[derive(Debug)]
pub struct Place {
    /// The field, whatever the index: `spec.task.env[].name`.
    pub field: String,
    /// The place in the object, as a JSON pointer: `/spec/task/env/0/name`.
    pub at: String,
    /// What the schema says of it.
    pub schema: Value,
    /// What the valid object has there.
    pub present: Value,
}

impl Place {
    /// Whether nothing lies below.
    pub fn is_leaf(&self) -> bool {
        !matches!(self.schema["type"].as_str(), Some("object" | "array"))
    }
}

/// The fields that users or controllers fill in, with the names below `metadata` left out: they are Kubernetes' own.
pub fn places(schema: &Value, object: &Value) -> Vec<Place> {
    let mut found: Vec<Place> = Vec::new();
    for root in ["spec", "status"] {
        let inner = &schema["properties"][root];
        if !inner.is_null() {
            visit(inner, &object[root], root, &format!("/{root}"), &mut found);
        }
    }
    found
}

fn visit(schema: &Value, present: &Value, field: &str, at: &str, found: &mut Vec<Place>) {
    if !found.iter().any(|place| place.field == field) {
        let (field, at) = (field.to_owned(), at.to_owned());
        found.push(Place { field, at, schema: schema.clone(), present: present.clone() });
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = present.get(name) {
            visit(inner, value, &format!("{field}.{name}"), &format!("{at}/{name}"), found);
        }
    }
    for (index, value) in present.as_array().into_iter().flatten().enumerate() {
        visit(&schema["items"], value, &format!("{field}[]"), &format!("{at}/{index}"), found);
    }
    if schema["additionalProperties"].is_object() {
        for (key, value) in present.as_object().into_iter().flatten() {
            visit(&schema["additionalProperties"], value, &format!("{field}{{}}"), &format!("{at}/{key}"), found);
        }
    }
}

/// The fields by the schema alone.
pub fn fields(schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for root in ["spec", "status"] {
        if let Some(inner) = schema["properties"].get(root) {
            name(inner, root, &mut found);
        }
    }
    found
}

fn name(schema: &Value, field: &str, found: &mut BTreeSet<String>) {
    found.insert(field.to_owned());
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        name(inner, &format!("{field}.{key}"), found);
    }
    if schema["items"].is_object() {
        name(&schema["items"], &format!("{field}[]"), found);
    }
    if schema["additionalProperties"].is_object() {
        name(&schema["additionalProperties"], &format!("{field}{{}}"), found);
    }
}
