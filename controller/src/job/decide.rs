//! What is next for a Job: total and pure. One [`Step`] is at most one request.

use std::collections::BTreeSet;

use ayatori_crds::{
    Job, JobState, JobStatus,
    conditions::{self, ACCEPTED, reason},
    job::DesiredState,
    names::JOB_CLEANUP_FINALIZER,
};
use jiff::Timestamp;

use super::{
    accept,
    patience::next_look,
    references::{self, Reference},
    status::Draft,
    view::{ClassView, View},
};
use crate::backend::{Observation, Phase, Request};

mod follow;
mod rulings;
mod schedule;
mod silence;
mod stall;
mod stop;
#[cfg(test)]
mod tests;

pub use rulings::is_released;

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
    /// Read the Job's namespace live before what cannot be undone rests on it: an acceptance on its labels, an end on its
    /// deletion.
    ReadNamespace,
    /// Look at this Secret or ConfigMap for these keys before an acceptance rests on it.
    ReadReference(Reference, BTreeSet<String>),
    /// Read the execution live before something that cannot be undone.
    ReadExecution,
    /// Ask the backend's records why the execution with this identifier shows nothing.
    AskWhy(String),
    /// Take our finalizer off the Job.
    RemoveFinalizer,
    /// Nothing before this time.
    WaitUntil(Timestamp),
    /// Nothing until something changes.
    Wait,
}

/// Decides the next step. A write that only rewords rests on a live look: else two controllers whose stores differ would
/// take back each other's words for ever.
#[must_use]
pub fn decide(view: &View<'_>, now: Timestamp) -> Step {
    match decided(view, now) {
        Step::WriteStatus(status) if is_seen_in_a_store(view) && only_rewords(view.job, &status) => Step::ReadExecution,
        step => step,
    }
}

fn is_seen_in_a_store(view: &View<'_>) -> bool {
    matches!(view.observation, Observation::Present(_)) && !view.observation_is_live
}

/// Whether nothing but messages and reasons differ.
fn only_rewords(job: &Job, after: &JobStatus) -> bool {
    let Some(before) = &job.status else { return false };
    let words = |status: &JobStatus| -> Vec<_> {
        status.conditions.iter().map(|said| (said.reason.clone(), said.message.clone())).collect()
    };
    let without_words = |status: &JobStatus| {
        let mut status = JobStatus { observed_generation: None, ..status.clone() };
        for condition in &mut status.conditions {
            (condition.reason, condition.message) = Default::default();
            condition.observed_generation = None;
        }
        status
    };
    words(before) != words(after) && without_words(before) == without_words(after)
}

fn decided(view: &View<'_>, now: Timestamp) -> Step {
    let job = view.job;
    let protected = job.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == JOB_CLEANUP_FINALIZER);
    let deleting = JobState::of(job) == JobState::Deleting;
    if let Some(step) = is_ours(view).then(|| rulings::turn_down(view, now)).flatten() {
        return step;
    }
    match () {
        // Our webhook puts the finalizer on every Job: where nothing can have been started, anybody may let it go.
        () if !(is_ours(view) || deleting && never_accepted(job)) => Step::Wait,
        () if deleting && protected => dissolve(view, now),
        () if deleting => Step::Wait,
        () if is_over(job) => write(view, Draft::of(job, now)).unwrap_or(Step::Wait),
        () if !protected => Step::AddFinalizer,
        () => rulings::lost(view, now, || live_through(view, now)),
    }
}

/// Whether the Job is for this adapter: by what was recorded, else by its class. A Job without a class that could be
/// found, or whose class nobody serves, is told so by whoever sees it.
fn is_ours(view: &View<'_>) -> bool {
    if let Some(execution) = view.job.status.as_ref().and_then(|status| status.execution.as_ref()) {
        return execution.adapter == view.adapter;
    }
    let ClassView::Present(class) = &view.class else { return true };
    let accepted = conditions::find(class.conditions(), ACCEPTED);
    class.spec.controller_name == view.controller_name
        || accepted.is_some_and(|condition| condition.reason == reason::UNSUPPORTED_CONTROLLER)
}

/// Nothing can have been started: no adapter was recorded.
fn never_accepted(job: &Job) -> bool {
    !conditions::is_true(job.conditions(), ACCEPTED)
}

