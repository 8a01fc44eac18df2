//! Updates of a Job's status (A4, section 9): its life as it may be, and every way in which a writer could break it.

use serde_json::{Value, json};

use super::{Changes, Row, Rule, changed};
use crate::kinds::{Kind, condition};

pub(crate) const FINAL: &str = "never changes once it is set";
pub(crate) const KEPT: &str = "is never removed once it is set";
const ACCEPTED: &str = "/conditions/0";
pub(crate) const SCHEDULED: &str = "/conditions/1";
const SUCCEEDED: &str = "/conditions/2";

pub(crate) fn rows() -> Vec<Row> {
    [times(), outcome(), additions(), result_and_class(), parts()].concat()
}

pub(crate) fn rule(field: &str, message: &str) -> Rule {
    Rule::new(Kind::Job, field, message)
}

/// Rows of one rule: the status before, and what the update changes in it. The place "" is the whole status.
pub(crate) fn status_rows(rule: &Rule, allowed: bool, rows: &[(&'static str, Value, Changes<'_>)]) -> Vec<Row> {
    let spec = Kind::Job.object("any")["spec"].clone();
    let row = |(what, status, update): &(&'static str, Value, Changes<'_>)| {
        let old = json!({"spec": spec, "status": status});
        let new = changed(&old, "/status", update);
        Row { rule: rule.clone(), what, old, new, allowed }
    };
    rows.iter().map(row).collect()
}

pub(crate) fn waiting() -> Value {
    let conditions = [condition("Accepted", "False", "JobClassNotFound"), condition("Succeeded", "Unknown", "Pending")];
    json!({"observedGeneration": 1, "conditions": conditions})
}

pub(crate) fn accepted() -> Value {
    let full = Kind::Job.status();
    let mut conditions = vec![condition("Accepted", "True", "Valid"), condition("Scheduled", "False", "Pending")];
    conditions.push(condition("Succeeded", "Unknown", "Scheduling"));
    json!({"observedGeneration": 1, "conditions": conditions, "resolvedJobClass": full["resolvedJobClass"],
        "effectiveResources": full["effectiveResources"]})
}

pub(crate) fn scheduled() -> Value {
    let is_scheduled = condition("Scheduled", "True", "BackendCreated");
    changed(&accepted(), "", &[(SCHEDULED, is_scheduled), ("/execution", Kind::Job.status()["execution"].clone())])
}

pub(crate) fn running() -> Value {
    changed(&scheduled(), "", &[("/startTime", json!("2030-01-01T10:00:00Z"))])
}

/// What the controller writes at the end.
pub(crate) fn end() -> Vec<(&'static str, Value)> {
    vec![
        (SUCCEEDED, condition("Succeeded", "True", "Completed")),
        ("/completionTime", json!("2030-01-01T10:05:00Z")),
        ("/result", json!({"exitCode": 0, "reason": "Completed"})),
    ]
}

pub(crate) fn finished() -> Value {
    changed(&running(), "", &end())
}

/// Cancelled before it was accepted.
pub(crate) fn cancelled() -> Value {
    json!({"conditions": [condition("Succeeded", "False", "Cancelled")], "completionTime": "2030-01-01T10:05:00Z",
        "result": {"reason": "Cancelled"}})
}

