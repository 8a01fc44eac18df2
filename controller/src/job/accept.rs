//! Acceptance (spec section 4): whether a Job may run, and with what.

use ayatori_crds::{
    Job, JobClass, ResourceRequirements,
    conditions::{ACCEPTED, is_true, reason},
    job::ResolvedJobClass,
    rules::{
        self,
        namespace::{USE_ANOTHER, not_allowed},
    },
};

use super::view::{ClassView, View};
use crate::backend::Settings;

/// What is pinned at acceptance (spec C2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The class as it is now.
    pub class: ResolvedJobClass,
    /// The resources that the execution gets.
    pub resources: ResourceRequirements,
}

/// Why a Job is not accepted yet: the first failing row of the table in spec section 4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason for the condition `Accepted`.
    pub reason: &'static str,
    /// What is wrong, or what is awaited.
    pub message: String,
}

/// Whether the class selects namespaces, so that an acceptance rests on labels (spec section 4: live ones).
#[must_use]
pub fn rests_on_labels(view: &View<'_>) -> bool {
    matches!(view.class, ClassView::Present(class) if class.spec.allowed_namespaces.is_some())
}

fn refusal(reason: &'static str, message: impl Into<String>) -> Refusal {
    Refusal { reason, message: message.into() }
}

/// Judges a Job by what is seen.
///
/// # Errors
/// The first reason why it may not run (yet). None of them is final (spec C1).
pub fn judge(view: &View<'_>) -> Result<Accepted, Refusal> {
    let job = view.job;
    let faults = rules::task::errors(&job.spec.task);
    if !faults.is_empty() {
        return Err(refusal(reason::INVALID_TASK, rules::field_error::joined(&faults)));
    }
    let faults = view.policy.errors(&job.spec);
    if !faults.is_empty() {
        return Err(refusal(reason::POLICY_VIOLATION, rules::field_error::joined(&faults)));
    }
    let class = accepted_class(view)?;
    let name = class.metadata.name.as_deref().unwrap_or_default();
    check_namespace(view, job, class, name)?;
    let resources = rules::resources::effective(job.spec.resources.as_ref(), class.spec.resources.as_ref(), name)
        .map_err(|faults| refusal(reason::INVALID_RESOURCES, rules::field_error::joined(&faults)))?;
    let Settings::Present { uid } = &view.settings else {
        let parameters = &class.spec.parameters_ref;
        return Err(refusal(
            reason::JOB_CLASS_NOT_ACCEPTED,
            format!("waiting for {} {:?} of JobClass {name:?} to exist", parameters.kind, parameters.name),
        ));
    };
    let mut parameters_ref = class.spec.parameters_ref.clone();
    parameters_ref.uid = Some(uid.clone());
    Ok(Accepted {
        class: ResolvedJobClass {
            name: name.to_owned(),
            uid: class.metadata.uid.clone().unwrap_or_default(),
            controller_name: class.spec.controller_name.clone(),
            parameters_ref,
        },
        resources,
    })
}

fn accepted_class<'a>(view: &View<'a>) -> Result<&'a JobClass, Refusal> {
    match &view.class {
        ClassView::NoDefault => Err(refusal(
            reason::NO_DEFAULT_JOB_CLASS,
            "spec.jobClassName is not set and there is no default: waiting for the namespace or a JobClass to be \
             annotated as the default",
        )),
        ClassView::AmbiguousDefault(names) => Err(refusal(
            reason::AMBIGUOUS_DEFAULT_JOB_CLASS,
            format!(
                "spec.jobClassName is not set and several JobClasses are marked as the default: {}",
                names.join(", ")
            ),
        )),
        ClassView::Absent(name) => {
            Err(refusal(reason::JOB_CLASS_NOT_FOUND, format!("waiting for JobClass {name:?} to be created")))
        }
        ClassView::Present(class) => {
            let name = class.metadata.name.as_deref().unwrap_or_default();
            if class.metadata.deletion_timestamp.is_some() {
                Err(refusal(reason::JOB_CLASS_NOT_FOUND, format!("JobClass {name:?} is being deleted")))
            } else if is_true(class.conditions(), ACCEPTED) {
                Ok(class)
            } else {
                Err(refusal(reason::JOB_CLASS_NOT_ACCEPTED, format!("waiting for JobClass {name:?} to be accepted")))
            }
        }
    }
}

fn check_namespace(view: &View<'_>, job: &Job, class: &JobClass, name: &str) -> Result<(), Refusal> {
    let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
    // A namespace that the store does not have yet is read before anything rests on it.
    let allowed = view.namespace_labels.is_none_or(|labels| rules::namespace::is_allowed(&class.spec, labels));
    if allowed {
        return Ok(());
    }
    Err(refusal(reason::NAMESPACE_NOT_ALLOWED, not_allowed(name, namespace, USE_ANOTHER).detail))
}
