//! The rules that keep executions apart, each with what becomes of the controller without it. A model in which one of
//! these is left out must fail: else the rule is for nothing, or the model is blind.

use ayatori_crds::{
    ConditionStatus, Job, JobClass,
    conditions::{self, ACCEPTED, READY, SCHEDULED, STOPPING, SUCCEEDED, Wanted, reason},
    job::{DesiredState, Reference, ResolvedJobClass},
    names::JOB_CLEANUP_FINALIZER,
};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::{
    objects::{FOREIGN, instant},
    state::Ruling,
    told::{is_over, is_stopped},
};
use ayatori_controller::backend::{End, Execution, Observation, Phase, Settings, StartFailure};

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Without {
    /// A status is written under the resourceVersion that was seen.
    StatusVersion,
    /// A finalizer is removed under the UID and the resourceVersion that were seen.
    FinalizerPreconditions,
    /// The TTL deletes under the UID and the resourceVersion that were seen.
    TtlPreconditions,
    /// A release tests the UID of the native Job.
    ReleaseUid,
    /// A release turns a mark, and so takes effect once.
    ReleaseMark,
    /// A native Job is created suspended.
    Suspension,
    /// Its UID is recorded before it is released.
    RecordFirst,
    /// A recorded native Job that is missing is never created again.
    NeverAgain,
    /// A native Job that is not ours is not adopted.
    Ownership,
    /// Our finalizer is on the Job before anything can start.
    FinalizerFirst,
    /// A stop is proven by what is seen, not by having been asked for.
    StopProof,
    /// What was not released yet is stopped too.
    StopPrepared,
    /// A stop is a limit of 0 seconds, which also spoils a release that lands late; 1 second is none.
    StopAtZero,
    /// An absence in a store is read live before it counts.
    LiveAbsence,
    /// What shows nothing is no verdict.
    Evidence,
    /// A task on a node that does not answer may go on, also after a stop.
    LifeInSilence,
    /// Silence that lasts is told.
    DoubtInSilence,
    /// What is heard of again is in doubt no more.
    HeardAgain,
    /// What was gone before our stop is in doubt, whatever is asked for since.
    DoubtBeforeStop,
    /// Only a live look shows that what is to be stopped goes on.
    LookBeforeStop,
    /// A doubt outlives the stop that was recorded in it.
    DoubtRemembered,
    /// A deleted Job gets its verdict before it goes.
    VerdictFirst,
    /// A ruling that the backend is lost counts only on a Job that is in doubt.
    DoubtBeforeRuling,
    /// The execution is read live before a ruling counts.
    LookBeforeRuling,
    /// What that look shows goes before the ruling.
    EvidenceBeforeRuling,
    /// A release waits for the deletion.
    DeletionBeforeRelease,
    /// A create that was refused is tried again.
    RefusedAgain,
    /// A refused create is told, and rests.
    RefusalTold,
    /// The backend's records are asked why an execution shows nothing.
    WhyTold,
    /// A class of the same name and another UID does not take over what was accepted with another one.
    ClassUid,
    /// The same for its settings.
    SettingsUid,
    /// A class that is not ready starts nothing new.
    Readiness,
    /// A class that is not accepted, or is being deleted, accepts nothing.
    AcceptedClass,
    /// What ended after our stop ended by it.
    EndAfterStop,
    /// What ended before our stop ended by itself.
    EndBeforeStop,
    /// What our stop ended keeps the exit code that was seen.
    CodeOfAStop,
    /// What is gone without a word is no failure.
    LossIsNoFailure,
    /// Nor is it a success.
    LossIsNoSuccess,
    /// Nor did it never run.
    LossIsNoRejection,
    /// Only a start that fails is given up.
    FailureBeforeGivingUp,
    /// A deadline is as long as it was asked for.
    WholeDeadline,
    /// A pod that waits may start its task, also where its native Job is being deleted.
    StartWhileDeleted,
}

impl Without {
    /// All of them.
    pub(super) const ALL: [Self; 42] = [
        Self::StatusVersion,
        Self::FinalizerPreconditions,
        Self::TtlPreconditions,
        Self::ReleaseUid,
        Self::ReleaseMark,
        Self::Suspension,
        Self::RecordFirst,
        Self::NeverAgain,
        Self::Ownership,
        Self::FinalizerFirst,
        Self::StopProof,
        Self::StopPrepared,
        Self::StopAtZero,
        Self::LiveAbsence,
        Self::Evidence,
        Self::LifeInSilence,
        Self::DoubtInSilence,
        Self::HeardAgain,
        Self::DoubtBeforeStop,
        Self::LookBeforeStop,
        Self::DoubtRemembered,
        Self::VerdictFirst,
        Self::DoubtBeforeRuling,
        Self::LookBeforeRuling,
        Self::EvidenceBeforeRuling,
        Self::DeletionBeforeRelease,
        Self::RefusedAgain,
        Self::RefusalTold,
        Self::WhyTold,
        Self::ClassUid,
        Self::SettingsUid,
        Self::Readiness,
        Self::AcceptedClass,
        Self::EndAfterStop,
        Self::EndBeforeStop,
        Self::CodeOfAStop,
        Self::LossIsNoFailure,
        Self::LossIsNoSuccess,
        Self::LossIsNoRejection,
        Self::FailureBeforeGivingUp,
        Self::WholeDeadline,
        Self::StartWhileDeleted,
    ];

