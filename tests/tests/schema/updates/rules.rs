//! The CEL rules of our definitions, as an answer of the API server names them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds::Kind;

/// A rule: where it reports its faults, and what it says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    pub(crate) kind: Kind,
    /// `spec.task.env[]`
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Rule {
    pub(crate) fn new(kind: Kind, field: &str, message: &str) -> Self {
        Self { kind, field: field.to_owned(), message: message.to_owned() }
    }
}

/// All rules of all kinds.
pub(crate) fn all() -> BTreeSet<Rule> {
    let mut rules = Vec::new();
    for kind in Kind::ALL {
        visit(kind, &kind.schema().unwrap(), "", &mut rules);
    }
    let set: BTreeSet<_> = rules.iter().cloned().collect();
    assert_eq!(set.len(), rules.len(), "two rules that an answer cannot tell apart");
    set
}

fn visit(kind: Kind, schema: &Value, field: &str, rules: &mut Vec<Rule>) {
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let at = format!("{field}{}", rule["fieldPath"].as_str().unwrap_or_default());
        rules.push(Rule::new(kind, at.trim_start_matches('.'), rule["message"].as_str().unwrap()));
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        visit(kind, inner, format!("{field}.{name}").trim_start_matches('.'), rules);
    }
    if schema["items"].is_object() {
        visit(kind, &schema["items"], &format!("{field}[]"), rules);
    }
}
