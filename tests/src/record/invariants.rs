//! The invariants of the contract's section 9 that a status shows: in one version, from one version to the next, and
//! in the last one.

use std::fmt;

use ayatori_crds::{
    Condition, ConditionStatus, Job, JobState, JobStatus,
    conditions::{
        ACCEPTED, BACKEND_LOST, DUPLICATE_EXECUTION, RELEASED, SCHEDULED, STOPPING, SUCCEEDED, find, is_true, reason,
    },
    names::JOB_CLEANUP_FINALIZER,
};

/// What is kept, by its number in the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// Words and sizes are those of the API.
    A9,
    /// `Succeeded` is never absent once the controller has seen the Job.
    C4,
    /// At most one execution.
    I1,
    /// What is over stays as it is.
    I2,
    /// Start and end never move, and come in order.
    I3,
    /// Scheduled comes before a start, and never goes back.
    I4,
    /// Not over means `Succeeded=Unknown`.
    I5,
    /// What was accepted and where it runs grows, and never changes.
    I6,
    /// The finalizer stays while an execution may live.
    I8,
    /// Another UID of the same name shares nothing.
    I10,
    /// An idle Job costs no writes.
    I12,
    /// Only the transitions of the ten states that the contract allows.
    Transitions,
}

/// An invariant that did not hold, and how that showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub invariant: Invariant,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.invariant, self.what)
    }
}

/// Collects what does not hold.
#[derive(Debug, Default)]
struct Found(Vec<Broken>);

impl Found {
    fn unless(&mut self, holds: bool, invariant: Invariant, what: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Broken { invariant, what: what() });
        }
    }

    /// What was there is there still, and the same.
    fn kept<T: PartialEq + fmt::Debug>(&mut self, before: Option<&T>, now: Option<&T>, kept: (Invariant, &str)) {
        let (invariant, field) = kept;
        self.unless(before.is_none() || before == now, invariant, || format!("{field} was {before:?} and is {now:?}"));
    }
}

fn succeeded(job: &Job) -> Option<&Condition> {
    find(job.conditions(), SUCCEEDED)
}

/// Whether its status says that it is over.
fn is_over(job: &Job) -> bool {
    succeeded(job).is_some_and(|condition| condition.status != ConditionStatus::Unknown)
}

/// Whether its execution was recorded: from then on it may be released, and live.
fn is_scheduled(job: &Job) -> bool {
    is_true(job.conditions(), SCHEDULED)
}

fn is_protected(job: &Job) -> bool {
    job.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == JOB_CLEANUP_FINALIZER)
}

/// The status, or an empty one.
fn status(job: &Job) -> JobStatus {
    job.status.clone().unwrap_or_default()
}

/// What one version breaks by itself.
#[must_use]
pub fn in_version(job: &Job) -> Vec<Broken> {
    let mut found = Found::default();
    let status = status(job);
    words(job, &status, &mut found);
    times(job, &status, &mut found);
    outcome(job, &status, &mut found);
    let references = status.execution.iter().flat_map(|execution| &execution.references);
    let mut types: Vec<&str> = references.map(|reference| reference.type_.as_str()).collect();
    types.sort_unstable();
    let all = types.len();
    types.dedup();
    found.unless(types.len() == all, Invariant::I1, || format!("two references of one type: {:?}", status.execution));
    let twice = is_true(&status.conditions, DUPLICATE_EXECUTION);
    found.unless(!twice, Invariant::I1, || "the controller saw more than one process".to_owned());
    found.unless(!is_scheduled(job) || all > 0, Invariant::I4, || "Scheduled=True without a reference".to_owned());
    let may_live = is_scheduled(job) && !is_over(job);
    found.unless(!may_live || is_protected(job), Invariant::I8, || {
        format!("an execution may live, and the finalizers are {:?}", job.metadata.finalizers)
    });
    found.0
}

fn words(job: &Job, status: &JobStatus, found: &mut Found) {
    for condition in &status.conditions {
        // A ruling is an administrator's, in words of his own.
        let ruling =
            is_true(&status.conditions, &condition.type_) && [BACKEND_LOST, RELEASED].contains(&&*condition.type_);
        let known = ruling || reason::ALL.contains(&condition.reason.as_str());
        found.unless(known, Invariant::A9, || format!("{}: no such reason: {}", condition.type_, condition.reason));
    }
    let references = status.execution.as_ref().map_or(0, |execution| execution.references.len());
    found.unless(status.conditions.len() <= 16 && references <= 8, Invariant::A9, || {
        format!("{} conditions, {references} references", status.conditions.len())
    });
    let (seen, is) = (status.observed_generation, job.metadata.generation);
    found.unless(seen <= is, Invariant::A9, || format!("observedGeneration {seen:?} of generation {is:?}"));
}

fn times(job: &Job, status: &JobStatus, found: &mut Found) {
    let (created, start, end) = (&job.metadata.creation_timestamp, &status.start_time, &status.completion_time);
    let in_order = |earlier: &Option<_>, later: &Option<_>| later.is_none() || earlier <= later;
    found.unless(in_order(created, start) && in_order(created, end) && in_order(start, end), Invariant::I3, || {
        format!("created {created:?}, started {start:?}, completed {end:?}")
    });
    found.unless(start.is_none() || is_scheduled(job), Invariant::I4, || "started without Scheduled=True".to_owned());
}

