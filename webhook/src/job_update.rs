//! UPDATE of a Job (spec B5).
//!
//! Everything that a class speaks of is fixed at creation, by CEL. So an UPDATE needs no look-ups, and policy that became
//! stricter locks no existing Job: only a TTL that changed is judged, by the platform's policy.

use ayatori_crds::JobSpec;
use ayatori_crds::job::DesiredState;
use ayatori_crds::rules::{FieldError, Policy, same_spec};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::answer::Subject;
use crate::job_validate::{Sent, undecodable, warn_of_ttl};
use crate::outline::Outline;
use crate::{Answer, Request, Warnings};

/// A Job as it is stored.
#[derive(Deserialize)]
struct Held {
    spec: JobSpec,
    #[serde(default)]
    status: HeldStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeldStatus {
    completion_time: Option<IgnoredAny>,
}

/// The verdict on the change from `old` to `object`.
pub(crate) fn update(request: &Request<'_>, object: &RawValue, old: &RawValue, policy: &Policy) -> Answer {
    let old_outline = Outline::of(old);
    if Outline::of(object).same_text(&old_outline) {
        return Answer::allowed();
    }
    let new = match serde_json::from_str::<Sent>(object.get()) {
        Ok(Sent { spec }) => spec,
        Err(error) => return undecodable(&error),
    };
    // What was stored under an older schema and cannot be read any more has nothing to be compared with.
    let Ok(Held { spec: held, status }) = serde_json::from_str(old.get()) else { return Answer::allowed() };
    if same_spec::of_jobs(&new, &held) {
        return Answer::allowed();
    }
    let refuse = |fault: FieldError| Answer::invalid(&Subject::of(request), &[fault]);
    // An edit that is accepted takes effect (F4); none would here.
    if old_outline.is_deleting() {
        return refuse(FieldError::forbidden("spec", "the Job is being deleted: its spec may not change any more"));
    }
    let mut warnings = Warnings::default();
    if new.ttl_seconds_after_finished != held.ttl_seconds_after_finished {
        if let Some(fault) = policy.ttl_error(new.ttl_seconds_after_finished) {
            return refuse(fault);
        }
        warn_of_ttl(&new, &mut warnings);
    }
    let cancelled = new.desired_state == DesiredState::Cancelled && held.desired_state != DesiredState::Cancelled;
    if cancelled && status.completion_time.is_some() {
        warnings.add("the Job is over already: cancelling it changes nothing");
    }
    Answer::patched(json_patch::Patch::default(), warnings)
}
