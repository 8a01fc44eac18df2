//! Carries decisions out: one request a step, each decided afresh on the view as the last answer left it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ayatori_crds::{
    Job, JobClass, JobState,
    names::JOB_CLEANUP_FINALIZER,
    rules::default_class::{DefaultClass, default_class},
};
use jiff::Timestamp;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    runtime::reflector::ObjectRef,
};
use serde_json::Value;

use super::{
    decide::{Step, decide},
    view::{ClassView, View},
};
use crate::{
    backend::{Backend, Observation, Settings},
    call::{CallError, bounded, found},
    patch,
    stores::{NamespaceMetadata, Stores},
};

/// Steps that one visit may take. The longest way takes 8; more would be a loop, and backs off as a failure.
const STEPS_A_VISIT: usize = 16;

/// What a visit needs.
pub struct JobController {
    client: Client,
    stores: Stores,
    backend: Arc<dyn Backend>,
}

impl std::fmt::Debug for JobController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobController").field("adapter", &self.backend.adapter()).finish_non_exhaustive()
    }
}

/// What is seen in this visit: the Job, and what answers have shown.
struct Seen {
    job: Arc<Job>,
    job_is_live: bool,
    /// Labels of the namespace; empty where it is gone.
    namespace: Option<BTreeMap<String, String>>,
    observation: Option<Observation>,
    observation_is_live: bool,
}

/// What a step changed in what is seen.
enum Outcome {
    /// The Job as it was answered; None where it is gone.
    Job(Option<Box<Job>>),
    /// The labels of the namespace as they were answered.
    Namespace(BTreeMap<String, String>),
    /// The execution as it was answered.
    Observation(Observation),
    /// Nothing more to do before this long, or before something changes.
    Rest(Option<Duration>),
}

/// The class of a Job, as the stores have it.
enum FoundClass {
    NoDefault,
    Ambiguous(Vec<String>),
    Named(String, Option<Arc<JobClass>>),
}

impl JobController {
    /// A controller that runs Jobs on `backend`.
    #[must_use]
    pub fn new(client: Client, stores: Stores, backend: Arc<dyn Backend>) -> Self {
        Self { client, stores, backend }
    }

    /// Looks at a Job and takes steps until there is nothing to do now. Answers how long to wait, if a time is known.
    ///
    /// # Errors
    /// The failure of the one request that failed. Nothing is retried here: the next look decides again.
    pub async fn visit(&self, job: Arc<Job>) -> Result<Option<Duration>, CallError> {
        let mut seen = Seen { job, job_is_live: false, namespace: None, observation: None, observation_is_live: false };
        for _ in 0..STEPS_A_VISIT {
            let step = self.next(&seen);
            let job = &seen.job;
            tracing::debug!(namespace = job.namespace(), name = job.name_any(), ?step, "decided");
            let live = step == Step::ReadExecution;
            match self.take(job, step).await? {
                Outcome::Job(Some(answered)) if answered.metadata.uid == job.metadata.uid => {
                    log_transition(job, &answered);
                    (seen.job, seen.job_is_live) = (Arc::from(answered), true);
                }
                // Gone, or another Job of the same name: that one has a visit of its own (I10).
                Outcome::Job(_) => return Ok(None),
                Outcome::Namespace(labels) => seen.namespace = Some(labels),
                // The answer of a request shows one object; only a look shows all of the execution.
                Outcome::Observation(answered) => (seen.observation, seen.observation_is_live) = (Some(answered), live),
                Outcome::Rest(wait) => return Ok(wait.or_else(|| look_again(job))),
            }
        }
        Err(CallError::Unsettled(STEPS_A_VISIT))
    }

