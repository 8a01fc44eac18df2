//! What the backend refuses, and what it has under a name of ours (spec D1, D5): told, and tried again later.

use super::*;

#[test]
fn a_refused_create_is_told_and_tried_again_later() {
    let refused = Observation::Refused { why: "exceeded quota".into() };
    let mut accepted = job("accepted", json!({}));
    let step = next(&accepted, refused.clone(), false);
    assert_eq!(says(&step, "Scheduled"), "False/BackendRefused");
    accepted.status = Some(written(step));
    assert_eq!(next(&accepted, refused, false), Step::WaitUntil(time("2026-01-01T00:10:30Z")));
}

#[test]
fn a_refused_release_is_told_and_tried_again_later() {
    let refused = Observation::Refused { why: "denied by policy".into() };
    let scheduled = job("scheduled", json!({}));
    let told = Job { status: Some(written(next(&scheduled, refused.clone(), false))), ..scheduled };
    assert_eq!(said(&told), "Unknown/Scheduling: its release is refused: denied by policy");
    assert!(conditions::is_true(told.conditions(), conditions::SCHEDULED), "it exists (I4)");
    let rest = Step::WaitUntil(time("2026-01-01T00:10:30Z"));
    assert_eq!(next(&told, refused.clone(), false), rest);
    let cancelled = job("scheduled", json!({"spec": {"desiredState": "Cancelled"}}));
    assert_eq!(next(&cancelled, refused, false), Step::ReadExecution, "whether it is released is read");
}

#[test]
fn a_name_that_is_taken_is_tried_again_later() {
    let (told, step) = settled(job("accepted", json!({})), &Observation::Foreign);
    assert_eq!(step, Step::WaitUntil(time("2026-01-01T00:10:30Z")), "what is not ours is not watched");
    assert_eq!(conditions::find(told.conditions(), "Scheduled").unwrap().reason, "NameConflict");
}
