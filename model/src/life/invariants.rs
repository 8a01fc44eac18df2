//! What must hold (spec section 9), told from one version of the Job to the next, and in every state.

use ayatori_crds::{
    ConditionStatus, Job, JobState, JobStatus,
    conditions::{self, ACCEPTED, SCHEDULED, SUCCEEDED, reason},
};

use super::{
    cluster::Execution,
    state::{Ruling, State},
    told::is_over,
};
use ayatori_controller::backend::{Observation, Phase};

/// What a write broke.
pub(super) fn broken_by(before: &Job, after: &Job) -> Option<&'static str> {
    let (old, new) = (before.status.clone().unwrap_or_default(), after.status.clone().unwrap_or_default());
    let kept = |was: bool, same: bool| was && !same;
    let verdict = |status: &JobStatus| {
        let condition = conditions::find(&status.conditions, SUCCEEDED).cloned();
        condition.map(|c| (c.status, c.reason, c.message, c.last_transition_time))
    };
    let references = |status: &JobStatus| status.execution.clone().unwrap_or_default().references;
    let is_true = |status: &JobStatus, type_| conditions::is_true(&status.conditions, type_);
    let over = old.completion_time.is_some();
    match () {
        () if over && (verdict(&old), &old.result) != (verdict(&new), &new.result) => Some("I2: a verdict changed"),
        () if kept(over, old.completion_time == new.completion_time) => Some("I3: completionTime moved"),
        () if kept(old.start_time.is_some(), old.start_time == new.start_time) => Some("I3: startTime moved"),
        () if kept(over, old.start_time == new.start_time) => Some("I3: a start after the end"),
        () if new.completion_time.is_some() && new.start_time > new.completion_time => {
            Some("I3: an end before the start")
        }
        () if new.start_time.is_some() && !is_true(&new, SCHEDULED) => Some("I4: a start before Scheduled"),
        () if [ACCEPTED, SCHEDULED].iter().any(|type_| is_true(&old, type_) && !is_true(&new, type_)) => {
            Some("I4: Accepted or Scheduled was taken back")
        }
        () if !old.conditions.iter().all(|condition| conditions::find(&new.conditions, &condition.type_).is_some()) => {
            Some("A4: a condition was removed")
        }
        () if new.completion_time.is_some()
            != verdict(&new).is_some_and(|(status, ..)| status != ConditionStatus::Unknown) =>
        {
            Some("I5: a verdict without completionTime, or the other way round")
        }
        () if !new.conditions.is_empty() && verdict(&new).is_none() => Some("C4: Succeeded is absent"),
        () if kept(old.resolved_job_class.is_some(), old.resolved_job_class == new.resolved_job_class)
            || kept(old.effective_resources.is_some(), old.effective_resources == new.effective_resources) =>
        {
            Some("I3: what acceptance pinned has changed")
        }
        () if !references(&old).iter().all(|reference| references(&new).contains(reference)) => {
            Some("I6: a reference changed")
        }
        () if !over
            && ended_by(&new, reason::BACKEND_LOST)
            && !(conditions::says_unknown(&old.conditions) && Ruling::BackendLost.is_on(before)) =>
        {
            Some("E4: a ruling counted on a Job that was not in doubt")
        }
        () if !over
            && ended_by(&new, reason::RELEASED)
            && !(before.metadata.deletion_timestamp.is_some() && Ruling::Released.is_on(before)) =>
        {
            Some("F3: a Job was abandoned that nobody deletes and releases")
        }
        () if old.observed_generation > new.observed_generation => Some("A4: observedGeneration went back"),
        () if !JobState::of(before).may_become(JobState::of(after)) => Some("section 9: a transition that is none"),
        () => None,
    }
}

fn ended_by(status: &JobStatus, reason: &str) -> bool {
    status.result.as_ref().is_some_and(|result| result.reason.as_deref() == Some(reason))
}

/// An administrator's word ended it, whatever becomes of its task.
pub(super) fn is_ruled_over(job: &Job) -> bool {
    job.status
        .as_ref()
        .is_some_and(|status| [reason::BACKEND_LOST, reason::RELEASED].iter().any(|reason| ended_by(status, reason)))
}

/// What is wrong with a write of ours, beside the live look that the writer had taken before, if any.
pub(super) fn broken_by_ruling(before: &Job, after: &Job, looked: Option<&Observation>) -> Option<&'static str> {
    let counts = |job: &Job| job.status.as_ref().is_some_and(|status| ended_by(status, reason::BACKEND_LOST));
    if counts(before) || !counts(after) {
        return None;
    }
    match looked {
        None => Some("E4: a ruling counted without a live look"),
        Some(Observation::Present(execution)) => match execution.phase {
            Phase::Ended(_) => Some("E4: a ruling went before an end that was seen"),
            Phase::Running { .. } if execution.silence.is_none() => {
                Some("E4: a ruling went before a task that was seen to run")
            }
            Phase::Waiting { .. } if execution.silence.is_none() => {
                Some("E4: a ruling went before a task that may yet start")
            }
            _ => None,
        },
        Some(_) => None,
    }
}

/// What is wrong with a Job whose last finalizer goes.
pub(super) fn broken_by_its_end(last: &Job) -> Option<&'static str> {
    let accepted = conditions::is_true(last.conditions(), ACCEPTED);
    (accepted && !is_over(last)).then_some("F3: an accepted Job went without a verdict")
}

/// What is wrong with a state.
pub(super) fn broken_in(state: &State) -> Option<&'static str> {
    (0..state.executions.len()).find_map(|uid| {
        let execution = state.executions[uid];
        let job = state.job_of(uid);
        let over = job.is_some_and(|job| is_over(&job));
        match () {
            () if execution.starts > 1 => Some("I1: it was started twice"),
            () if execution.given_up => None,
            () if execution.is_running() && job.is_none() => Some("I8: the Job is gone while its task runs"),
            () if execution.is_running() && over => Some("I7: the Job is over while its task runs"),
            () => None,
        }
    })
}

/// What is wrong with a start, right after it.
pub(super) fn broken_by_start(state: &State, uid: usize, after: &Execution) -> Option<&'static str> {
    if after.given_up {
        return None;
    }
    let Some(job) = state.job_of(uid) else { return Some("I8: a start without its Job") };
    let status = job.status.clone().unwrap_or_default();
    let native = after.native.as_ref().and_then(|native| native.metadata.uid.clone());
    let recorded =
        status.execution.unwrap_or_default().references.iter().any(|reference| Some(&reference.id) == native.as_ref());
    match () {
        () if status.completion_time.is_some() => Some("I7: a start after the end"),
        () if !recorded => Some("D2: a start of what was not recorded"),
        () => None,
    }
}
