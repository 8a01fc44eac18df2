//! Our own stop (spec F1 to F3): record why, read the execution live, ask for the stop, wait for the proof.

use ayatori_crds::{
    Job, JobState,
    conditions::{self, STOPPING, reason},
};
use jiff::Timestamp;

use super::{Step, drafted, lacks_a_code, says_unknown, silence, sooner, write};
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

/// Carries a stop through: the one that was begun, else this one.
pub(super) fn stop(view: &View<'_>, why: &'static str, message: &str, now: Timestamp) -> Step {
    let mut draft = drafted(view, now);
    let execution = match view.execution() {
        Some(execution) => execution,
        _ if !view.observation_is_live => return Step::ReadExecution,
        _ => return write(view, nothing_there(view, draft, why, message)).unwrap_or(Step::Wait),
    };
    if lacks_a_code(&execution.phase) && !view.observation_is_live {
        return Step::ReadExecution;
    }
    // What exists is recorded first: a start or an end can be told only of what was scheduled (I4).
    if view.recorded_id().is_none() {
        draft = draft.scheduled(view.reference_type, &execution.id);
    }
    let (recorded_cause, recorded_message) = cause(view.job).unwrap_or((why, message));
    match &execution.phase {
        // It ended by itself, or by our stop.
        Phase::Ended(end) => {
            return write(view, conclude(view, draft, end)).unwrap_or(Step::Wait);
        }
        // Nothing runs any more: after our recorded stop that is its proof. Before, the cause is recorded first.
        Phase::Stopped | Phase::Lost { .. } if cause(view.job).is_some() => {
            return write(view, draft.over(false, recorded_cause, recorded_message, None)).unwrap_or(Step::Wait);
        }
        Phase::Prepared if execution.stop_requested => {
            let message = format!("{recorded_message}; nothing was started");
            return write(view, draft.over(false, recorded_cause, &message, None)).unwrap_or(Step::Wait);
        }
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
        (None, Phase::Unknown { .. }) => draft,
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

/// A live look shows no execution of ours.
fn nothing_there(view: &View<'_>, draft: Draft, why: &str, message: &str) -> Draft {
    if view.recorded_id().is_none() {
        // Never recorded, so never released; a create that lands late makes one that cannot run.
        return draft.over(false, why, &format!("{message}; nothing was started"), None);
    }
    if let Some((cause, message)) = cause(view.job) {
        // After our recorded stop a disappearance is the recorded cause (spec section 6).
        return draft.over(false, cause, message, None);
    }
    if JobState::of(view.job) == JobState::Deleting {
        // In a namespace that goes, the execution may be stopped before us: an end to observe, not a fault (F3).
        return draft.over(false, why, &format!("{message}; its execution was gone already"), None);
    }
    draft.undecided(reason::RESULT_UNKNOWN, "its execution is gone from the backend; it cannot be proven how it ended")
}

/// The verdict on an end, beside the stop that was recorded.
pub(super) fn conclude(view: &View<'_>, draft: Draft, end: &End) -> Draft {
    let stop = conditions::find(view.job.conditions(), STOPPING);
    judge(draft, end, stop.map(|stop| (stop.last_transition_time.0, stop.reason.as_str(), stop.message.as_str())))
}

/// The verdict: an end that came before a stop (when, why, in words) is judged by the evidence; any later one is the
/// cause of the stop, with the exit code that was seen. Times are whole seconds: within the same one, code 0 is success
/// (spec section 6).
pub(super) fn judge(draft: Draft, end: &End, stop: Option<(Timestamp, &str, &str)>) -> Draft {
    let Some((stopped_at, cause, message)) = stop else { return draft.ended(end) };
    let by_itself = end.finished_at.is_some_and(|finished| {
        let (finished, stopped_at) = (finished.as_second(), stopped_at.as_second());
        finished < stopped_at || (finished == stopped_at && end.success)
    });
    if by_itself {
        return draft.ended(end);
    }
    let draft = match end.started_at {
        Some(started_at) => draft.started(started_at),
        None => draft,
    };
    draft.over(false, cause, message, end.exit_code)
}