    fn next(&self, seen: &Seen) -> Step {
        let job = seen.job.as_ref();
        let found = self.class_of(job);
        let class = match &found {
            FoundClass::NoDefault => ClassView::NoDefault,
            FoundClass::Ambiguous(names) => ClassView::AmbiguousDefault(names.clone()),
            FoundClass::Named(name, None) => ClassView::Absent(name.clone()),
            FoundClass::Named(_, Some(class)) => ClassView::Present(class),
        };
        let settings = match &class {
            ClassView::Present(class) => self.backend.settings(&class.spec.parameters_ref),
            _ => Settings::Missing,
        };
        let namespace = self.stores.namespaces.get(&ObjectRef::new(job.namespace().as_deref().unwrap_or_default()));
        let no_labels = BTreeMap::new();
        let stored_labels = namespace.as_ref().map(|found| found.metadata.labels.as_ref().unwrap_or(&no_labels));
        let view = View {
            job,
            job_is_live: seen.job_is_live,
            class,
            namespace_labels: seen.namespace.as_ref().or(stored_labels),
            namespace_is_live: seen.namespace.is_some(),
            settings,
            controller_name: self.backend.controller_name(),
            adapter: self.backend.adapter(),
            reference_type: self.backend.reference_type(),
            observation: seen.observation.clone().unwrap_or_else(|| self.backend.observe(job)),
            observation_is_live: seen.observation_is_live,
        };
        decide(&view, Timestamp::now())
    }

    /// What was resolved at acceptance; before that, what the Job or the defaults name.
    fn class_of(&self, job: &Job) -> FoundClass {
        let resolved = job.status.as_ref().and_then(|status| status.resolved_job_class.as_ref());
        let named = resolved.map(|class| class.name.clone()).or_else(|| job.spec.job_class_name.clone());
        let name = match named.filter(|name| !name.is_empty()) {
            Some(name) => name,
            None => {
                let namespace =
                    self.stores.namespaces.get(&ObjectRef::new(job.namespace().as_deref().unwrap_or_default()));
                let annotations = namespace.and_then(|found| found.metadata.annotations.clone()).unwrap_or_default();
                let classes = self.stores.classes.state();
                match default_class(&annotations, classes.iter().map(AsRef::as_ref)) {
                    DefaultClass::Named(name) => name,
                    DefaultClass::None => return FoundClass::NoDefault,
                    DefaultClass::Ambiguous(names) => return FoundClass::Ambiguous(names),
                }
            }
        };
        let class = self.stores.classes.get(&ObjectRef::new(&name));
        FoundClass::Named(name, class)
    }

    async fn take(&self, job: &Job, step: Step) -> Result<Outcome, CallError> {
        match step {
            Step::Wait => Ok(Outcome::Rest(None)),
            Step::WaitUntil(time) => {
                let wait = time.duration_since(Timestamp::now());
                Ok(Outcome::Rest(Some(Duration::try_from(wait).unwrap_or_default())))
            }
            Step::ReadJob => {
                let live = found(bounded(self.jobs(job).get(&job.name_any())).await)?;
                Ok(Outcome::Job(live.map(Box::new)))
            }
            Step::ReadNamespace => {
                let namespaces = Api::<NamespaceMetadata>::all(self.client.clone());
                let live = found(bounded(namespaces.get(&job.namespace().unwrap_or_default())).await)?;
                Ok(Outcome::Namespace(live.and_then(|namespace| namespace.metadata.labels).unwrap_or_default()))
            }
            Step::ReadExecution => self.backend.read(job).await.map(Outcome::Observation),
            Step::Backend(request) => self.backend.send(job, request).await.map(Outcome::Observation),
            Step::WriteStatus(status) => {
                let patch = Patch::Merge(patch::status(&job.metadata, &status));
                let jobs = self.jobs(job);
                let written =
                    found(bounded(jobs.patch_status(&job.name_any(), &PatchParams::default(), &patch)).await)?;
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
        let patch = patch::json_patch(operations)?;
        let jobs = self.jobs(job);
        let answer = found(bounded(jobs.patch(&job.name_any(), &PatchParams::default(), &patch)).await)?;
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

/// One line a transition.
fn log_transition(before: &Job, after: &Job) {
    let (from, to) = (JobState::of(before), JobState::of(after));
    if from != to {
        let conditions = after.conditions();
        let reason =
            ayatori_crds::conditions::find(conditions, ayatori_crds::conditions::SUCCEEDED).map(|c| c.reason.as_str());
        tracing::info!(
            namespace = after.namespace(),
            name = after.name_any(),
            uid = after.uid(),
            ?from,
            ?to,
            reason,
            "transition"
        );
    }
}
