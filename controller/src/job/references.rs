//! The Secrets and ConfigMaps that a task needs (spec C3): which one is read next before an acceptance, and what is
//! missing.

use std::collections::{BTreeMap, BTreeSet};

use ayatori_crds::{
    conditions::reason,
    job::TaskSpec,
    rules::{
        references::{Referent, required},
        syntax::is_subdomain,
    },
};

use super::accept::Refusal;

/// Objects that are read for one Job at most. What a task names beyond is left to the backend's word on its start.
pub const READ_LIMIT: usize = 32;

/// An object in the Job's namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// What it is.
    pub kind: Referent,
    /// Its name.
    pub name: String,
}

/// What a look at an object showed. Values are never held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// There is none of that name.
    Absent,
    /// It is there, with these of the keys that were asked for.
    Present(BTreeSet<String>),
    /// It may not be read.
    Forbidden(String),
}

/// What was read in this visit.
pub type Answers = BTreeMap<Reference, Answer>;

/// What is next for the references of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Look at this one, for these keys.
    Read(Reference, BTreeSet<String>),
    /// This one is missing.
    Missing(Refusal),
    /// Everything is there.
    Complete,
}

/// The first reference that was not read yet or is missing, in the order of the task: pull secrets, then variables.
pub(super) fn next(task: &TaskSpec, answers: &Answers) -> Next {
    let needed: Vec<_> = required(task).into_iter().map(|needed| (needed.referent, needed.name, needed.key)).collect();
    let mut seen = BTreeSet::new();
    for (kind, name, key) in &needed {
        seen.insert((kind, name));
        if seen.len() > READ_LIMIT {
            break;
        }
        let reference = Reference { kind: *kind, name: (*name).to_owned() };
        let fault = match answers.get(&reference) {
            _ if !is_subdomain(name) => {
                Some(absent(*kind, key.is_none(), format!("{name:?} is no name of a {}", kind.as_str())))
            }
            None => {
                let keys = needed.iter().filter(|other| (other.0, other.1) == (*kind, *name));
                return Next::Read(reference, keys.filter_map(|(_, _, key)| key.map(str::to_owned)).collect());
            }
            Some(Answer::Absent) => {
                Some(absent(*kind, key.is_none(), format!("waiting for {} {name:?} to be created", kind.as_str())))
            }
            Some(Answer::Forbidden(why)) => {
                Some(absent(*kind, key.is_none(), format!("{} {name:?} could not be read: {why}", kind.as_str())))
            }
            Some(Answer::Present(keys)) => {
                key.filter(|key| !keys.contains(*key)).map(|key| missing_key(*kind, name, key))
            }
        };
        if let Some(refusal) = fault {
            return Next::Missing(refusal);
        }
    }
    Next::Complete
}

fn absent(kind: Referent, for_pulling: bool, message: String) -> Refusal {
    let reason = match kind {
        Referent::Secret if for_pulling => reason::IMAGE_PULL_SECRET_NOT_FOUND,
        Referent::Secret => reason::SECRET_NOT_FOUND,
        Referent::ConfigMap => reason::CONFIG_MAP_NOT_FOUND,
    };
    Refusal { reason, message }
}

