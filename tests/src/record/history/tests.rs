//! The checker can fail: made-up lists of versions, each with one thing wrong.

use serde_json::{Value, json};

use super::*;
use crate::record::Invariant as I;

/// A version of the Job with UID `u`: its facts, and what is changed about them.
fn version(number: u64, facts: &str) -> Value {
    let has = |fact: &str| facts.split(' ').any(|word| word == fact);
    let mut conditions = vec![];
    let mut says = |type_: &str, status: &str, reason: &str| {
        conditions.push(json!({"type": type_, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:10Z"}));
    };
    if has("accepted") {
        says("Accepted", "True", "Valid");
    }
    if has("scheduled") {
        says("Scheduled", "True", "BackendCreated");
    }
    if has("stopping") {
        says("Stopping", "True", "Cancelled");
    }
    let (status, reason) = match () {
        () if has("completed") => ("True", "Completed"),
        () if has("cancelled") => ("False", "Cancelled"),
        () if has("running") => ("Unknown", "Running"),
        () if has("accepted") => ("Unknown", "Scheduling"),
        () => ("Unknown", "Pending"),
    };
    says("Succeeded", status, reason);
    let over = status != "Unknown";
    let reference = json!([{"type": "Job", "id": "native"}]);
    json!({
        "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "Job",
        "metadata": {
            "name": "job", "namespace": "test", "uid": "u", "generation": 1, "resourceVersion": number.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["execution.ayatori.ddupan.top/job-cleanup"],
            "deletionTimestamp": has("deleting").then_some("2026-01-01T00:01:00Z"),
        },
        "spec": {"task": {"image": "app:1"}, "desiredState": if has("cancel") { "Cancelled" } else { "Running" }},
        "status": {
            "observedGeneration": 1, "conditions": conditions,
            "resolvedJobClass": has("accepted").then(|| json!({"name": "standard", "uid": "c",
                "controllerName": "c", "parametersRef": {"group": "g", "kind": "k", "name": "n"}})),
            "execution": has("accepted").then(|| json!({"adapter": "kubernetes",
                "references": if has("scheduled") { reference } else { json!([]) }})),
            "startTime": has("running").then_some("2026-01-01T00:00:20Z"),
            "completionTime": over.then_some("2026-01-01T00:00:30Z"),
            "result": over.then(|| json!({"exitCode": 0, "reason": reason})),
        },
    })
}

fn job(version: &Value) -> Box<Job> {
    Box::new(serde_json::from_value(version.clone()).unwrap())
}

/// A whole life without fault.
fn life() -> Vec<Value> {
    let facts = ["new", "accepted", "accepted scheduled", "accepted scheduled running"];
    let ends = ["accepted scheduled running completed", "accepted scheduled running completed deleting"];
    facts.iter().chain(&ends).zip(1..).map(|(facts, number)| version(number, facts)).collect()
}

/// What these versions break, by number.
fn broken(versions: &[Value]) -> Vec<Invariant> {
    let mut history = History::default();
    versions.iter().for_each(|version| history.see(Seen::Version(job(version))));
    of(&history)
}

fn of(history: &History) -> Vec<Invariant> {
    history.lives.values().flat_map(|life| &life.broken).map(|broken| broken.invariant).collect()
}

/// A life in which one version, and all after it, have another value at a path.
fn with(from: usize, path: &str, value: Value) -> Vec<Value> {
    let mut versions = life();
    for version in &mut versions[from..] {
        let (parent, key) = path.rsplit_once('/').unwrap();
        let parent = version.pointer_mut(parent).unwrap();
        match parent {
            Value::Array(list) => list[key.parse::<usize>().unwrap()] = value.clone(),
            parent => parent[key] = value.clone(),
        }
    }
    versions
}

#[test]
fn a_life_without_fault_breaks_nothing() {
    assert_eq!(broken(&life()), []);
    let cancelled = ["new", "accepted cancel", "accepted scheduled stopping cancel"];
    let versions: Vec<Value> = cancelled.iter().map(|facts| version(1, facts)).collect();
    assert_eq!(broken(&versions), []);
    assert_eq!(
        broken(&[version(1, "cancel"), version(2, "cancelled cancel"), version(3, "cancelled cancel deleting")]),
        []
    );
}

#[test]
fn each_broken_invariant_is_found_in_the_version_that_breaks_it() {
    let pairs: [(&str, Vec<Value>, I); 21] = [
        ("a second process", with(3, "/status/conditions/0/type", json!("DuplicateExecution")), I::I1),
        (
            "a second reference",
            with(
                3,
                "/status/execution/references",
                json!([{"type": "Job", "id": "native"}, {"type": "Job", "id": "another"}]),
            ),
            I::I1,
        ),
        ("another verdict's message", with(5, "/status/conditions/2/message", json!("later")), I::I2),
        ("another exit code", with(5, "/status/result/exitCode", json!(1)), I::I2),
        ("a start that moves", with(4, "/status/startTime", json!("2026-01-01T00:00:21Z")), I::I3),
        ("a start that goes", with(4, "/status/startTime", Value::Null), I::I3),
        ("an end that moves", with(5, "/status/completionTime", json!("2026-01-01T00:00:31Z")), I::I3),
        ("an end before the start", with(4, "/status/completionTime", json!("2026-01-01T00:00:19Z")), I::I3),
        ("a start before the creation", with(3, "/status/startTime", json!("2025-12-31T00:00:00Z")), I::I3),
        ("a start without Scheduled", with(3, "/status/conditions/1/status", json!("False")), I::I4),
        ("Scheduled without a reference", with(2, "/status/execution/references", json!([])), I::I4),
        ("Accepted that goes back", with(4, "/status/conditions/0/status", json!("False")), I::I4),
        ("a completionTime before the end", with(3, "/status/completionTime", json!("2026-01-01T00:00:30Z")), I::I5),
        ("an end without a completionTime", with(4, "/status/completionTime", Value::Null), I::I5),
        ("another reference", with(3, "/status/execution/references/0/id", json!("another")), I::I6),
        ("another class", with(3, "/status/resolvedJobClass/uid", json!("d")), I::I6),
        ("no finalizer while it may run", with(3, "/metadata/finalizers", json!([])), I::I8),
        ("a word that is none", with(1, "/status/conditions/0/reason", json!("Whatever")), I::A9),
        ("a generation of the future", with(3, "/status/observedGeneration", json!(2)), I::A9),
        ("a result that says something else", with(4, "/status/result/reason", json!("Cancelled")), I::A9),
        (
            "no Succeeded",
            with(
                1,
                "/status/conditions",
                json!([{"type": "Accepted", "status": "True",
            "reason": "Valid", "message": "", "lastTransitionTime": "2026-01-01T00:00:10Z"}]),
            ),
            I::C4,
        ),
    ];
    for (what, versions, invariant) in pairs {
        let broken = broken(&versions);
        assert!(broken.contains(&invariant), "{what}: {broken:?}");
    }
}

#[test]
fn a_state_that_the_table_does_not_allow_is_found() {
    let back = [version(1, "accepted scheduled running"), version(2, "accepted scheduled")];
    assert!(broken(&back).contains(&I::Transitions));
    let undone =
        [version(1, "accepted scheduled running completed"), version(2, "accepted scheduled running cancelled")];
    let found = broken(&undone);
    assert!(found.contains(&I::Transitions) && found.contains(&I::I2), "{found:?}");
}

#[test]
fn a_cause_that_changes_and_a_condition_that_goes_are_found() {
    let first = version(1, "accepted scheduled stopping cancel");
    let mut other = first.clone();
    other["status"]["conditions"][2]["reason"] = json!("DeadlineExceeded");
    assert_eq!(broken(&[first.clone(), other]), [I::I6]);
    assert_eq!(broken(&[first.clone(), version(2, "accepted scheduled cancel")]), [I::A9]);
    let mut moved = first.clone();
    moved["status"]["conditions"][3]["lastTransitionTime"] = json!("2026-01-01T00:00:11Z");
    assert_eq!(broken(&[first, moved]), [I::A9]);
}

#[test]
fn two_jobs_with_one_execution_are_found() {
    let mut again = version(2, "accepted scheduled");
    again["metadata"]["uid"] = json!("v");
    assert_eq!(broken(&[version(1, "accepted scheduled"), again]), [I::I10]);
}

#[test]
fn a_status_that_is_written_again_and_again_is_found_once() {
    let says = |number: usize| {
        let mut version = version(1, "accepted scheduled running");
        version["status"]["conditions"][2]["message"] = json!(number.to_string());
        version
    };
    let many: Vec<Value> = (1..STATUS_VERSIONS * 2).map(says).collect();
    assert_eq!(broken(&many[..STATUS_VERSIONS - 1]), []);
    assert_eq!(broken(&many), [I::I12]);
    // Edits of others are no writes of ours.
    let edit = |number: u64| version(number, "accepted scheduled running");
    assert_eq!(broken(&(1..100).map(edit).collect::<Vec<_>>()), []);
}

#[test]
fn a_job_that_goes_while_its_execution_may_live_is_found_unless_the_test_has_said_so() {
    let gone = |facts: &str, tolerated: &[Invariant]| {
        let mut history = History::default();
        tolerated.iter().for_each(|invariant| history.tolerate("test", *invariant));
        history.see(Seen::Version(job(&version(1, facts))));
        history.see(Seen::Gone(job(&version(2, facts))));
        history.take_broken("test")
    };
    let told = gone("accepted scheduled running deleting", &[]);
    assert!(told.len() == 1 && told[0].contains("I8") && told[0].contains("version 2: Deleting"), "{told:?}");
    assert_eq!(gone("accepted scheduled running deleting", &[I::I8]), Vec::<String>::new());
    assert_eq!(gone("accepted scheduled running completed deleting", &[]), Vec::<String>::new());
    assert_eq!(gone("new deleting", &[]), Vec::<String>::new());
}

#[test]
fn what_a_test_leaves_is_told_by_the_next_one_and_then_forgotten() {
    let mut history = History::default();
    history.see(Seen::Version(job(&version(1, "accepted scheduled running"))));
    assert_eq!(history.take_broken("test"), Vec::<String>::new());
    let followed = |newest, gone| BTreeMap::from([("u".to_owned(), Followed { newest, gone })]);
    assert_eq!(history.seen("test"), followed(1, false));
    history.see(Seen::Gone(job(&version(2, "accepted scheduled running deleting"))));
    assert_eq!(history.seen("test"), followed(2, true), "until it is told");
    assert_eq!(history.take_broken("later").len(), 1);
    assert!(history.lives.is_empty());
}

#[test]
fn missed_versions_are_told() {
    let mut history = History::default();
    history.see(Seen::Gap("expired".to_owned()));
    assert_eq!(history.take_broken("test"), ["expired"]);
}
