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
use crate::unchecked_job::{Present, UncheckedJob};
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
        let Some(object) = request.object.map(UncheckedJob::of) else { return Answer::allowed() };
        match (request.operation, request.old_object) {
            (Operation::Create, _) => {
                let class = if object.lacks_class() { self.default_class(request).await } else { None };
                let filling = Filling {
                    class: class.as_deref(),
                    ttl: self.policy.ttl.default,
                    trace: request.arrival.trace.as_ref(),
                    guarded: true,
                };
                Answer::patched(patch(&object, &filling), Warnings::default())
            }
            (Operation::Update, Some(old)) => {
                let old = UncheckedJob::of(old);
                let (class, has_ttl) = (old.class(), old.spec.is_some() && !old.lacks_ttl());
                let filling = Filling {
                    class: class.as_deref(),
                    // A TTL that is taken away is one that is not given; a Job that never had one is left as it is.
                    ttl: self.policy.ttl.default.filter(|_| has_ttl && !old.is_deleting()),
                    trace: None,
                    guarded: !old.is_deleting(),
                };
                Answer::patched(patch(&object, &filling), Warnings::default())
            }
            _ => Answer::allowed(),
        }
    }

    /// The name to write. A Job without a class is admitted: it waits, and the controller finds a default that comes
    /// later.
    async fn default_class(&self, request: &Request<'_>) -> Option<String> {
        match look_up(&*self.lookups, request).await {
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
fn patch(object: &UncheckedJob<'_>, filling: &Filling<'_>) -> Patch {
    let mut missing = Missing::default();
    if let Some(class) = filling.class.filter(|class| !class.is_empty() && object.lacks_class()) {
        missing.add(&["spec", "jobClassName"], json!(class));
    }
    if let Some(ttl) = filling.ttl.filter(|_| object.lacks_ttl()) {
        missing.add(&["spec", "ttlSecondsAfterFinished"], json!(ttl));
    }
    if let Some(metadata) = &object.metadata {
        if filling.guarded {
            missing.add_finalizer(metadata.finalizer());
        }
        if let Some(trace) = filling.trace {
            missing.add_trace(metadata.trace(), trace);
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

    fn add_finalizer(&mut self, present: Present) {
        match present {
            Present::Absent => self.add(&["metadata", "finalizers"], json!([JOB_CLEANUP_FINALIZER])),
            Present::Lacking => self.add(&["metadata", "finalizers", "-"], json!(JOB_CLEANUP_FINALIZER)),
            Present::Settled => {}
        }
    }

    /// Both annotations or none: a state means nothing beside another parent.
    fn add_trace(&mut self, present: Present, trace: &TraceContext) {
        let state = trace.tracestate().map(|state| (TRACESTATE_ANNOTATION, state));
        let ours = [(TRACEPARENT_ANNOTATION, trace.traceparent())].into_iter().chain(state);
        match present {
            Present::Absent => {
                let all: serde_json::Map<_, _> = ours.map(|(key, value)| (key.to_owned(), json!(value))).collect();
                self.add(&["metadata", "annotations"], Value::Object(all));
            }
            Present::Lacking => ours.for_each(|(key, value)| self.add(&["metadata", "annotations", key], json!(value))),
            Present::Settled => {}
        }
    }
}

#[cfg(test)]
#[path = "job_default_tests.rs"]
mod tests;