fn missing_key(kind: Referent, name: &str, key: &str) -> Refusal {
    let reason = match kind {
        Referent::Secret => reason::SECRET_KEY_NOT_FOUND,
        Referent::ConfigMap => reason::CONFIG_MAP_KEY_NOT_FOUND,
    };
    Refusal { reason, message: format!("waiting for {} {name:?} to have the key {key:?}", kind.as_str()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn task(pull: &[&str], env: Value) -> TaskSpec {
        let pull: Vec<_> = pull.iter().map(|name| json!({"name": name})).collect();
        serde_json::from_value(json!({"image": "app:1", "imagePullSecrets": pull, "env": env})).unwrap()
    }

    fn secret(name: &str, key: &str, optional: Option<bool>) -> Value {
        json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": name, "key": key, "optional": optional}}})
    }

    fn config_map(name: &str, key: &str) -> Value {
        json!({"name": "B", "valueFrom": {"configMapKeyRef": {"name": name, "key": key}}})
    }

    fn answers(all: &[(Referent, &str, Answer)]) -> Answers {
        let of = |(kind, name, answer): &(Referent, &str, Answer)| {
            (Reference { kind: *kind, name: (*name).to_owned() }, answer.clone())
        };
        all.iter().map(of).collect()
    }

    fn keys(keys: &[&str]) -> Answer {
        Answer::Present(keys.iter().map(|key| (*key).to_owned()).collect())
    }

    fn refused(next: Next) -> (&'static str, String) {
        match next {
            Next::Missing(refusal) => (refusal.reason, refusal.message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_object_is_read_once_for_all_of_its_keys_in_the_order_of_the_task() {
        let task = task(&["pull"], json!([secret("s", "a", None), config_map("c", "x"), secret("s", "b", None)]));
        let read = |kind, name: &str, keys: &[&str]| {
            let reference = Reference { kind, name: name.into() };
            Next::Read(reference, keys.iter().map(|key| (*key).to_owned()).collect())
        };
        let mut known = answers(&[]);
        assert_eq!(next(&task, &known), read(Referent::Secret, "pull", &[]));
        known.extend(answers(&[(Referent::Secret, "pull", keys(&[]))]));
        assert_eq!(next(&task, &known), read(Referent::Secret, "s", &["a", "b"]));
        known.extend(answers(&[(Referent::Secret, "s", keys(&["a", "b"]))]));
        assert_eq!(next(&task, &known), read(Referent::ConfigMap, "c", &["x"]));
        known.extend(answers(&[(Referent::ConfigMap, "c", keys(&["x"]))]));
        assert_eq!(next(&task, &known), Next::Complete);
    }

    #[test]
    fn what_is_missing_is_told_with_its_own_reason() {
        for (task, answer, expected) in [
            (task(&["s"], json!([])), (Referent::Secret, "s", Answer::Absent), "ImagePullSecretNotFound"),
            (task(&[], json!([secret("s", "k", None)])), (Referent::Secret, "s", Answer::Absent), "SecretNotFound"),
            (
                task(&[], json!([secret("s", "k", Some(false))])),
                (Referent::Secret, "s", keys(&[])),
                "SecretKeyNotFound",
            ),
            (task(&[], json!([config_map("c", "k")])), (Referent::ConfigMap, "c", Answer::Absent), "ConfigMapNotFound"),
            (
                task(&[], json!([config_map("c", "k")])),
                (Referent::ConfigMap, "c", keys(&["other"])),
                "ConfigMapKeyNotFound",
            ),
        ] {
            assert_eq!(refused(next(&task, &answers(&[answer]))).0, expected);
        }
        let forbidden = answers(&[(Referent::Secret, "s", Answer::Forbidden("no rights".into()))]);
        let (_, message) = refused(next(&task(&["s"], json!([])), &forbidden));
        assert_eq!(message, "Secret \"s\" could not be read: no rights");
    }

    #[test]
    fn what_is_optional_is_not_asked_for() {
        assert_eq!(next(&task(&[], json!([secret("s", "k", Some(true))])), &answers(&[])), Next::Complete);
        assert_eq!(next(&task(&[], json!([{"name": "A", "value": "v"}])), &answers(&[])), Next::Complete);
    }

    #[test]
    fn a_name_that_is_none_is_never_asked_for() {
        for name in ["", "../configmaps/c", "a/b", "a?b", "A", "a..b", "-a", "a b", "é"] {
            let (reason, message) = refused(next(&task(&[], json!([secret(name, "k", None)])), &answers(&[])));
            assert_eq!(reason, "SecretNotFound", "{name:?}: {message}");
        }
        assert!(is_subdomain("a-1.b") && is_subdomain(&"a".repeat(253)) && !is_subdomain(&"a".repeat(254)));
    }

    proptest! {
        #[test]
        fn a_task_with_any_number_of_references_comes_to_an_end_within_the_limit(count in 0_usize..100) {
            let env: Vec<_> = (0..count).map(|number| secret(&format!("s{number}"), "k", None)).collect();
            let (task, mut known, mut reads) = (task(&[], json!(env)), answers(&[]), 0);
            while let Next::Read(reference, wanted) = next(&task, &known) {
                known.insert(reference, Answer::Present(wanted));
                reads += 1;
            }
            prop_assert_eq!(next(&task, &known), Next::Complete);
            prop_assert_eq!(reads, count.min(READ_LIMIT));
        }
    }
}
