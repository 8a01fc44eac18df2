//! Validation of Jobs (spec B2 to B5).
//!
//! Everything that a rule here speaks of is fixed at creation, by CEL. So an UPDATE is never refused: policy that became
//! stricter locks no existing Job, and a Job can be cancelled wherever it is.

use std::sync::Arc;

use ayatori_crds::conditions::{self, ACCEPTED};
use ayatori_crds::job::DesiredState;
use ayatori_crds::names::{GROUP, VERSION};
use ayatori_crds::rules::{FieldError, class_policy, image, namespace, resources, task};
use ayatori_crds::{JobClass, JobSpec};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::answer::Subject;
use crate::lookups::{self, Freshness, LookupError, Lookups, NamespaceMeta};
use crate::outline::Outline;
use crate::{Answer, Operation, Request, Review, Warnings};

/// Serves [`crate::configuration::VALIDATE_JOBS`].
#[derive(Debug)]
pub struct JobValidation {
    lookups: Arc<dyn Lookups>,
}

impl JobValidation {
    /// Finds classes and namespaces by `lookups`.
    #[must_use]
    pub fn new(lookups: Arc<dyn Lookups>) -> Self {
        Self { lookups }
    }

    async fn answer(&self, request: &Request<'_>) -> Answer {
        match (request.operation, request.object, request.old_object) {
            (Operation::Create, Some(object), _) => match serde_json::from_str::<Sent>(object.get()) {
                Ok(Sent { spec }) => self.create(request, &spec).await,
                Err(error) => undecodable(&error),
            },
            (Operation::Update, Some(object), Some(old)) => update(object, old),
            _ => Answer::allowed(),
        }
    }

    async fn create(&self, request: &Request<'_>, spec: &JobSpec) -> Answer {
        let mut found = self.by_class(request, spec, Freshness::Stored).await;
        if found.as_ref().is_ok_and(|found| !found.faults.is_empty()) {
            // A store that is behind must not refuse.
            found = self.by_class(request, spec, Freshness::Live).await;
        }
        let ByClass { faults: by_class, class_warning } = match found {
            Ok(found) => found,
            Err(error) => return Answer::internal_error(format!("{error}; try again")),
        };
        let mut faults = task::errors(&spec.task);
        faults.extend(by_class);
        match faults.as_slice() {
            [] => {
                let mut warnings = Warnings::default();
                class_warning.iter().for_each(|text| warnings.add(text));
                warn_of_image(spec, &mut warnings);
                warn_of_ttl(spec, &mut warnings);
                Answer::patched(json_patch::Patch::default(), warnings)
            }
            [only] if is_of_namespace(only) => Answer::forbidden(&Subject::of(request), &only.detail),
            all => Answer::invalid(&Subject::of(request), all),
        }
    }

    /// What the class says of the Job, by what is known of class and namespace at this freshness.
    async fn by_class(
        &self,
        request: &Request<'_>,
        spec: &JobSpec,
        freshness: Freshness,
    ) -> Result<ByClass, LookupError> {
        let Some(name) = spec.job_class_name.as_deref().filter(|name| !name.is_empty()) else {
            return Ok(ByClass::of(spec, "", None, &request.namespace, &NamespaceMeta::default()));
        };
        let class = lookups::class(&*self.lookups, name, freshness).await?;
        let selects = class.as_ref().is_some_and(|class| class.spec.allowed_namespaces.is_some());
        let meta = if selects {
            lookups::namespace(&*self.lookups, &request.namespace, freshness).await?
        } else {
            Arc::default()
        };
        Ok(ByClass::of(spec, name, class.as_deref(), &request.namespace, &meta))
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
struct Sent {
    spec: JobSpec,
}

/// A Job as it is stored.
#[derive(Deserialize)]
struct Held {
    spec: JobSpec,
    #[serde(default)]
    status: HeldStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeldStatus {
    completion_time: Option<IgnoredAny>,
}

/// The verdict of a class on a Job.
struct ByClass {
    faults: Vec<FieldError>,
    class_warning: Option<String>,
}

impl ByClass {
    /// Pure. Without a class only what is wrong under any class is found. A class that is not accepted is warned of, as
    /// waiting may cure it, but counts all the same; one whose own spec is faulty does not: it would refuse every Job
    /// for a fault that is not the Job's.
    fn of(spec: &JobSpec, name: &str, class: Option<&JobClass>, namespace: &str, meta: &NamespaceMeta) -> Self {
        let class = class.filter(|class| class.metadata.deletion_timestamp.is_none());
        let sound = class.filter(|class| class_policy::errors(&class.spec).is_empty());
        let mut faults = Vec::new();
        if sound.is_some_and(|class| !namespace::is_allowed(&class.spec, &meta.labels)) {
            faults.push(namespace::not_allowed(name, namespace));
        }
        let policy = sound.and_then(|class| class.spec.resources.as_ref());
        faults.extend(resources::effective(spec.resources.as_ref(), policy, name).err().into_iter().flatten());
        let class_warning = match class {
            _ if name.is_empty() => None,
            None => Some(format!("JobClass {name:?} does not exist: the Job waits until it does")),
            Some(class) if !conditions::is_true(class.conditions(), ACCEPTED) => {
                let condition = conditions::find(class.conditions(), ACCEPTED);
                let reason = condition.map_or("not looked at yet", |condition| &condition.reason);
                Some(format!("JobClass {name:?} is not accepted ({reason}): the Job waits until it is"))
            }
            Some(_) => None,
        };
        Self { faults, class_warning }
    }
}

fn is_of_namespace(fault: &FieldError) -> bool {
    fault.field == "spec.jobClassName"
}

/// An UPDATE: nothing is refused, some things are worth a warning.
fn update(object: &RawValue, old: &RawValue) -> Answer {
    let (new_outline, old_outline) = (Outline::of(object), Outline::of(old));
    if old_outline.is_deleting() || new_outline.same_spec(&old_outline) {
        return Answer::allowed();
    }
    let new = match serde_json::from_str::<Sent>(object.get()) {
        Ok(new) => new,
        Err(error) => return undecodable(&error),
    };
    // What was stored under an older schema and cannot be read any more has nothing to be compared with.
    let Ok(held) = serde_json::from_str::<Held>(old.get()) else { return Answer::allowed() };
    let mut warnings = Warnings::default();
    if new.spec.ttl_seconds_after_finished != held.spec.ttl_seconds_after_finished {
        warn_of_ttl(&new.spec, &mut warnings);
    }
    let cancelled =
        new.spec.desired_state == DesiredState::Cancelled && held.spec.desired_state != DesiredState::Cancelled;
    if cancelled && held.status.completion_time.is_some() {
        warnings.add("the Job is over already: cancelling it changes nothing");
    }
    Answer::patched(json_patch::Patch::default(), warnings)
}

fn undecodable(error: &serde_json::Error) -> Answer {
    Answer::bad_request(format!("cannot read the Job: {error}"))
}

fn warn_of_image(spec: &JobSpec, warnings: &mut Warnings) {
    if image::is_latest(&spec.task.image) {
        warnings.add("spec.task.image has the tag latest: it may name another image tomorrow; a digest does not");
    }
}

fn warn_of_ttl(spec: &JobSpec, warnings: &mut Warnings) {
    if spec.ttl_seconds_after_finished == Some(0) {
        warnings.add("spec.ttlSecondsAfterFinished is 0: the Job and its result are gone as soon as it is over");
    }
}

#[cfg(test)]
#[path = "job_validate_tests.rs"]
mod tests;
