//! What is next for a class: pure.

use ayatori_crds::{JobClass, JobClassStatus, names::JOB_CLASS_PROTECTION_FINALIZER, rules::class_policy::Controller};
use jiff::Timestamp;

use super::status::{self, is_ours};
use crate::{
    backend::{Readiness, Settings},
    stores::job_index::Holders,
};

/// What is seen around a class.
#[derive(Debug, Clone)]
pub struct View<'a> {
    /// The class.
    pub class: &'a JobClass,
    /// The settings object that it names.
    pub settings: Settings,
    /// Whether the backend takes new starts with them; None where that could not be asked now.
    pub readiness: Option<Readiness>,
    /// All classes that are marked as the cluster's default, sorted.
    pub defaults: Vec<String>,
    /// The Jobs that hold it.
    pub holders: Holders,
    /// They were read now, not taken from a store that may lag.
    pub holders_are_live: bool,
}

/// The next step: at most one request.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Put our finalizer on it (spec H3).
    AddFinalizer,
    /// Write this status, under the resourceVersion that was seen.
    WriteStatus(Box<JobClassStatus>),
    /// Read the Jobs that hold it live before the finalizer goes.
    ReadHolders,
    /// Take our finalizer off it.
    RemoveFinalizer,
    /// Nothing until something changes.
    Wait,
}

/// Decides the next step.
#[must_use]
pub fn decide(view: &View<'_>, now: Timestamp) -> Step {
    let (metadata, controller) = (&view.class.metadata, Controller::of(&view.class.spec.controller_name));
    if !is_ours(view.class, controller) {
        return Step::Wait;
    }
    let deleting = metadata.deletion_timestamp.is_some();
    let protected = metadata.finalizers.iter().flatten().any(|finalizer| finalizer == JOB_CLASS_PROTECTION_FINALIZER);
    let free = deleting && protected && view.holders.count == 0;
    match () {
        // One that no adapter here serves holds nothing.
        () if !deleting && !protected && controller == Controller::Kubernetes => Step::AddFinalizer,
        () if free && !view.holders_are_live => Step::ReadHolders,
        () if free => Step::RemoveFinalizer,
        () => status::wanted(view, now).map_or(Step::Wait, |status| Step::WriteStatus(Box::new(status))),
    }
}

#[cfg(test)]
mod tests {
    use ayatori_crds::{conditions::find, names::KUBERNETES_CONTROLLER};
    use serde_json::json;

    use super::*;

    fn class(deleting: bool, protected: bool) -> JobClass {
        let finalizers = protected.then_some([JOB_CLASS_PROTECTION_FINALIZER]);
        let deletion = deleting.then_some("2026-01-01T00:00:00Z");
        serde_json::from_value(json!({
            "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "JobClass",
            "metadata": {"name": "c", "uid": "u", "finalizers": finalizers, "deletionTimestamp": deletion},
            "spec": {"controllerName": KUBERNETES_CONTROLLER, "parametersRef": {
                "group": "execution.ayatori.ddupan.top", "kind": "KubernetesExecutionParameters", "name": "p"}},
        }))
        .unwrap()
    }

    fn next(class: &JobClass, holders: usize, holders_are_live: bool) -> Step {
        let first = (0..holders.min(3)).map(|number| format!("n/j{number}")).collect();
        let view = View {
            class,
            settings: Settings::Present { uid: "p".into() },
            readiness: Some(Readiness::Ready),
            defaults: vec![],
            holders: Holders { count: holders, first },
            holders_are_live,
        };
        decide(&view, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_class_is_protected_before_anything_is_said_of_it() {
        assert_eq!(next(&class(false, false), 0, false), Step::AddFinalizer);
        assert!(matches!(next(&class(false, true), 0, false), Step::WriteStatus(_)));
        assert!(!matches!(next(&class(true, false), 0, false), Step::AddFinalizer), "none is added to what goes");
    }

    #[test]
    fn a_class_that_jobs_hold_stays_and_says_for_which_then_goes_on_a_live_look() {
        let mut going = class(true, true);
        let Step::WriteStatus(status) = next(&going, 5, false) else { panic!("it is held") };
        let terminating = find(&status.conditions, "Terminating").unwrap();
        assert_eq!(terminating.message, "deletion waits for 5 Jobs that hold this class: n/j0, n/j1, n/j2 and 2 more");
        going.status = Some(*status);
        assert_eq!(next(&going, 5, false), Step::Wait, "it is told once");
        assert_eq!(next(&going, 0, false), Step::ReadHolders);
        assert!(matches!(next(&going, 1, true), Step::WriteStatus(_)), "the store lagged");
        assert_eq!(next(&going, 0, true), Step::RemoveFinalizer);
    }
}
