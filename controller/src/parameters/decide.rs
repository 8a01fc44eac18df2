//! What is next for a settings object: pure.

use ayatori_crds::{
    JobClass,
    names::{GROUP, PARAMETERS_PROTECTION_FINALIZER},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// What is seen around a settings object.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The object.
    pub metadata: &'a ObjectMeta,
    /// Whether a class names it.
    pub used: bool,
    /// That was read now, not taken from a store that may lag.
    pub used_is_live: bool,
}

/// The next step: at most one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Put our finalizer on it.
    AddFinalizer,
    /// Read the classes live before the finalizer goes.
    ReadClasses,
    /// Take our finalizer off it.
    RemoveFinalizer,
    /// Nothing until something changes.
    Wait,
}

/// Decides the next step. The finalizer comes with the first class that names the object, and goes only when it is
/// deleted and none does.
#[must_use]
pub fn decide(view: &View<'_>) -> Step {
    let protected =
        view.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == PARAMETERS_PROTECTION_FINALIZER);
    let deleting = view.metadata.deletion_timestamp.is_some();
    match (deleting, protected) {
        (false, false) if view.used => Step::AddFinalizer,
        (true, true) if view.used => Step::Wait,
        (true, true) if !view.used_is_live => Step::ReadClasses,
        (true, true) => Step::RemoveFinalizer,
        _ => Step::Wait,
    }
}

/// Whether the class names this settings object: by kind and name, and by UID where it pins one.
#[must_use]
pub fn names(class: &JobClass, kind: &str, parameters: &ObjectMeta) -> bool {
    let reference = &class.spec.parameters_ref;
    reference.group == GROUP
        && reference.kind == kind
        && Some(&reference.name) == parameters.name.as_ref()
        && reference.uid.as_ref().is_none_or(|pinned| Some(pinned) == parameters.uid.as_ref())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(deleting: bool, protected: bool) -> ObjectMeta {
        let finalizers = protected.then_some([PARAMETERS_PROTECTION_FINALIZER]);
        let deletion = deleting.then_some("2026-01-01T00:00:00Z");
        serde_json::from_value(
            json!({"name": "p", "uid": "u", "finalizers": finalizers, "deletionTimestamp": deletion}),
        )
        .unwrap()
    }

    fn next(deleting: bool, protected: bool, used: bool, used_is_live: bool) -> Step {
        decide(&View { metadata: &metadata(deleting, protected), used, used_is_live })
    }

    #[test]
    fn what_a_class_names_is_protected_and_goes_only_when_none_does() {
        assert_eq!(next(false, false, false, false), Step::Wait, "nobody names it");
        assert_eq!(next(false, false, true, false), Step::AddFinalizer);
        assert_eq!(next(false, true, false, false), Step::Wait, "a finalizer costs nothing before a deletion");
        assert_eq!(next(true, true, true, false), Step::Wait);
        assert_eq!(next(true, true, false, false), Step::ReadClasses, "a class may have been made meanwhile");
        assert_eq!(next(true, true, true, true), Step::Wait);
        assert_eq!(next(true, true, false, true), Step::RemoveFinalizer);
        assert_eq!(next(true, false, true, false), Step::Wait, "none is added to what is being deleted");
    }

    #[test]
    fn a_class_names_an_object_by_group_kind_name_and_the_uid_that_it_pins() {
        let class = |group: &str, kind: &str, name: &str, uid: Option<&str>| -> JobClass {
            serde_json::from_value(json!({
                "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "JobClass", "metadata": {"name": "c"},
                "spec": {"controllerName": "k", "parametersRef": {"group": group, "kind": kind, "name": name, "uid": uid}},
            }))
            .unwrap()
        };
        let named = |class: &JobClass| names(class, "K", &metadata(false, false));
        assert!(named(&class(GROUP, "K", "p", None)) && named(&class(GROUP, "K", "p", Some("u"))));
        for other in [
            class("g", "K", "p", None),
            class(GROUP, "L", "p", None),
            class(GROUP, "K", "q", None),
            class(GROUP, "K", "p", Some("v")),
        ] {
            assert!(!named(&other));
        }
    }
}
