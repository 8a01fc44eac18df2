//! Updates of `status.effectiveResources` (A4, C2): fixed by value.

use serde_json::{Value, json};

use super::{
    Row,
    job_spec::figures,
    status::{finished, rule, status_rows},
};

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for list in ["requests", "limits"] {
        let at = format!("/effectiveResources/{list}");
        let fixed = rule(&format!("status.effectiveResources.{list}"), "never changes once it is set");
        let without = super::changed(&finished(), "", &[(&at, Value::Null)]);
        rows.extend(status_rows(
            &fixed,
            true,
            &[("as before", finished(), &[]), ("none as before", without.clone(), &[])],
        ));
        rows.extend(status_rows(
            &fixed,
            false,
            &[("removed", finished(), &[(&at, Value::Null)]), ("set later", without, &[(&at, json!({"cpu": "1"}))])],
        ));
    }
    for (list, name, bounds) in figures() {
        let at = format!("/effectiveResources/{list}/{name}");
        let at = at.as_str();
        let field = format!("status.effectiveResources.{list}.{name}");
        let with = |quantity: Value| super::changed(&finished(), "", &[(at, quantity)]);
        rows.extend(status_rows(
            &rule(&field, "is immutable"),
            true,
            &[
                ("as before", finished(), &[]),
                ("1 to 1000m", with(json!("1")), &[(at, json!("1000m"))]),
                ("0.5Gi to 512Mi", with(json!("0.5Gi")), &[(at, json!("512Mi"))]),
                ("none as before", with(Value::Null), &[]),
            ],
        ));
        rows.extend(status_rows(
            &rule(&field, "is immutable"),
            false,
            &[
                ("another", finished(), &[(at, json!("7"))]),
                ("removed", finished(), &[(at, Value::Null)]),
                ("set later", with(Value::Null), &[(at, json!("1"))]),
            ],
        ));
        rows.extend(status_rows(
            &rule(&field, bounds),
            true,
            &[("a text to a number", with(json!("1")), &[(at, json!(1))])],
        ));
        rows.extend(status_rows(
            &rule(&field, bounds),
            false,
            &[("to a negative one", finished(), &[(at, json!("-1"))])],
        ));
    }
    rows
}