    /// Whether it takes what it sees for a live look.
    pub(super) fn looks(self, job: &Job) -> bool {
        match self {
            Self::LiveAbsence => true,
            Self::LookBeforeStop => is_unwanted(job) && !is_stopped(job),
            Self::LookBeforeRuling => Ruling::BackendLost.is_on(job),
            _ => false,
        }
    }

    /// What the controller believes of the class without the rule. `accepted` is what the Job was accepted with.
    pub(super) fn class(self, class: &mut JobClass, accepted: Option<&ResolvedJobClass>) {
        let condition = match self {
            Self::ClassUid => {
                class.metadata.uid =
                    accepted.map(|accepted| accepted.uid.clone()).or_else(|| class.metadata.uid.take());
                return;
            }
            Self::Readiness => READY,
            Self::AcceptedClass => ACCEPTED,
            _ => return,
        };
        class.metadata.deletion_timestamp = None;
        let conditions = class.status.iter_mut().flat_map(|status| &mut status.conditions);
        conditions.filter(|found| found.type_ == condition).for_each(|found| found.status = ConditionStatus::True);
    }

    /// What it believes of the settings.
    pub(super) fn settings(self, settings: &mut Settings, accepted: Option<&ResolvedJobClass>) {
        let pinned = accepted.and_then(|accepted| accepted.parameters_ref.uid.as_ref());
        if let (Self::SettingsUid, Settings::Present { uid }, Some(pinned)) = (self, settings, pinned) {
            uid.clone_from(pinned);
        }
    }

    /// What the controller believes of the Job without the rule.
    pub(super) fn job(self, job: &mut Job, observation: &Observation) {
        match self {
            Self::RecordFirst | Self::NeverAgain => {
                let Some(execution) = job.status.as_mut().and_then(|status| status.execution.as_mut()) else { return };
                match observation {
                    Observation::Present(seen) if self == Self::RecordFirst && execution.references.is_empty() => {
                        execution.references.push(Reference { type_: "Job".to_owned(), id: seen.id.clone() });
                    }
                    Observation::Absent if self == Self::NeverAgain => execution.references.clear(),
                    Observation::Present(seen) if self == Self::NeverAgain => {
                        execution.references.retain(|reference| reference.id == seen.id);
                    }
                    _ => {}
                }
            }
            Self::FinalizerFirst if job.metadata.deletion_timestamp.is_none() => {
                job.metadata.finalizers = Some(vec![JOB_CLEANUP_FINALIZER.to_owned()]);
            }
            Self::VerdictFirst if job.metadata.deletion_timestamp.is_some() => {
                if let Some(status) = job.status.as_mut() {
                    status.completion_time.get_or_insert_with(|| Time(instant(0)));
                }
            }
            Self::DoubtBeforeStop if is_unwanted(job) && is_gone(observation) => {
                forget_doubt(job);
                let (generation, status) = (job.metadata.generation, job.status.get_or_insert_default());
                let message = "cancelled".to_owned();
                let stop =
                    Wanted { type_: STOPPING, status: ConditionStatus::True, reason: reason::CANCELLED, message };
                conditions::set(&mut status.conditions, stop, generation, instant(0));
            }
            Self::DoubtRemembered if is_unwanted(job) && is_stopped(job) && is_gone(observation) => forget_doubt(job),
            Self::DoubtBeforeRuling if Ruling::BackendLost.is_on(job) => {
                let status = job.status.get_or_insert_default();
                if let Some(said) = status.conditions.iter_mut().find(|condition| condition.type_ == SUCCEEDED) {
                    said.reason = reason::RESULT_UNKNOWN.to_owned();
                }
            }
            Self::WholeDeadline => job.spec.active_deadline_seconds = job.spec.active_deadline_seconds.map(|_| 0),
            Self::DeletionBeforeRelease if Ruling::Released.is_on(job) => {
                job.metadata.deletion_timestamp.get_or_insert_with(|| Time(instant(0)));
            }
            _ => {}
        }
    }