/// Whether the terminal status is durable.
fn is_over(job: &Job) -> bool {
    job.status.as_ref().is_some_and(|status| status.completion_time.is_some())
}

/// A status to be written, which tells where more than one process is seen (spec E2).
fn drafted(view: &View<'_>, now: Timestamp) -> Draft {
    Draft::of(view.job, now).copies(&view.observation)
}

/// A status write, where the status differs.
fn write(view: &View<'_>, draft: Draft) -> Option<Step> {
    draft.changed(view.job).map(|status| Step::WriteStatus(Box::new(status)))
}

/// The same step, but no later than that.
fn sooner(step: Step, time: Option<Timestamp>) -> Step {
    match (step, time) {
        (Step::Wait, Some(time)) => Step::WaitUntil(time),
        (Step::WaitUntil(step), Some(time)) => Step::WaitUntil(step.min(time)),
        (step, _) => step,
    }
}

/// A Job that is neither over nor being deleted.
fn live_through(view: &View<'_>, now: Timestamp) -> Step {
    let job = view.job;
    let cancelled = job.spec.desired_state == DesiredState::Cancelled;
    if never_accepted(job) {
        let draft = Draft::of(job, now);
        let draft = if cancelled {
            draft.over(false, reason::CANCELLED, "cancelled before it was accepted; nothing was started", None)
        } else {
            match accept::judge(view) {
                Ok(_) if accept::rests_on_labels(view) && !view.namespace_is_live => return Step::ReadNamespace,
                Ok(accepted) => match missing_reference(view) {
                    references::Next::Read(reference, keys) => return Step::ReadReference(reference, keys),
                    references::Next::Missing(refusal) => return await_reference(view, &refusal, now),
                    references::Next::Complete => draft.accepted(accepted, view.adapter),
                },
                Err(refusal) => draft.refused(&refusal),
            }
        };
        return write(view, draft).unwrap_or(Step::Wait);
    }
    // A stop that was begun is carried through, whatever is asked for since.
    if cancelled || stop::cause(job).is_some() {
        return stop::stop(view, reason::CANCELLED, stop::CANCELLED, now);
    }
    match view.recorded_id() {
        None => schedule::schedule(view, now),
        Some(id) => follow::follow(view, id, now),
    }
}

/// What is next for the objects that the task needs, where they are looked at.
fn missing_reference(view: &View<'_>) -> references::Next {
    let answers = view.references;
    answers.map_or(references::Next::Complete, |answers| references::next(&view.job.spec.task, answers))
}

/// Says which object is missing. They are got and not watched, so they are looked at again after some time.
fn await_reference(view: &View<'_>, refusal: &accept::Refusal, now: Timestamp) -> Step {
    let since =
        conditions::find(view.job.conditions(), ACCEPTED).map_or(now, |accepted| accepted.last_transition_time.0);
    let look = Step::WaitUntil(next_look(since, now));
    write(view, Draft::of(view.job, now).refused(refusal)).unwrap_or(look)
}

/// Deletion (spec F3): a verdict first, then the backend's resources, then the finalizer.
fn dissolve(view: &View<'_>, now: Timestamp) -> Step {
    let job = view.job;
    if let Some(step) = rulings::release(view, now) {
        return step;
    }
    if !is_over(job) {
        if !never_accepted(job) {
            return rulings::lost(view, now, || stop::stop(view, reason::CANCELLED, stop::CANCELLED, now));
        }
        let message = "deleted before it was accepted; nothing was started";
        return write(view, Draft::of(job, now).over(false, reason::CANCELLED, message, None)).unwrap_or(Step::Wait);
    }
    match view.execution() {
        // Of what is left behind nothing is ours to delete: it is over, or was ruled to be.
        Some(execution) if execution.orphaned.is_none() => {
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

/// A word that ends the Job, or puts it in doubt, without an exit code. The store of one kind may lag behind that of
/// another, so it is said only after a live look.
fn lacks_a_code(phase: &Phase) -> bool {
    match phase {
        Phase::Stopped | Phase::Lost { .. } | Phase::Unknown { .. } => true,
        Phase::Ended(end) => end.exit_code.is_none(),
        Phase::Prepared | Phase::Released | Phase::Waiting { .. } | Phase::Running { .. } => false,
    }
}

/// Whether the Job says now that its result is unknown.
fn says_unknown(job: &Job) -> bool {
    conditions::says_unknown(job.conditions())
}
