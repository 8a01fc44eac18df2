//! No verdict without evidence (spec section 6): the word that ends a Job, beside what really became of its task.

use ayatori_crds::{
    Job,
    conditions::{self, STOPPING, reason},
    job::DesiredState,
};
use jiff::Timestamp;

use super::{
    cluster::{Execution, Gone, ended_by_limit, limit_fired},
    objects::instant,
    pod::{Ending, Exit},
    state::State,
    told::{is_in_doubt, is_over, is_stopped},
};
use ayatori_controller::backend::{Observation, Phase};

/// What is wrong with the word that ends a Job, at the moment that it is written.
pub(super) fn broken_by_verdict(before: &Job, after: &Job, execution: &Execution) -> Option<&'static str> {
    let stops = recorded_stop(before).map(|(at, _)| at).into_iter().chain(limit(after, execution)).collect();
    let end = execution.pod.end().or(execution.shown);
    let verdict = Verdict { before, after, execution, end, stops };
    let status = after.status.as_ref()?;
    let (word, code) = status.result.as_ref().map_or((None, None), |said| (said.reason.as_deref(), said.exit_code));
    match word.unwrap_or_default() {
        // An administrator's word; whether it counts is said beside the other invariants.
        reason::BACKEND_LOST | reason::RELEASED => None,
        _ if status.start_time.is_some() && execution.starts == 0 => Some("section 6: a start of what never started"),
        _ if code.is_some_and(|code| end.is_none_or(|end| end.exit.code() != code)) => {
            Some("E2: an exit code that nothing showed")
        }
        reason::COMPLETED => (!verdict.ended_by_itself(Exit::Zero)).then_some("section 6: a success without evidence"),
        // What our signal ended has not failed.
        reason::PROCESS_FAILED => {
            (!verdict.ended_by_itself(Exit::One)).then_some("section 6: a failure without evidence")
        }
        reason::REJECTED => (execution.starts > 0).then_some("section 6: what ran is told as rejected"),
        // What starts at the last moment, and ends by the stop, is told so, too: with its start and its code.
        cause @ (reason::CANCELLED | reason::DEADLINE_EXCEEDED | reason::IMAGE_PULL_FAILED | reason::START_FAILED) => {
            verdict.broken_as_cause(cause, code)
        }
        _ => Some("section 6: a verdict that nothing here can prove"),
    }
}

/// A verdict, beside the truth.
struct Verdict<'a> {
    before: &'a Job,
    after: &'a Job,
    execution: &'a Execution,
    /// The end that was shown. What nobody could hear is no evidence, even of what happens to be true.
    end: Option<Ending>,
    /// When it was stopped by us: by what was recorded before, or by the native Job's limit.
    stops: Vec<Timestamp>,
}

impl Verdict<'_> {
    fn ended_by_itself(&self, exit: Exit) -> bool {
        self.end.is_some_and(|end| end.exit == exit && !self.stops.iter().any(|at| is_later(end, *at)))
    }

    /// For certain.
    fn ended_before_our_stop(&self, end: Ending) -> bool {
        self.stops.iter().all(|at| is_earlier(end, *at))
    }

    /// Its end was shown after our stop, or the native Job has said since that it stopped everything (F1).
    fn is_seen_to_be_over(&self) -> bool {
        self.end.is_some_and(|end| !self.ended_before_our_stop(end))
            || self.execution.known_native().is_some_and(|native| ended_by_limit(&native, "Failed").is_some())
    }

    /// What is wrong with it where it is the cause of a stop.
    fn broken_as_cause(&self, cause: &str, code: Option<i32>) -> Option<&'static str> {
        let Self { before, after, execution, .. } = *self;
        let unwanted =
            after.spec.desired_state == DesiredState::Cancelled || after.metadata.deletion_timestamp.is_some();
        let over = after.status.as_ref().and_then(|status| status.completion_time.as_ref());
        let late = end_of_time(after).is_some_and(|end| over.is_some_and(|over| over.0 >= end));
        let is_recorded = recorded_stop(before).is_some_and(|(_, recorded)| recorded == cause);
        let fired = cause == reason::DEADLINE_EXCEEDED && limit(after, execution).is_some();
        let doubted = execution.gone != Gone::Not || is_in_doubt(before);
        let shown = execution.pod.end();
        let started = after.status.as_ref().is_some_and(|status| status.start_time.is_some());
        match () {
            () if cause == reason::CANCELLED && !unwanted => Some("F1: cancelled, and nobody asked for it"),
            () if cause == reason::DEADLINE_EXCEEDED && !late => Some("F2: a deadline before its time"),
            () if execution.starts == 0 => None,
            () if !is_recorded && !fired => Some("section 6: a stop that was not recorded is told as the cause"),
            () if doubted && !self.is_seen_to_be_over() => Some("E4: a stop ended a doubt"),
            () if shown.is_some_and(|end| self.ended_before_our_stop(end)) => {
                Some("section 6: what ended before our stop is told as ended by it")
            }
            () if shown.is_some() && (code.is_none() || !started) => {
                Some("section 6: a stop hides the start or the exit code that was seen")
            }
            () => None,
        }
    }
}

