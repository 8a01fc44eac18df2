//! A released execution that the backend fails to start (spec E1): it is waited for as long as its cause deserves.

use ayatori_crds::{
    Job,
    conditions::{self, SCHEDULED, STALLED, reason},
};
use jiff::{SignedDuration, Timestamp};

use super::{Step, drafted, stop, write};
use crate::{
    backend::{NOTHING_KNOWN, StartFailure},
    job::{patience::next_look, view::View},
};

/// Tells the failure, and gives the start up once the patience with it has ended.
pub(super) fn wait(view: &View<'_>, failure: StartFailure, why: &str, now: Timestamp) -> Step {
    let since = since(view.job, failure);
    let end = view.patience.ends(failure, since.unwrap_or(now));
    // The time counts from what was persisted, so that neither a flapping cause nor a restart begins it anew.
    if since.is_some() && now >= end {
        return match view.observation_is_live {
            true => stop::stop(view, failure.verdict(), why, now),
            false => Step::ReadExecution,
        };
    }
    write(view, drafted(view, now).stalled(failure, why)).unwrap_or(Step::WaitUntil(end))
}

/// How long after its creation an execution is given to show itself. It takes a tenth of a second; only one that is
/// held up is worth a request.
const SHOWS_ITSELF: SignedDuration = SignedDuration::from_secs(5);

/// An execution that was released and shows nothing: the backend's records are asked why, now and then (spec E5).
pub(super) fn ask(view: &View<'_>, id: &str, now: Timestamp) -> Step {
    let scheduled =
        conditions::find(view.job.conditions(), SCHEDULED).map_or(now, |scheduled| scheduled.last_transition_time.0);
    let first = scheduled.saturating_add(SHOWS_ITSELF).unwrap_or(Timestamp::MAX);
    let say = |text: &str, look| {
        let draft = drafted(view, now);
        write(view, draft.undecided(reason::SCHEDULING, text)).unwrap_or(Step::WaitUntil(look))
    };
    match view.explanation {
        None if first <= now => Step::AskWhy(id.to_owned()),
        None => say(NOTHING_KNOWN, first),
        Some("") => say(NOTHING_KNOWN, next_look(scheduled, now)),
        Some(text) => say(text, next_look(scheduled, now)),
    }
}

/// Since when starts of this kind fail. An image that could be pulled at last is progress: what fails then is new.
fn since(job: &Job, failure: StartFailure) -> Option<Timestamp> {
    let stalled = conditions::find(job.conditions(), STALLED)?;
    let before = StartFailure::of_reason(&stalled.reason)?;
    (before.verdict() == failure.verdict()).then_some(stalled.last_transition_time.0)
}
