//! Validation of JobClasses (spec B8).

use std::collections::BTreeMap;
use std::sync::Arc;

use ayatori_crds::JobClassSpec;
use ayatori_crds::names::{CONTROLLER_DOMAIN, GROUP, IS_DEFAULT_JOB_CLASS_ANNOTATION, VERSION};
use ayatori_crds::rules::default_class::is_marked_default;
use ayatori_crds::rules::{class_policy, same_spec};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answer::Subject;
use crate::lookups::{self, Freshness, Lookups};
use crate::outline::Outline;
use crate::warnings::first_few;
use crate::{Answer, Operation, Request, Review, Warnings};

/// Serves [`crate::configuration::VALIDATE_JOB_CLASSES`].
#[derive(Debug)]
pub struct JobClassValidation {
    lookups: Arc<dyn Lookups>,
    served: Vec<String>,
}

impl JobClassValidation {
    /// `served` are the controller names of the adapters that run here; a class of our domain with another one is
    /// admitted with a warning.
    #[must_use]
    pub fn new(lookups: Arc<dyn Lookups>, served: Vec<String>) -> Self {
        Self { lookups, served }
    }

    async fn answer(&self, request: &Request<'_>) -> Answer {
        let Some(object) = request.object else { return Answer::allowed() };
        let old = request.old_object.filter(|_| request.operation == Operation::Update);
        let mut warnings = Warnings::default();
        // A spec that did not change is not judged again: rules that became stricter lock no existing class, and its
        // finalizer may go whatever it says.
        if !old.is_some_and(|old| Outline::of(object).same_text(&Outline::of(old))) {
            let spec = match serde_json::from_str::<Sent>(object.get()) {
                Ok(Sent { spec }) => spec,
                Err(error) => return Answer::bad_request(format!("cannot read the JobClass: {error}")),
            };
            let held = old.and_then(|old| serde_json::from_str::<Sent>(old.get()).ok());
            if !held.is_some_and(|held| same_spec::of_classes(&spec, &held.spec)) {
                let faults = class_policy::errors(&spec);
                if !faults.is_empty() {
                    return Answer::invalid(&Subject::of(request), &faults);
                }
                self.warn_of_controller(&spec.controller_name, &mut warnings);
            }
        }
        if is_default(object) && !old.is_some_and(is_default) {
            self.warn_of_other_defaults(&request.name, &mut warnings).await;
        }
        Answer::patched(json_patch::Patch::default(), warnings)
    }

    fn warn_of_controller(&self, controller: &String, warnings: &mut Warnings) {
        if controller.starts_with(CONTROLLER_DOMAIN) && !self.served.contains(controller) {
            warnings.add(&format!("no adapter here serves {controller:?}: if none elsewhere does, its Jobs wait"));
        }
    }

    /// `name` may be empty, of a class that is made from a `generateName`: it is not stored yet and no other one.
    async fn warn_of_other_defaults(&self, name: &str, warnings: &mut Warnings) {
        // It is a rare edit and a costly mistake, so what the store has not seen yet counts. Where the API server does not
        // tell, the store does.
        let live = lookups::classes(&*self.lookups, Freshness::Live).await;
        let classes = live.unwrap_or_else(|_| self.lookups.classes());
        let mut others: Vec<&str> = classes
            .iter()
            .filter(|class| is_marked_default(class))
            .filter_map(|class| class.metadata.name.as_deref())
            .filter(|other| *other != name)
            .collect();
        others.sort_unstable();
        if !others.is_empty() {
            warnings.add(&format!(
                "{} is the default already: with several, Jobs without a class wait",
                first_few(&others)
            ));
        }
    }
}

impl Review for JobClassValidation {
    fn resource(&self) -> [&str; 3] {
        [GROUP, VERSION, "jobclasses"]
    }

    fn review<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Answer> {
        self.answer(request).boxed()
    }
}

/// A JobClass as it is sent. Its status is nobody's business here.
#[derive(Deserialize)]
struct Sent {
    spec: JobClassSpec,
}

/// Whether an object is marked as the cluster's default; one that cannot be read is not.
fn is_default(object: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Marked {
        metadata: MarkedMetadata,
    }
    #[derive(Deserialize)]
    struct MarkedMetadata {
        annotations: BTreeMap<String, String>,
    }
    serde_json::from_str::<Marked>(object.get()).is_ok_and(|marked| {
        marked.metadata.annotations.get(IS_DEFAULT_JOB_CLASS_ANNOTATION).is_some_and(|mark| mark == "true")
    })
}

#[cfg(test)]
#[path = "job_class_tests.rs"]
mod tests;
