//! Our own stop (spec F1 to F3): read the execution live, record why, ask for the stop, wait for the proof.

use ayatori_crds::{
    Job, JobState,
    conditions::{self, STOPPING, reason},
};
use jiff::Timestamp;

use super::{Step, drafted, follow::limit_reached, lacks_a_code, says_unknown, silence, sooner, write};
use crate::{
    backend::{End, Phase, Request},
    job::{status::Draft, view::View},
};

/// The message of a Job that its owner does not want any more.
pub(super) const CANCELLED: &str = "cancelled";

/// The message of a Job that ran too long.
pub(super) const OVER_DEADLINE: &str = "it ran longer than activeDeadlineSeconds";

/// The recorded cause of our own stop, with its message.
pub(super) fn cause(job: &Job) -> Option<(&str, &str)> {
    let stopping = conditions::find(job.conditions(), STOPPING)?;
    Some((stopping.reason.as_str(), stopping.message.as_str()))
}

/// Whether our stop was recorded, and nothing was in doubt since: then what is gone is the recorded cause (spec section 6).
/// What is in doubt ends by what the backend shows of it, or by a ruling (E4), not by being gone.
fn stopped_first(job: &Job) -> bool {
    cause(job).is_some() && !says_unknown(job)
}

/// Carries a stop through: the one that was begun, else this one.
pub(super) fn stop(view: &View<'_>, why: &'static str, message: &str, now: Timestamp) -> Step {
    let execution = view.execution();
    if execution.is_none_or(|execution| lacks_a_code(&execution.phase)) && !view.observation_is_live {
        return Step::ReadExecution;
    }
    // A limit of the backend's own that has fired was a stop before this one.
    let (why, message) = limit(view).map_or((why, message), |(_, why, message)| (why, message));
    let mut draft = recorded(view, drafted(view, now));
    if let Some(over) = proven(view, draft.clone(), why, message) {
        return write(view, over).unwrap_or(Step::Wait);
    }
    // What goes after our stop was recorded is its end: so only on a live look that it goes on.
    if cause(view.job).is_none() && !view.observation_is_live {
        return Step::ReadExecution;
    }
    let Some(execution) = execution else { return in_doubt(view, draft, why, message, &nothing_left(view)) };
    match &execution.phase {
        // Nothing is left that could be stopped.
        Phase::Lost { why: seen } => return in_doubt(view, draft, why, message, seen),
        Phase::Running { started_at } => draft = draft.started(*started_at),
        _ => {}
    }
    let silent = silence::of(view, execution, now);
    let again = says_unknown(view.job)
        && matches!(execution.phase, Phase::Released | Phase::Waiting { .. } | Phase::Running { .. });
    if (again || silent.as_ref().is_some_and(|silent| silent.too_long)) && !view.observation_is_live {
        return Step::ReadExecution;
    }
    draft = match (&silent, &execution.phase) {
        (Some(silent), phase) => silent.told(draft, phase),
        (None, Phase::Unknown { why: seen }) => {
            // A doubt from before our stop is remembered. What goes without a word after it has ended by it, once the
            // backend has counted that, and is in no doubt until then.
            let doubted = cause(view.job).is_none() || says_unknown(view.job);
            draft.undecided(if doubted { reason::RESULT_UNKNOWN } else { silence::last_heard(view.job) }, seen)
        }
        (None, phase) => match &execution.orphaned {
            Some(left) => draft.undecided(silence::going_on(phase), left),
            None if again => draft.undecided(silence::going_on(phase), "it is heard of again, and is being stopped"),
            None => draft,
        },
    };
    match write(view, draft.stopping(why, message)) {
        Some(step) => step,
        // What somebody deletes heeds no stop, and is held by our finalizer alone: it ends by being let go.
        None if execution.deletion_requested && execution.protected => match view.observation_is_live {
            true => Step::Backend(Request::Unprotect { id: execution.id.clone() }),
            false => Step::ReadExecution,
        },
        None if execution.stop_requested => {
            let look = silent.map_or_else(|| silence::begins(execution, now), |silent| silent.until());
            sooner(Step::Wait, look)
        }
        None if !view.observation_is_live => Step::ReadExecution,
        None => Step::Backend(Request::Stop { id: execution.id.clone() }),
    }
}

