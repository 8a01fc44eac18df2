//! An administrator's rulings (spec E4, F3): conditions that only who may write `jobs/status` can set.

use ayatori_crds::{
    Job,
    conditions::{self, BACKEND_LOST, RELEASED, SUCCEEDED, reason},
};
use jiff::Timestamp;

use super::{Step, is_over, stop, write};
use crate::{
    backend::{Execution, Observation, Phase, Request},
    job::{status::Draft, view::View},
};

/// What an administrator said with this ruling, where it stands.
fn ruling<'a>(job: &'a Job, type_: &str) -> Option<&'a str> {
    let condition = conditions::find(job.conditions(), type_)?;
    conditions::is_true(job.conditions(), type_).then_some(condition.message.as_str())
}

/// Whether the Job is deleted and an administrator said that it shall go, whatever becomes of its execution. Before the
/// deletion nothing is given up, so that a backend that is away is waited for as ever.
#[must_use]
pub fn is_released(job: &Job) -> bool {
    job.metadata.deletion_timestamp.is_some() && ruling(job, RELEASED).is_some()
}

/// A ruling on a Job that does not say that its result is unknown is turned down, once, with what it said.
pub(super) fn turn_down(view: &View<'_>, now: Timestamp) -> Option<Step> {
    let outcome = conditions::find(view.job.conditions(), SUCCEEDED).map(|condition| condition.reason.as_str());
    let counts = matches!(outcome, Some(reason::RESULT_UNKNOWN | reason::BACKEND_LOST));
    let said = ruling(view.job, BACKEND_LOST).filter(|_| !counts)?;
    let message =
        format!("ignored, as the Job did not say ResultUnknown; rule again once it does; the ruling was: {said}");
    write(view, Draft::of(view.job, now).turned_down(BACKEND_LOST, &message))
}

/// What is next for a Job that is not over: a ruling that it cannot go on counts only where the backend, read live,
/// still shows nothing better.
pub(super) fn lost(view: &View<'_>, now: Timestamp, next: impl FnOnce() -> Step) -> Step {
    let Some(said) = ruling(view.job, BACKEND_LOST) else { return next() };
    // A refusal was answered in this visit, too.
    if !view.observation_is_live && !matches!(view.observation, Observation::Refused { .. }) {
        return Step::ReadExecution;
    }
    match next() {
        // Something better: it runs, it waits, it is over. The ruling is turned down then.
        Step::WriteStatus(status) if !conditions::says_unknown(&status.conditions) => Step::WriteStatus(status),
        // It is there and was never released, or may yet start: nothing is lost.
        step @ (Step::ReadJob | Step::AskWhy(_) | Step::Backend(Request::Release { .. })) => step,
        _ => write(view, Draft::of(view.job, now).over(false, reason::BACKEND_LOST, said, None)).unwrap_or(Step::Wait),
    }
}

/// The forced release of a Job that is being deleted: the execution is stopped where that can be, a verdict says what
/// was abandoned, and no finalizer of ours stays. `said` is the administrator's message.
pub(super) fn release(view: &View<'_>, now: Timestamp) -> Option<Step> {
    let said = ruling(view.job, RELEASED)?;
    if !view.observation_is_live && !view.backend_fails {
        return Some(Step::ReadExecution);
    }
    let execution = view.execution().filter(|_| !view.backend_fails);
    let request = execution.and_then(|execution| {
        let id = execution.id.clone();
        match () {
            () if may_run(execution) && !execution.stop_requested => Some(Request::Stop { id }),
            // Its verdict stands in the Job before its own finalizer goes.
            () if !is_over(view.job) => None,
            () if !execution.deletion_requested => Some(Request::Delete { id }),
            () if execution.protected => Some(Request::Unprotect { id }),
            () => None,
        }
    });
    Some(match request {
        // The cause stands in the Job before a stop is sent, and what was in doubt before it stays so (section 6).
        Some(request @ Request::Stop { .. }) if !is_over(view.job) && stop::cause(view.job).is_none() => {
            let draft = Draft::of(view.job, now);
            let draft = match execution.map(|execution| &execution.phase) {
                Some(Phase::Unknown { why }) => draft.undecided(reason::RESULT_UNKNOWN, why),
                _ => draft,
            };
            write(view, draft.stopping(reason::CANCELLED, stop::CANCELLED)).unwrap_or(Step::Backend(request))
        }
        Some(request) => Step::Backend(request),
        None if is_over(view.job) => Step::RemoveFinalizer,
        None => write(view, abandoned(view, execution, said, now)).unwrap_or(Step::RemoveFinalizer),
    })
}

fn may_run(execution: &Execution) -> bool {
    !matches!(execution.phase, Phase::Ended(_) | Phase::Stopped | Phase::Lost { .. })
}

/// The verdict of a Job that is released: what is proven of its execution, else that it was abandoned.
fn abandoned(view: &View<'_>, execution: Option<&Execution>, said: &str, now: Timestamp) -> Draft {
    let draft = Draft::of(view.job, now);
    let proven = || stop::proven(view, stop::recorded(view, draft.clone()), reason::CANCELLED, "deleted");
    if let Some(over) = (!view.backend_fails).then(proven).flatten() {
        return over;
    }
    let shown = execution.map(|execution| execution.id.as_str());
    let id = shown.or_else(|| view.recorded_id()).unwrap_or("unknown");
    let message = format!("released by an administrator: its execution {id} was abandoned and may go on; {said}");
    draft.over(false, reason::RELEASED, &message, None)
}