    /// What it believes of the execution. `limit` is the native Job's own.
    pub(super) fn observation(self, job: &Job, observation: &mut Observation, limit: Option<i64>) {
        let stopping = is_stopped(job);
        if self == Self::Ownership && *observation == Observation::Foreign {
            *observation = Observation::Present(Execution {
                id: FOREIGN.to_owned(),
                phase: Phase::Prepared,
                stop_requested: false,
                deletion_requested: false,
                protected: false,
                silence: None,
                limited: false,
                limit_reached: None,
                copies: 0,
                orphaned: None,
            });
        }
        let was_refused = conditions::find(job.conditions(), SCHEDULED).filter(|c| c.reason == reason::BACKEND_REFUSED);
        match (self, &*observation, was_refused) {
            (Self::RefusedAgain, Observation::Absent, Some(told)) => {
                *observation = Observation::Refused { why: told.message.clone() };
            }
            (Self::RefusalTold, Observation::Refused { .. }, _) => *observation = Observation::Absent,
            _ => {}
        }
        let Observation::Present(execution) = observation else { return };
        let cancelled = job.spec.desired_state == DesiredState::Cancelled;
        match (self, &execution.phase) {
            (Self::StopAtZero, _) => execution.stop_requested |= limit == Some(1),
            (Self::StopPrepared, Phase::Prepared) if cancelled => execution.stop_requested = true,
            (Self::LifeInSilence, _) if stopping && execution.silence.is_some() => {
                execution.phase = Phase::Lost { why: "its node is silent".to_owned() };
            }
            (Self::EvidenceBeforeRuling, _) if Ruling::BackendLost.is_on(job) => {
                execution.phase = Phase::Unknown { why: "the ruling says so".to_owned() };
            }
            (Self::DoubtInSilence, _) => execution.silence = None,
            (Self::HeardAgain, Phase::Running { .. }) if conditions::says_unknown(job.conditions()) => {
                execution.phase = Phase::Unknown { why: "it was in doubt before".to_owned() };
            }
            (Self::StopProof, _) if stopping && execution.stop_requested => execution.phase = Phase::Stopped,
            (Self::Evidence, Phase::Unknown { .. }) => {
                execution.phase = without_evidence(reason::PROCESS_FAILED, Some(1));
            }
            (Self::LossIsNoFailure, Phase::Lost { .. }) => {
                execution.phase = without_evidence(reason::PROCESS_FAILED, None);
            }
            (Self::LossIsNoSuccess, Phase::Lost { .. }) => {
                execution.phase = without_evidence(reason::COMPLETED, None);
            }
            (Self::LossIsNoRejection, Phase::Lost { .. }) => {
                execution.phase = without_evidence(reason::REJECTED, None);
            }
            (Self::FailureBeforeGivingUp, Phase::Released) => {
                let failure = Some(StartFailure::ImageNotPresent);
                execution.phase = Phase::Waiting { why: "nothing shows of it".to_owned(), failure };
            }
            (Self::StartWhileDeleted, Phase::Waiting { .. }) if execution.deletion_requested && !stopping => {
                execution.phase = Phase::Unknown { why: "it cannot start any more".to_owned() };
            }
            _ => {}
        }
        let Phase::Ended(end) = &mut execution.phase else { return };
        match self {
            Self::EndAfterStop => end.finished_at = instant(0).checked_sub(SignedDuration::from_secs(1)).ok(),
            Self::EndBeforeStop => end.finished_at = None,
            Self::CodeOfAStop if stopping => end.exit_code = None,
            _ => {}
        }
    }

    /// What it sends instead.
    pub(super) fn patch(self, body: &mut Value) {
        let Value::Array(operations) = body else { return };
        let on = |operation: &Value, end: &str| operation["path"].as_str().is_some_and(|path| path.ends_with(end));
        match self {
            Self::FinalizerPreconditions if operations.iter().any(|operation| operation["op"] == "remove") => {
                operations.retain(|operation| !on(operation, "/uid") && !on(operation, "/resourceVersion"));
            }
            Self::ReleaseUid if operations.iter().any(|operation| on(operation, "/suspend")) => {
                operations.retain(|operation| !on(operation, "/uid"));
            }
            Self::ReleaseMark if operations.iter().any(|operation| on(operation, "/suspend")) => {
                operations.retain(|operation| !(operation["op"] == "test" && on(operation, "released")));
            }
            Self::StopAtZero => {
                for operation in operations.iter_mut().filter(|operation| on(operation, "/activeDeadlineSeconds")) {
                    operation["value"] = 1.into();
                }
            }
            _ => {}
        }
    }
}

/// An end that nothing showed.
fn without_evidence(reason: &'static str, exit_code: Option<i32>) -> Phase {
    let message = "nothing is seen of it any more".to_owned();
    let success = reason == reason::COMPLETED;
    Phase::Ended(End { success, reason, message, exit_code, started_at: None, finished_at: None })
}

fn forget_doubt(job: &mut Job) {
    let conditions = job.status.iter_mut().flat_map(|status| &mut status.conditions);
    for said in conditions.filter(|condition| condition.type_ == SUCCEEDED) {
        said.reason = reason::RUNNING.to_owned();
    }
}

/// An accepted Job that is not over, and cancelled or deleted.
fn is_unwanted(job: &Job) -> bool {
    let unwanted = job.spec.desired_state == DesiredState::Cancelled || job.metadata.deletion_timestamp.is_some();
    unwanted && !is_over(job) && conditions::is_true(job.conditions(), ACCEPTED)
}

fn is_gone(observation: &Observation) -> bool {
    match observation {
        Observation::Absent => true,
        Observation::Present(execution) => matches!(execution.phase, Phase::Lost { .. }),
        Observation::Foreign | Observation::Refused { .. } => false,
    }
}