/// What exists is recorded first: a start or an end can be told only of what was scheduled (I4).
pub(super) fn recorded(view: &View<'_>, draft: Draft) -> Draft {
    match (view.execution(), view.recorded_id()) {
        (Some(execution), None) => draft.scheduled(view.reference_type, &execution.id),
        _ => draft,
    }
}

/// The verdict, where it is proven that the execution is over or that nothing was started. `why` is the cause where none
/// is recorded. The look must be live where it shows no execution, or one without a code.
pub(super) fn proven(view: &View<'_>, draft: Draft, why: &str, message: &str) -> Option<Draft> {
    let (cause, words) = cause(view.job).unwrap_or((why, message));
    let stopped = |draft: Draft| draft.over(false, cause, words, None);
    let nothing_started = |draft: Draft| draft.over(false, cause, &format!("{words}; nothing was started"), None);
    let Some(execution) = view.execution() else {
        return match view.recorded_id() {
            // Never recorded, so never released; a create that lands late makes one that cannot run.
            None => Some(nothing_started(draft)),
            Some(_) => stopped_first(view.job).then(|| stopped(draft)),
        };
    };
    match &execution.phase {
        // It ended by itself, or by our stop.
        Phase::Ended(end) => Some(conclude(view, draft, end)),
        // A release that lands late runs nothing any more.
        Phase::Prepared if execution.stop_requested || execution.deletion_requested => Some(nothing_started(draft)),
        Phase::Stopped => Some(stopped(draft.stopping(why, message))),
        Phase::Lost { .. } if stopped_first(view.job) => Some(stopped(draft)),
        _ => None,
    }
}

/// What is gone, and was not stopped by us before, says nothing of how it ended, or whether (spec E4). Only in a
/// namespace that goes executions are stopped before us: there it is an end (F3).
fn in_doubt(view: &View<'_>, draft: Draft, why: &str, message: &str, seen: &str) -> Step {
    let goes = view.namespace_is_going && JobState::of(view.job) == JobState::Deleting;
    if goes && !view.namespace_is_live {
        return Step::ReadNamespace;
    }
    let (cause, words) = cause(view.job).unwrap_or((why, message));
    let draft = match goes {
        true => draft.over(false, cause, &format!("{words}; its execution was gone already"), None),
        false => draft.undecided(reason::RESULT_UNKNOWN, seen),
    };
    write(view, draft).unwrap_or(Step::Wait)
}

/// What is said of a recorded execution that is gone.
pub(super) fn nothing_left(view: &View<'_>) -> String {
    let id = view.recorded_id().unwrap_or_default();
    format!("its execution {id} is gone from the backend; it cannot be proven how it ended")
}

/// A limit of the backend's own that has fired: when, and the cause in a word and in words. It is set for nothing else
/// than our deadline, which was over before (spec F2).
fn limit(view: &View<'_>) -> Option<(Timestamp, &'static str, &'static str)> {
    let at = limit_reached(view, view.execution()?)?;
    Some((at, reason::DEADLINE_EXCEEDED, OVER_DEADLINE))
}

/// The verdict on an end: one that came before every stop is judged by the evidence; any later one is the cause of the
/// stop, with the exit code that was seen. The recorded stop goes first.
pub(super) fn conclude(view: &View<'_>, draft: Draft, end: &End) -> Draft {
    let recorded = conditions::find(view.job.conditions(), STOPPING)
        .map(|stop| (stop.last_transition_time.0, stop.reason.as_str(), stop.message.as_str()));
    let stop = [recorded, limit(view)].into_iter().flatten().find(|(at, ..)| !came_before(end, *at));
    let Some((_, cause, message)) = stop else { return draft.ended(end) };
    let draft = match end.started_at {
        Some(started_at) => draft.started(started_at),
        None => draft,
    };
    draft.over(false, cause, message, end.exit_code)
}

/// Times are whole seconds: within the same one, code 0 is success (spec section 6).
fn came_before(end: &End, stopped_at: Timestamp) -> bool {
    end.finished_at.is_some_and(|finished| {
        let (finished, stopped_at) = (finished.as_second(), stopped_at.as_second());
        finished < stopped_at || (finished == stopped_at && end.success)
    })
}
