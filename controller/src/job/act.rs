//! Carries decisions out: one request a step, each decided afresh on the view as the last answer left it.

use std::{sync::Arc, time::Duration};

use ayatori_crds::{
    Job, JobState,
    conditions::{SUCCEEDED, find},
    names::JOB_CLEANUP_FINALIZER,
};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

use super::{
    decide::{Step, decide, is_released},
    gather::Seen,
    options::Options,
    references::{Answer, READ_LIMIT, Reference},
    status::becomes_duplicated,
    view::View,
};
use crate::{
    backend::{Backend, Observation},
    call::{CallError, bounded, found},
    clock::Clock,
    metrics::Metrics,
    patch, references,
    stores::{NamespaceMetadata, Stores},
    telemetry::Telemetry,
    write,
};

/// Steps that one visit may take: the longest way takes 8, and a look at each reference. More would be a loop, and backs
/// off as a failure.
const STEPS_A_VISIT: usize = 16 + READ_LIMIT;

/// What a visit needs.
pub struct JobController {
    client: Client,
    stores: Stores,
    backend: Arc<dyn Backend>,
    options: Options,
    clock: Clock,
    telemetry: Telemetry,
}

impl std::fmt::Debug for JobController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobController").field("adapter", &self.backend.adapter()).finish_non_exhaustive()
    }
}

/// What a step changed in what is seen.
enum Outcome {
    /// The Job as it was answered; None where it is gone.
    Job(Option<Box<Job>>),
    /// The namespace as it was answered.
    Namespace(NamespaceMetadata),
    /// The execution as it was answered.
    Observation(Observation),
    /// What a Secret or ConfigMap has.
    Reference(Reference, Answer),
    /// What the backend's records say of an execution that shows nothing.
    Explanation(String),
    /// Nothing more to do before this long, or before something changes.
    Rest(Option<Duration>),
}

impl JobController {
    /// A controller that runs Jobs on `backend`.
    #[must_use]
    pub fn new(
        client: Client,
        stores: Stores,
        backend: Arc<dyn Backend>,
        options: Options,
        clock: Clock,
        telemetry: Telemetry,
    ) -> Self {
        Self { client, stores, backend, options, clock, telemetry }
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.telemetry.metrics
    }

    /// Looks at a Job and takes steps until there is nothing to do now. Answers how long to wait, if a time is known.
    ///
    /// # Errors
    /// The failure of the one request that failed. Nothing is retried here: the next look decides again.
    pub async fn visit(&self, job: Arc<Job>) -> Result<Option<Duration>, CallError> {
        let mut seen = Seen::of(job);
        for _ in 0..STEPS_A_VISIT {
            let decided = |view: &View<'_>| decide(view, self.clock.now());
            let step = seen.view(&self.stores, self.backend.as_ref(), &self.options, decided);
            let job = &seen.job;
            tracing::debug!(namespace = job.namespace(), name = job.name_any(), ?step, "decided");
            let live = step == Step::ReadExecution;
            let of_backend = live || matches!(step, Step::Backend(_));
            let outcome = match self.take(job, step).await {
                // Who was released does not wait for a backend that is away.
                Err(error) if of_backend && is_released(job) => {
                    tracing::warn!(namespace = job.namespace(), name = job.name_any(), %error, "abandoning an execution");
                    seen.backend_fails = true;
                    continue;
                }
                answer => answer?,
            };
            match outcome {
                Outcome::Job(Some(answered)) if answered.metadata.uid == job.metadata.uid => {
                    log_transition(job, &answered);
                    (seen.job, seen.job_is_live) = (Arc::from(answered), true);
                }
                // Gone, or another Job of the same name: that one has a visit of its own (I10).
                Outcome::Job(_) => return Ok(None),
                Outcome::Namespace(namespace) => seen.namespace = Some(namespace),
                // The answer of a request shows one object; only a look shows all of the execution.
                Outcome::Observation(answered) => {
                    (seen.observation, seen.observation_is_live) = (Some(answered), live);
                    // Before another request the Job is read again (D6).
                    seen.job_is_live &= live;
                }
                Outcome::Reference(reference, answer) => drop(seen.references.insert(reference, answer)),
                Outcome::Explanation(text) => seen.explanation = Some(text),
                Outcome::Rest(wait) => return Ok(wait.or_else(|| look_again(job))),
            }
        }
        Err(CallError::Unsettled(STEPS_A_VISIT))
    }

