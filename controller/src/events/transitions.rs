//! Which Events follow from a status write: pure, from the conditions before and after it.

use ayatori_crds::{
    Condition, ConditionStatus,
    conditions::{
        ACCEPTED, BACKEND_LOST, DEFAULT_CONFLICT, DUPLICATE_EXECUTION, READY, SCHEDULED, STALLED, STOPPING, SUCCEEDED,
        TERMINATING, find, reason,
    },
};

/// What an Event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told<'a> {
    /// `Normal` or `Warning`.
    pub(super) type_: &'static str,
    /// What was being done when the condition changed.
    pub(super) action: &'static str,
    /// The condition's reason.
    pub(super) reason: &'a str,
    /// The condition's message.
    pub(super) note: &'a str,
}

/// An Event for each condition whose status or reason is another one than before: another message alone is none.
pub(super) fn between<'a>(before: &[Condition], after: &'a [Condition]) -> Vec<Told<'a>> {
    let is_as_before = |now: &Condition| {
        find(before, &now.type_).is_some_and(|then| (then.status, &then.reason) == (now.status, &now.reason))
    };
    after.iter().filter(|now| !is_as_before(now)).filter_map(told).collect()
}

/// None where another condition says it, or where it is not ours to say.
fn told(condition: &Condition) -> Option<Told<'_>> {
    let (is, reason) = (condition.status, condition.reason.as_str());
    let (warns, action) = match condition.type_.as_str() {
        ACCEPTED => (is != ConditionStatus::True, "Accepting"),
        SCHEDULED => (is != ConditionStatus::True, "Scheduling"),
        // Accepted and Scheduled say it.
        SUCCEEDED if [reason::PENDING, reason::SCHEDULING].contains(&reason) => return None,
        SUCCEEDED => (![reason::RUNNING, reason::COMPLETED, reason::CANCELLED].contains(&reason), "Executing"),
        DUPLICATE_EXECUTION => (true, "Executing"),
        STOPPING => (reason != reason::CANCELLED, "Stopping"),
        STALLED => (is == ConditionStatus::True, "Starting"),
        // Ours is only to turn the ruling down.
        BACKEND_LOST if is == ConditionStatus::False => (true, "Ruling"),
        READY => (is != ConditionStatus::True, "Probing"),
        DEFAULT_CONFLICT => (is == ConditionStatus::True, "Defaulting"),
        TERMINATING => (false, "Terminating"),
        _ => return None,
    };
    Some(Told { type_: if warns { "Warning" } else { "Normal" }, action, reason, note: &condition.message })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Conditions by words such as `Accepted=True/Valid`.
    fn conditions(words: &str) -> Vec<Condition> {
        let condition = |word: &str| {
            let (type_, rest) = word.split_once('=').unwrap();
            let (status, reason) = rest.split_once('/').unwrap();
            let time = "2026-01-01T00:00:00Z";
            let value =
                json!({"type": type_, "status": status, "reason": reason, "message": word, "lastTransitionTime": time});
            serde_json::from_value(value).unwrap()
        };
        words.split_whitespace().map(condition).collect()
    }

    fn said(before: &str, after: &str) -> String {
        let (before, after) = (conditions(before), conditions(after));
        let told = between(&before, &after);
        told.iter().map(|it| format!("{} {}: {}", it.type_, it.action, it.reason)).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn each_write_of_a_life_tells_what_is_new_in_it() {
        let accepted = "Accepted=True/Valid Succeeded=Unknown/Scheduling";
        let scheduled = "Accepted=True/Valid Succeeded=Unknown/Scheduling Scheduled=True/BackendCreated";
        let running = "Accepted=True/Valid Succeeded=Unknown/Running Scheduled=True/BackendCreated";
        for (before, after, expected) in [
            ("", "Accepted=False/JobClassNotFound Succeeded=Unknown/Pending", "Warning Accepting: JobClassNotFound"),
            ("Accepted=False/JobClassNotFound Succeeded=Unknown/Pending", accepted, "Normal Accepting: Valid"),
            ("Accepted=False/JobClassNotFound", "Accepted=False/InvalidTask", "Warning Accepting: InvalidTask"),
            (accepted, "Scheduled=False/BackendRefused", "Warning Scheduling: BackendRefused"),
            (accepted, scheduled, "Normal Scheduling: BackendCreated"),
            (scheduled, running, "Normal Executing: Running"),
            (running, running, ""),
            (running, "Succeeded=True/Completed", "Normal Executing: Completed"),
            (running, "Succeeded=False/ProcessFailed", "Warning Executing: ProcessFailed"),
            (running, "Succeeded=Unknown/ResultUnknown", "Warning Executing: ResultUnknown"),
            ("Succeeded=Unknown/ResultUnknown", "Succeeded=Unknown/Running", "Normal Executing: Running"),
            // Seen to start and to end at once: one write, one Event.
            (scheduled, "Succeeded=False/OutOfMemory", "Warning Executing: OutOfMemory"),
            ("", "Succeeded=False/Cancelled", "Normal Executing: Cancelled"),
            (running, "Stopping=True/Cancelled Succeeded=Unknown/Running", "Normal Stopping: Cancelled"),
            (running, "Stopping=True/DeadlineExceeded", "Warning Stopping: DeadlineExceeded"),
            (scheduled, "Stalled=True/ImageNotFound", "Warning Starting: ImageNotFound"),
            ("Stalled=True/ImageNotFound", "Stalled=False/Progressing", "Normal Starting: Progressing"),
            (
                running,
                "DuplicateExecution=True/DuplicateExecution Succeeded=Unknown/Running",
                "Warning Executing: DuplicateExecution",
            ),
            ("BackendLost=True/Ruling", "BackendLost=False/NotResultUnknown", "Warning Ruling: NotResultUnknown"),
            // An administrator's own words.
            ("", "BackendLost=True/Ruling Released=True/Ruling", ""),
        ] {
            assert_eq!(said(before, after), expected, "{before} → {after}");
        }
    }

    #[test]
    fn a_class_tells_what_becomes_of_it() {
        for (before, after, expected) in [
            (
                "",
                "Accepted=True/Accepted Ready=True/BackendReachable",
                "Normal Accepting: Accepted, Normal Probing: BackendReachable",
            ),
            (
                "Ready=True/BackendReachable",
                "Ready=False/RuntimeClassNotFound",
                "Warning Probing: RuntimeClassNotFound",
            ),
            ("", "DefaultConflict=True/AmbiguousDefaultJobClass", "Warning Defaulting: AmbiguousDefaultJobClass"),
            ("DefaultConflict=True/A", "DefaultConflict=False/NoConflict", "Normal Defaulting: NoConflict"),
            ("", "Terminating=True/JobsRemaining", "Normal Terminating: JobsRemaining"),
            ("Terminating=True/JobsRemaining", "Terminating=True/JobsRemaining", ""),
        ] {
            assert_eq!(said(before, after), expected, "{before} → {after}");
        }
    }

    #[test]
    fn another_message_alone_is_no_transition() {
        let before = conditions("Succeeded=Unknown/Running");
        let mut after = before.clone();
        after[0].message = "node n1 has not answered".into();
        assert_eq!(between(&before, &after), []);
    }
}
