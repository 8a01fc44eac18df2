//! What is next for a Job: total and pure. One [`Step`] is at most one request.

use ayatori_crds::{
    Job, JobState, JobStatus,
    conditions::{self, STOPPING, reason},
    job::DesiredState,
    names::JOB_CLEANUP_FINALIZER,
};
use jiff::Timestamp;

use super::{
    accept,
    status::Draft,
    view::{ClassView, View},
};
use crate::backend::{End, Execution, Observation, Phase, Request, Settings};

/// The next step.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Put our finalizer on the Job (spec D2).
    AddFinalizer,
    /// Write this status, under the resourceVersion that was seen.
    WriteStatus(Box<JobStatus>),
    /// Send this to the backend.
    Backend(Request),
    /// Read the Job live before something that cannot be undone.
    ReadJob,
    /// Read the execution live before something that cannot be undone.
    ReadExecution,
    /// Take our finalizer off the Job.
    RemoveFinalizer,
    /// Nothing before this time.
    WaitUntil(Timestamp),
    /// Nothing until something changes.
    Wait,
}

/// Decides the next step.
#[must_use]
pub fn decide(view: &View<'_>, now: Timestamp) -> Step {
    let job = view.job;
    let protected = job.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == JOB_CLEANUP_FINALIZER);
    let state = JobState::of(job);
    if state == JobState::Deleting {
        return if protected { dissolve(view, now) } else { Step::Wait };
    }
    if is_over(job) {
        return write(view, Draft::of(job, now)).unwrap_or(Step::Wait);
    }
    if !protected {
        return Step::AddFinalizer;
    }
    live_through(view, now)
}

/// Whether the terminal status is durable.
fn is_over(job: &Job) -> bool {
    job.status.as_ref().is_some_and(|status| status.completion_time.is_some())
}

fn write(view: &View<'_>, draft: Draft) -> Option<Step> {
    draft.changed(view.job).map(|status| Step::WriteStatus(Box::new(status)))
}

/// A Job that is neither over nor being deleted.
fn live_through(view: &View<'_>, now: Timestamp) -> Step {
    let job = view.job;
    let draft = Draft::of(job, now);
    let cancelled = job.spec.desired_state == DesiredState::Cancelled;
    if !conditions::is_true(job.conditions(), conditions::ACCEPTED) {
        let draft = if cancelled {
            draft.over(false, reason::CANCELLED, "cancelled before it was accepted; nothing was started", None)
        } else {
            match accept::judge(view) {
                Ok(accepted) => draft.accepted(accepted, view.adapter),
                Err(refusal) => draft.refused(&refusal),
            }
        };
        return write(view, draft).unwrap_or(Step::Wait);
    }
    // A stop that was begun is carried through, whatever is asked for since.
    if cancelled || stop_cause(job).is_some() {
        return stop(view, reason::CANCELLED, now);
    }
    match view.recorded_id() {
        None => schedule(view, now),
        Some(id) => follow(view, id, now),
    }
}

/// Accepted, nothing recorded: nothing can have been started (only a release starts, and it needs the recorded id).
fn schedule(view: &View<'_>, now: Timestamp) -> Step {
    let draft = Draft::of(view.job, now);
    let step = match &view.observation {
        Observation::Present(execution) => write(view, draft.scheduled(view.reference_type, &execution.id)),
        Observation::Foreign => {
            let message = "another object, which is not ours, stands under the name of its execution";
            write(view, draft.unschedulable(reason::NAME_CONFLICT, message))
        }
        Observation::Absent => match obstacle(view) {
            Some((reason, message)) => write(view, draft.unschedulable(reason, &message)),
            None => Some(Step::Backend(Request::Prepare)),
        },
    };
    step.unwrap_or(Step::Wait)
}

/// Why an accepted Job cannot be scheduled now (spec C2, D1): an object of the same name and another UID never takes
/// it over, and a class whose backend is not ready starts nothing new.
fn obstacle(view: &View<'_>) -> Option<(&'static str, String)> {
    let resolved = view.job.status.as_ref()?.resolved_job_class.as_ref()?;
    let name = &resolved.name;
    let class = match &view.class {
        ClassView::Present(class) if class.metadata.uid.as_deref() == Some(resolved.uid.as_str()) => class,
        _ => {
            let message = format!("JobClass {name:?} with UID {} is gone; this Job belongs to no other", resolved.uid);
            return Some((reason::JOB_CLASS_REPLACED, message));
        }
    };
    let pinned = resolved.parameters_ref.uid.as_deref();
    if !matches!(&view.settings, Settings::Present { uid } if Some(uid.as_str()) == pinned) {
        let message = format!("the parameters that JobClass {name:?} had at acceptance are gone");
        return Some((reason::PARAMETERS_REPLACED, message));
    }
    let ready = conditions::find(class.conditions(), conditions::READY)?;
    (ready.status != ayatori_crds::ConditionStatus::True).then(|| {
        let reason = reason::ALL.iter().find(|known| **known == ready.reason).unwrap_or(&reason::BACKEND_REFUSED);
        (*reason, format!("JobClass {name:?} is not ready: {}", ready.message))
    })
}

