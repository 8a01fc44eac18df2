//! The backend contract: what the domain may ask of whatever runs an execution, in backend-free words.
//!
//! An adapter keeps five promises (architecture: *Safety never rests on the leader lease*):
//! 1. [`Request::Prepare`] makes something that cannot run by itself, under a name made from the Job's UID;
//! 2. only [`Request::Release`] starts it; it tests the identifier that was recorded, and takes effect once;
//! 3. an [`Observation`] says only what the backend showed; it never guesses;
//! 4. [`Request::Stop`] can be repeated, and its end is proven by an observation, not by its answer; what is being deleted
//!    may not heed it, and ends by [`Request::Unprotect`];
//! 5. nothing that is not ours is ever adopted, changed or deleted ([`Observation::Foreign`]).

use std::time::Duration;

use ayatori_crds::{Job, job_class::ParametersReference};
use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::call::CallError;

pub mod kubernetes;
mod start_failure;

pub use start_failure::{Nature, StartFailure};

/// What is said of a released execution of which nothing speaks yet: the same words by whoever looks, so that saying them
/// again is no write.
pub(crate) const NOTHING_KNOWN: &str = "waiting for the task to start";

/// What stands on the backend for one Job UID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// Nothing.
    Absent,
    /// Something that is not ours stands under the execution's name (spec D5).
    Foreign,
    /// The backend refuses to make it, or to release what was made: nothing has started.
    Refused {
        /// What it says, cut and cleaned.
        why: String,
    },
    /// The execution.
    Present(Execution),
}

/// An execution as the backend shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// The backend's own identifier: what is recorded as a reference.
    pub id: String,
    /// How far it is.
    pub phase: Phase,
    /// It was asked to stop, and that cannot be undone.
    pub stop_requested: bool,
    /// Its deletion was asked for.
    pub deletion_requested: bool,
    /// It carries our finalizer.
    pub protected: bool,
    /// Nothing is heard of it, where that is so.
    pub silence: Option<Silence>,
    /// It has a limit of its own ([`Request::Limit`]), or was stopped for good.
    pub limited: bool,
    /// When a limit of its own ended it.
    pub limit_reached: Option<Timestamp>,
    /// How many processes were ever seen for it. More than one is a fault of the backend (spec E2).
    pub copies: usize,
    /// What was made for it is gone, and only what that started is left: what that is, for people. No request reaches it;
    /// it counts as stopped, deleted and limited.
    pub orphaned: Option<Box<str>>,
}

/// The backend has lost touch with where an execution is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Since when; a time that lies ahead is when it would be overdue.
    pub since: Timestamp,
    /// What is not heard of, for people.
    pub why: String,
}

/// How far an execution is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It exists and cannot run before it is released.
    Prepared,
    /// Released; nothing shows of it yet.
    Released,
    /// Released; the main process was not seen to start.
    Waiting {
        /// What is waited for, for people.
        why: String,
        /// What kept it from starting, where the backend failed to start it and goes on trying.
        failure: Option<StartFailure>,
    },
    /// The main process runs.
    Running {
        /// When it started, by the backend's clock.
        started_at: Timestamp,
    },
    /// The main process is over, or was never started and never will be: there is evidence for a verdict.
    Ended(End),
    /// It is proven that our kind of stop (a limit of the backend's own) ended it, without a word on how the main
    /// process ended.
    Stopped,
    /// Nothing is left of it that could run or be stopped, and nothing says how the main process ended, or whether: a
    /// node that was given up may run it on. After our stop that is its end; before, it is doubt.
    Lost {
        /// What was seen, for people.
        why: String,
    },
    /// Nothing can be proven: neither that it runs nor that it is over.
    Unknown {
        /// What was seen, for people.
        why: String,
    },
}

/// Evidence of an end (spec section 6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Whether the task succeeded.
    pub success: bool,
    /// The reason for the condition `Succeeded`.
    pub reason: &'static str,
    /// A sentence for people: no Secret values, no raw backend bodies.
    pub message: String,
    /// The exit code, where a real one was seen.
    pub exit_code: Option<i32>,
    /// When the main process started; None where it never did.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// What an adapter can be asked for. Each is one request to the backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Make the execution, unable to run.
    Prepare,
    /// Let it run; tests the identifier.
    Release {
        /// The recorded identifier.
        id: String,
    },
    /// Give it a limit of its own, which ends it some time after this moment and never before; it leaves alone what has
    /// one, or was stopped; tests the identifier.
    Limit {
        /// The recorded identifier.
        id: String,
        /// The moment.
        ends: Timestamp,
    },
    /// Stop it for good, also where it was not released yet; tests the identifier.
    Stop {
        /// The recorded identifier.
        id: String,
    },
    /// Delete it and what belongs to it; tests the identifier.
    Delete {
        /// The recorded identifier.
        id: String,
    },
    /// Take our finalizer off it; tests the identifier.
    Unprotect {
        /// The recorded identifier.
        id: String,
    },
}

/// The settings object of an adapter, as the store shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settings {
    /// There is none of that name.
    Missing,
    /// It is there, with this UID.
    Present {
        /// Its UID.
        uid: String,
    },
}

/// Whether new executions can be started (spec H2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// They can.
    Ready,
    /// They cannot: a reason from the API's list, and what is awaited.
    NotReady {
        /// The reason for the condition `Ready`.
        reason: &'static str,
        /// What is awaited.
        message: String,
    },
}

/// An adapter.
pub trait Backend: Send + Sync {
    /// The `controllerName` of the classes that it serves.
    fn controller_name(&self) -> &'static str;

    /// The word that stands in `status.execution.adapter`.
    fn adapter(&self) -> &'static str;

    /// The `type` of the reference that an identifier is recorded under (spec A9).
    fn reference_type(&self) -> &'static str;

    /// The settings object that a class names.
    fn settings(&self, reference: &ParametersReference) -> Settings;

    /// Whether new executions can be started with those settings, read live where a watch would need more rights. The
    /// time, if there is one, is when to look again without a change.
    fn readiness<'a>(
        &'a self,
        reference: &'a ParametersReference,
    ) -> BoxFuture<'a, Result<(Readiness, Option<Duration>), CallError>>;

    /// What the watches have shown. No request.
    fn observe(&self, job: &Job) -> Observation;

    /// What the backend says now, read live.
    fn read<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Observation, CallError>>;

    /// What the backend's own records say of an execution that shows nothing: empty where they say nothing.
    fn explain<'a>(&'a self, job: &'a Job, id: &'a str) -> BoxFuture<'a, Result<String, CallError>>;

    /// Sends one request. The answer, where it says something, replaces the observation.
    fn send<'a>(&'a self, job: &'a Job, request: Request) -> BoxFuture<'a, Result<Observation, CallError>>;
}
