//! When a finished Job goes: pure.

use ayatori_crds::{Job, JobState};
use jiff::Timestamp;

/// What is next for a Job's TTL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Its time was over at this moment: delete it, if a live read still says so.
    Delete(Timestamp),
    /// Its time is over at this moment.
    WaitUntil(Timestamp),
    /// It has no TTL, is not over, or is going already.
    Nothing,
}

/// Decides by what is seen. The TTL counts from `completionTime`, in the three terminal states only.
#[must_use]
pub fn decide(job: &Job, now: Timestamp) -> Step {
    let completion = job.status.as_ref().and_then(|status| status.completion_time.as_ref());
    let (Some(completion), Some(ttl)) = (completion, job.spec.ttl_seconds_after_finished) else { return Step::Nothing };
    if !JobState::of(job).is_terminal() {
        return Step::Nothing;
    }
    // An expiry past what a Timestamp holds is no expiry.
    let Ok(expiry) = Timestamp::from_second(completion.0.as_second().saturating_add(i64::from(ttl))) else {
        return Step::Nothing;
    };
    if now >= expiry { Step::Delete(expiry) } else { Step::WaitUntil(expiry) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(ttl: Option<i32>, succeeded: &str, deleting: bool) -> Job {
        let completion = (succeeded != "Unknown").then_some("2026-01-01T00:00:00Z");
        serde_json::from_value(json!({
            "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "Job",
            "metadata": {"name": "j", "deletionTimestamp": deleting.then_some("2026-01-01T00:00:00Z")},
            "spec": {"task": {"image": "app:1"}, "ttlSecondsAfterFinished": ttl},
            "status": {"completionTime": completion, "conditions": [{
                "type": "Succeeded", "status": succeeded, "reason": "X", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]},
        }))
        .unwrap()
    }

    fn at(second: i64) -> Timestamp {
        let completion: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        Timestamp::from_second(completion.as_second() + second).unwrap()
    }

    #[test]
    fn a_finished_job_goes_exactly_when_its_time_is_over() {
        assert_eq!(decide(&job(Some(10), "True", false), at(9)), Step::WaitUntil(at(10)));
        assert_eq!(decide(&job(Some(10), "True", false), at(11)), Step::Delete(at(10)));
        assert_eq!(decide(&job(Some(0), "False", false), at(0)), Step::Delete(at(0)));
    }

    #[test]
    fn what_is_not_over_has_no_ttl_or_goes_already_is_left_alone() {
        assert_eq!(decide(&job(Some(0), "Unknown", false), at(99)), Step::Nothing);
        assert_eq!(decide(&job(None, "True", false), at(99)), Step::Nothing);
        assert_eq!(decide(&job(Some(0), "True", true), at(99)), Step::Nothing);
    }
}
