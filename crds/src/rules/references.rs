//! What a task reads of the Secrets and ConfigMaps in its namespace (spec B3, C3).

use crate::job::TaskSpec;

/// The kind of an object that a task reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Referent {
    /// A Secret, for the environment or for a private registry.
    Secret,
    /// A ConfigMap.
    ConfigMap,
}

impl Referent {
    /// The kind as people know it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        }
    }
}

/// One object that must be there before the task can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference<'a> {
    /// The field that names it, for example `spec.task.env[2].valueFrom.secretKeyRef`.
    pub field: String,
    /// Its kind.
    pub referent: Referent,
    /// Its name, as the user wrote it: perhaps empty, perhaps no name at all.
    pub name: &'a str,
    /// The key in its data; None for a Secret of a private registry.
    pub key: Option<&'a str>,
}

/// Everything that must be there, pull secrets first; what is `optional` need not.
#[must_use]
pub fn required(task: &TaskSpec) -> Vec<Reference<'_>> {
    let pulls = task.image_pull_secrets.iter().enumerate().map(|(index, secret)| Reference {
        field: format!("spec.task.imagePullSecrets[{index}]"),
        referent: Referent::Secret,
        name: &secret.name,
        key: None,
    });
    let sources = task.env.iter().enumerate().filter_map(|(index, variable)| {
        let source = variable.value_from.as_ref()?;
        let (word, referent, selector) = match (&source.secret_key_ref, &source.config_map_key_ref) {
            (Some(selector), _) => ("secretKeyRef", Referent::Secret, selector),
            (None, Some(selector)) => ("configMapKeyRef", Referent::ConfigMap, selector),
            (None, None) => return None,
        };
        (selector.optional != Some(true)).then(|| Reference {
            field: format!("spec.task.env[{index}].valueFrom.{word}"),
            referent,
            name: &selector.name,
            key: Some(&selector.key),
        })
    });
    pulls.chain(sources).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_that_is_not_optional_is_told_in_order() {
        let task: TaskSpec = serde_json::from_value(json!({
            "image": "app:1",
            "imagePullSecrets": [{"name": "registry"}],
            "env": [
                {"name": "A", "value": "literal"},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
                {"name": "C", "valueFrom": {"secretKeyRef": {"name": "spare", "key": "x", "optional": true}}},
                {"name": "D", "valueFrom": {"configMapKeyRef": {"name": "db", "key": "host", "optional": false}}},
                {"name": "E", "valueFrom": {}}
            ]
        }))
        .unwrap();
        let told: Vec<_> =
            required(&task).into_iter().map(|found| (found.field, found.referent, found.name, found.key)).collect();
        assert_eq!(
            told,
            [
                ("spec.task.imagePullSecrets[0]".to_owned(), Referent::Secret, "registry", None),
                ("spec.task.env[1].valueFrom.secretKeyRef".to_owned(), Referent::Secret, "db", Some("password")),
                ("spec.task.env[3].valueFrom.configMapKeyRef".to_owned(), Referent::ConfigMap, "db", Some("host")),
            ]
        );
    }
}
