//! Defaulting of Jobs (spec B1, B5 to B7): the default class, the platform's TTL, the trace of the request, and the
//! finalizer that guards the cleanup.
//!
//! It runs before the schema is checked, so an object may have any shape. What is not understood is left as it is; the
//! schema will say what is wrong with it.

use std::sync::Arc;

use ayatori_crds::TraceContext;
use ayatori_crds::names::{GROUP, JOB_CLEANUP_FINALIZER, TRACEPARENT_ANNOTATION, TRACESTATE_ANNOTATION, VERSION};
use ayatori_crds::rules::Policy;
use ayatori_crds::rules::default_class::DefaultClass;
use futures::FutureExt;
use futures::future::BoxFuture;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation};
use serde_json::{Value, json};

use crate::default_lookup::look_up;
use crate::lookups::Lookups;
use crate::{Answer, Operation, Request, Review, Warnings};

/// Serves [`crate::configuration::MUTATE_JOBS`].
#[derive(Debug)]
pub struct JobDefaulting {
    lookups: Arc<dyn Lookups>,
    policy: Policy,
}

impl JobDefaulting {
    /// Finds default classes by `lookups`, and the default TTL in `policy`.
    #[must_use]
    pub fn new(lookups: Arc<dyn Lookups>, policy: Policy) -> Self {
        Self { lookups, policy }
    }

    async fn answer(&self, request: &Request<'_>) -> Answer {
        let parse = |raw: &serde_json::value::RawValue| serde_json::from_str::<Value>(raw.get()).ok();
        let Some(object) = request.object.and_then(parse) else { return Answer::allowed() };
        match (request.operation, request.old_object.and_then(parse)) {
            (Operation::Create, _) => {
                let class = if lacks_class(&object) { self.default_class(&request.namespace).await } else { None };
                let filling = Filling {
                    class: class.as_deref(),
                    ttl: self.policy.ttl.default,
                    trace: request.arrival.trace.as_ref(),
                    guarded: true,
                };
                Answer::patched(patch(&object, &filling), Warnings::default())
            }
            (Operation::Update, Some(old)) => {
                let has = |pointer| old.pointer(pointer).is_some_and(|value| !value.is_null());
                let deleting = has("/metadata/deletionTimestamp");
                let filling = Filling {
                    class: old.pointer("/spec/jobClassName").and_then(Value::as_str),
                    // A TTL that is taken away is one that is not given; a Job that never had one is left as it is.
                    ttl: self.policy.ttl.default.filter(|_| has("/spec/ttlSecondsAfterFinished") && !deleting),
                    trace: None,
                    guarded: !deleting,
                };
                Answer::patched(patch(&object, &filling), Warnings::default())
            }
            _ => Answer::allowed(),
        }
    }

    /// The name to write. A Job without a class is admitted: it waits, and the controller finds a default that comes
    /// later.
    async fn default_class(&self, namespace: &str) -> Option<String> {
        match look_up(&*self.lookups, namespace).await {
            Ok(DefaultClass::Named(name)) => Some(name),
            Ok(DefaultClass::None | DefaultClass::Ambiguous(_)) => None,
            Err(error) => {
                tracing::warn!(%error, "default class not looked up");
                None
            }
        }
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

/// What is written where nothing is given.
#[derive(Debug, Default)]
struct Filling<'a> {
    class: Option<&'a str>,
    ttl: Option<i32>,
    trace: Option<&'a TraceContext>,
    /// Whether the finalizer must be there.
    guarded: bool,
}

/// What is missing of the filling, and nothing else. Applied to its own outcome it is empty.
fn patch(object: &Value, filling: &Filling<'_>) -> Patch {
    let mut missing = Missing::default();
    if let Some(class) = filling.class.filter(|class| !class.is_empty() && lacks_class(object)) {
        missing.add(&["spec", "jobClassName"], json!(class));
    }
    if let (Some(ttl), Some(spec)) = (filling.ttl, object.get("spec").and_then(Value::as_object))
        && spec.get("ttlSecondsAfterFinished").is_none_or(Value::is_null)
    {
        missing.add(&["spec", "ttlSecondsAfterFinished"], json!(ttl));
    }
    if let Some(metadata) = object.get("metadata").and_then(Value::as_object) {
        if filling.guarded {
            missing.add_finalizer(metadata.get("finalizers"));
        }
        if let Some(trace) = filling.trace {
            missing.add_trace(metadata.get("annotations"), trace);
        }
    }
    Patch(missing.0)
}

/// The operations of a patch. Each adds something where nothing is.
#[derive(Default)]
struct Missing(Vec<PatchOperation>);

impl Missing {
    fn add(&mut self, path: &[&str], value: Value) {
        let path = PointerBuf::from_tokens(path.iter().copied());
        self.0.push(PatchOperation::Add(AddOperation { path, value }));
    }

    fn add_finalizer(&mut self, present: Option<&Value>) {
        match present {
            None | Some(Value::Null) => self.add(&["metadata", "finalizers"], json!([JOB_CLEANUP_FINALIZER])),
            Some(Value::Array(list)) if !list.iter().any(|held| held == JOB_CLEANUP_FINALIZER) => {
                self.add(&["metadata", "finalizers", "-"], json!(JOB_CLEANUP_FINALIZER));
            }
            Some(_) => {}
        }
    }

    /// Both annotations or none: a state means nothing beside another parent.
    fn add_trace(&mut self, present: Option<&Value>, trace: &TraceContext) {
        let state = trace.tracestate().map(|state| (TRACESTATE_ANNOTATION, state));
        let ours = [(TRACEPARENT_ANNOTATION, trace.traceparent())].into_iter().chain(state);
        match present {
            None | Some(Value::Null) => {
                let all: serde_json::Map<_, _> = ours.map(|(key, value)| (key.to_owned(), json!(value))).collect();
                self.add(&["metadata", "annotations"], Value::Object(all));
            }
            Some(Value::Object(given))
                if !given.contains_key(TRACEPARENT_ANNOTATION) && !given.contains_key(TRACESTATE_ANNOTATION) =>
            {
                ours.for_each(|(key, value)| self.add(&["metadata", "annotations", key], json!(value)));
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
#[path = "job_default_tests.rs"]
mod tests;
