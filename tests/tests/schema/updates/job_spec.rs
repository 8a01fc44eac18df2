//! Updates of a Job's spec (A2, A3, A7).

use serde_json::{Value, json};

use super::{Row, Rule, spec_rows};
use crate::kinds::Kind;

const IMMUTABLE: &str = "is immutable";
pub(crate) const CPU: &str = "must be a quantity from 0 to 9223372036854775";
pub(crate) const MEMORY: &str = "must be a quantity from 0 to 9223372036854775806";

pub(crate) fn rows() -> Vec<Row> {
    [lists(), words(), environment(), entries(), quantities(), quantity_bounds(), desired_state()].concat()
}

fn rule(field: &str, message: &str) -> Rule {
    Rule::new(Kind::Job, field, message)
}

/// Command, args and pull secrets: absent and empty are the same, all else is fixed, the order too.
fn lists() -> Vec<Row> {
    let mut rows = Vec::new();
    let secret = |name: &str| json!({"name": name});
    for (name, one, two) in [
        ("command", json!("a"), json!("b")),
        ("args", json!("a"), json!("b")),
        ("imagePullSecrets", secret("a"), secret("b")),
    ] {
        let at = format!("/task/{name}");
        let (at, rule) = (at.as_str(), rule(&format!("spec.task.{name}"), IMMUTABLE));
        let both = json!([one, two]);
        rows.extend(spec_rows(
            &rule,
            true,
            &[
                ("no change", &[], &[]),
                ("absent to empty", &[(at, Value::Null)], &[(at, json!([]))]),
                ("empty to absent", &[(at, json!([]))], &[(at, Value::Null)]),
                ("a label only", &[(at, both.clone())], &[]),
            ],
        ));
        rows.extend(spec_rows(
            &rule,
            false,
            &[
                ("another entry", &[(at, json!([one]))], &[(at, json!([two]))]),
                ("one more", &[(at, json!([one]))], &[(at, both.clone())]),
                ("one less", &[(at, both.clone())], &[(at, json!([one]))]),
                ("another order", &[(at, both.clone())], &[(at, json!([two, one]))]),
                ("absent to set", &[(at, Value::Null)], &[(at, both.clone())]),
                ("set to absent", &[(at, both.clone())], &[(at, Value::Null)]),
                ("set to empty", &[(at, both.clone())], &[(at, json!([]))]),
            ],
        ));
    }
    rows
}

/// Fields of one word or number.
fn words() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, field) in [("/task/workingDir", "spec.task.workingDir"), ("/jobClassName", "spec.jobClassName")] {
        rows.extend(spec_rows(
            &rule(field, IMMUTABLE),
            true,
            &[
                ("no change", &[], &[]),
                ("absent to empty", &[(name, Value::Null)], &[(name, json!(""))]),
                ("empty to absent", &[(name, json!(""))], &[(name, Value::Null)]),
            ],
        ));
        rows.extend(spec_rows(
            &rule(field, IMMUTABLE),
            false,
            &[
                ("another", &[], &[(name, json!("other"))]),
                ("absent to set", &[(name, Value::Null)], &[(name, json!("other"))]),
                ("set to absent", &[], &[(name, Value::Null)]),
                ("set to empty", &[], &[(name, json!(""))]),
            ],
        ));
    }
    let (image, deadline) = ("/task/image", "/activeDeadlineSeconds");
    rows.extend(spec_rows(&rule("spec.task.image", IMMUTABLE), true, &[("no change", &[], &[])]));
    rows.extend(spec_rows(&rule("spec.task.image", IMMUTABLE), false, &[("another", &[], &[(image, json!("other"))])]));
    let fixed = rule("spec.activeDeadlineSeconds", IMMUTABLE);
    rows.extend(spec_rows(
        &fixed,
        true,
        &[("no change", &[], &[]), ("absent as before", &[(deadline, Value::Null)], &[])],
    ));
    rows.extend(spec_rows(
        &fixed,
        false,
        &[
            ("longer", &[], &[(deadline, json!(3601))]),
            ("absent to set", &[(deadline, Value::Null)], &[(deadline, json!(1))]),
            ("set to absent", &[], &[(deadline, Value::Null)]),
        ],
    ));
    rows
}

