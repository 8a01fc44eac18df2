//! An execution that is recorded: it is released once, and then what the backend shows is reported.

use ayatori_crds::conditions::reason;
use jiff::Timestamp;

use super::{Step, lacks_a_code, says_unknown, stop, write};
use crate::{
    backend::{Execution, Observation, Phase, Request},
    job::{status::Draft, view::View},
};

pub(super) fn follow(view: &View<'_>, id: &str, now: Timestamp) -> Step {
    let draft = Draft::of(view.job, now);
    let unknown = |why: &str| {
        write(view, Draft::of(view.job, now).undecided(reason::RESULT_UNKNOWN, why))
            .unwrap_or_else(|| deadline(view, now))
    };
    let execution = match &view.observation {
        Observation::Present(execution) if execution.id == id => execution,
        // A store may lag behind our own create. Whatever happened to it, it is never created again (spec D3).
        _ if !view.observation_is_live => return Step::ReadExecution,
        _ => return unknown(&format!("its execution {id} is gone from the backend; it cannot be proven how it ended")),
    };
    if (lacks_a_code(&execution.phase) || contradicts_the_status(view, &execution.phase)) && !view.observation_is_live {
        return Step::ReadExecution;
    }
    if let Some(why) = never_starts(execution) {
        return if view.observation_is_live { unknown(why) } else { Step::ReadExecution };
    }
    let started = view.job.status.as_ref().is_some_and(|status| status.start_time.is_some());
    match &execution.phase {
        // Only this starts anything. Right before it the Job is read live: cancelled or deleted means no start (D6).
        Phase::Prepared if view.job_is_live => Step::Backend(Request::Release { id: id.to_owned() }),
        Phase::Prepared => Step::ReadJob,
        // What was seen to run does not wait again; there is nothing new to say.
        Phase::Waiting { .. } if started => deadline(view, now),
        Phase::Waiting { why } => write(view, draft.undecided(reason::SCHEDULING, why)).unwrap_or(Step::Wait),
        Phase::Running { started_at } => {
            let running = draft.started(*started_at).undecided(reason::RUNNING, "the task runs");
            write(view, running).unwrap_or_else(|| deadline(view, now))
        }
        Phase::Ended(end) => write(view, stop::conclude(view, draft, end)).unwrap_or(Step::Wait),
        Phase::Stopped if view.job.spec.active_deadline_seconds.is_some() => {
            // The backend's own limit is set for nothing else than our deadline (spec section 6).
            write(view, draft.over(false, reason::DEADLINE_EXCEEDED, stop::OVER_DEADLINE, None)).unwrap_or(Step::Wait)
        }
        Phase::Stopped => unknown("somebody else stopped its execution; it cannot be proven how it ended"),
        Phase::Lost { why } | Phase::Unknown { why } => unknown(why),
    }
}

/// A store that lags would take back what a live look or another controller has said, and both would write in turn.
fn contradicts_the_status(view: &View<'_>, phase: &Phase) -> bool {
    says_unknown(view.job) && matches!(phase, Phase::Waiting { .. } | Phase::Running { .. })
}

/// An execution that somebody else keeps from ever running.
fn never_starts(execution: &Execution) -> Option<&'static str> {
    match &execution.phase {
        Phase::Prepared if execution.stop_requested => {
            Some("its execution was stopped by somebody else before it was released")
        }
        Phase::Prepared | Phase::Waiting { .. } if execution.deletion_requested => {
            Some("its execution is being deleted by somebody else and cannot start any more")
        }
        _ => None,
    }
}

/// The deadline counts from the start only (spec F2), and also while nothing can be said of the execution.
fn deadline(view: &View<'_>, now: Timestamp) -> Step {
    let start = view.job.status.as_ref().and_then(|status| status.start_time.as_ref());
    let (Some(seconds), Some(start)) = (view.job.spec.active_deadline_seconds, start) else { return Step::Wait };
    let at = start.0.as_second().saturating_add(seconds);
    // Without an execution there is nothing to stop: its disappearance says nothing of how it ended (E4).
    if now.as_second() >= at && matches!(view.observation, Observation::Present(_)) {
        return stop::stop(view, reason::DEADLINE_EXCEEDED, now);
    }
    Timestamp::from_second(at).ok().filter(|at| *at > now).map_or(Step::Wait, Step::WaitUntil)
}
