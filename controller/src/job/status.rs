//! The status after a step, as values. A status is built on the present one, so that nothing is ever dropped from it.

use ayatori_crds::{
    ConditionStatus, Job, JobStatus,
    conditions::{self, ACCEPTED, DUPLICATE_EXECUTION, SCHEDULED, STALLED, STOPPING, SUCCEEDED, Wanted, reason},
    job::{Execution, JobResult, Reference},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::accept::{Accepted, Refusal};
use crate::backend::{End, NOTHING_KNOWN, Observation, StartFailure};

/// What `DuplicateExecution` says.
const SEVERAL_PROCESSES: &str = "more than one process was seen";

/// A status that is being written.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    status: JobStatus,
    generation: Option<i64>,
    created: Timestamp,
    now: Timestamp,
}

impl Draft {
    /// Starts from what stands in the Job.
    pub(super) fn of(job: &Job, now: Timestamp) -> Self {
        let mut status = job.status.clone().unwrap_or_default();
        status.observed_generation = job.metadata.generation;
        let created = job.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
        Self { status, generation: job.metadata.generation, created, now }
    }

    /// More than one process was seen: that is remembered, and told in every message from then on (spec E2).
    pub(super) fn copies(self, seen: &Observation) -> Self {
        let several = matches!(seen, Observation::Present(execution) if execution.copies > 1);
        if !several || self.is_duplicated() {
            return self;
        }
        self.condition(DUPLICATE_EXECUTION, ConditionStatus::True, reason::DUPLICATE_EXECUTION, SEVERAL_PROCESSES)
    }

    fn is_duplicated(&self) -> bool {
        conditions::is_true(&self.status.conditions, DUPLICATE_EXECUTION)
    }

    /// The finished status; None where the Job has it already, so that an idle Job costs no write (I12).
    pub(super) fn changed(self, job: &Job) -> Option<JobStatus> {
        (job.status.as_ref() != Some(&self.status)).then_some(self.status)
    }

    fn outcome(self, status: ConditionStatus, reason: &str, message: &str) -> Self {
        let message = match self.is_duplicated() {
            true => format!("{DUPLICATE_EXECUTION}: {SEVERAL_PROCESSES}; {message}"),
            false => message.to_owned(),
        };
        self.condition(SUCCEEDED, status, reason, message)
    }

    fn condition(mut self, type_: &str, status: ConditionStatus, reason: &str, message: impl Into<String>) -> Self {
        let wanted = Wanted { type_, status, reason, message: message.into() };
        conditions::set(&mut self.status.conditions, wanted, self.generation, self.now);
        self
    }

    /// Not accepted (yet).
    pub(super) fn refused(self, refusal: &Refusal) -> Self {
        self.condition(ACCEPTED, ConditionStatus::False, refusal.reason, refusal.message.as_str())
            .undecided(reason::PENDING, "waiting to be accepted")
    }

    /// Accepted, with what is pinned by it and the adapter that will run it (spec C2, D2), in one write.
    pub(super) fn accepted(mut self, accepted: Accepted, adapter: &str) -> Self {
        let message = format!("accepted with JobClass {:?}", accepted.class.name);
        self.status.resolved_job_class = Some(accepted.class);
        self.status.effective_resources = Some(accepted.resources);
        self.status.execution = Some(Execution { adapter: adapter.to_owned(), references: vec![] });
        self.condition(ACCEPTED, ConditionStatus::True, reason::VALID, message)
            .undecided(reason::SCHEDULING, "its execution is being created")
    }

    /// Accepted, but it cannot be scheduled now.
    pub(super) fn unschedulable(self, reason: &str, message: &str) -> Self {
        self.condition(SCHEDULED, ConditionStatus::False, reason, message).undecided(reason::SCHEDULING, message)
    }

    /// The execution exists: its identifier is recorded with `Scheduled=True` in one write (spec A9, D3).
    pub(super) fn scheduled(mut self, reference_type: &str, id: &str) -> Self {
        let references = self.status.execution.get_or_insert_default();
        references.references.push(Reference { type_: reference_type.to_owned(), id: id.to_owned() });
        self.condition(SCHEDULED, ConditionStatus::True, reason::BACKEND_CREATED, "its execution exists")
            .undecided(reason::SCHEDULING, NOTHING_KNOWN)
    }

    /// Not over. The condition is never absent once the controller has seen the Job (spec C4).
    pub(super) fn undecided(self, reason: &str, message: &str) -> Self {
        self.outcome(ConditionStatus::Unknown, reason, message)
    }

    /// When the main process started; the first word stays (I3). Clamped to [creation, now] (spec section 6).
    pub(super) fn started(mut self, started_at: Timestamp) -> Self {
        if self.status.start_time.is_none() {
            let clamped = started_at.min(self.now).max(self.created);
            self.status.start_time = Some(whole_seconds(clamped));
        }
        self.progressed("the task started")
    }

    /// Released, but the backend fails to start it: by what, and since when (spec A10, E1).
    pub(super) fn stalled(self, failure: StartFailure, why: &str) -> Self {
        let before = conditions::find(&self.status.conditions, STALLED);
        let before = before.and_then(|stalled| StartFailure::of_reason(&stalled.reason));
        let draft = match before {
            // From a pull to what comes after it: its time counts anew.
            Some(before) if before.verdict() != failure.verdict() => self.progressed("the image was pulled"),
            _ => self,
        };
        draft.condition(STALLED, ConditionStatus::True, failure.reason(), why).undecided(reason::SCHEDULING, why)
    }

    /// A ruling that does not count is taken back, with what it said.
    pub(super) fn turned_down(self, ruling: &str, message: &str) -> Self {
        self.condition(ruling, ConditionStatus::False, reason::NOT_RESULT_UNKNOWN, message)
    }

    /// What it was stalled by is overcome. Conditions are never removed.
    fn progressed(self, message: &str) -> Self {
        if !conditions::is_true(&self.status.conditions, STALLED) {
            return self;
        }
        self.condition(STALLED, ConditionStatus::False, reason::PROGRESSING, message)
    }

    /// Why we stop it, before the stop is sent (spec A10); the first cause stays.
    pub(super) fn stopping(self, cause: &str, message: &str) -> Self {
        if conditions::find(&self.status.conditions, STOPPING).is_some() {
            return self;
        }
        self.condition(STOPPING, ConditionStatus::True, cause, message)
    }

    /// Over, by the evidence.
    pub(super) fn ended(self, end: &End) -> Self {
        let draft = match end.started_at {
            Some(started_at) => self.started(started_at),
            None => self,
        };
        draft.over(end.success, end.reason, &end.message, end.exit_code)
    }

    /// Over: the one terminal write.
    pub(super) fn over(mut self, success: bool, reason: &str, message: &str, exit_code: Option<i32>) -> Self {
        let now = whole_seconds(self.now);
        self.status.completion_time = self.status.start_time.clone().max(Some(now));
        self.status.result = Some(JobResult { exit_code, reason: Some(reason.to_owned()) });
        let status = if success { ConditionStatus::True } else { ConditionStatus::False };
        self.outcome(status, reason, message)
    }
}

/// Whether a write tells for the first time that more than one process was seen (spec E2).
pub(crate) fn becomes_duplicated(before: &Job, after: &Job) -> bool {
    let is_duplicated = |job: &Job| conditions::is_true(job.conditions(), DUPLICATE_EXECUTION);
    !is_duplicated(before) && is_duplicated(after)
}

/// `metav1.Time` carries whole seconds.
fn whole_seconds(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}