fn environment() -> Vec<Row> {
    let env = "/task/env";
    let (a, b) = (json!({"name": "A", "value": "1"}), json!({"name": "B", "value": "2"}));
    let secret = |reference: Value| json!([{"name": "A", "valueFrom": {"secretKeyRef": reference}}]);
    let fixed = rule("spec.task.env", "is immutable, its order too");
    let mut rows = spec_rows(
        &fixed,
        true,
        &[
            ("no change", &[], &[]),
            ("absent to empty", &[(env, Value::Null)], &[(env, json!([]))]),
            ("empty to absent", &[(env, json!([]))], &[(env, Value::Null)]),
            (
                "the default name of a Secret",
                &[(env, secret(json!({"key": "k"})))],
                &[(env, secret(json!({"key": "k", "name": ""})))],
            ),
        ],
    );
    let literal = json!([{"name": "A", "value": "1"}]);
    rows.extend(spec_rows(
        &fixed,
        false,
        &[
            ("another order", &[(env, json!([a, b]))], &[(env, json!([b, a]))]),
            ("another value", &[(env, literal.clone())], &[(env, json!([{"name": "A", "value": "2"}]))]),
            ("another name", &[(env, literal.clone())], &[(env, json!([{"name": "B", "value": "1"}]))]),
            ("one more", &[(env, literal.clone())], &[(env, json!([a, b]))]),
            ("one less", &[(env, json!([a, b]))], &[(env, json!([a]))]),
            ("absent to set", &[(env, Value::Null)], &[(env, literal.clone())]),
            ("set to absent", &[], &[(env, Value::Null)]),
            ("a value to a Secret", &[(env, literal)], &[(env, secret(json!({"name": "s", "key": "k"})))]),
            (
                "optional absent to false",
                &[(env, secret(json!({"name": "s", "key": "k"})))],
                &[(env, secret(json!({"name": "s", "key": "k", "optional": false})))],
            ),
        ],
    ));
    rows
}

/// What one entry of the environment may be; since it may not change, an allowed update leaves it alone.
fn entries() -> Vec<Row> {
    let entry = rule("spec.task.env[]", "exactly one of value and valueFrom must be set");
    let source = rule("spec.task.env[].valueFrom", "exactly one of secretKeyRef and configMapKeyRef must be set");
    let key = json!({"name": "s", "key": "k"});
    let both = json!([{"name": "A", "value": "", "valueFrom": {"secretKeyRef": key}}]);
    let two_keys = json!([{"name": "A", "valueFrom": {"secretKeyRef": key, "configMapKeyRef": key}}]);
    let at = "/task/env";
    let mut rows = spec_rows(&entry, true, &[("no change", &[], &[])]);
    rows.extend(spec_rows(
        &entry,
        false,
        &[("to both", &[], &[(at, both)]), ("to neither", &[], &[(at, json!([{"name": "LITERAL"}]))])],
    ));
    rows.extend(spec_rows(&source, true, &[("no change", &[], &[])]));
    rows.extend(spec_rows(
        &source,
        false,
        &[("to both", &[], &[(at, two_keys)]), ("to neither", &[], &[(at, json!([{"name": "A", "valueFrom": {}}]))])],
    ));
    rows
}