/// The execution is recorded: release it once, then report what the backend shows.
fn follow(view: &View<'_>, id: &str, now: Timestamp) -> Step {
    let job = view.job;
    let draft = Draft::of(job, now);
    let execution = match recorded_execution(view, id) {
        Ok(execution) => execution,
        // A store may lag behind our own create. Whatever happened to it, it is never created again (spec D3).
        Err(_) if !view.observation_is_live => return Step::ReadExecution,
        Err(why) => return write(view, draft.undecided(reason::RESULT_UNKNOWN, &why)).unwrap_or(Step::Wait),
    };
    if lacks_a_code(&execution.phase) && !view.observation_is_live {
        return Step::ReadExecution;
    }
    let step = match &execution.phase {
        Phase::Prepared if execution.stop_requested => write(
            view,
            draft
                .undecided(reason::RESULT_UNKNOWN, "its execution was stopped by somebody else before it was released"),
        ),
        // Only this starts anything. Right before it the Job is read live: cancelled or deleted means no start (D6).
        Phase::Prepared if view.job_is_live => Some(Step::Backend(Request::Release { id: id.to_owned() })),
        Phase::Prepared => Some(Step::ReadJob),
        Phase::Waiting { why } => write(view, draft.undecided(reason::SCHEDULING, why)),
        Phase::Running { started_at } => {
            let started = draft.started(*started_at).undecided(reason::RUNNING, "the task runs");
            match write(view, started) {
                Some(step) => Some(step),
                None => return deadline(view, now),
            }
        }
        Phase::Ended(end) => write(view, conclude(view, draft, end)),
        // The backend's own limit is set for nothing else than our deadline (spec section 6).
        Phase::Stopped => write(view, draft.over(false, reason::DEADLINE_EXCEEDED, OVER_DEADLINE, None)),
        Phase::Unknown { why } => write(view, draft.undecided(reason::RESULT_UNKNOWN, why)),
    };
    step.unwrap_or(Step::Wait)
}

/// The execution whose identifier is recorded, or why it cannot be seen.
fn recorded_execution<'a>(view: &'a View<'_>, id: &str) -> Result<&'a Execution, String> {
    match &view.observation {
        Observation::Present(execution) if execution.id == id => Ok(execution),
        _ => Err(format!("its execution {id} is gone from the backend; it cannot be proven how it ended")),
    }
}

/// The message of a Job that ran too long.
const OVER_DEADLINE: &str = "it ran longer than activeDeadlineSeconds";

/// A word that ends the Job, or puts it in doubt, without an exit code. The store of one kind may lag behind that of
/// another, so it is said only after a live look.
fn lacks_a_code(phase: &Phase) -> bool {
    match phase {
        Phase::Stopped | Phase::Unknown { .. } => true,
        Phase::Ended(end) => end.exit_code.is_none(),
        Phase::Prepared | Phase::Waiting { .. } | Phase::Running { .. } => false,
    }
}

/// The deadline counts from the start only (spec F2).
fn deadline(view: &View<'_>, now: Timestamp) -> Step {
    let start = view.job.status.as_ref().and_then(|status| status.start_time.as_ref());
    let (Some(seconds), Some(start)) = (view.job.spec.active_deadline_seconds, start) else { return Step::Wait };
    let at = start.0.as_second().saturating_add(seconds);
    if now.as_second() >= at {
        return stop(view, reason::DEADLINE_EXCEEDED, now);
    }
    Timestamp::from_second(at).map_or(Step::Wait, Step::WaitUntil)
}

/// The recorded cause of our own stop.
fn stop_cause(job: &Job) -> Option<(&str, String)> {
    let stopping = conditions::find(job.conditions(), STOPPING)?;
    Some((stopping.reason.as_str(), stopping.message.clone()))
}