fn times() -> Vec<Row> {
    let (start, end_time) = ("/startTime", "/completionTime");
    let started = || (start, json!("2030-01-01T10:00:00Z"));
    let fixed = rule("status.startTime", FINAL);
    let mut rows = status_rows(
        &fixed,
        true,
        &[("a running Job as before", running(), &[]), ("set for the first time", scheduled(), &[started()])],
    );
    rows.extend(status_rows(
        &fixed,
        false,
        &[
            ("later", running(), &[(start, json!("2030-01-01T10:00:01Z"))]),
            ("removed", running(), &[(start, Value::Null)]),
            ("removed at the end", running(), &[end(), vec![(start, Value::Null)]].concat()),
        ],
    ));
    let in_order = rule("status.startTime", "may be set only where the condition Scheduled is True");
    rows.extend(status_rows(&in_order, true, &[("set when Scheduled", scheduled(), &[started()])]));
    rows.extend(status_rows(
        &in_order,
        false,
        &[
            ("set when accepted", accepted(), &[started()]),
            ("set when waiting", waiting(), &[started()]),
            ("the first status", Value::Null, &[("", json!({"startTime": "2030-01-01T10:00:00Z"}))]),
        ],
    ));
    let fixed = rule("status.completionTime", FINAL);
    rows.extend(status_rows(
        &fixed,
        true,
        &[("a finished Job as before", finished(), &[]), ("set at the end", running(), &end())],
    ));
    rows.extend(status_rows(
        &fixed,
        false,
        &[
            ("later", finished(), &[(end_time, json!("2030-01-01T10:05:01Z"))]),
            ("removed", finished(), &[(end_time, Value::Null)]),
            ("of a cancelled Job, later", cancelled(), &[(end_time, json!("2030-01-01T10:06:00Z"))]),
        ],
    ));
    let after_start = rule("status.completionTime", "must not be before startTime");
    rows.extend(status_rows(
        &after_start,
        true,
        &[
            ("at startTime", running(), &[end(), vec![(end_time, json!("2030-01-01T10:00:00Z"))]].concat()),
            ("without startTime", scheduled(), &end()),
        ],
    ));
    rows.extend(status_rows(
        &after_start,
        false,
        &[("a second before", running(), &[end(), vec![(end_time, json!("2030-01-01T09:59:59Z"))]].concat())],
    ));
    rows
}

fn outcome() -> Vec<Row> {
    let exactly = rule("status.completionTime", "must be set exactly when the condition Succeeded is True or False");
    let mut rows = status_rows(
        &exactly,
        true,
        &[
            ("both at once", running(), &end()),
            ("neither", accepted(), &[("/observedGeneration", json!(2))]),
            ("cancelled as the first status", Value::Null, &[("", cancelled())]),
            ("an empty status", Value::Null, &[("", json!({}))]),
        ],
    );
    rows.extend(status_rows(
        &exactly,
        false,
        &[
            ("only the time", running(), &[("/completionTime", json!("2030-01-01T10:05:00Z"))]),
            ("only the outcome", running(), &[(SUCCEEDED, condition("Succeeded", "False", "ProcessFailed"))]),
            (
                "only the time, as the first status",
                Value::Null,
                &[("", json!({"completionTime": "2030-01-01T10:05:00Z"}))],
            ),
        ],
    ));
    rows
}

/// What may follow the end.
fn additions() -> Vec<Row> {
    let nothing = rule("status.completionTime", "nothing is added once it is set");
    let full = finished();
    let mut rows = status_rows(
        &nothing,
        true,
        &[
            ("a newer observedGeneration", finished(), &[("/observedGeneration", json!(2))]),
            ("the outcome's observedGeneration", finished(), &[("/conditions/2/observedGeneration", json!(2))]),
            (
                "an administrator's Released",
                finished(),
                &[(
                    "/conditions",
                    json!([
                        full["conditions"][0],
                        full["conditions"][1],
                        full["conditions"][2],
                        condition("Released", "True", "Administrator")
                    ]),
                )],
            ),
        ],
    );
    rows.extend(status_rows(
        &nothing,
        false,
        &[
            ("startTime", changed(&scheduled(), "", &end()), &[("/startTime", json!("2030-01-01T10:00:00Z"))]),
            ("result", changed(&cancelled(), "", &[("/result", Value::Null)]), &[("/result", json!({"exitCode": 0}))]),
            ("resolvedJobClass", cancelled(), &[("/resolvedJobClass", full["resolvedJobClass"].clone())]),
            ("effectiveResources", cancelled(), &[("/effectiveResources", full["effectiveResources"].clone())]),
            ("execution", cancelled(), &[("/execution", full["execution"].clone())]),
        ],
    ));
    rows
}

