//! Carries decisions out: one request a step, each decided afresh on the view as the last answer left it.

use std::{sync::Arc, time::Duration};

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
    stores::Stores,
};

/// Steps that one visit may take before it makes room for others. The longest way, from creation to release, takes 6.
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

/// What a step changed in what is seen.
enum Outcome {
    /// The Job as it was answered; None where it is gone.
    Job(Option<Box<Job>>),
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
        let mut job = job;
        let mut job_is_live = false;
        let mut observed: Option<Observation> = None;
        for _ in 0..STEPS_A_VISIT {
            let step = self.next(&job, job_is_live, observed.as_ref());
            tracing::debug!(namespace = job.namespace(), name = job.name_any(), ?step, "decided");
            match self.take(&job, step).await? {
                Outcome::Job(Some(answered)) if answered.metadata.uid == job.metadata.uid => {
                    log_transition(&job, &answered);
                    (job, job_is_live) = (Arc::from(answered), true);
                }
                // Gone, or another Job of the same name: that one has a visit of its own (I10).
                Outcome::Job(_) => return Ok(None),
                Outcome::Observation(answered) => observed = Some(answered),
                Outcome::Rest(wait) => return Ok(wait),
            }
        }
        Ok(Some(Duration::ZERO))
    }

    fn next(&self, job: &Job, job_is_live: bool, observed: Option<&Observation>) -> Step {
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
        let no_labels = std::collections::BTreeMap::new();
        let view = View {
            job,
            job_is_live,
            class,
            namespace_labels: namespace.as_ref().map(|found| found.metadata.labels.as_ref().unwrap_or(&no_labels)),
            settings,
            adapter: self.backend.adapter(),
            reference_type: self.backend.reference_type(),
            observation: observed.cloned().unwrap_or_else(|| self.backend.observe(job)),
            observation_is_live: observed.is_some(),
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
            Step::ReadExecution => self.backend.read(job).await.map(Outcome::Observation),
            Step::Backend(request) => self.backend.send(job, request).await.map(Outcome::Observation),
            Step::WriteStatus(status) => {
                let patch = Patch::Merge(patch::job_status(&job.metadata, &status));
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
        let operations = serde_json::from_value(operations).map_err(kube::Error::SerdeError)?;
        let patch = Patch::<()>::Json(operations);
        let jobs = self.jobs(job);
        let answer = found(bounded(jobs.patch(&job.name_any(), &PatchParams::default(), &patch)).await)?;
        Ok(Outcome::Job(answer.map(Box::new)))
    }

    fn jobs(&self, job: &Job) -> Api<Job> {
        Api::namespaced(self.client.clone(), &job.namespace().unwrap_or_default())
    }
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