/// The verdict: an end that came before our stop is judged by the evidence; any later one is the recorded cause, with
/// the exit code that was seen. Times are whole seconds: within the same one, code 0 is success (spec section 6).
fn conclude(view: &View<'_>, draft: Draft, end: &End) -> Draft {
    let stop = conditions::find(view.job.conditions(), STOPPING);
    let Some(stop) = stop else { return draft.ended(end) };
    let stopped_at = stop.last_transition_time.0.as_second();
    let by_itself = end.finished_at.is_some_and(|finished| {
        let finished = finished.as_second();
        finished < stopped_at || (finished == stopped_at && end.success)
    });
    if by_itself {
        return draft.ended(end);
    }
    let draft = match end.started_at {
        Some(started_at) => draft.started(started_at),
        None => draft,
    };
    draft.over(false, &stop.reason, &stop.message, end.exit_code)
}

/// Stop, in steps: record why, read the execution live, ask for the stop, wait for the proof (spec F1).
fn stop(view: &View<'_>, cause: &'static str, now: Timestamp) -> Step {
    let job = view.job;
    let draft = Draft::of(job, now);
    let message = match cause {
        reason::DEADLINE_EXCEEDED => OVER_DEADLINE,
        _ => "cancelled",
    };
    let execution = match (&view.observation, view.recorded_id()) {
        (Observation::Present(execution), None) => execution,
        (Observation::Present(execution), Some(id)) if execution.id == id => execution,
        // The execution was never recorded, so it was never released; a late create makes one that cannot run.
        (_, None) if view.observation_is_live => {
            return write(view, draft.over(false, cause, &format!("{message}; nothing was started"), None))
                .unwrap_or(Step::Wait);
        }
        (_, None) => return Step::ReadExecution,
        (_, Some(_)) if view.observation_is_live => {
            return write(view, draft.over_if_stopped(view, message)).unwrap_or(Step::Wait);
        }
        (_, Some(_)) => return Step::ReadExecution,
    };
    if lacks_a_code(&execution.phase) && !view.observation_is_live {
        return Step::ReadExecution;
    }
    match &execution.phase {
        // It ended by itself, or our stop is confirmed.
        Phase::Ended(end) => return write(view, conclude(view, draft, end)).unwrap_or(Step::Wait),
        Phase::Stopped => {
            let (cause, message) = stop_cause(job).unwrap_or_else(|| (cause, message.to_owned()));
            return write(view, draft.over(false, cause, &message, None)).unwrap_or(Step::Wait);
        }
        Phase::Prepared if execution.stop_requested => {
            return write(view, draft.over(false, cause, &format!("{message}; nothing was started"), None))
                .unwrap_or(Step::Wait);
        }
        _ => {}
    }
    let mut draft = draft;
    if let Phase::Running { started_at } = &execution.phase {
        draft = draft.started(*started_at);
    }
    if let Some(step) = write(view, draft.stopping(cause, message)) {
        return step;
    }
    if execution.stop_requested {
        return Step::Wait;
    }
    if !view.observation_is_live {
        return Step::ReadExecution;
    }
    Step::Backend(Request::Stop { id: execution.id.clone() })
}

/// Deletion (spec F3): a verdict first, then the backend's resources, then the finalizer.
fn dissolve(view: &View<'_>, now: Timestamp) -> Step {
    let job = view.job;
    let accepted = conditions::is_true(job.conditions(), conditions::ACCEPTED);
    if !is_over(job) {
        if accepted {
            return stop(view, reason::CANCELLED, now);
        }
        let draft = Draft::of(job, now);
        let message = "deleted before it was accepted; nothing was started";
        return write(view, draft.over(false, reason::CANCELLED, message, None)).unwrap_or(Step::Wait);
    }
    match &view.observation {
        Observation::Present(execution) if view.recorded_id().is_none_or(|id| id == execution.id) => {
            let id = execution.id.clone();
            match (execution.deletion_requested, execution.protected) {
                (false, _) => Step::Backend(Request::Delete { id }),
                (true, true) => Step::Backend(Request::Unprotect { id }),
                (true, false) => Step::Wait,
            }
        }
        // Gone, or never ours. Only a live read proves it.
        _ if !view.observation_is_live => Step::ReadExecution,
        _ => Step::RemoveFinalizer,
    }
}

impl Draft {
    /// The recorded execution is gone. After our recorded stop its disappearance is the recorded cause (spec section
    /// 6); on a Job being deleted it is an end to observe, not a fault (F3). Else nothing can be proven.
    fn over_if_stopped(self, view: &View<'_>, message: &str) -> Self {
        if let Some((cause, message)) = stop_cause(view.job) {
            let cause = cause.to_owned();
            return self.over(false, &cause, &message, None);
        }
        if JobState::of(view.job) == JobState::Deleting {
            return self.over(false, reason::CANCELLED, &format!("{message}; its execution was gone already"), None);
        }
        self.undecided(
            reason::RESULT_UNKNOWN,
            "its execution is gone from the backend; it cannot be proven how it ended",
        )
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
