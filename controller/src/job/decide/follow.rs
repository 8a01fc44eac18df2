//! An execution that is recorded: it is released once, and then what the backend shows is reported.

use ayatori_crds::conditions::reason;
use jiff::{SignedDuration, Timestamp};

use super::{Step, drafted, lacks_a_code, says_unknown, schedule, silence, sooner, stall, stop, write};
use crate::{
    backend::{Execution, Observation, Phase, Request},
    job::view::View,
};

pub(super) fn follow(view: &View<'_>, id: &str, now: Timestamp) -> Step {
    let draft = drafted(view, now);
    let unknown = |why: &str| {
        let draft = drafted(view, now);
        write(view, draft.undecided(reason::RESULT_UNKNOWN, why)).unwrap_or_else(|| deadline(view, now))
    };
    // Its release was refused. That it exists is not taken back (I4).
    if let Observation::Refused { why } = &view.observation {
        let why = format!("its release is refused: {why}");
        return write(view, draft.undecided(reason::SCHEDULING, &why)).unwrap_or_else(|| schedule::rest(now));
    }
    let execution = match view.execution() {
        Some(execution) => execution,
        // A store may lag behind our own create. Whatever happened to it, it is never created again (spec D3).
        _ if !view.observation_is_live => return Step::ReadExecution,
        _ => return unknown(&stop::nothing_left(view)),
    };
    if (lacks_a_code(&execution.phase) || contradicts_the_status(view, &execution.phase)) && !view.observation_is_live {
        return Step::ReadExecution;
    }
    if let Some(why) = never_starts(execution) {
        return if view.observation_is_live { unknown(why) } else { Step::ReadExecution };
    }
    if let Some(silent) = silence::of(view, execution, now) {
        return not_heard_of(view, execution, &silent, now);
    }
    let heard_until = silence::begins(execution, now);
    let started = view.job.status.as_ref().is_some_and(|status| status.start_time.is_some());
    match &execution.phase {
        // Only this starts anything. Right before it the Job is read live: cancelled or deleted means no start (D6).
        Phase::Prepared if view.job_is_live => Step::Backend(Request::Release { id: id.to_owned() }),
        Phase::Prepared => Step::ReadJob,
        // What was seen to run does not wait again; there is nothing new to say.
        Phase::Released | Phase::Waiting { .. } if started => deadline(view, now),
        Phase::Released => stall::ask(view, id, now),
        Phase::Waiting { why, failure: Some(failure) } => sooner(stall::wait(view, *failure, why, now), heard_until),
        Phase::Waiting { why, failure: None } => {
            write(view, draft.undecided(reason::SCHEDULING, why)).unwrap_or_else(|| sooner(Step::Wait, heard_until))
        }
        Phase::Running { started_at } => {
            let words = execution.orphaned.as_deref().unwrap_or("the task runs");
            let running = draft.started(*started_at).undecided(reason::RUNNING, words);
            write(view, running).unwrap_or_else(|| sooner(deadline(view, now), heard_until))
        }
        Phase::Ended(end) => write(view, stop::conclude(view, draft, end)).unwrap_or(Step::Wait),
        Phase::Stopped if limit_reached(view, execution).is_some() => {
            write(view, draft.over(false, reason::DEADLINE_EXCEEDED, stop::OVER_DEADLINE, None)).unwrap_or(Step::Wait)
        }
        Phase::Stopped => unknown("somebody else stopped its execution; it cannot be proven how it ended"),
        Phase::Lost { why } | Phase::Unknown { why } => unknown(why),
    }
}

/// An execution that may go on where nothing is heard of it.
fn not_heard_of(view: &View<'_>, execution: &Execution, silent: &silence::Silent<'_>, now: Timestamp) -> Step {
    if silent.too_long && !view.observation_is_live {
        return Step::ReadExecution;
    }
    let draft = drafted(view, now);
    let draft = match &execution.phase {
        Phase::Running { started_at } => draft.started(*started_at),
        _ => draft,
    };
    write(view, silent.told(draft, &execution.phase)).unwrap_or_else(|| sooner(deadline(view, now), silent.until()))
}

/// A store that lags would take back what a live look or another controller has said, and both would write in turn.
fn contradicts_the_status(view: &View<'_>, phase: &Phase) -> bool {
    says_unknown(view.job) && matches!(phase, Phase::Released | Phase::Waiting { .. } | Phase::Running { .. })
}

/// An execution that somebody else keeps from ever running.
fn never_starts(execution: &Execution) -> Option<&'static str> {
    match &execution.phase {
        Phase::Prepared if execution.stop_requested => {
            Some("its execution was stopped by somebody else before it was released")
        }
        // Not what waits: a pod that is there starts its task all the same.
        Phase::Prepared | Phase::Released if execution.deletion_requested => {
            Some("its execution is being deleted by somebody else and cannot start any more")
        }
        _ => None,
    }
}

/// When the time of the execution ends: the deadline counts from the start only (spec F2).
fn end_of_time(view: &View<'_>) -> Option<Timestamp> {
    let start = view.job.status.as_ref()?.start_time.as_ref()?;
    let at = start.0.as_second().saturating_add(view.job.spec.active_deadline_seconds?);
    Timestamp::from_second(at).ok()
}

/// When the backend's own limit ended it. An earlier one is not ours: it can only fire after the deadline.
pub(super) fn limit_reached(view: &View<'_>, execution: &Execution) -> Option<Timestamp> {
    let end = end_of_time(view)?;
    execution.limit_reached.filter(|at| *at >= end)
}

/// Longest time that is worth a limit of the backend's own: 68 years, more than some can count.
const LONGEST_LIMIT: SignedDuration = SignedDuration::from_secs(i32::MAX as i64);

/// The deadline holds also while nothing can be said of the execution, and, by a limit of the backend's own, while
/// nobody looks.
fn deadline(view: &View<'_>, now: Timestamp) -> Step {
    let Some(at) = end_of_time(view) else { return Step::Wait };
    // Without an execution there is nothing to stop: its disappearance says nothing of how it ended (E4).
    let Some(execution) = view.execution() else {
        return if at > now { Step::WaitUntil(at) } else { Step::Wait };
    };
    if at <= now {
        return stop::stop(view, reason::DEADLINE_EXCEEDED, stop::OVER_DEADLINE, now);
    }
    let runs = matches!(execution.phase, Phase::Running { .. });
    if runs && !execution.limited && at.duration_since(now) < LONGEST_LIMIT {
        return Step::Backend(Request::Limit { id: execution.id.clone(), ends: at });
    }
    Step::WaitUntil(at)
}