fn outcome(job: &Job, status: &JobStatus, found: &mut Found) {
    let Some(succeeded) = succeeded(job) else {
        return found.unless(status.conditions.is_empty(), Invariant::C4, || "there is no Succeeded".to_owned());
    };
    let over = is_over(job);
    found.unless(over == status.completion_time.is_some(), Invariant::I5, || {
        format!("Succeeded={} with completionTime {:?}", succeeded.status.as_str(), status.completion_time)
    });
    let told = status.result.as_ref().and_then(|result| result.reason.as_deref());
    let wanted = over.then_some(succeeded.reason.as_str());
    found.unless(told == wanted, Invariant::A9, || format!("result.reason is {told:?}, not {wanted:?}"));
    let undecided = [reason::PENDING, reason::SCHEDULING, reason::RUNNING, reason::RESULT_UNKNOWN];
    let fits = match succeeded.status {
        ConditionStatus::True => succeeded.reason == reason::COMPLETED,
        ConditionStatus::Unknown => undecided.contains(&succeeded.reason.as_str()),
        ConditionStatus::False => !undecided.contains(&succeeded.reason.as_str()),
    };
    found.unless(fits, Invariant::A9, || format!("Succeeded={}/{}", succeeded.status.as_str(), succeeded.reason));
}

/// What breaks from one version of an object to the next.
#[must_use]
pub fn between(before: &Job, now: &Job) -> Vec<Broken> {
    let mut found = Found::default();
    let (from, to) = (JobState::of(before), JobState::of(now));
    found.unless(from.may_become(to), Invariant::Transitions, || format!("{from:?} became {to:?}"));
    let (old, new) = (status(before), status(now));
    found.kept(old.start_time.as_ref(), new.start_time.as_ref(), (Invariant::I3, "startTime"));
    found.kept(old.completion_time.as_ref(), new.completion_time.as_ref(), (Invariant::I3, "completionTime"));
    found.kept(old.resolved_job_class.as_ref(), new.resolved_job_class.as_ref(), (Invariant::I6, "resolvedJobClass"));
    let resources = (old.effective_resources.as_ref(), new.effective_resources.as_ref());
    found.kept(resources.0, resources.1, (Invariant::I6, "effectiveResources"));
    references_grow(&old, &new, &mut found);
    found.unless(old.observed_generation <= new.observed_generation, Invariant::A9, || {
        format!("observedGeneration went from {:?} to {:?}", old.observed_generation, new.observed_generation)
    });
    for condition in &old.conditions {
        condition_follows(condition, find(&new.conditions, &condition.type_), &mut found);
    }
    if is_over(before) {
        stays_over(&old, &new, &mut found);
    }
    found.0
}

fn references_grow(old: &JobStatus, new: &JobStatus, found: &mut Found) {
    let (Some(old), new) = (&old.execution, &new.execution) else { return };
    let grown = new.as_ref().is_some_and(|new| {
        new.adapter == old.adapter && old.references.iter().all(|reference| new.references.contains(reference))
    });
    found.unless(grown, Invariant::I6, || format!("execution was {old:?} and is {new:?}"));
}

fn condition_follows(old: &Condition, new: Option<&Condition>, found: &mut Found) {
    let Some(new) = new else {
        return found.unless(false, Invariant::A9, || format!("the condition {} went", old.type_));
    };
    let reverts = old.status == ConditionStatus::True && new.status != ConditionStatus::True;
    let lasting = [ACCEPTED, SCHEDULED, DUPLICATE_EXECUTION];
    found.unless(!reverts || !lasting.contains(&old.type_.as_str()), Invariant::I4, || {
        format!("{} went back to {}/{}", old.type_, new.status.as_str(), new.reason)
    });
    let (since, still) = (&old.last_transition_time, &new.last_transition_time);
    let moved = if old.status == new.status { since == still } else { since <= still };
    found
        .unless(moved, Invariant::A9, || format!("{}: lastTransitionTime went from {since:?} to {still:?}", old.type_));
    found.unless(old.type_ != STOPPING || old.reason == new.reason, Invariant::I6, || {
        format!("the cause of the stop was {} and is {}", old.reason, new.reason)
    });
}

/// The verdict stands, and nothing is added to it.
fn stays_over(old: &JobStatus, new: &JobStatus, found: &mut Found) {
    let verdict = |status: &JobStatus| {
        find(&status.conditions, SUCCEEDED).map(|condition| {
            let Condition { status, reason, message, last_transition_time, .. } = condition.clone();
            (status, reason, message, last_transition_time)
        })
    };
    let (was, is) = (verdict(old), verdict(new));
    found.unless(was == is, Invariant::I2, || format!("the verdict was {was:?} and is {is:?}"));
    found.unless(old.result == new.result, Invariant::I2, || format!("{:?} became {:?}", old.result, new.result));
    found.unless(old.start_time == new.start_time && old.execution == new.execution, Invariant::I2, || {
        format!("{:?}, {:?} became {:?}, {:?}", old.start_time, old.execution, new.start_time, new.execution)
    });
}

/// What an object breaks by going as it was last seen.
#[must_use]
pub fn at_the_end(last: &Job) -> Vec<Broken> {
    let mut found = Found::default();
    found.unless(!is_scheduled(last) || is_over(last), Invariant::I8, || {
        "it went without a verdict, and its execution may live".to_owned()
    });
    found.0
}
