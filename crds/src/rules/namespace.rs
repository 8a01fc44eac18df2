//! Which namespaces a class allows (spec A5, B2).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};

use super::FieldError;
use crate::JobClassSpec;

/// Whether the class allows a namespace with these labels. Absent or empty allows all; a selector that no one can
/// understand (its class is not accepted either) allows none.
#[must_use]
pub fn is_allowed(class: &JobClassSpec, namespace_labels: &BTreeMap<String, String>) -> bool {
    class.allowed_namespaces.as_ref().is_none_or(|selector| {
        Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(namespace_labels))
    })
}

/// The fault to tell when a class does not allow the Job's namespace.
#[must_use]
pub fn not_allowed(class_name: &str, namespace: &str) -> FieldError {
    FieldError::forbidden(
        "spec.jobClassName",
        format!(
            "JobClass {class_name:?} does not allow namespace {namespace:?}: use another class (kubectl get jobclasses), \
             or ask an administrator to label the namespace as the class's allowedNamespaces asks"
        ),
    )
}

/// Faults of a class's selector (spec B8).
#[must_use]
pub fn selector_errors(selector: &LabelSelector) -> Vec<FieldError> {
    let mut errors = vec![];
    for (key, value) in selector.match_labels.iter().flatten() {
        let path = format!("spec.allowedNamespaces.matchLabels[{key}]");
        errors.extend(key_error(&path, key));
        errors.extend(value_error(&path, value));
    }
    for (index, requirement) in selector.match_expressions.iter().flatten().enumerate() {
        let path = format!("spec.allowedNamespaces.matchExpressions[{index}]");
        errors.extend(key_error(&format!("{path}.key"), &requirement.key));
        let values = requirement.values.as_deref().unwrap_or_default();
        match requirement.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
                format!("{path}.values"),
                format!("{} needs at least one value", requirement.operator),
            )),
            "In" | "NotIn" => {
                for (at, value) in values.iter().enumerate() {
                    errors.extend(value_error(&format!("{path}.values[{at}]"), value));
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

/// A word of a label: empty, or up to 63 letters, digits, `-`, `_`, `.`, with a letter or digit at both ends.
fn is_label_word(word: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    word.len() <= 63
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && ends(word.chars().next())
        && ends(word.chars().next_back())
}

/// A DNS subdomain (RFC 1123) as Kubernetes takes it before the `/` of a label key.
fn is_subdomain(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

fn key_error(path: &str, key: &str) -> Option<FieldError> {
    let (prefix, word) = key.split_once('/').map_or((None, key), |(prefix, word)| (Some(prefix), word));
    (!is_label_word(word) || !prefix.is_none_or(is_subdomain)).then(|| {
        FieldError::invalid(
            path,
            key,
            "must be a label key: an optional DNS prefix and '/', then up to 63 letters, digits, '-', '_' or '.'",
        )
    })
}

fn value_error(path: &str, value: &str) -> Option<FieldError> {
    (!value.is_empty() && !is_label_word(value)).then(|| {
        FieldError::invalid(path, value, "must be a label value: empty, or up to 63 letters, digits, '-', '_' or '.'")
    })
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