/// The four figures: same value, other text, is no change.
fn quantities() -> Vec<Row> {
    let mut rows = Vec::new();
    for (list, name, _) in figures() {
        let (at, other) = (format!("/resources/{list}/{name}"), if list == "limits" { "requests" } else { "limits" });
        let (at, moved) = (at.as_str(), format!("/resources/{other}/{name}"));
        let list_at = format!("/resources/{list}");
        let fixed = rule(&format!("spec.resources.{list}.{name}"), IMMUTABLE);
        rows.extend(spec_rows(
            &fixed,
            true,
            &[
                ("no change", &[], &[]),
                ("1 to 1000m", &[(at, json!("1"))], &[(at, json!("1000m"))]),
                ("a text to a number", &[(at, json!("1"))], &[(at, json!(1))]),
                ("0.5Gi to 512Mi", &[(at, json!("0.5Gi"))], &[(at, json!("512Mi"))]),
                ("1G to 1e9", &[(at, json!("1G"))], &[(at, json!("1e9"))]),
                ("no resources to empty ones", &[("/resources", Value::Null)], &[("/resources", json!({}))]),
                ("empty resources to none", &[("/resources", json!({}))], &[("/resources", Value::Null)]),
                ("an empty list to none", &[(&list_at, json!({}))], &[(&list_at, Value::Null)]),
                (
                    "cancelled without resources",
                    &[("/resources", Value::Null)],
                    &[("/desiredState", json!("Cancelled"))],
                ),
                (
                    "kept longer without resources",
                    &[("/resources", Value::Null)],
                    &[("/ttlSecondsAfterFinished", json!(9))],
                ),
            ],
        ));
        rows.extend(spec_rows(
            &fixed,
            false,
            &[
                ("1 to 1001m", &[(at, json!("1"))], &[(at, json!("1001m"))]),
                ("1Gi to 1G", &[(at, json!("1Gi"))], &[(at, json!("1G"))]),
                ("absent to set", &[(at, Value::Null)], &[(at, json!("1"))]),
                ("no resources to some", &[("/resources", Value::Null)], &[(at, json!("1"))]),
                ("set to absent", &[], &[(at, Value::Null)]),
                ("0 to absent", &[(at, json!("0"))], &[(at, Value::Null)]),
                ("set to no list", &[], &[(&list_at, Value::Null)]),
                ("set to no resources", &[], &[("/resources", Value::Null)]),
                ("moved to the other list", &[(&moved, Value::Null)], &[(at, Value::Null), (&moved, json!("1"))]),
            ],
        ));
    }
    rows
}

fn quantity_bounds() -> Vec<Row> {
    let mut rows = Vec::new();
    for (list, name, message) in figures() {
        let at = format!("/resources/{list}/{name}");
        let bounds = rule(&format!("spec.resources.{list}.{name}"), message);
        rows.extend(spec_rows(&bounds, true, &[("a text to a number", &[(&at, json!("1"))], &[(&at, json!(1))])]));
        rows.extend(spec_rows(&bounds, false, &[("to a negative one", &[], &[(&at, json!("-1"))])]));
    }
    rows
}

/// The figures of resources with the message of their bounds.
pub(crate) fn figures() -> [(&'static str, &'static str, &'static str); 4] {
    [("requests", "cpu", CPU), ("requests", "memory", MEMORY), ("limits", "cpu", CPU), ("limits", "memory", MEMORY)]
}

fn desired_state() -> Vec<Row> {
    let (at, ttl) = ("/desiredState", "/ttlSecondsAfterFinished");
    let cancelled: &[_] = &[(at, json!("Cancelled"))];
    let once = rule("spec.desiredState", "may only go from Running to Cancelled, once");
    let mut rows = spec_rows(
        &once,
        true,
        &[
            ("Running to Cancelled", &[], cancelled),
            ("Running to absent", &[], &[(at, Value::Null)]),
            ("absent to Running", &[(at, Value::Null)], &[(at, json!("Running"))]),
            ("absent to Cancelled", &[(at, Value::Null)], cancelled),
            ("Cancelled as before", cancelled, &[]),
            ("a cancelled Job kept longer", cancelled, &[(ttl, json!(9))]),
            ("kept longer", &[], &[(ttl, json!(9))]),
            ("kept for ever", &[], &[(ttl, Value::Null)]),
            ("a TTL where there was none", &[(ttl, Value::Null)], &[(ttl, json!(0))]),
            ("only an image, cancelled", &[("/task", json!({"image": "app"})), ("/resources", Value::Null)], cancelled),
        ],
    );
    rows.extend(spec_rows(
        &once,
        false,
        &[
            ("Cancelled to Running", cancelled, &[(at, json!("Running"))]),
            ("Cancelled to absent", cancelled, &[(at, Value::Null)]),
        ],
    ));
    rows
}