/// What is wrong with a write that records our stop, or ends a doubt after it, beside the live look that the writer had
/// taken before, if any.
pub(super) fn broken_by_stop(before: &Job, after: &Job, looked: Option<&Observation>) -> Option<&'static str> {
    let cause = recorded_stop(after).filter(|_| !is_over(after) && !is_stopped(before)).map(|(_, cause)| cause);
    if cause.is_none() && !makes_a_loss_its_end(before, after) {
        return None;
    }
    let Some(Observation::Present(execution)) = looked else {
        return Some("section 6: a stop was decided without a live look at what it stops");
    };
    let fails = matches!(execution.phase, Phase::Waiting { failure: Some(_), .. });
    let goes_on =
        !matches!(execution.phase, Phase::Ended(_) | Phase::Stopped | Phase::Lost { .. } | Phase::Unknown { .. });
    match () {
        () if matches!(cause, Some(reason::IMAGE_PULL_FAILED | reason::START_FAILED)) && !fails => {
            Some("E1: a start was given up that was not seen to fail")
        }
        () if makes_a_loss_its_end(before, after) && !goes_on => {
            Some("E4: what was gone before our stop is in no doubt")
        }
        () => None,
    }
}

/// From that write on, what goes without a word has ended by our stop (section 6): it rests on a look that it goes on, so
/// what went since that look went after it.
pub(super) fn makes_a_loss_its_end(before: &Job, after: &Job) -> bool {
    let is_its_end = |job: &Job| is_stopped(job) && !is_in_doubt(job) && !is_over(job);
    is_its_end(after) && !is_its_end(before)
}

/// When our stop was recorded, and its cause.
fn recorded_stop(job: &Job) -> Option<(Timestamp, &str)> {
    conditions::find(job.conditions(), STOPPING).map(|stop| (stop.last_transition_time.0, stop.reason.as_str()))
}

/// When the native Job's own limit ended it, which is set for nothing else than the Job's deadline.
fn limit(job: &Job, execution: &Execution) -> Option<Timestamp> {
    let at = limit_fired(&*execution.known_native()?)?;
    end_of_time(job).filter(|end| at >= *end).map(|_| at)
}

/// When the Job's deadline is over.
fn end_of_time(job: &Job) -> Option<Timestamp> {
    let start = job.status.as_ref()?.start_time.as_ref()?;
    Timestamp::from_second(start.0.as_second() + job.spec.active_deadline_seconds?).ok()
}

/// For certain it ended by itself: times are whole seconds, and within the same one a success is a success.
fn is_earlier(end: Ending, stop: Timestamp) -> bool {
    instant(end.at) < stop || (instant(end.at) == stop && end.exit == Exit::Zero)
}

/// For certain it ended by that stop, whatever the task exited with.
fn is_later(end: Ending, stop: Timestamp) -> bool {
    instant(end.at) > stop
}

/// Forgets what only a verdict could still rest on, where none can follow.
pub(super) fn forget(state: &mut State) {
    for uid in 0..state.executions.len() {
        if state.job_of(uid).is_none_or(|job| is_over(&job)) {
            (state.executions[uid].shown, state.executions[uid].said) = (None, None);
        }
    }
}

/// What becomes of an execution whose pod goes without a word now. After our stop that is its end (spec section 6), also
/// where the limit stops it that is set for nothing else than our deadline; in doubt it remains (E4).
pub(super) fn gone(state: &State, uid: usize) -> Gone {
    let before = state.executions[uid];
    let job = state.job_of(uid);
    let stopped = before.is_being_ended() || job.is_none_or(|job| is_stopped(&job) || is_over(&job));
    match () {
        () if !stopped && before.runs_unheard() => Gone::Astray,
        () if !stopped || job.is_some_and(|job| is_in_doubt(&job)) => Gone::Over,
        () => Gone::Not,
    }
}
