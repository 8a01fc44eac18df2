//! Validation of Jobs (spec B2 to B5): a new one by every rule, a changed one by [`crate::job_update`].

use std::sync::Arc;

use ayatori_crds::JobSpec;
use ayatori_crds::names::{GROUP, VERSION};
use ayatori_crds::rules::{FieldError, Policy, image, task};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Deserialize;

use crate::answer::Subject;
use crate::default_lookup;
use crate::job_by_class::{ByClass, by_class};
use crate::job_update::update;
use crate::lookups::{Freshness, Lookups};
use crate::references::{ReferenceChecks, warn_of_missing};
use crate::{Answer, Operation, Request, Review, Warnings};

/// Serves [`crate::configuration::VALIDATE_JOBS`].
#[derive(Debug)]
pub struct JobValidation {
    lookups: Arc<dyn Lookups>,
    policy: Policy,
    references: ReferenceChecks,
}

impl JobValidation {
    /// Finds classes, namespaces and settings by `lookups`, and what Jobs refer to if `references` are to be checked.
    #[must_use]
    pub fn new(lookups: Arc<dyn Lookups>, policy: Policy, references: ReferenceChecks) -> Self {
        Self { lookups, policy, references }
    }

    async fn answer(&self, request: &Request<'_>) -> Answer {
        match (request.operation, request.object, request.old_object) {
            (Operation::Create, Some(object), _) => match serde_json::from_str::<Sent>(object.get()) {
                Ok(Sent { spec }) => self.create(request, &spec).await,
                Err(error) => undecodable(&error),
            },
            (Operation::Update, Some(object), Some(old)) => update(request, object, old, &self.policy),
            _ => Answer::allowed(),
        }
    }

    async fn create(&self, request: &Request<'_>, spec: &JobSpec) -> Answer {
        let judged = |freshness| by_class(&*self.lookups, spec, &request.namespace, freshness);
        let mut found = judged(Freshness::Stored).await;
        if found.as_ref().is_ok_and(|found| !found.faults.is_empty()) {
            // A store that is behind must not refuse.
            found = judged(Freshness::Live).await;
        }
        let ByClass { faults: by_class, warning } = match found {
            Ok(found) => found,
            Err(error) => return Answer::internal_error(format!("{error}; try again")),
        };
        let mut faults = task::errors(&spec.task);
        faults.extend(self.policy.errors(spec));
        faults.extend(by_class);
        match faults.as_slice() {
            [] => {
                let mut warnings = Warnings::default();
                warning.iter().for_each(|text| warnings.add(text));
                if spec.job_class_name.as_deref().is_none_or(str::is_empty) {
                    let found = default_lookup::look_up(&*self.lookups, request).await;
                    default_lookup::warning(&found).iter().for_each(|text| warnings.add(text));
                }
                warn_of_image(spec, &mut warnings);
                warn_of_ttl(spec, &mut warnings);
                if self.references == ReferenceChecks::On {
                    warn_of_missing(&*self.lookups, request, &spec.task, &mut warnings).await;
                }
                Answer::patched(json_patch::Patch::default(), warnings)
            }
            [only] if is_of_namespace(only) => Answer::forbidden(&Subject::of(request), &only.detail),
            all => Answer::invalid(&Subject::of(request), all),
        }
    }
}

impl Review for JobValidation {
    fn resource(&self) -> [&str; 3] {
        [GROUP, VERSION, "jobs"]
    }

    fn review<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Answer> {
        self.answer(request).boxed()
    }
}

/// A Job as it is sent. Its status is nobody's business here.
#[derive(Deserialize)]
pub(crate) struct Sent {
    pub(crate) spec: JobSpec,
}

fn is_of_namespace(fault: &FieldError) -> bool {
    fault.field == "spec.jobClassName"
}

pub(crate) fn undecodable(error: &serde_json::Error) -> Answer {
    Answer::bad_request(format!("cannot read the Job: {error}"))
}

fn warn_of_image(spec: &JobSpec, warnings: &mut Warnings) {
    if image::is_latest(&spec.task.image) {
        warnings.add("spec.task.image has the tag latest: it may name another image tomorrow; a digest does not");
    }
}

pub(crate) fn warn_of_ttl(spec: &JobSpec, warnings: &mut Warnings) {
    if spec.ttl_seconds_after_finished == Some(0) {
        warnings.add("spec.ttlSecondsAfterFinished is 0: the Job and its result are gone as soon as it is over");
    }
}

#[cfg(test)]
#[path = "job_validate_tests.rs"]
mod tests;