    async fn take(&self, job: &Job, step: Step) -> Result<Outcome, CallError> {
        match step {
            Step::Wait => Ok(Outcome::Rest(None)),
            Step::WaitUntil(time) => {
                let wait = time.duration_since(self.clock.now());
                Ok(Outcome::Rest(Some(Duration::try_from(wait).unwrap_or_default())))
            }
            Step::ReadJob => {
                let live = found(bounded(self.jobs(job).get(&job.name_any())).await)?;
                Ok(Outcome::Job(live.map(Box::new)))
            }
            Step::ReadNamespace => {
                let namespaces = Api::<NamespaceMetadata>::all(self.client.clone());
                let live = found(bounded(namespaces.get(&job.namespace().unwrap_or_default())).await)?;
                Ok(Outcome::Namespace(live.unwrap_or_default()))
            }
            Step::ReadReference(reference, keys) => {
                let namespace = job.namespace().unwrap_or_default();
                let answer = references::read(&self.client, &namespace, &reference, &keys).await?;
                Ok(Outcome::Reference(reference, answer))
            }
            Step::ReadExecution => self.backend.read(job).await.map(Outcome::Observation),
            Step::AskWhy(id) => self.backend.explain(job, &id).await.map(Outcome::Explanation),
            Step::Backend(request) => self.backend.send(job, request).await.map(Outcome::Observation),
            Step::WriteStatus(status) => {
                let written = write::status(&self.jobs(job), &job.metadata, &status).await?;
                if let Some(written) = &written {
                    let Telemetry { events, metrics } = &self.telemetry;
                    events.tell(written, job.conditions(), written.conditions(), self.clock.now());
                    metrics.job_written(job, written);
                }
                Ok(Outcome::Job(written.map(Box::new)))
            }
            Step::AddFinalizer => self.patch(job, patch::add_finalizer(&job.metadata, JOB_CLEANUP_FINALIZER)).await,
            Step::RemoveFinalizer => match patch::remove_finalizer(&job.metadata, JOB_CLEANUP_FINALIZER) {
                Some(operations) => self.patch(job, operations).await,
                None => Ok(Outcome::Rest(None)),
            },
        }
    }

    async fn patch(&self, job: &Job, operations: Value) -> Result<Outcome, CallError> {
        let answer = write::operations(&self.jobs(job), &job.name_any(), operations).await?;
        Ok(Outcome::Job(answer.map(Box::new)))
    }

    fn jobs(&self, job: &Job) -> Api<Job> {
        Api::namespaced(self.client.clone(), &job.namespace().unwrap_or_default())
    }
}

/// How often a Job that is not over is looked at without a change: a watch may have lost the one that matters. It costs
/// no request where nothing changed.
const LOOK_AGAIN: Duration = Duration::from_secs(600);

/// When to look again at a Job for which nothing is to be done: spread by its UID, so that all of them do not come at
/// once.
fn look_again(job: &Job) -> Option<Duration> {
    let spread = job.metadata.uid.iter().flat_map(|uid| uid.bytes()).map(u64::from).sum::<u64>() % 60;
    (!JobState::of(job).is_terminal()).then(|| LOOK_AGAIN + Duration::from_secs(spread))
}

/// One line a transition, and one where more than one process was seen.
fn log_transition(before: &Job, after: &Job) {
    let (from, to) = (JobState::of(before), JobState::of(after));
    let (namespace, name, uid) = (after.namespace(), after.name_any(), after.uid());
    if from != to {
        let reason = find(after.conditions(), SUCCEEDED).map(|condition| condition.reason.as_str());
        tracing::info!(namespace, name, uid, ?from, ?to, reason, "transition");
    }
    if becomes_duplicated(before, after) {
        tracing::warn!(namespace, name, uid, "more than one process was seen for one Job");
    }
}
