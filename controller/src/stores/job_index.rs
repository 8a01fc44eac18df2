//! Jobs that are not over, by the class that they hold and by what they wait for: no change of a class or a namespace is
//! answered by a search through all Jobs.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{PoisonError, RwLock},
};

use ayatori_crds::{
    Job, JobState,
    conditions::{ACCEPTED, is_true},
};
use kube::runtime::reflector::ObjectRef;

/// The Jobs of a class that are not over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// How many there are.
    pub count: usize,
    /// The first ones, as `namespace/name`.
    pub first: Vec<String>,
}

/// Names that are told of several Jobs.
pub const TOLD: usize = 3;

/// Where a Job is in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    /// The UID of the class that it was accepted with.
    class: Option<String>,
    /// The name of its class; None where the defaults say which it is.
    class_name: Option<String>,
    waits: bool,
}

#[derive(Debug, Default)]
struct Known {
    places: HashMap<ObjectRef<Job>, Place>,
    /// Class UID → its Jobs, as `namespace/name`.
    by_class: HashMap<String, BTreeMap<String, ObjectRef<Job>>>,
}

/// The index. Kept by the watch of Jobs.
#[derive(Debug, Default)]
pub struct JobIndex(RwLock<Known>);

impl JobIndex {
    /// What the store has of a Job now; None where it is gone.
    pub(super) fn set(&self, key: &ObjectRef<Job>, job: Option<&Job>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(class) = known.places.remove(key).and_then(|place| place.class)
            && let Some(jobs) = known.by_class.get_mut(&class)
        {
            jobs.remove(&name(key));
            if jobs.is_empty() {
                known.by_class.remove(&class);
            }
        }
        let Some(place) = job.and_then(place) else { return };
        if let Some(class) = &place.class {
            known.by_class.entry(class.clone()).or_default().insert(name(key), key.clone());
        }
        known.places.insert(key.clone(), place);
    }

    /// The Jobs that wait for a class, its settings, a namespace (spec C1).
    #[must_use]
    pub fn waiting(&self) -> Vec<ObjectRef<Job>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.places.iter().filter(|(_, place)| place.waits).map(|(key, _)| key.clone()).collect()
    }

    /// Those of them that a change of the class with this name concerns: Jobs that name it, or that look for a default.
    #[must_use]
    pub fn waiting_for(&self, class_name: &str) -> Vec<ObjectRef<Job>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let concerned = known
            .places
            .iter()
            .filter(|(_, place)| place.waits && place.class_name.as_deref().is_none_or(|name| name == class_name));
        concerned.map(|(key, _)| key.clone()).collect()
    }

    /// The Jobs that hold the class with this UID.
    #[must_use]
    pub fn holders(&self, class_uid: &str) -> Holders {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(jobs) = known.by_class.get(class_uid) else { return Holders::default() };
        Holders { count: jobs.len(), first: jobs.keys().take(TOLD).cloned().collect() }
    }
}

fn name(key: &ObjectRef<Job>) -> String {
    format!("{}/{}", key.namespace.as_deref().unwrap_or_default(), key.name)
}

/// None where the Job is over: it neither waits nor holds anything.
fn place(job: &Job) -> Option<Place> {
    let status = job.status.as_ref();
    if status.is_some_and(|status| status.completion_time.is_some()) {
        return None;
    }
    let resolved = status.and_then(|status| status.resolved_job_class.as_ref());
    let class = resolved.map(|class| class.uid.clone());
    let class_name = resolved.map(|class| &class.name).or(job.spec.job_class_name.as_ref());
    let class_name = class_name.filter(|name| !name.is_empty()).cloned();
    // What is being deleted waits for its namespace to go, where it cannot go by itself (spec F3).
    let waits =
        !is_true(job.conditions(), ACCEPTED) || matches!(JobState::of(job), JobState::Scheduling | JobState::Deleting);
    Some(Place { class, class_name, waits })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(status: Value) -> Job {
        serde_json::from_value(json!({
            "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "Job", "metadata": {"name": "j", "namespace": "n"},
            "spec": {"task": {"image": "app:1"}}, "status": status,
        }))
        .unwrap()
    }

    fn accepted(class: &str, scheduled: bool) -> Value {
        let condition = |type_: &str, is: bool| {
            json!({"type": type_, "status": if is { "True" } else { "False" }, "reason": "X", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        json!({
            "resolvedJobClass": {"name": "c", "uid": class, "controllerName": "k", "parametersRef": {"group": "g", "kind": "K", "name": "p"}},
            "conditions": [condition("Accepted", true), condition("Scheduled", scheduled)],
        })
    }

    #[test]
    fn a_job_holds_its_class_from_its_acceptance_to_its_end() {
        let index = JobIndex::default();
        let key = ObjectRef::<Job>::new("j").within("n");
        index.set(&key, Some(&job(json!({}))));
        assert_eq!((index.waiting().len(), index.holders("u").count), (1, 0));
        index.set(&key, Some(&job(accepted("u", false))));
        assert_eq!((index.waiting().len(), index.holders("u").first), (1, vec!["n/j".to_owned()]));
        index.set(&key, Some(&job(accepted("u", true))));
        assert_eq!((index.waiting().len(), index.holders("u").count), (0, 1));
        let mut deleting = job(accepted("u", true));
        deleting.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        index.set(&key, Some(&deleting));
        assert_eq!(index.waiting().len(), 1, "for its namespace to go");
        let mut over = accepted("u", true);
        over["completionTime"] = json!("2026-01-01T00:00:00Z");
        index.set(&key, Some(&job(over)));
        let known = index.0.read().unwrap();
        assert!(known.places.is_empty() && known.by_class.is_empty(), "what is over costs nothing");
    }

    #[test]
    fn a_class_concerns_the_jobs_that_name_it_and_those_that_look_for_a_default() {
        let index = JobIndex::default();
        for (name, class) in [("named", Some("a")), ("other", Some("b")), ("default", None)] {
            let mut job = job(json!({}));
            job.spec.job_class_name = class.map(str::to_owned);
            index.set(&ObjectRef::<Job>::new(name).within("n"), Some(&job));
        }
        index.set(&ObjectRef::<Job>::new("accepted").within("n"), Some(&job(accepted("u", false))));
        let concerned = |class: &str| {
            let mut names: Vec<_> = index.waiting_for(class).into_iter().map(|key| key.name).collect();
            names.sort();
            names
        };
        assert_eq!(concerned("a"), ["default", "named"]);
        assert_eq!(concerned("c"), ["accepted", "default"]);
    }

    #[test]
    fn a_job_that_is_gone_or_made_anew_holds_nothing_of_the_old_one() {
        let index = JobIndex::default();
        let key = ObjectRef::<Job>::new("j").within("n");
        index.set(&key, Some(&job(accepted("u", true))));
        index.set(&key, Some(&job(accepted("v", true))));
        assert_eq!((index.holders("u").count, index.holders("v").count), (0, 1));
        index.set(&key, None);
        assert_eq!(index.holders("v"), Holders::default());
    }
}