fn result_and_class() -> Vec<Row> {
    let fixed = rule("status.result", FINAL);
    let mut rows = status_rows(
        &fixed,
        true,
        &[("a finished Job as before", finished(), &[]), ("set at the end", running(), &end())],
    );
    rows.extend(status_rows(
        &fixed,
        false,
        &[
            ("another exit code", finished(), &[("/result/exitCode", json!(1))]),
            ("no exit code any more", finished(), &[("/result/exitCode", Value::Null)]),
            ("an exit code added", cancelled(), &[("/result/exitCode", json!(143))]),
            ("another reason", finished(), &[("/result/reason", json!("Other"))]),
            ("emptied", finished(), &[("/result", json!({}))]),
            ("removed", finished(), &[("/result", Value::Null)]),
        ],
    ));
    let at_the_end = rule("status.result", "may be set only together with completionTime");
    rows.extend(status_rows(&at_the_end, true, &[("set at the end", running(), &end())]));
    rows.extend(status_rows(&at_the_end, false, &[("set before", running(), &[("/result", json!({"exitCode": 0}))])]));

    let fixed = rule("status.resolvedJobClass", FINAL);
    let full = finished();
    rows.extend(status_rows(
        &fixed,
        true,
        &[("an accepted Job as before", accepted(), &[]), ("set for the first time", waiting(), &[("", accepted())])],
    ));
    rows.extend(status_rows(
        &fixed,
        false,
        &[
            ("another uid", accepted(), &[("/resolvedJobClass/uid", json!("other"))]),
            ("other parameters", accepted(), &[("/resolvedJobClass/parametersRef/uid", json!("other"))]),
            ("no uid of the parameters", accepted(), &[("/resolvedJobClass/parametersRef/uid", Value::Null)]),
            ("removed", finished(), &[("/resolvedJobClass", Value::Null)]),
        ],
    ));
    let with_class =
        rule("status.conditions", "Accepted may be True only together with resolvedJobClass and effectiveResources");
    rows.extend(status_rows(&with_class, true, &[("with both", waiting(), &[("", accepted())])]));
    rows.extend(status_rows(
        &with_class,
        false,
        &[
            ("with neither", waiting(), &[(ACCEPTED, condition("Accepted", "True", "Valid"))]),
            ("without the resources", waiting(), &[("", accepted()), ("/effectiveResources", Value::Null)]),
            ("without the class", waiting(), &[("", accepted()), ("/resolvedJobClass", Value::Null)]),
            ("as the first status", Value::Null, &[("", json!({"conditions": full["conditions"]}))]),
        ],
    ));
    rows
}

/// What is never removed as a whole.
fn parts() -> Vec<Row> {
    let whole = rule("status", KEPT);
    let mut rows = status_rows(
        &whole,
        true,
        &[("none as before", Value::Null, &[]), ("set for the first time", Value::Null, &[("", waiting())])],
    );
    rows.extend(status_rows(
        &whole,
        false,
        &[
            ("of a waiting Job", waiting(), &[("", Value::Null)]),
            ("of a finished Job", finished(), &[("", Value::Null)]),
        ],
    ));
    for (at, field) in [
        ("/effectiveResources", "status.effectiveResources"),
        ("/execution", "status.execution"),
        ("/conditions", "status.conditions"),
    ] {
        rows.extend(status_rows(
            &rule(field, KEPT),
            true,
            &[("as before", scheduled(), &[]), ("set for the first time", json!({}), &[("", scheduled())])],
        ));
        rows.extend(status_rows(
            &rule(field, KEPT),
            false,
            &[
                ("removed", scheduled(), &[(at, Value::Null)]),
                ("removed with all else", scheduled(), &[("", json!({}))]),
            ],
        ));
    }
    let generation = rule("status.observedGeneration", "never goes back");
    rows.extend(status_rows(
        &generation,
        true,
        &[
            ("a newer one", waiting(), &[("/observedGeneration", json!(2))]),
            ("set for the first time", json!({}), &[("/observedGeneration", json!(1))]),
        ],
    ));
    rows.extend(status_rows(
        &generation,
        false,
        &[
            ("an older one", waiting(), &[("/observedGeneration", json!(0))]),
            ("removed", waiting(), &[("/observedGeneration", Value::Null)]),
        ],
    ));
    rows
}
