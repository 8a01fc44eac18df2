//! An execution of which the backend has not heard for some time (spec section 6): a message first, then doubt, and
//! what it was before once it is heard of again. Silence is never evidence of an end.

use ayatori_crds::{Job, conditions::reason};
use jiff::Timestamp;

use crate::{
    backend::{Execution, Phase},
    job::{status::Draft, view::View},
};

/// What is said of a silent execution.
pub(super) struct Silent<'a> {
    why: &'a str,
    /// When its result becomes unknown.
    until: Timestamp,
    /// That time has come.
    pub(super) too_long: bool,
}

/// The silence of an execution that shows itself as waiting or running; None where it is heard of.
pub(super) fn of<'a>(view: &View<'_>, execution: &'a Execution, now: Timestamp) -> Option<Silent<'a>> {
    let silence = execution.silence.as_ref().filter(|silence| silence.since <= now)?;
    let until = silence.since.saturating_add(view.patience.unknown_after).unwrap_or(Timestamp::MAX);
    Some(Silent { why: &silence.why, until, too_long: until <= now })
}

impl Silent<'_> {
    /// Tells it: in doubt once it has lasted too long.
    pub(super) fn told(&self, draft: Draft, phase: &Phase) -> Draft {
        let word = if self.too_long { reason::RESULT_UNKNOWN } else { going_on(phase) };
        draft.undecided(word, self.why)
    }

    /// When to look again: doubt begins.
    pub(super) fn until(&self) -> Option<Timestamp> {
        (!self.too_long).then_some(self.until)
    }
}

/// The reason of an execution that is neither over nor in doubt.
pub(super) fn going_on(phase: &Phase) -> &'static str {
    match phase {
        Phase::Running { .. } => reason::RUNNING,
        _ => reason::SCHEDULING,
    }
}

/// The reason of one of which nothing is heard after our stop: what it was last.
pub(super) fn last_heard(job: &Job) -> &'static str {
    match job.status.as_ref().is_some_and(|status| status.start_time.is_some()) {
        true => reason::RUNNING,
        false => reason::SCHEDULING,
    }
}

/// When an execution that is heard of would begin to be silent.
pub(super) fn begins(execution: &Execution, now: Timestamp) -> Option<Timestamp> {
    execution.silence.as_ref().map(|silence| silence.since).filter(|since| *since > now)
}
