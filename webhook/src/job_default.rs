//! Defaulting of Jobs (spec B1, B5 to B7): the default class, and the finalizer that guards the cleanup.
//!
//! It runs before the schema is checked, so an object may have any shape. What is not understood is left as it is; the
//! schema will say what is wrong with it.

use std::sync::Arc;

use ayatori_crds::names::{GROUP, JOB_CLEANUP_FINALIZER, VERSION};
use ayatori_crds::rules::default_class::{DefaultClass, default_class};
use futures::FutureExt;
use futures::future::BoxFuture;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation};
use serde_json::{Value, json};

use crate::lookups::{self, Freshness, LookupError, Lookups};
use crate::warnings::{Warnings, first_few};
use crate::{Answer, Operation, Request, Review};

/// Serves [`crate::configuration::MUTATE_JOBS`].
#[derive(Debug)]
pub struct JobDefaulting {
    lookups: Arc<dyn Lookups>,
}

impl JobDefaulting {
    /// Finds default classes by `lookups`.
    #[must_use]
    pub fn new(lookups: Arc<dyn Lookups>) -> Self {
        Self { lookups }
    }

    async fn answer(&self, request: &Request<'_>) -> Answer {
        let parse = |raw: &serde_json::value::RawValue| serde_json::from_str::<Value>(raw.get()).ok();
        let Some(object) = request.object.and_then(parse) else { return Answer::allowed() };
        match (request.operation, request.old_object.and_then(parse)) {
            (Operation::Create, _) => {
                let mut warnings = Warnings::default();
                let class = if lacks_class(&object) {
                    self.default_class(&request.namespace, &mut warnings).await
                } else {
                    None
                };
                Answer::patched(patch(&object, class.as_deref(), true), warnings)
            }
            (Operation::Update, Some(old)) => {
                let class = old.pointer("/spec/jobClassName").and_then(Value::as_str);
                let deleting = old.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null());
                Answer::patched(patch(&object, class, !deleting), Warnings::default())
            }
            _ => Answer::allowed(),
        }
    }

    /// The name to write, or a warning that says why there is none. A Job without a class is admitted: it waits, and
    /// the controller finds a default that comes later.
    async fn default_class(&self, namespace: &str, warnings: &mut Warnings) -> Option<String> {
        let mut found = self.look_up(namespace, Freshness::Stored).await;
        if !matches!(found, Ok(DefaultClass::Named(_))) {
            // The store may not have seen yet what was annotated a moment ago.
            found = self.look_up(namespace, Freshness::Live).await;
        }
        match found {
            Ok(DefaultClass::Named(name)) => return Some(name),
            Ok(DefaultClass::None) => warnings.add(
                "spec.jobClassName is not set and neither the namespace nor the cluster has a default: the Job waits",
            ),
            Ok(DefaultClass::Ambiguous(names)) => warnings.add(&format!(
                "spec.jobClassName is not set and several classes are the default ({}): the Job waits",
                first_few(&names)
            )),
            Err(error) => {
                tracing::warn!(%error, "default class not looked up");
                warnings.add("spec.jobClassName is not set and the default could not be looked up: the Job waits");
            }
        }
        None
    }

    async fn look_up(&self, namespace: &str, freshness: Freshness) -> Result<DefaultClass, LookupError> {
        let namespace = lookups::namespace(&*self.lookups, namespace, freshness).await?;
        let classes = lookups::classes(&*self.lookups, freshness).await?;
        Ok(default_class(&namespace.annotations, classes.iter().map(|class| &**class)))
    }
}

impl Review for JobDefaulting {
    fn resource(&self) -> [&str; 3] {
        [GROUP, VERSION, "jobs"]
    }

    fn review<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Answer> {
        self.answer(request).boxed()
    }
}

/// Whether there is a spec that names no class; an empty name is none.
fn lacks_class(object: &Value) -> bool {
    object.get("spec").and_then(Value::as_object).is_some_and(|spec| match spec.get("jobClassName") {
        None | Some(Value::Null) => true,
        Some(name) => name == "",
    })
}

/// What is missing of a class and of the finalizer, and nothing else. Applied to its own outcome it is empty.
fn patch(object: &Value, class: Option<&str>, guarded: bool) -> Patch {
    let mut operations = Vec::new();
    let mut add = |path: &[&str], value: Value| {
        let path = PointerBuf::from_tokens(path.iter().copied());
        operations.push(PatchOperation::Add(AddOperation { path, value }));
    };
    if let Some(class) = class.filter(|class| !class.is_empty() && lacks_class(object)) {
        add(&["spec", "jobClassName"], json!(class));
    }
    if let Some(metadata) = object.get("metadata").and_then(Value::as_object).filter(|_| guarded) {
        match metadata.get("finalizers") {
            None | Some(Value::Null) => add(&["metadata", "finalizers"], json!([JOB_CLEANUP_FINALIZER])),
            Some(Value::Array(list)) if !list.iter().any(|held| held == JOB_CLEANUP_FINALIZER) => {
                add(&["metadata", "finalizers", "-"], json!(JOB_CLEANUP_FINALIZER));
            }
            Some(_) => {}
        }
    }
    Patch(operations)
}

#[cfg(test)]
#[path = "job_default_tests.rs"]
mod tests;
