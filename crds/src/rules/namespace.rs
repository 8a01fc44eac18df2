//! Which namespaces a class allows (spec A5, B2).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};

use super::{
    FieldError,
    syntax::{label_key_error, label_value_error},
};
use crate::JobClassSpec;

/// Whether the class allows a namespace with these labels. Absent or empty allows all; a selector that no one can
/// understand (its class is not accepted either) allows none.
#[must_use]
pub fn is_allowed(class: &JobClassSpec, namespace_labels: &BTreeMap<String, String>) -> bool {
    class.allowed_namespaces.as_ref().is_none_or(|selector| {
        Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(namespace_labels))
    })
}

/// What to do [instead](not_allowed) where it is not known which classes the namespace may use.
pub const USE_ANOTHER: &str = "use another class (kubectl get jobclasses)";

/// The fault to tell when a class does not allow the Job's namespace. `instead` is what its sender can do without an
/// administrator.
#[must_use]
pub fn not_allowed(class_name: &str, namespace: &str, instead: &str) -> FieldError {
    FieldError::forbidden(
        "spec.jobClassName",
        format!(
            "JobClass {class_name:?} does not allow namespace {namespace:?}: {instead}, or ask an administrator to label \
             the namespace as the class's allowedNamespaces asks"
        ),
    )
}

/// Faults of a class's selector (spec B8).
#[must_use]
pub fn selector_errors(selector: &LabelSelector) -> Vec<FieldError> {
    let mut errors = vec![];
    for (key, value) in selector.match_labels.iter().flatten() {
        let path = format!("spec.allowedNamespaces.matchLabels[{key}]");
        errors.extend(label_key_error(&path, key));
        errors.extend(label_value_error(&path, value));
    }
    for (index, requirement) in selector.match_expressions.iter().flatten().enumerate() {
        let path = format!("spec.allowedNamespaces.matchExpressions[{index}]");
        errors.extend(label_key_error(&format!("{path}.key"), &requirement.key));
        let values = requirement.values.as_deref().unwrap_or_default();
        match requirement.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
                format!("{path}.values"),
                format!("{} needs at least one value", requirement.operator),
            )),
            "In" | "NotIn" => {
                for (at, value) in values.iter().enumerate() {
                    errors.extend(label_value_error(&format!("{path}.values[{at}]"), value));
                }
            }
            "Exists" | "DoesNotExist" if values.is_empty() => {}
            "Exists" | "DoesNotExist" => errors.push(FieldError::forbidden(
                format!("{path}.values"),
                format!("{} takes no values", requirement.operator),
            )),
            other => errors.push(FieldError::invalid(
                format!("{path}.operator"),
                other,
                "must be In, NotIn, Exists or DoesNotExist",
            )),
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn requirement(key: &str, operator: &str, values: &[&str]) -> LabelSelector {
        LabelSelector {
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: key.into(),
                operator: operator.into(),
                values: (!values.is_empty()).then(|| values.iter().map(|v| (*v).to_owned()).collect()),
            }]),
            match_labels: None,
        }
    }

    fn class(selector: Option<LabelSelector>) -> JobClassSpec {
        JobClassSpec { allowed_namespaces: selector, ..JobClassSpec::default() }
    }

    #[test]
    fn absent_and_empty_allow_all_namespaces() {
        assert!(is_allowed(&class(None), &labels(&[])));
        assert!(is_allowed(&class(Some(LabelSelector::default())), &labels(&[])));
    }

    #[test]
    fn labels_and_expressions_must_all_match() {
        let mut selector = requirement("tier", "In", &["ci", "dev"]);
        selector.match_labels = Some(labels(&[("team", "a")]));
        let class = class(Some(selector));
        assert!(is_allowed(&class, &labels(&[("team", "a"), ("tier", "ci")])));
        assert!(!is_allowed(&class, &labels(&[("team", "a"), ("tier", "prod")])));
        assert!(!is_allowed(&class, &labels(&[("tier", "ci")])));
    }

    #[test]
    fn a_selector_without_meaning_allows_nobody() {
        assert!(!is_allowed(&class(Some(requirement("tier", "Near", &["ci"]))), &labels(&[("tier", "ci")])));
    }

    #[test]
    fn each_fault_of_a_selector_is_told_with_its_path() {
        for (selector, field) in [
            (requirement("tier", "Near", &[]), "spec.allowedNamespaces.matchExpressions[0].operator"),
            (requirement("tier", "In", &[]), "spec.allowedNamespaces.matchExpressions[0].values"),
            (requirement("tier", "Exists", &["x"]), "spec.allowedNamespaces.matchExpressions[0].values"),
            (requirement("a b", "Exists", &[]), "spec.allowedNamespaces.matchExpressions[0].key"),
            (requirement("x/y/z", "Exists", &[]), "spec.allowedNamespaces.matchExpressions[0].key"),
            (requirement("tier", "In", &["ok", "-bad"]), "spec.allowedNamespaces.matchExpressions[0].values[1]"),
        ] {
            let errors = selector_errors(&selector);
            assert_eq!(errors.iter().map(|e| e.field.as_str()).collect::<Vec<_>>(), [field]);
        }
        let good = requirement("example.com/tier", "NotIn", &["a", ""]);
        assert_eq!(selector_errors(&good), []);
    }
}
