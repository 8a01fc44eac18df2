//! The native Job's own limit (spec F2): it holds a deadline while the controller is away, and never before ours. Pure.

use jiff::{SignedDuration, Timestamp};

use super::objects::{NativeJob, condition_is_true};

/// How much later than the deadline it fires. It counts by the clock of another process from the release, in whole
/// seconds: clocks of a cluster differ by less than this.
const SLACK: SignedDuration = SignedDuration::from_secs(60);

/// The limit, in seconds from the release, of an execution whose time ends then.
#[must_use]
pub fn seconds(native: &NativeJob, ends: Timestamp) -> i64 {
    // The earlier of both, so that the limit is rather too long. The creation is by the API server's clock.
    let created = native.metadata.creation_timestamp.as_ref();
    let counted_from = [created, native.status.start_time.as_ref()].into_iter().flatten().min();
    let from = counted_from.map_or(ends, |time| time.0);
    ends.duration_since(from).saturating_add(SLACK).as_secs().saturating_add(1).max(1)
}

/// When the native Job's limit ended it, whether its pod is over by now or not.
pub(super) fn reached(native: &NativeJob) -> Option<Timestamp> {
    let conditions = &native.status.conditions;
    let of_limit =
        |type_| condition_is_true(conditions, type_).filter(|c| c.reason.as_deref() == Some("DeadlineExceeded"));
    let condition = of_limit("FailureTarget").or_else(|| of_limit("Failed"))?;
    condition.last_transition_time.as_ref().map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn native(status: Value) -> NativeJob {
        serde_json::from_value(json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "status": status}))
            .unwrap()
    }

    #[test]
    fn the_limit_counts_from_the_release_and_leaves_slack() {
        let ends = "2026-01-01T00:10:00Z".parse().unwrap();
        assert_eq!(seconds(&native(json!({"startTime": "2026-01-01T00:00:05Z"})), ends), 661);
        assert_eq!(seconds(&native(json!({})), ends), 661, "its creation was no later");
        assert_eq!(seconds(&NativeJob::default(), ends), 61);
    }

    #[test]
    fn what_a_limit_ended_says_when() {
        let said = |type_: &str, reason: &str| {
            let condition = json!({"type": type_, "status": "True", "reason": reason, "lastTransitionTime": "2026-01-01T00:11:01Z"});
            reached(&native(json!({"conditions": [condition]}))).map(|time| time.to_string())
        };
        assert_eq!(said("FailureTarget", "DeadlineExceeded").as_deref(), Some("2026-01-01T00:11:01Z"));
        assert_eq!(said("Failed", "DeadlineExceeded").as_deref(), Some("2026-01-01T00:11:01Z"));
        assert_eq!(said("Failed", "BackoffLimitExceeded"), None);
    }

    proptest! {
        /// Whatever the clocks say, in whole seconds: what fires after that many seconds fires after the deadline.
        #[test]
        fn the_limit_never_fires_before_the_deadline(created in 0_i64..1_000, release in 0_i64..1_000, end in 0_i64..100_000) {
            let at = |second| Timestamp::from_second(second).unwrap();
            let mut native = native(json!({"startTime": at(created + release).to_string()}));
            native.metadata.creation_timestamp = serde_json::from_value(json!(at(created).to_string())).unwrap();
            let ends = at(created + release + end);
            prop_assert!(at(created + release + seconds(&native, ends)) > ends);
        }
    }
}
